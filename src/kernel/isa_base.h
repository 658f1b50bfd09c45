/* The portable rung's vectors: 16 lanes as arrays, every operation a loop that the compiler may vectorise. The
 * operations are those of isa_avx2.h; the templates (tpl_*.h) know no others. */
#ifndef NIB_KERNEL_ISA_BASE_H
#define NIB_KERNEL_ISA_BASE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fma.h"
#include "base/maths.h"

#define ISA_NAME     "base"
#define ISA_TABLE    nib_kernels_base
#define LANE_OP      static inline __attribute__((unused))
#define FOR_LANES(i) for (int i = 0; i < 16; i++)

/* Software fma is too long to be repeated for larger tiles, and its speed does not depend on them. */
#define TILE_ROWS   1
#define TILE_TOKENS 1
#define MATVEC_ROWS 1
#define UNROLL_PARTS

typedef struct v16 {
    float x[16];
} v16;

/* v16_from_signed gives q / SIGNED_UNIT, so that a rung may take a cheaper way than this one's. */
#define SIGNED_UNIT 1.0f

typedef struct b16 {
    uint8_t x[16];
} b16;

/* fma in one lane: the instruction where the whole program is compiled for a processor that has it. */
LANE_OP float lane_fma(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    return fma_by_odd(a, b, c);
#endif
}

LANE_OP uint32_t lane_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LANE_OP float lane_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

LANE_OP v16 v16_set1(float x) {
    v16 y;
    FOR_LANES(i) {
        y.x[i] = x;
    }
    return y;
}

/* a in lanes 0 .. 7, b in the others. */
LANE_OP v16 v16_set2(float a, float b) {
    v16 y;
    FOR_LANES(i) {
        y.x[i] = i < 8 ? a : b;
    }
    return y;
}

LANE_OP v16 v16_load(const float *p) {
    v16 y;
    memcpy(y.x, p, sizeof y.x);
    return y;
}

/* The first n lanes from p, the others +0; nothing beyond p[n - 1] is read. */
LANE_OP v16 v16_load_n(const float *p, int64_t n) {
    v16 y = {{0}};
    memcpy(y.x, p, (size_t)n * sizeof *p);
    return y;
}

LANE_OP void v16_store(float *p, v16 a) {
    memcpy(p, a.x, sizeof a.x);
}

LANE_OP void v16_store_n(float *p, v16 a, int64_t n) {
    memcpy(p, a.x, (size_t)n * sizeof *p);
}

LANE_OP v16 v16_add(v16 a, v16 b) {
    FOR_LANES(i) {
        a.x[i] += b.x[i];
    }
    return a;
}

LANE_OP v16 v16_sub(v16 a, v16 b) {
    FOR_LANES(i) {
        a.x[i] -= b.x[i];
    }
    return a;
}

LANE_OP v16 v16_mul(v16 a, v16 b) {
    FOR_LANES(i) {
        a.x[i] *= b.x[i];
    }
    return a;
}

LANE_OP v16 v16_div(v16 a, v16 b) {
    FOR_LANES(i) {
        a.x[i] /= b.x[i];
    }
    return a;
}

/* Not inlined: in the loops around it the compiler would no longer use vectors. 16 lanes take 20 ns; by rounding to odd
 * alone 46. */
