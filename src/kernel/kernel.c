/* The choice of a rung at run time. */
#include "kernel/kernel.h"

#include <string.h>

#ifdef NIB_HAVE_AVX2
#include <cpuid.h>
#endif

#include "kernel/rung.h"

typedef struct rung {
    const char *name;
    const nib_kernels *(*find)(void); /* NULL when this machine lacks it */
} rung;

static const nib_kernels *find_base(void) {
    return &nib_kernels_base;
}

#ifdef NIB_HAVE_AVX2
/* clang 14's __builtin_cpu_supports does not know F16C: CPUID leaf 1, ECX bit 29. */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1u) != 0;
}
#endif

/* __builtin_cpu_supports asks the processor and, by XGETBV, whether the operating system saves the upper registers. */
static const nib_kernels *find_avx2(void) {
#ifdef NIB_HAVE_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) {
        return &nib_kernels_avx2;
    }
#endif
    return NULL;
}

static const rung rungs[] = {{"base", find_base}, {"avx2", find_avx2}};
enum { N_RUNGS = sizeof rungs / sizeof *rungs };

const char *nib_kernels_name(size_t i) {
    return i < N_RUNGS ? rungs[i].name : NULL;
}

const nib_kernels *nib_kernels_find(const char *name) {
    for (size_t i = N_RUNGS; i-- > 0;) {
        bool best = strcmp(name, "auto") == 0;
        if (best || strcmp(name, rungs[i].name) == 0) {
            const nib_kernels *kernels = rungs[i].find();
            if (kernels != NULL || !best) {
                return kernels;
            }
        }
    }
    return NULL;
}

bool nib_kernels_selfcheck(const nib_kernels *kernels) {
    return kernels->selfcheck();
}
