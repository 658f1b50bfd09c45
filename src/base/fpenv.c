/* The floating-point control register. */
#include "base/fpenv.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

/* The x87 word too: the C library's conversions of numbers ask it for the rounding. */
uint64_t nib_fp_enter(void) {
    unsigned saved = _mm_getcsr();
    uint16_t x87, plain = 0x037f;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    __asm__ volatile("fldcw %0" : : "m"(plain));
    _mm_setcsr(0x1f80);
    return (uint64_t)x87 << 32 | saved;
}

void nib_fp_leave(uint64_t saved) {
    uint16_t x87 = (uint16_t)(saved >> 32);
    __asm__ volatile("fldcw %0" : : "m"(x87));
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