static __attribute__((noinline, unused)) void fma_16(float *restrict y, const float *a, const float *b,
                                                     const float *c) {
#ifdef __FP_FAST_FMAF
    FOR_LANES(i) {
        y[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
#else
    double sum[16];
    uint64_t hard = 0;
    FOR_LANES(i) {
        sum[i] = (double)a[i] * (double)b[i] + (double)c[i];
    }
    FOR_LANES(i) {
        y[i] = (float)sum[i];
    }
    FOR_LANES(i) {
        hard |= fma_is_hard(sum[i]);
    }
    for (int i = 0; hard != 0 && i < 16; i++) {
        y[i] = fma_by_odd(a[i], b[i], c[i]);
    }
#endif
}

LANE_OP v16 v16_fma(v16 a, v16 b, v16 c) {
    v16 y;
    fma_16(y.x, a.x, b.x, c.x);
    return y;
}

/* a * b + c where a * b is exact: one and two roundings are the same, and an add is cheaper than a software fma. */
LANE_OP v16 v16_fma_exact(v16 a, v16 b, v16 c) {
    FOR_LANES(i) {
        c.x[i] = a.x[i] * b.x[i] + c.x[i];
    }
    return c;
}

/* a > b ? a : b */
LANE_OP v16 v16_max(v16 a, v16 b) {
    FOR_LANES(i) {
        a.x[i] = a.x[i] > b.x[i] ? a.x[i] : b.x[i];
    }
    return a;
}

/* a < b ? a : b */
LANE_OP v16 v16_min(v16 a, v16 b) {
    FOR_LANES(i) {
        a.x[i] = a.x[i] < b.x[i] ? a.x[i] : b.x[i];
    }
    return a;
}

LANE_OP v16 v16_abs(v16 a) {
    FOR_LANES(i) {
        a.x[i] = lane_from_bits(lane_bits(a.x[i]) & 0x7fffffffu);
    }
    return a;
}

LANE_OP v16 v16_neg(v16 a) {
    FOR_LANES(i) {
        a.x[i] = lane_from_bits(lane_bits(a.x[i]) ^ 0x80000000u);
    }
    return a;
}

/* a, which is not negative, with the sign of s. */
LANE_OP v16 v16_sign(v16 a, v16 s) {
    FOR_LANES(i) {
        a.x[i] = lane_from_bits(lane_bits(a.x[i]) | (lane_bits(s.x[i]) & 0x80000000u));
    }
    return a;
}

/* a > b ? yes : no */
LANE_OP v16 v16_if_above(v16 a, v16 b, v16 yes, v16 no) {
    FOR_LANES(i) {
        no.x[i] = a.x[i] > b.x[i] ? yes.x[i] : no.x[i];
    }
    return no;
}

/* a is NaN ? yes : no */
LANE_OP v16 v16_if_nan(v16 a, v16 yes, v16 no) {
    FOR_LANES(i) {
        no.x[i] = a.x[i] != a.x[i] ? yes.x[i] : no.x[i];
    }
    return no;
}

/* Lanes whose index is in lo .. hi from a, the others from b. */
LANE_OP v16 v16_if_between(int64_t lo, int64_t hi, v16 a, v16 b) {
    FOR_LANES(i) {
        b.x[i] = i >= lo && i <= hi ? a.x[i] : b.x[i];
    }
    return b;
}

/* y * 2^n for a normal result; the low 9 bits of shifted's pattern are n. */
LANE_OP v16 v16_scale_by_bits(v16 y, v16 shifted) {
    FOR_LANES(i) {
        y.x[i] = lane_from_bits(lane_bits(y.x[i]) + (lane_bits(shifted.x[i]) << 23));
    }
    return y;
}

/* Whether every lane is below limit (a NaN is not). */
LANE_OP bool v16_all_below(v16 a, v16 limit) {
    bool all = true;
    FOR_LANES(i) {
        all &= a.x[i] < limit.x[i];
    }
    return all;
}

/* The lanes added 8 apart, then 4, 2, 1. */
LANE_OP float v16_fold(v16 a) {
    for (int step = 8; step > 0; step /= 2) {
        for (int i = 0; i < step; i++) {
            a.x[i] += a.x[i + step];
        }
    }
    return a.x[0];
}

/* The folds of 8 times 16 numbers. */
LANE_OP void v16_fold_8(float *sum, const float *lanes) {
    for (int i = 0; i < 8; i++) {
        sum[i] = v16_fold(v16_load(lanes + 16 * i));
    }
}

LANE_OP float v16_largest(v16 a) {
    for (int step = 8; step > 0; step /= 2) {
        for (int i = 0; i < step; i++) {
            a.x[i] = a.x[i] > a.x[i + step] ? a.x[i] : a.x[i + step];
        }
    }
    return a.x[0];
}

/* The largest of both as integers; no sign bit is set. */
LANE_OP uint32_t v16_largest_bits(v16 a, v16 b) {
    uint32_t largest = 0;
    FOR_LANES(i) {
        uint32_t x = lane_bits(a.x[i]), y = lane_bits(b.x[i]);
        largest = x > largest ? x : largest;
        largest = y > largest ? y : largest;
    }
    return largest;
}

/* q [16] = the nearest integers, ties to even, of -127 .. 127; returns their sum. */
LANE_OP int16_t v16_round(int8_t *q, v16 a) {
    int sum = 0;
    FOR_LANES(i) {
        int nearest = (int)((a.x[i] + 0x1.8p23f) - 0x1.8p23f);
        q[i] = (int8_t)nearest;
        sum += nearest;
    }
    return (int16_t)sum;
}

LANE_OP float v16_first(v16 a) {
    return a.x[0];
}

/* Even and odd elements of p [32], and back. */
LANE_OP void v16_unzip(v16 *even, v16 *odd, const float *p) {
    FOR_LANES(i) {
        even->x[i] = p[2 * i];
        odd->x[i] = p[2 * i + 1];
    }
}

LANE_OP void v16_zip(float *p, v16 even, v16 odd) {
    FOR_LANES(i) {
        p[2 * i] = even.x[i];
        p[2 * i + 1] = odd.x[i];
    }
}

/* 16 numbers of binary16, of bfloat16, one of binary16. */
LANE_OP v16 v16_load_f16(const unsigned char *p) {
    v16 y;
    FOR_LANES(i) {
        uint16_t half;
        memcpy(&half, p + 2 * i, sizeof half);
        y.x[i] = nib_half_to_float(half);
    }
    return y;
}

LANE_OP void v16_store_f16(uint16_t *p, v16 a) {
    FOR_LANES(i) {
        p[i] = nib_half_from_float(a.x[i]);
    }
}

LANE_OP v16 v16_load_bf16(const unsigned char *p) {
    v16 y;
    FOR_LANES(i) {
        uint16_t bits;
        memcpy(&bits, p + 2 * i, sizeof bits);
        y.x[i] = lane_from_bits((uint32_t)bits << 16);
    }
    return y;
}

LANE_OP float load_half(const unsigned char *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return nib_half_to_float(half);
}

/* The two numbers of binary16 at p, times unit. */
LANE_OP void load_2_halves(float *two, const unsigned char *p, float unit) {
    two[0] = load_half(p) * unit;
    two[1] = load_half(p + 2) * unit;
}

/* exp of one number: the scalar definition instead of 16 lanes; and of y [n] in place. */
#define ISA_EXP1(x)        nib_expf(x)
#define ISA_EXP_ROWS(y, n) exp_each(y, n)

LANE_OP void exp_each(float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = nib_expf(y[i]);
    }
}

LANE_OP float scalar_fma(float a, float b, float c) {
    return lane_fma(a, b, c);
}

/* The lanes that a tile computes in one pass: all of them. */
enum { PASS_LANES = 16 };
typedef v16 vpass;

LANE_OP vpass vpass_zero(void) {
    return v16_set1(0.0f);
}

LANE_OP vpass vpass_load(const float *p) {
    return v16_load(p);
}

LANE_OP void vpass_store(float *p, vpass a) {
    v16_store(p, a);
}

LANE_OP vpass vpass_fma(vpass a, vpass b, vpass c) {
    return v16_fma(a, b, c);
}

LANE_OP vpass vpass_set1(float x) {
    return v16_set1(x);
}

LANE_OP vpass vpass_add(vpass a, vpass b) {
    return v16_add(a, b);
}

LANE_OP vpass vpass_mul(vpass a, vpass b) {
    return v16_mul(a, b);
}

LANE_OP vpass vpass_neg(vpass a) {
    return v16_neg(a);
}

/* PASS_LANES numbers of binary16, unsigned bytes, signed bytes. */
LANE_OP vpass vpass_load_f16(const unsigned char *p) {
    return v16_load_f16(p);
}

LANE_OP vpass vpass_load_unsigned(const unsigned char *p) {
    vpass y;
    FOR_LANES(i) {
        y.x[i] = (float)p[i];
    }
    return y;
}

LANE_OP vpass vpass_load_signed(const unsigned char *p) {
    vpass y;
    FOR_LANES(i) {
        y.x[i] = (float)(int8_t)p[i];
    }
    return y;
}

/* Packed products: PASS_LANES rows at a time, PACKED_TOKENS tokens. wpass: 4 bytes of each row. dots: sums of products of
 * bytes, which may hold no more than CHAIN_<bits> groups of 4 before dots_sum makes 32-bit integers of them. OFFSET_8 is
 * what wpass_signed adds to the signed bytes. */
enum { PACKED_TOKENS = 1, CHAIN_4 = 8, CHAIN_5 = 8, CHAIN_6 = 8, CHAIN_8 = 8, OFFSET_8 = 0 };

typedef struct wpass {
    uint8_t x[64];
} wpass;

typedef struct dots {
    int32_t x[16];
} dots;

#define FOR_BYTES(i) for (int i = 0; i < 64; i++)

LANE_OP wpass wpass_load(const unsigned char *p) {
    wpass y;
    memcpy(y.x, p, sizeof y.x);
    return y;
}

LANE_OP wpass wpass_low4(wpass a) {
    FOR_BYTES(i) {
        a.x[i] = a.x[i] & 15;
    }
    return a;
}

LANE_OP wpass wpass_high4(wpass a) {
    FOR_BYTES(i) {
        a.x[i] = (uint8_t)(a.x[i] >> 4);
    }
    return a;
}

/* low | bit `bit` of each byte as 16; low | bits shift, shift + 1 as 16 and 32. */
LANE_OP wpass wpass_with_fifth(wpass low, wpass fifths, int bit) {
    FOR_BYTES(i) {
        low.x[i] = (uint8_t)(low.x[i] | (fifths.x[i] >> bit & 1) << 4);
    }
    return low;
}

LANE_OP wpass wpass_with_pair(wpass low, wpass pairs, int shift) {
    FOR_BYTES(i) {
        low.x[i] = (uint8_t)(low.x[i] | (pairs.x[i] >> shift & 3) << 4);
    }
    return low;
}

LANE_OP wpass wpass_signed(wpass a) {
    return a;
}

/* 4 bytes for every row. */
LANE_OP wpass wpass_spread(const void *four) {
    wpass y;
    for (int r = 0; r < 16; r++) {
        memcpy(y.x + 4 * r, four, 4);
    }
    return y;
}

/* Row by row the sum of w[j] * x[j], w unsigned and x signed, added to sum; and of nothing. */
LANE_OP dots dots_add(dots sum, wpass w, wpass x) {
    FOR_BYTES(i) {
        sum.x[i / 4] += w.x[i] * (int8_t)x.x[i];
    }
    return sum;
}

LANE_OP dots dots_begin(wpass w, wpass x) {
    return dots_add((dots){{0}}, w, x);
}

/* The same of what wpass_signed gave. */
LANE_OP dots dots_add_signed(dots sum, wpass w, wpass x) {
    FOR_BYTES(i) {
        sum.x[i / 4] += (int8_t)w.x[i] * (int8_t)x.x[i];
    }
    return sum;
}

LANE_OP dots dots_begin_signed(wpass w, wpass x) {
    return dots_add_signed((dots){{0}}, w, x);
}

/* PASS_LANES integers of 32 bits. */
LANE_OP wpass dots_sum(dots sum) {
    wpass y;
    memcpy(y.x, sum.x, sizeof y.x);
    return y;
}

LANE_OP wpass wpass_add_32(wpass a, wpass b) {
    int32_t x[16], y[16];
    memcpy(x, a.x, sizeof x);
    memcpy(y, b.x, sizeof y);
    FOR_LANES(i) {
        x[i] += y[i];
    }
    memcpy(a.x, x, sizeof x);
    return a;
}

/* a - (first * sums[0] + second * sums[1]) in every row, sums being two int16_t. */
LANE_OP wpass wpass_less_sums(wpass a, const void *sums, int first, int second) {
    int16_t s[2];
    int32_t x[16];
    memcpy(s, sums, sizeof s);
    memcpy(x, a.x, sizeof x);
    FOR_LANES(i) {
        x[i] -= first * s[0] + second * s[1];
    }
    memcpy(a.x, x, sizeof x);
    return a;
}

LANE_OP vpass vpass_from_32(wpass a) {
    int32_t x[16];
    vpass y;
    memcpy(x, a.x, sizeof x);
    FOR_LANES(i) {
        y.x[i] = (float)x[i];
    }
    return y;
}

/* Attention: rows x parts of 16 keys (or elements) whose sums are computed at once. */
#define ISA_ATTN_ROWS 1
enum { ATTN_ROWS = ISA_ATTN_ROWS, ATTN_PARTS = 1 };

/* Where an assembler operand of type wpass lies. */
#define ISA_REGISTER "m"

LANE_OP b16 b16_load(const unsigned char *p) {
    b16 y;
    memcpy(y.x, p, sizeof y.x);
    return y;
}

LANE_OP b16 b16_from_words(uint64_t low, uint64_t high) {
    b16 y;
    memcpy(y.x, &low, sizeof low);
    memcpy(y.x + 8, &high, sizeof high);
    return y;
}

LANE_OP b16 b16_low4(b16 a) {
    FOR_LANES(i) {
        a.x[i] = a.x[i] & 15;
    }
    return a;
}

LANE_OP b16 b16_high4(b16 a) {
    FOR_LANES(i) {
        a.x[i] = (uint8_t)(a.x[i] >> 4);
    }
    return a;
}

/* Bits shift and shift + 1 of each byte, moved to bits 4 and 5. */
LANE_OP b16 b16_pair_to_4(b16 a, int shift) {
    FOR_LANES(i) {
        a.x[i] = (uint8_t)((a.x[i] >> shift & 3) << 4);
    }
    return a;
}

/* 16 where bit `bit` of the byte is set, else 0. */
LANE_OP b16 b16_bit_to_4(b16 a, int bit) {
    FOR_LANES(i) {
        a.x[i] = (uint8_t)((a.x[i] >> bit & 1) << 4);
    }
    return a;
}

/* 16 in byte i where bit i is set, else 0; bits are those of p[0], p[1]. */
LANE_OP b16 b16_spread_to_4(const unsigned char *p) {
    b16 y;
    FOR_LANES(i) {
        y.x[i] = (uint8_t)((p[i / 8] >> (i % 8) & 1) << 4);
    }
    return y;
}

/* 0xf0 in byte i where bit i is clear, else 0: or-ed to a nibble, 16 less where the bit is clear. */
LANE_OP b16 b16_spread_clear(const unsigned char *p) {
    b16 y;
    FOR_LANES(i) {
        y.x[i] = (p[i / 8] >> (i % 8) & 1) != 0 ? 0 : 0xf0;
    }
    return y;
}

LANE_OP b16 b16_or(b16 a, b16 b) {
    FOR_LANES(i) {
        a.x[i] |= b.x[i];
    }
    return a;
}

LANE_OP b16 b16_less(b16 a, int offset) {
    FOR_LANES(i) {
        a.x[i] = (uint8_t)(a.x[i] - offset);
    }
    return a;
}

LANE_OP v16 v16_from_unsigned(b16 a) {
    v16 y;
    FOR_LANES(i) {
        y.x[i] = (float)a.x[i];
    }
    return y;
}

/* The signed bytes / SIGNED_UNIT. */
LANE_OP v16 v16_from_signed(b16 a) {
    v16 y;
    FOR_LANES(i) {
        y.x[i] = (float)(int8_t)a.x[i];
    }
    return y;
}

/* 16 signed bytes. */
LANE_OP v16 v16_load_signed(const unsigned char *p) {
    return v16_from_signed(b16_load(p));
}

#endif
