/* The floating-point control register: every public call that computes sets the default and restores the caller's. A
 * host linked with fast-math flags starts with flush-to-zero. docs/numerics.md, rule 0. */
#ifndef NIB_BASE_FPENV_H
#define NIB_BASE_FPENV_H

#include <stdint.h>

/* Sets round to nearest, gradual underflow, all exceptions masked; returns what to restore. */
uint64_t nib_fp_enter(void);
void nib_fp_leave(uint64_t saved);

#endif
