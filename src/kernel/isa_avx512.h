/* The vectors of the rungs avx512 and avx512vnni: 16 lanes in one register. Needs AVX-512 F, BW, DQ and VL, and VNNI where
 * the rung defines ISA_DOT_PRODUCTS. The operations are those of isa_base.h, where their comments are. */
#ifndef NIB_KERNEL_ISA_AVX512_H
#define NIB_KERNEL_ISA_AVX512_H

#include "kernel/isa_x86.h"

#ifdef ISA_DOT_PRODUCTS
#define ISA_NAME  "avx512vnni"
#define ISA_TABLE nib_kernels_avx512vnni
#else
#define ISA_NAME  "avx512"
#define ISA_TABLE nib_kernels_avx512
#endif

/* 16 sums: enough to hide the latency of fma, and 8 loads for 16 fma. */
#define TILE_ROWS   4
#define TILE_TOKENS 4

#define MATVEC_ROWS 2

typedef __m512 v16;
typedef __m128i b16;

#define SIGNED_UNIT 1.0f

LANE_OP v16 v16_set1(float x) {
    return _mm512_set1_ps(x);
}

LANE_OP v16 v16_set2(float a, float b) {
    return _mm512_insertf32x8(_mm512_set1_ps(a), _mm256_set1_ps(b), 1);
}

LANE_OP v16 v16_load(const float *p) {
    return _mm512_loadu_ps(p);
}

LANE_OP __mmask16 lanes_below(int64_t n) {
    return (__mmask16)(n >= 16 ? 0xffffu : (1u << n) - 1u);
}

LANE_OP v16 v16_load_n(const float *p, int64_t n) {
    return _mm512_maskz_loadu_ps(lanes_below(n), p);
}

LANE_OP void v16_store(float *p, v16 a) {
    _mm512_storeu_ps(p, a);
}

LANE_OP void v16_store_n(float *p, v16 a, int64_t n) {
    _mm512_mask_storeu_ps(p, lanes_below(n), a);
}

LANE_OP v16 v16_add(v16 a, v16 b) {
    return _mm512_add_ps(a, b);
}

LANE_OP v16 v16_sub(v16 a, v16 b) {
    return _mm512_sub_ps(a, b);
}

LANE_OP v16 v16_mul(v16 a, v16 b) {
    return _mm512_mul_ps(a, b);
}

LANE_OP v16 v16_div(v16 a, v16 b) {
    return _mm512_div_ps(a, b);
}

LANE_OP v16 v16_fma(v16 a, v16 b, v16 c) {
    return _mm512_fmadd_ps(a, b, c);
}

LANE_OP v16 v16_fma_exact(v16 a, v16 b, v16 c) {
    return v16_fma(a, b, c);
}

/* The instructions are a > b ? a : b and a < b ? a : b, for NaN and zeros too. */
LANE_OP v16 v16_max(v16 a, v16 b) {
    return _mm512_max_ps(a, b);
}

LANE_OP v16 v16_min(v16 a, v16 b) {
    return _mm512_min_ps(a, b);
}

LANE_OP v16 v16_abs(v16 a) {
    return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a);
}

LANE_OP v16 v16_neg(v16 a) {
    return _mm512_xor_ps(_mm512_set1_ps(-0.0f), a);
}

LANE_OP v16 v16_sign(v16 a, v16 s) {
    return _mm512_or_ps(a, _mm512_and_ps(_mm512_set1_ps(-0.0f), s));
}

LANE_OP v16 v16_if_above(v16 a, v16 b, v16 yes, v16 no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), no, yes);
}

LANE_OP v16 v16_if_nan(v16 a, v16 yes, v16 no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), no, yes);
}

LANE_OP v16 v16_if_between(int64_t lo, int64_t hi, v16 a, v16 b) {
    unsigned upto = hi < 0 ? 0u : lanes_below(hi + 1), before = lo <= 0 ? 0u : lanes_below(lo);
    return _mm512_mask_blend_ps((__mmask16)(upto & ~before), b, a);
}

LANE_OP v16 v16_scale_by_bits(v16 y, v16 shifted) {
    __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(y), n));
}

LANE_OP bool v16_all_below(v16 a, v16 limit) {
    return _mm512_cmp_ps_mask(a, limit, _CMP_LT_OQ) == 0xffff;
}

LANE_OP float v16_fold(v16 a) {
    return fold_halves(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
}

LANE_OP float v16_largest(v16 a) {
    return largest_of_8(_mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)));
}

