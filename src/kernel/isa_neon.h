/* The vectors of the rungs neon and neondot: 16 lanes in four registers. Needs aarch64, and the dot product instructions
 * where ISA_DOT_PRODUCTS is defined. The operations are those of isa_base.h, where their comments are. */
#ifndef NIB_KERNEL_ISA_NEON_H
#define NIB_KERNEL_ISA_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Not by __ARM_FEATURE_DOTPROD: a whole program compiled for a newer processor still has both rungs. */
#ifdef ISA_DOT_PRODUCTS
#define ISA_NAME  "neondot"
#define ISA_TABLE nib_kernels_neondot
#else
#define ISA_NAME  "neon"
#define ISA_TABLE nib_kernels_neon
#endif

#define LANE_OP static inline __attribute__((always_inline, unused))

/* Loops whose bounds are constants where they are inlined, written out, as in isa_x86.h. */
#ifdef __clang__
#define UNROLL_PARTS _Pragma("clang loop unroll_count(8)")
#else
#define UNROLL_PARTS _Pragma("GCC unroll 8")
#endif

/* 4 x 4 outputs of 4 lanes are 16 of the 32 registers: 8 loads for 16 fma. */
#define TILE_ROWS   4
#define TILE_TOKENS 4

/* Unpacking 16 weights takes some 14 vector instructions, the chain of fma behind it 4 cycles: one row is enough. */
#define MATVEC_ROWS 1

typedef struct v16 {
    float32x4_t q0, q1, q2, q3;
} v16;

typedef uint8x16_t b16;

#define SIGNED_UNIT 1.0f

LANE_OP v16 v16_set1(float x) {
    float32x4_t y = vdupq_n_f32(x);
    return (v16){y, y, y, y};
}

LANE_OP v16 v16_set2(float a, float b) {
    float32x4_t low = vdupq_n_f32(a), high = vdupq_n_f32(b);
    return (v16){low, low, high, high};
}

