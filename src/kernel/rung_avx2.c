/* The rung "avx2". */
#include "kernel/rung.h"

#include "kernel/isa_avx2.h"
#include "kernel/tpl_table.h"
