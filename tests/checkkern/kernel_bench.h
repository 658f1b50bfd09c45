/* Speeds of the kernels. */
#ifndef NIB_KERNEL_BENCH_H
#define NIB_KERNEL_BENCH_H

#include "kernel/kernel.h"

/* Prints the limits of the machine, then a line for each function (or the one named) and typical size: ns a call, GB/s of
 * what is read and written, operations or elements a second, the percentage of the limit that binds. */
void bench(const nib_kernels *kernels, const char *function);

#endif