LANE_OP v16 v16_load(const float *p) {
    return (v16){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}

LANE_OP v16 v16_load_n(const float *p, int64_t n) {
    float room[16] = {0};
    memcpy(room, p, (size_t)n * sizeof *p);
    return v16_load(room);
}

LANE_OP void v16_store(float *p, v16 a) {
    vst1q_f32(p, a.q0);
    vst1q_f32(p + 4, a.q1);
    vst1q_f32(p + 8, a.q2);
    vst1q_f32(p + 12, a.q3);
}

LANE_OP void v16_store_n(float *p, v16 a, int64_t n) {
    float room[16];
    v16_store(room, a);
    memcpy(p, room, (size_t)n * sizeof *p);
}

LANE_OP v16 v16_add(v16 a, v16 b) {
    return (v16){vaddq_f32(a.q0, b.q0), vaddq_f32(a.q1, b.q1), vaddq_f32(a.q2, b.q2), vaddq_f32(a.q3, b.q3)};
}

LANE_OP v16 v16_sub(v16 a, v16 b) {
    return (v16){vsubq_f32(a.q0, b.q0), vsubq_f32(a.q1, b.q1), vsubq_f32(a.q2, b.q2), vsubq_f32(a.q3, b.q3)};
}

LANE_OP v16 v16_mul(v16 a, v16 b) {
    return (v16){vmulq_f32(a.q0, b.q0), vmulq_f32(a.q1, b.q1), vmulq_f32(a.q2, b.q2), vmulq_f32(a.q3, b.q3)};
}

LANE_OP v16 v16_div(v16 a, v16 b) {
    return (v16){vdivq_f32(a.q0, b.q0), vdivq_f32(a.q1, b.q1), vdivq_f32(a.q2, b.q2), vdivq_f32(a.q3, b.q3)};
}

/* The intrinsic takes the summand first. */
LANE_OP v16 v16_fma(v16 a, v16 b, v16 c) {
    return (v16){vfmaq_f32(c.q0, a.q0, b.q0), vfmaq_f32(c.q1, a.q1, b.q1), vfmaq_f32(c.q2, a.q2, b.q2),
                 vfmaq_f32(c.q3, a.q3, b.q3)};
}

LANE_OP v16 v16_fma_exact(v16 a, v16 b, v16 c) {
    return v16_fma(a, b, c);
}

/* a > b ? yes : no. The instruction FMAX is not that: it gives NaN if either is, and +0 is above -0. */
LANE_OP float32x4_t if_above_4(float32x4_t a, float32x4_t b, float32x4_t yes, float32x4_t no) {
    return vbslq_f32(vcgtq_f32(a, b), yes, no);
}

LANE_OP v16 v16_if_above(v16 a, v16 b, v16 yes, v16 no) {
    return (v16){if_above_4(a.q0, b.q0, yes.q0, no.q0), if_above_4(a.q1, b.q1, yes.q1, no.q1),
                 if_above_4(a.q2, b.q2, yes.q2, no.q2), if_above_4(a.q3, b.q3, yes.q3, no.q3)};
}

LANE_OP v16 v16_max(v16 a, v16 b) {
    return v16_if_above(a, b, a, b);
}

LANE_OP v16 v16_min(v16 a, v16 b) {
    return v16_if_above(b, a, a, b);
}

LANE_OP v16 v16_abs(v16 a) {
    return (v16){vabsq_f32(a.q0), vabsq_f32(a.q1), vabsq_f32(a.q2), vabsq_f32(a.q3)};
}

LANE_OP v16 v16_neg(v16 a) {
    return (v16){vnegq_f32(a.q0), vnegq_f32(a.q1), vnegq_f32(a.q2), vnegq_f32(a.q3)};
}

LANE_OP v16 v16_sign(v16 a, v16 s) {
    uint32x4_t sign = vdupq_n_u32(0x80000000u);
    return (v16){vbslq_f32(sign, s.q0, a.q0), vbslq_f32(sign, s.q1, a.q1), vbslq_f32(sign, s.q2, a.q2),
                 vbslq_f32(sign, s.q3, a.q3)};
}

/* a is a number ? no : yes */
LANE_OP float32x4_t if_nan_4(float32x4_t a, float32x4_t yes, float32x4_t no) {
    return vbslq_f32(vceqq_f32(a, a), no, yes);
}

LANE_OP v16 v16_if_nan(v16 a, v16 yes, v16 no) {
    return (v16){if_nan_4(a.q0, yes.q0, no.q0), if_nan_4(a.q1, yes.q1, no.q1), if_nan_4(a.q2, yes.q2, no.q2),
                 if_nan_4(a.q3, yes.q3, no.q3)};
}

/* Of 4 lanes from `first` on. */
LANE_OP float32x4_t if_between_4(int first, int64_t lo, int64_t hi, float32x4_t a, float32x4_t b) {
    const int32_t lanes[] = {0, 1, 2, 3};
    int32x4_t index = vaddq_s32(vld1q_s32(lanes), vdupq_n_s32(first));
    uint32x4_t in = vandq_u32(vcgeq_s32(index, vdupq_n_s32((int32_t)lo)), vcleq_s32(index, vdupq_n_s32((int32_t)hi)));
    return vbslq_f32(in, a, b);
}

LANE_OP v16 v16_if_between(int64_t lo, int64_t hi, v16 a, v16 b) {
    return (v16){if_between_4(0, lo, hi, a.q0, b.q0), if_between_4(4, lo, hi, a.q1, b.q1),
                 if_between_4(8, lo, hi, a.q2, b.q2), if_between_4(12, lo, hi, a.q3, b.q3)};
}

LANE_OP float32x4_t scale_4(float32x4_t y, float32x4_t shifted) {
    int32x4_t n = vshlq_n_s32(vreinterpretq_s32_f32(shifted), 23);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(y), n));
}

LANE_OP v16 v16_scale_by_bits(v16 y, v16 shifted) {
    return (v16){scale_4(y.q0, shifted.q0), scale_4(y.q1, shifted.q1), scale_4(y.q2, shifted.q2),
                 scale_4(y.q3, shifted.q3)};
}

LANE_OP bool v16_all_below(v16 a, v16 limit) {
    uint32x4_t low = vandq_u32(vcltq_f32(a.q0, limit.q0), vcltq_f32(a.q1, limit.q1));
    uint32x4_t high = vandq_u32(vcltq_f32(a.q2, limit.q2), vcltq_f32(a.q3, limit.q3));
    return vminvq_u32(vandq_u32(low, high)) != 0;
}

/* Lanes 8 apart, then 4. */
LANE_OP float32x4_t fold_to_4(v16 a) {
    return vaddq_f32(vaddq_f32(a.q0, a.q2), vaddq_f32(a.q1, a.q3));
}

LANE_OP float v16_fold(v16 a) {
    float32x4_t four = fold_to_4(a);
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* Lanes 2 apart: two sums of a, two of b. */
LANE_OP float32x4_t fold_pair_2(float32x4_t a, float32x4_t b) {
    float64x2_t x = vreinterpretq_f64_f32(a), y = vreinterpretq_f64_f32(b);
    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(x, y)), vreinterpretq_f32_f64(vzip2q_f64(x, y)));
}

