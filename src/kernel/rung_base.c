/* The rung "base". */
#include "kernel/rung.h"

#include "kernel/isa_base.h"
#include "kernel/tpl_table.h"
