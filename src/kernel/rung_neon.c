/* The rung "neon". */
#include "kernel/rung.h"

#include "kernel/isa_neon.h"
#include "kernel/tpl_table.h"