LANE_OP float32x4_t fold_four(const float *lanes) {
    float32x4_t a = fold_to_4(v16_load(lanes)), b = fold_to_4(v16_load(lanes + 16));
    float32x4_t c = fold_to_4(v16_load(lanes + 32)), d = fold_to_4(v16_load(lanes + 48));
    return vpaddq_f32(fold_pair_2(a, b), fold_pair_2(c, d));
}

LANE_OP void v16_fold_8(float *sum, const float *lanes) {
    vst1q_f32(sum, fold_four(lanes));
    vst1q_f32(sum + 4, fold_four(lanes + 64));
}

LANE_OP float32x4_t max_4(float32x4_t a, float32x4_t b) {
    return if_above_4(a, b, a, b);
}

LANE_OP float v16_largest(v16 a) {
    float32x4_t four = max_4(max_4(a.q0, a.q2), max_4(a.q1, a.q3));
    float32x4_t two = max_4(four, vextq_f32(four, four, 2));
    return vgetq_lane_f32(max_4(two, vextq_f32(two, two, 1)), 0);
}

LANE_OP uint32x4_t largest_bits_4(float32x4_t a, float32x4_t b) {
    return vmaxq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b));
}

LANE_OP uint32_t v16_largest_bits(v16 a, v16 b) {
    uint32x4_t low = vmaxq_u32(largest_bits_4(a.q0, b.q0), largest_bits_4(a.q1, b.q1));
    uint32x4_t high = vmaxq_u32(largest_bits_4(a.q2, b.q2), largest_bits_4(a.q3, b.q3));
    return vmaxvq_u32(vmaxq_u32(low, high));
}

LANE_OP int16x8_t nearest_8(float32x4_t a, float32x4_t b) {
    return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a)), vmovn_s32(vcvtnq_s32_f32(b)));
}

LANE_OP int16_t v16_round(int8_t *q, v16 a) {
    int8x16_t bytes = vcombine_s8(vmovn_s16(nearest_8(a.q0, a.q1)), vmovn_s16(nearest_8(a.q2, a.q3)));
    vst1q_s8(q, bytes);
    return vaddlvq_s8(bytes);
}

LANE_OP float v16_first(v16 a) {
    return vgetq_lane_f32(a.q0, 0);
}

LANE_OP void v16_unzip(v16 *even, v16 *odd, const float *p) {
    float32x4x2_t a = vld2q_f32(p), b = vld2q_f32(p + 8), c = vld2q_f32(p + 16), d = vld2q_f32(p + 24);
    *even = (v16){a.val[0], b.val[0], c.val[0], d.val[0]};
    *odd = (v16){a.val[1], b.val[1], c.val[1], d.val[1]};
}

LANE_OP void zip_4(float *p, float32x4_t even, float32x4_t odd) {
    vst1q_f32(p, vzip1q_f32(even, odd));
    vst1q_f32(p + 4, vzip2q_f32(even, odd));
}

LANE_OP void v16_zip(float *p, v16 even, v16 odd) {
    zip_4(p, even.q0, odd.q0);
    zip_4(p + 8, even.q1, odd.q1);
    zip_4(p + 16, even.q2, odd.q2);
    zip_4(p + 24, even.q3, odd.q3);
}

/* 4 numbers of binary16; by bytes, because nothing need be aligned. */
LANE_OP float32x4_t load_4_halves(const unsigned char *p) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

LANE_OP v16 v16_load_f16(const unsigned char *p) {
    return (v16){load_4_halves(p), load_4_halves(p + 8), load_4_halves(p + 16), load_4_halves(p + 24)};
}

LANE_OP void store_4_halves(uint16_t *p, float32x4_t a) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a)));
}

LANE_OP void v16_store_f16(uint16_t *p, v16 a) {
    store_4_halves(p, a.q0);
    store_4_halves(p + 4, a.q1);
    store_4_halves(p + 8, a.q2);
    store_4_halves(p + 12, a.q3);
}

