/* The rung "avx512vnni". */
#include "kernel/rung.h"

#define ISA_DOT_PRODUCTS
#include "kernel/isa_avx512.h"
#include "kernel/tpl_table.h"
