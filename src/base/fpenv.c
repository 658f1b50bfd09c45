/* The floating-point control register. */
#include "base/fpenv.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

uint64_t nib_fp_enter(void) {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return saved;
}

void nib_fp_leave(uint64_t saved) {
    _mm_setcsr((unsigned)saved);
}
#elif defined(__aarch64__)
uint64_t nib_fp_enter(void) {
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return saved;
}

void nib_fp_leave(uint64_t saved) {
    __asm__ volatile("msr fpcr, %0" : : "r"(saved));
}
#else
#error "the floating-point control register of this processor is not known"
#endif