LANE_OP float32x4_t load_4_upper_halves(const unsigned char *p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

LANE_OP v16 v16_load_bf16(const unsigned char *p) {
    return (v16){load_4_upper_halves(p), load_4_upper_halves(p + 8), load_4_upper_halves(p + 16),
                 load_4_upper_halves(p + 24)};
}

/* __fp16 only holds the number: it becomes a float before anything is computed. */
LANE_OP float load_half(const unsigned char *p) {
    __fp16 half;
    memcpy(&half, p, sizeof half);
    return (float)half;
}

LANE_OP void load_2_halves(float *two, const unsigned char *p, float unit) {
    two[0] = load_half(p) * unit;
    two[1] = load_half(p + 2) * unit;
}

#define ISA_EXP1(x)        exp_lane_0(x)
#define ISA_EXP_ROWS(y, n) exp_rows_16(y, n)

LANE_OP float scalar_fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}

enum { PASS_LANES = 4 };
typedef float32x4_t vpass;

LANE_OP vpass vpass_zero(void) {
    return vdupq_n_f32(0.0f);
}

LANE_OP vpass vpass_load(const float *p) {
    return vld1q_f32(p);
}

LANE_OP void vpass_store(float *p, vpass a) {
    vst1q_f32(p, a);
}

LANE_OP vpass vpass_fma(vpass a, vpass b, vpass c) {
    return vfmaq_f32(c, a, b);
}

LANE_OP vpass vpass_set1(float x) {
    return vdupq_n_f32(x);
}

LANE_OP vpass vpass_add(vpass a, vpass b) {
    return vaddq_f32(a, b);
}

LANE_OP vpass vpass_mul(vpass a, vpass b) {
    return vmulq_f32(a, b);
}

LANE_OP vpass vpass_neg(vpass a) {
    return vnegq_f32(a);
}

LANE_OP vpass vpass_load_f16(const unsigned char *p) {
    return load_4_halves(p);
}

LANE_OP uint32_t load_word(const void *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

LANE_OP vpass vpass_load_unsigned(const unsigned char *p) {
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(load_word(p))))));
}

LANE_OP vpass vpass_load_signed(const unsigned char *p) {
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(load_word(p))))));
}

/* 4 rows at a time. Codes without sign have at most 6 bits, so they are signed bytes too, and nothing is added to signed
 * ones. */
typedef uint8x16_t wpass;

LANE_OP wpass wpass_load(const unsigned char *p) {
    return vld1q_u8(p);
}

LANE_OP wpass wpass_low4(wpass a) {
    return vandq_u8(a, vdupq_n_u8(15));
}

LANE_OP wpass wpass_high4(wpass a) {
    return vshrq_n_u8(a, 4);
}

/* Bit (or pair of bits) `from` of each byte moved to 4, the others cleared by mask. The intrinsics of shifts take literal
 * numbers only. */
LANE_OP uint8x16_t move_to_4(uint8x16_t a, int from, uint8_t mask) {
    return vandq_u8(from <= 4 ? a << (uint8_t)(4 - from) : a >> (uint8_t)(from - 4), vdupq_n_u8(mask));
}

LANE_OP wpass wpass_with_fifth(wpass low, wpass fifths, int bit) {
    return vorrq_u8(low, move_to_4(fifths, bit, 0x10));
}

LANE_OP wpass wpass_with_pair(wpass low, wpass pairs, int shift) {
    return vorrq_u8(low, move_to_4(pairs, shift, 0x30));
}

LANE_OP wpass wpass_signed(wpass a) {
    return a;
}

LANE_OP wpass wpass_add_32(wpass a, wpass b) {
    return vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}

LANE_OP wpass wpass_less_sums(wpass a, const void *sums, int first, int second) {
    int16_t s[2];
    memcpy(s, sums, sizeof s);
    int32x4_t less = vdupq_n_s32(first * s[0] + second * s[1]);
    return vreinterpretq_u8_s32(vsubq_s32(vreinterpretq_s32_u8(a), less));
}

LANE_OP vpass vpass_from_32(wpass a) {
    return vcvtq_f32_s32(vreinterpretq_s32_u8(a));
}

#ifdef ISA_DOT_PRODUCTS
/* 4 tokens. Sums of 4 products in 32 bits: chains have no limit. */
enum { PACKED_TOKENS = 4, CHAIN_4 = 8, CHAIN_5 = 8, CHAIN_6 = 8, CHAIN_8 = 8, OFFSET_8 = 0 };
typedef int32x4_t dots;

/* In the first lane only: the instruction of the product spreads it. */
LANE_OP wpass wpass_spread(const void *four) {
    return vcombine_u8(vcreate_u8(load_word(four)), vcreate_u8(0));
}

LANE_OP dots dots_add(dots sum, wpass w, wpass x) {
    return vdotq_lane_s32(sum, vreinterpretq_s8_u8(w), vreinterpret_s8_u8(vget_low_u8(x)), 0);
}

