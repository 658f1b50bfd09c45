/* The choice of a rung at run time. */
#include "kernel/kernel.h"

#include <string.h>

#ifdef NIB_X86
#include <cpuid.h>
#endif
#ifdef NIB_NEON
#include <sys/auxv.h>
#endif

#include "kernel/rung.h"

typedef struct rung {
    const char *name;
    const nib_kernels *(*find)(void); /* NULL when this machine lacks it */
} rung;

static const nib_kernels *find_base(void) {
    return &nib_kernels_base;
}

#ifdef NIB_X86
/* clang 14's __builtin_cpu_supports does not know F16C: CPUID leaf 1, ECX bit 29. */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1u) != 0;
}

/* __builtin_cpu_supports asks the processor and, by XGETBV, whether the operating system saves the upper registers. */
static const nib_kernels *find_avx2(void) {
    __builtin_cpu_init();
    bool there = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    return there ? &nib_kernels_avx2 : NULL;
}

static const nib_kernels *find_avx512(void) {
    bool there = find_avx2() != NULL && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return there ? &nib_kernels_avx512 : NULL;
}

static const nib_kernels *find_avx512vnni(void) {
    return find_avx512() != NULL && __builtin_cpu_supports("avx512vnni") ? &nib_kernels_avx512vnni : NULL;
}
#else
static const nib_kernels *find_none(void) {
    return NULL;
}
#define find_avx2       find_none
#define find_avx512     find_none
#define find_avx512vnni find_none
#endif

#ifdef NIB_NEON
static const nib_kernels *find_neon(void) {
    return &nib_kernels_neon; /* part of every aarch64 */
}

static const nib_kernels *find_neondot(void) {
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? &nib_kernels_neondot : NULL;
}
#else
static const nib_kernels *no_neon(void) {
    return NULL;
}
#define find_neon    no_neon
#define find_neondot no_neon
#endif

static const rung rungs[] = {{"base", find_base},     {"avx2", find_avx2},
                             {"avx512", find_avx512}, {"avx512vnni", find_avx512vnni},
                             {"neon", find_neon},     {"neondot", find_neondot}};
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
