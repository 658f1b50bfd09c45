/* fma(a, b, c) in binary32 for processors without the instruction. A header, because maths.c and the kernels' portable
 * rung both need it inlined; objects with other instruction set flags do not include it. */
#ifndef NIB_BASE_FMA_H
#define NIB_BASE_FMA_H

#include <stdint.h>
#include <string.h>

/* Round to odd (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
 * rounding to odd", 2008): the product is exact in binary64; the sum, when it is not exact, takes the neighbour whose
 * last bit is 1, so that the second rounding, to binary32, sees on which side of a tie the exact sum lies. 53 >= 2 x
 * 24 + 2 bits suffice, for subnormal results too. */
static inline float fma_by_odd(float a, float b, float c) {
    double product = (double)a * (double)b;
    double addend = (double)c;
    double sum = product + addend;
    double part = sum - product;
    double rest = (product - (sum - part)) + (addend - part); /* exact; NaN when the sum is not finite */
    uint64_t bits, rest_bits;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&rest_bits, &rest, sizeof rest_bits);
    uint64_t inexact = (uint64_t)((rest > 0.0) | (rest < 0.0));
    uint64_t step = 1 - (((bits ^ rest_bits) >> 63) << 1); /* away from 0 when both have one sign, else towards it */
    bits += step * (inexact & ~bits & 1);
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
}

/* 1 when (float)sum may not be the fma whose sum in binary64 this is: sum is half way between two binary32 numbers,
 * where the exact sum may not be, or it is subnormal in binary32 and half ways lie elsewhere; else 0, for 0 itself
 * too. */
static inline uint64_t fma_is_hard(double sum) {
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    uint64_t from_tie = (bits & 0x1fffffffu) ^ 0x10000000u, size = bits & 0x7fffffffffffffffu;
    uint64_t below_normal = (size - 0x3810000000000000u) & ~(size - 1);
    return ((from_tie - 1) | below_normal) >> 63;
}

#endif
