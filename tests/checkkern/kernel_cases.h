/* Every function of the table against the reference, a case at a time. */
#ifndef NIB_KERNEL_CASES_H
#define NIB_KERNEL_CASES_H

#include "kernel_data.h"

typedef struct check_function {
    const char *name;      /* as in nib_kernels */
    void (*run)(check *c); /* one case, everything drawn from c->seed */
    uint64_t n_cases;      /* of the full run */
} check_function;

extern const check_function check_functions[];
extern const size_t n_check_functions;

#endif
