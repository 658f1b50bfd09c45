/* Faults for the check of the check: tables in which one function is wrong in a way that is easily overlooked. */
#ifndef NIB_KERNEL_PLANT_H
#define NIB_KERNEL_PLANT_H

#include "kernel/kernel.h"

/* The table with the fault of that name; NULL when there is none of the name. */
const nib_kernels *planted(const nib_kernels *kernels, const char *name);

/* The names; NULL at the end. */
const char *plant_name(size_t i);

#endif
