/* The rung "neondot": "neon" with the dot product instructions of Armv8.2. */
#include "kernel/rung.h"

#define ISA_DOT_PRODUCTS
#include "kernel/isa_neon.h"
#include "kernel/tpl_table.h"