LANE_OP dots dots_begin(wpass w, wpass x) {
    return dots_add(vdupq_n_s32(0), w, x);
}

LANE_OP wpass dots_sum(dots sum) {
    return vreinterpretq_u8_s32(sum);
}
#else
/* 4 tokens: 8 of 32 registers hold products, 4 whole dot products, 4 sums. Sums of single products in 16 bits: 15 * 127 * 8,
 * 31 * 127 * 8, 63 * 127 * 4 and 128 * 127 * 2 fit. */
enum { PACKED_TOKENS = 4, CHAIN_4 = 8, CHAIN_5 = 8, CHAIN_6 = 4, CHAIN_8 = 2, OFFSET_8 = 0 };

/* Of rows 0, 1 and of 2, 3. */
typedef struct dots {
    int16x8_t low, high;
} dots;

LANE_OP wpass wpass_spread(const void *four) {
    return vreinterpretq_u8_u32(vdupq_n_u32(load_word(four)));
}

LANE_OP dots dots_begin(wpass w, wpass x) {
    int8x16_t a = vreinterpretq_s8_u8(w), b = vreinterpretq_s8_u8(x);
    return (dots){vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b)};
}

LANE_OP dots dots_add(dots sum, wpass w, wpass x) {
    int8x16_t a = vreinterpretq_s8_u8(w), b = vreinterpretq_s8_u8(x);
    return (dots){vmlal_s8(sum.low, vget_low_s8(a), vget_low_s8(b)), vmlal_high_s8(sum.high, a, b)};
}

LANE_OP wpass dots_sum(dots sum) {
    return vreinterpretq_u8_s32(vpaddq_s32(vpaddlq_s16(sum.low), vpaddlq_s16(sum.high)));
}
#endif

LANE_OP dots dots_begin_signed(wpass w, wpass x) {
    return dots_begin(w, x);
}

LANE_OP dots dots_add_signed(dots sum, wpass w, wpass x) {
    return dots_add(sum, w, x);
}

/* Rows x parts of 16 keys of attention: 6 x 4 registers of sums. (3 x 2 parts are as many, but the keys of both parts and
 * a query's element are 9 more.) */
#define ISA_ATTN_ROWS 6
enum { ATTN_ROWS = ISA_ATTN_ROWS, ATTN_PARTS = 1 };

#define ISA_REGISTER "w"

LANE_OP b16 b16_load(const unsigned char *p) {
    return vld1q_u8(p);
}

LANE_OP b16 b16_from_words(uint64_t low, uint64_t high) {
    return vcombine_u8(vcreate_u8(low), vcreate_u8(high));
}

LANE_OP b16 b16_low4(b16 a) {
    return vandq_u8(a, vdupq_n_u8(15));
}

LANE_OP b16 b16_high4(b16 a) {
    return vshrq_n_u8(a, 4);
}

LANE_OP b16 b16_pair_to_4(b16 a, int shift) {
    return move_to_4(a, shift, 0x30);
}

LANE_OP b16 b16_bit_to_4(b16 a, int bit) {
    return move_to_4(a, bit, 0x10);
}

/* All ones in byte i where bit i of the 16 at p is set. */
LANE_OP b16 where_set(const unsigned char *p) {
    b16 bytes = vcombine_u8(vdup_n_u8(p[0]), vdup_n_u8(p[1]));
    return vtstq_u8(bytes, b16_from_words(0x8040201008040201u, 0x8040201008040201u));
}

LANE_OP b16 b16_spread_to_4(const unsigned char *p) {
    return vandq_u8(where_set(p), vdupq_n_u8(0x10));
}

LANE_OP b16 b16_spread_clear(const unsigned char *p) {
    return vbicq_u8(vdupq_n_u8(0xf0), where_set(p));
}

LANE_OP b16 b16_or(b16 a, b16 b) {
    return vorrq_u8(a, b);
}

LANE_OP b16 b16_less(b16 a, int offset) {
    return vsubq_u8(a, vdupq_n_u8((uint8_t)offset));
}

LANE_OP v16 v16_from_unsigned(b16 a) {
    uint16x8_t low = vmovl_u8(vget_low_u8(a)), high = vmovl_high_u8(a);
    return (v16){vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
                 vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))};
}

LANE_OP v16 v16_from_signed(b16 a) {
    int8x16_t bytes = vreinterpretq_s8_u8(a);
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
}

LANE_OP v16 v16_load_signed(const unsigned char *p) {
    return v16_from_signed(b16_load(p));
}

#endif
