/* Speeds of the kernels. */
#ifndef NIB_KERNEL_BENCH_H
#define NIB_KERNEL_BENCH_H

#include "kernel/kernel.h"

/* Prints a line for each function (or the one named) and typical size: ns a call, GB/s of what is read, GFLOP/s. */
void bench(const nib_kernels *kernels, const char *function);

#endif