LANE_OP uint32_t v16_largest_bits(v16 a, v16 b) {
    __m512i c = _mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b));
    return largest_bits_of_8(_mm256_max_epi32(_mm512_castsi512_si256(c), _mm512_extracti64x4_epi64(c, 1)));
}

LANE_OP int16_t v16_round(int8_t *q, v16 a) {
    __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a));
    _mm_storeu_si128((__m128i *)(void *)q, bytes);
    return sum_of_bytes(bytes);
}

LANE_OP float v16_first(v16 a) {
    return _mm512_cvtss_f32(a);
}

LANE_OP void v16_unzip(v16 *even, v16 *odd, const float *p) {
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    v16 a = v16_load(p), b = v16_load(p + 16);
    *even = _mm512_permutex2var_ps(a, evens, b);
    *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(evens, _mm512_set1_epi32(1)), b);
}

LANE_OP void v16_zip(float *p, v16 even, v16 odd) {
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    v16_store(p, _mm512_permutex2var_ps(even, first, odd));
    v16_store(p + 16, _mm512_permutex2var_ps(even, _mm512_add_epi32(first, _mm512_set1_epi32(8)), odd));
}

LANE_OP v16 v16_load_f16(const unsigned char *p) {
    return _mm512_cvtph_ps(load_256(p));
}

LANE_OP void v16_store_f16(uint16_t *p, v16 a) {
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

LANE_OP v16 v16_load_bf16(const unsigned char *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_256(p)), 16));
}

#define ISA_EXP1(x)        exp_lane_0(x)
#define ISA_EXP_ROWS(y, n) exp_rows_16(y, n)

enum { PASS_LANES = 16 };
typedef v16 vpass;

LANE_OP vpass vpass_zero(void) {
    return _mm512_setzero_ps();
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

LANE_OP vpass vpass_load_f16(const unsigned char *p) {
    return v16_load_f16(p);
}

LANE_OP vpass vpass_load_unsigned(const unsigned char *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_128(p)));
}

LANE_OP vpass vpass_load_signed(const unsigned char *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_128(p)));
}

/* 16 rows, 8 tokens: of 32 registers 8 hold sums in binary32, 8 dot products. */
enum { PACKED_TOKENS = 8 };
typedef __m512i wpass;
typedef __m512i dots;

LANE_OP wpass wpass_load(const unsigned char *p) {
    return _mm512_loadu_si512(p);
}

LANE_OP wpass wpass_low4(wpass a) {
    return _mm512_and_si512(a, _mm512_set1_epi8(15));
}

LANE_OP wpass wpass_high4(wpass a) {
    return _mm512_and_si512(_mm512_srli_epi16(a, 4), _mm512_set1_epi8(15));
}

/* (moved & mask) | low in one instruction. */
LANE_OP wpass masked_or(wpass moved, char mask, wpass low) {
    return _mm512_ternarylogic_epi64(moved, _mm512_set1_epi8(mask), low, 0xea);
}

LANE_OP wpass wpass_with_fifth(wpass low, wpass fifths, int bit) {
    return masked_or(bit <= 4 ? _mm512_slli_epi64(fifths, (unsigned)(4 - bit))
                              : _mm512_srli_epi64(fifths, (unsigned)(bit - 4)),
                     0x10, low);
}

LANE_OP wpass wpass_with_pair(wpass low, wpass pairs, int shift) {
    return masked_or(shift <= 4 ? _mm512_slli_epi64(pairs, (unsigned)(4 - shift))
                                : _mm512_srli_epi64(pairs, (unsigned)(shift - 4)),
                     0x30, low);
}

LANE_OP wpass wpass_spread(const void *four) {
    return _mm512_set1_epi32(load_word(four));
}

LANE_OP wpass wpass_add_32(wpass a, wpass b) {
    return _mm512_add_epi32(a, b);
}

LANE_OP wpass wpass_less_sums(wpass a, const void *sums, int first, int second) {
    wpass factors = _mm512_set1_epi32((int)((uint32_t)second << 16 | (uint32_t)first));
    return _mm512_sub_epi32(a, _mm512_madd_epi16(wpass_spread(sums), factors));
}

LANE_OP vpass vpass_from_32(wpass a) {
    return _mm512_cvtepi32_ps(a);
}

#ifdef ISA_DOT_PRODUCTS
/* Sums of 4 products in 32 bits: chains have no limit. Signed weights are made unsigned by adding 128. */
enum { CHAIN_4 = 8, CHAIN_5 = 8, CHAIN_6 = 8, CHAIN_8 = 8, OFFSET_8 = 128 };

