/* What every rung's object begins with: the tables' declarations, and the refusal to be compiled so that it computes
 * something else. A rung is rung_<name>.c: its vectors (isa_<name>.h), then the templates (tpl_*.h), all static. */
#ifndef NIB_KERNEL_RUNG_H
#define NIB_KERNEL_RUNG_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/kernel.h"
#include "kernel/pack.h"

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||                         \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "nib computes the same bits everywhere; it cannot be compiled with fast-math flags"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "float must be evaluated in its own precision");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "weights are read as they lie in the file, little endian");

extern const nib_kernels nib_kernels_base;
extern const nib_kernels nib_kernels_avx2;
extern const nib_kernels nib_kernels_avx512;
extern const nib_kernels nib_kernels_avx512vnni;
extern const nib_kernels nib_kernels_neon;
extern const nib_kernels nib_kernels_neondot;

#endif
