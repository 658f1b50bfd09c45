/* The rung "avx512vnni". */
#include "kernel/rung.h"

#include "kernel/isa_avx512.h"
#include "kernel/tpl_table.h"