LANE_OP wpass wpass_signed(wpass a) {
    return _mm512_xor_si512(a, _mm512_set1_epi8(-128));
}

LANE_OP dots dots_add(dots sum, wpass w, wpass x) {
    return _mm512_dpbusd_epi32(sum, w, x);
}

LANE_OP dots dots_begin(wpass w, wpass x) {
    return dots_add(_mm512_setzero_si512(), w, x);
}

LANE_OP dots dots_begin_signed(wpass w, wpass x) {
    return dots_begin(w, x);
}

LANE_OP dots dots_add_signed(dots sum, wpass w, wpass x) {
    return dots_add(sum, w, x);
}

LANE_OP wpass dots_sum(dots sum) {
    return sum;
}
#else
/* Sums of 2 products of bytes in 16 bits, as in isa_avx2.h. */
enum { CHAIN_4 = 8, CHAIN_5 = 4, CHAIN_6 = 2, CHAIN_8 = 1, OFFSET_8 = 0 };

LANE_OP wpass wpass_signed(wpass a) {
    return a;
}

LANE_OP dots dots_begin(wpass w, wpass x) {
    return _mm512_maddubs_epi16(w, x);
}

LANE_OP dots dots_add(dots sum, wpass w, wpass x) {
    return _mm512_add_epi16(sum, dots_begin(w, x));
}

/* The sign goes from w to x: |w| may be 128, x only 127. */
LANE_OP dots dots_begin_signed(wpass w, wpass x) {
    wpass turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    return dots_begin(_mm512_abs_epi8(w), turned);
}

LANE_OP dots dots_add_signed(dots sum, wpass w, wpass x) {
    return _mm512_add_epi16(sum, dots_begin_signed(w, x));
}

LANE_OP wpass dots_sum(dots sum) {
    return _mm512_madd_epi16(sum, _mm512_set1_epi16(1));
}
#endif

/* Rows x parts of 16 keys of attention: 24 sums. */
#define ISA_ATTN_ROWS 6
enum { ATTN_ROWS = ISA_ATTN_ROWS, ATTN_PARTS = 4 };

#define ISA_REGISTER "v"

LANE_OP b16 b16_load(const unsigned char *p) {
    return load_128(p);
}

LANE_OP b16 b16_from_words(uint64_t low, uint64_t high) {
    return _mm_set_epi64x((int64_t)high, (int64_t)low);
}

LANE_OP b16 b16_low4(b16 a) {
    return _mm_and_si128(a, _mm_set1_epi8(15));
}

/* Shifts move whole 16-bit units; the mask removes what came from the neighbour. */
LANE_OP b16 b16_high4(b16 a) {
    return _mm_and_si128(_mm_srli_epi16(a, 4), _mm_set1_epi8(15));
}

LANE_OP b16 b16_pair_to_4(b16 a, int shift) {
    b16 moved = shift <= 4 ? _mm_slli_epi16(a, 4 - shift) : _mm_srli_epi16(a, shift - 4);
    return _mm_and_si128(moved, _mm_set1_epi8(0x30));
}

LANE_OP b16 b16_bit_to_4(b16 a, int bit) {
    b16 moved = bit <= 4 ? _mm_slli_epi16(a, 4 - bit) : _mm_srli_epi16(a, bit - 4);
    return _mm_and_si128(moved, _mm_set1_epi8(0x10));
}

/* The 16 bits at p, one for each byte. */
LANE_OP __mmask16 mask_of_bits(const unsigned char *p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
}

LANE_OP b16 b16_spread_to_4(const unsigned char *p) {
    return _mm_maskz_set1_epi8(mask_of_bits(p), 0x10);
}

LANE_OP b16 b16_spread_clear(const unsigned char *p) {
    return _mm_maskz_set1_epi8((__mmask16) ~(unsigned)mask_of_bits(p), (char)0xf0);
}

LANE_OP b16 b16_or(b16 a, b16 b) {
    return _mm_or_si128(a, b);
}

LANE_OP b16 b16_less(b16 a, int offset) {
    return _mm_sub_epi8(a, _mm_set1_epi8((char)offset));
}

LANE_OP v16 v16_from_unsigned(b16 a) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(a));
}

LANE_OP v16 v16_from_signed(b16 a) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(a));
}

LANE_OP v16 v16_load_signed(const unsigned char *p) {
    return v16_from_signed(load_128(p));
}

#endif
