/* What the rungs of x86 share: folds of lanes in memory, single numbers of binary16. Included by isa_avx2.h and
 * isa_avx512.h, whose objects each have their own copies. */
#ifndef NIB_KERNEL_ISA_X86_H
#define NIB_KERNEL_ISA_X86_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LANE_OP static inline __attribute__((always_inline, unused))

/* Loops whose bounds are constants where they are inlined, written out: what depends on the index becomes a constant and
 * small arrays become registers. */
#ifdef __clang__
#define UNROLL_PARTS _Pragma("clang loop unroll_count(8)")
#else
#define UNROLL_PARTS _Pragma("GCC unroll 8")
#endif

/* Two sums of 8 numbers, 4 apart: those of a in the lower half, of b in the upper. */
LANE_OP __m256 fold_pair_4(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

LANE_OP __m256 fold_first(const float *lanes) {
    return _mm256_add_ps(_mm256_loadu_ps(lanes), _mm256_loadu_ps(lanes + 8));
}

/* Four sums in the order 0, 2, 1, 3 of pairs of lanes, from lanes of i, i + 1, j, j + 1. */
LANE_OP __m256 fold_four(const float *i, const float *j) {
    __m256 a = fold_pair_4(fold_first(i), fold_first(i + 16)), b = fold_pair_4(fold_first(j), fold_first(j + 16));
    __m256d low = _mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b));
    __m256d high = _mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b));
    return _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
}

LANE_OP void v16_fold_8(float *sum, const float *lanes) {
    /* Lower halves: sums 0, 2 and 4, 6; upper halves: 1, 3 and 5, 7. */
    __m256 a = fold_four(lanes, lanes + 32), b = fold_four(lanes + 64, lanes + 96);
    __m256 c = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
    _mm256_storeu_ps(sum, _mm256_permutevar8x32_ps(c, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

/* The fold of 16 lanes whose halves are lo and hi. */
LANE_OP float fold_halves(__m256 lo, __m256 hi) {
    __m256 eight = _mm256_add_ps(lo, hi);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LANE_OP float largest_of_8(__m256 eight) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

LANE_OP uint32_t largest_bits_of_8(__m256i eight) {
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/* The sum of 16 signed bytes. */
LANE_OP int16_t sum_of_bytes(__m128i a) {
    __m128i sums = _mm_sad_epu8(_mm_xor_si128(a, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return (int16_t)(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 16 * 128);
}

LANE_OP __m128i load_128(const unsigned char *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

LANE_OP __m256i load_256(const unsigned char *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

LANE_OP int32_t load_word(const void *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

LANE_OP float load_half(const unsigned char *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return _cvtsh_ss(half);
}

/* By way of memory, whence a number is spread to all lanes by the load alone: the shuffles that the compiler would take
 * instead compete with those of the weights (Q4_1, one token: 10.0 instead of 11.7 G weights/s). The weights behind the
 * scales are read as well, so p must have 8 bytes. */
LANE_OP void load_2_halves(float *two, const unsigned char *p, float unit) {
    __m128 four = _mm_mul_ps(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)p)), _mm_set1_ps(unit));
    float room[4];
    _mm_storeu_ps(room, four);
    __asm__("" : "+m"(room));
    memcpy(two, room, 2 * sizeof *two);
}

LANE_OP float scalar_fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}

#endif
