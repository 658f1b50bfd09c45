/* The AVX2 rung's vectors: 16 lanes in two registers. Needs AVX2, FMA and F16C. The operations are those of isa_base.h,
 * where their comments are. */
#ifndef NIB_KERNEL_ISA_AVX2_H
#define NIB_KERNEL_ISA_AVX2_H

#include "kernel/isa_x86.h"

#define ISA_NAME  "avx2"
#define ISA_TABLE nib_kernels_avx2

/* 3 x 4 outputs of 8 lanes are 12 of the 16 registers, weights take 3 more, x the last one: 7 loads for 12 fma. (2 x 3
 * outputs of 16 lanes need 10, and gcc 12 makes 16 of them: 77 instead of 89 GFLOP/s.) */
#define TILE_ROWS   3
#define TILE_TOKENS 4

/* The chain of fma of one row, 4 cycles for 16 weights, is longer than their unpacking. */
#define MATVEC_ROWS 2

typedef struct v16 {
    __m256 lo, hi;
} v16;

/* 16 bytes, the same in both halves of the register: so each half can spread its own 8 of them to 32 bits. */
typedef __m256i b16;

/* v16_from_signed gives q / SIGNED_UNIT: the byte lands in the highest of its 32 bits and brings its sign along. */
#define SIGNED_UNIT 0x1p-24f

LANE_OP v16 v16_set1(float x) {
    __m256 y = _mm256_set1_ps(x);
    return (v16){y, y};
}

LANE_OP v16 v16_set2(float a, float b) {
    return (v16){_mm256_set1_ps(a), _mm256_set1_ps(b)};
}

LANE_OP v16 v16_load(const float *p) {
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

/* All ones in lanes below n, of 8 lanes from `first`. */
LANE_OP __m256i lanes_below(int64_t n, int first) {
    __m256i index = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index);
}

LANE_OP v16 v16_load_n(const float *p, int64_t n) {
    return (v16){_mm256_maskload_ps(p, lanes_below(n, 0)),
                 n > 8 ? _mm256_maskload_ps(p + 8, lanes_below(n, 8)) : _mm256_setzero_ps()};
}

LANE_OP void v16_store(float *p, v16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}

LANE_OP void v16_store_n(float *p, v16 a, int64_t n) {
    _mm256_maskstore_ps(p, lanes_below(n, 0), a.lo);
    if (n > 8) {
        _mm256_maskstore_ps(p + 8, lanes_below(n, 8), a.hi);
    }
}

LANE_OP v16 v16_add(v16 a, v16 b) {
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}

LANE_OP v16 v16_sub(v16 a, v16 b) {
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}

LANE_OP v16 v16_mul(v16 a, v16 b) {
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}

LANE_OP v16 v16_div(v16 a, v16 b) {
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}

LANE_OP v16 v16_fma(v16 a, v16 b, v16 c) {
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

LANE_OP v16 v16_fma_exact(v16 a, v16 b, v16 c) {
    return v16_fma(a, b, c);
}

/* The instructions are a > b ? a : b and a < b ? a : b, for NaN and zeros too. */
LANE_OP v16 v16_max(v16 a, v16 b) {
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

LANE_OP v16 v16_min(v16 a, v16 b) {
    return (v16){_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}

LANE_OP v16 v16_abs(v16 a) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}

LANE_OP v16 v16_neg(v16 a) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_xor_ps(sign, a.lo), _mm256_xor_ps(sign, a.hi)};
}

LANE_OP v16 v16_sign(v16 a, v16 s) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_or_ps(a.lo, _mm256_and_ps(sign, s.lo)), _mm256_or_ps(a.hi, _mm256_and_ps(sign, s.hi))};
}

LANE_OP v16 v16_if_above(v16 a, v16 b, v16 yes, v16 no) {
    return (v16){_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
                 _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))};
}

LANE_OP v16 v16_if_nan(v16 a, v16 yes, v16 no) {
    return (v16){_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q)),
                 _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q))};
}

LANE_OP v16 v16_if_between(int64_t lo, int64_t hi, v16 a, v16 b) {
    __m256i low = _mm256_andnot_si256(lanes_below(lo, 0), lanes_below(hi + 1, 0));
    __m256i high = _mm256_andnot_si256(lanes_below(lo, 8), lanes_below(hi + 1, 8));
    return (v16){_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(low)),
                 _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(high))};
}

LANE_OP __m256 scale_8(__m256 y, __m256 shifted) {
    __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(y), n));
}

LANE_OP v16 v16_scale_by_bits(v16 y, v16 shifted) {
    return (v16){scale_8(y.lo, shifted.lo), scale_8(y.hi, shifted.hi)};
}

LANE_OP bool v16_all_below(v16 a, v16 limit) {
    __m256 low = _mm256_cmp_ps(a.lo, limit.lo, _CMP_LT_OQ), high = _mm256_cmp_ps(a.hi, limit.hi, _CMP_LT_OQ);
    return _mm256_movemask_ps(_mm256_and_ps(low, high)) == 0xff;
}

LANE_OP float v16_fold(v16 a) {
    return fold_halves(a.lo, a.hi);
}

LANE_OP float v16_largest(v16 a) {
    return largest_of_8(_mm256_max_ps(a.lo, a.hi));
}

LANE_OP uint32_t v16_largest_bits(v16 a, v16 b) {
    __m256i low = _mm256_max_epi32(_mm256_castps_si256(a.lo), _mm256_castps_si256(b.lo));
    __m256i high = _mm256_max_epi32(_mm256_castps_si256(a.hi), _mm256_castps_si256(b.hi));
    return largest_bits_of_8(_mm256_max_epi32(low, high));
}

LANE_OP int16_t v16_round(int8_t *q, v16 a) {
    __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi));
    words = _mm256_permute4x64_epi64(words, 0xd8);
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(void *)q, bytes);
    return sum_of_bytes(bytes);
}

LANE_OP void v16_store_f16(uint16_t *p, v16 a) {
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(void *)(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}

LANE_OP float v16_first(v16 a) {
    return _mm256_cvtss_f32(a.lo);
}

/* Within 128-bit halves first, then the 64-bit quarters in order. */
LANE_OP __m256 in_order(__m256 a) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(a), 0xd8));
}

LANE_OP void v16_unzip(v16 *even, v16 *odd, const float *p) {
    __m256 a = _mm256_loadu_ps(p), b = _mm256_loadu_ps(p + 8), c = _mm256_loadu_ps(p + 16), d = _mm256_loadu_ps(p + 24);
    *even = (v16){in_order(_mm256_shuffle_ps(a, b, 0x88)), in_order(_mm256_shuffle_ps(c, d, 0x88))};
    *odd = (v16){in_order(_mm256_shuffle_ps(a, b, 0xdd)), in_order(_mm256_shuffle_ps(c, d, 0xdd))};
}

LANE_OP void zip_8(float *p, __m256 even, __m256 odd) {
    __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

LANE_OP void v16_zip(float *p, v16 even, v16 odd) {
    zip_8(p, even.lo, odd.lo);
    zip_8(p + 16, even.hi, odd.hi);
}

LANE_OP v16 v16_load_f16(const unsigned char *p) {
    return (v16){_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(p + 16))};
}

LANE_OP __m256 upper_halves(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

LANE_OP v16 v16_load_bf16(const unsigned char *p) {
    return (v16){upper_halves(load_128(p)), upper_halves(load_128(p + 16))};
}

#define ISA_EXP1(x)        exp_lane_0(x)
#define ISA_EXP_ROWS(y, n) exp_rows_16(y, n)

enum { PASS_LANES = 8 };
typedef __m256 vpass;

LANE_OP vpass vpass_zero(void) {
    return _mm256_setzero_ps();
}

LANE_OP vpass vpass_load(const float *p) {
    return _mm256_loadu_ps(p);
}

LANE_OP void vpass_store(float *p, vpass a) {
    _mm256_storeu_ps(p, a);
}

LANE_OP vpass vpass_fma(vpass a, vpass b, vpass c) {
    return _mm256_fmadd_ps(a, b, c);
}

LANE_OP vpass vpass_set1(float x) {
    return _mm256_set1_ps(x);
}

LANE_OP vpass vpass_add(vpass a, vpass b) {
    return _mm256_add_ps(a, b);
}

LANE_OP vpass vpass_mul(vpass a, vpass b) {
    return _mm256_mul_ps(a, b);
}

LANE_OP vpass vpass_neg(vpass a) {
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}

LANE_OP vpass vpass_load_f16(const unsigned char *p) {
    return _mm256_cvtph_ps(load_128(p));
}

LANE_OP vpass vpass_load_unsigned(const unsigned char *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

LANE_OP vpass vpass_load_signed(const unsigned char *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

/* 8 rows at a time, 4 tokens: of 16 registers 4 hold sums in binary32, 4 dot products. Sums of 2 products of bytes in 16
 * bits: 15 * 127 * 2 * 8, 31 * 127 * 2 * 4, 63 * 127 * 2 * 2 and 128 * 127 * 2 fit. */
enum { PACKED_TOKENS = 4, CHAIN_4 = 8, CHAIN_5 = 4, CHAIN_6 = 2, CHAIN_8 = 1, OFFSET_8 = 0 };
typedef __m256i wpass;
typedef __m256i dots;

LANE_OP wpass wpass_load(const unsigned char *p) {
    return load_256(p);
}

LANE_OP wpass wpass_low4(wpass a) {
    return _mm256_and_si256(a, _mm256_set1_epi8(15));
}

LANE_OP wpass wpass_high4(wpass a) {
    return _mm256_and_si256(_mm256_srli_epi16(a, 4), _mm256_set1_epi8(15));
}

LANE_OP wpass wpass_with_fifth(wpass low, wpass fifths, int bit) {
    wpass moved = bit <= 4 ? _mm256_slli_epi16(fifths, 4 - bit) : _mm256_srli_epi16(fifths, bit - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(0x10)));
}

LANE_OP wpass wpass_with_pair(wpass low, wpass pairs, int shift) {
    wpass moved = shift <= 4 ? _mm256_slli_epi16(pairs, 4 - shift) : _mm256_srli_epi16(pairs, shift - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
}

LANE_OP wpass wpass_signed(wpass a) {
    return a;
}

LANE_OP wpass wpass_spread(const void *four) {
    return _mm256_set1_epi32(load_word(four));
}

LANE_OP dots dots_begin(wpass w, wpass x) {
    return _mm256_maddubs_epi16(w, x);
}

LANE_OP dots dots_add(dots sum, wpass w, wpass x) {
    return _mm256_add_epi16(sum, dots_begin(w, x));
}

/* The sign goes from w to x: |w| may be 128, x only 127. */
LANE_OP dots dots_begin_signed(wpass w, wpass x) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

LANE_OP dots dots_add_signed(dots sum, wpass w, wpass x) {
    return _mm256_add_epi16(sum, dots_begin_signed(w, x));
}

LANE_OP wpass dots_sum(dots sum) {
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

LANE_OP wpass wpass_add_32(wpass a, wpass b) {
    return _mm256_add_epi32(a, b);
}

LANE_OP wpass wpass_less_sums(wpass a, const void *sums, int first, int second) {
    wpass factors = _mm256_set1_epi32((int)((uint32_t)second << 16 | (uint32_t)first));
    return _mm256_sub_epi32(a, _mm256_madd_epi16(wpass_spread(sums), factors));
}

LANE_OP vpass vpass_from_32(wpass a) {
    return _mm256_cvtepi32_ps(a);
}

/* Rows x parts of 16 keys of attention: 3 x 2 x 2 registers of sums. */
#define ISA_ATTN_ROWS 3
enum { ATTN_ROWS = ISA_ATTN_ROWS, ATTN_PARTS = 2 };

#define ISA_REGISTER "x"

LANE_OP b16 b16_load(const unsigned char *p) {
    return _mm256_broadcastsi128_si256(load_128(p));
}

LANE_OP b16 b16_from_words(uint64_t low, uint64_t high) {
    return _mm256_broadcastsi128_si256(_mm_set_epi64x((int64_t)high, (int64_t)low));
}

LANE_OP b16 b16_low4(b16 a) {
    return _mm256_and_si256(a, _mm256_set1_epi8(15));
}

/* Shifts move whole 16-bit units; the mask removes what came from the neighbour. */
LANE_OP b16 b16_high4(b16 a) {
    return _mm256_and_si256(_mm256_srli_epi16(a, 4), _mm256_set1_epi8(15));
}

LANE_OP b16 b16_pair_to_4(b16 a, int shift) {
    b16 moved = shift <= 4 ? _mm256_slli_epi16(a, 4 - shift) : _mm256_srli_epi16(a, shift - 4);
    return _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
}

LANE_OP b16 b16_bit_to_4(b16 a, int bit) {
    b16 moved = bit <= 4 ? _mm256_slli_epi16(a, 4 - bit) : _mm256_srli_epi16(a, bit - 4);
    return _mm256_and_si256(moved, _mm256_set1_epi8(0x10));
}

/* All ones in byte i where bit i of the 16 at p is clear. */
LANE_OP b16 where_clear(const unsigned char *p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    const b16 spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0, 0x0101010101010101);
    const b16 mask = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    b16 byte = _mm256_shuffle_epi8(_mm256_set1_epi16((int16_t)bits), spread);
    return _mm256_cmpeq_epi8(_mm256_and_si256(byte, mask), _mm256_setzero_si256());
}

LANE_OP b16 b16_spread_to_4(const unsigned char *p) {
    return _mm256_andnot_si256(where_clear(p), _mm256_set1_epi8(0x10));
}

LANE_OP b16 b16_spread_clear(const unsigned char *p) {
    return _mm256_and_si256(where_clear(p), _mm256_set1_epi8((char)0xf0));
}

LANE_OP b16 b16_or(b16 a, b16 b) {
    return _mm256_or_si256(a, b);
}

LANE_OP b16 b16_less(b16 a, int offset) {
    return _mm256_sub_epi8(a, _mm256_set1_epi8((char)offset));
}

/* Bytes first .. first + 7 to 32 bits each, at byte `at` of them, the others 0. */
LANE_OP __m256 spread_bytes(b16 a, char first, int at) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i zeros = _mm256_set1_epi32((int)(0x80808080u & ~(0xffu << 8 * at)));
    __m256i index =
        _mm256_or_si256(_mm256_slli_epi32(_mm256_add_epi32(lanes, _mm256_set1_epi32(first)), 8 * at), zeros);
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(a, index));
}

LANE_OP v16 v16_from_unsigned(b16 a) {
    return (v16){spread_bytes(a, 0, 0), spread_bytes(a, 8, 0)};
}

LANE_OP v16 v16_from_signed(b16 a) {
    return (v16){spread_bytes(a, 0, 3), spread_bytes(a, 8, 3)};
}

LANE_OP __m256 load_8_signed(const unsigned char *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

LANE_OP v16 v16_load_signed(const unsigned char *p) {
    return (v16){load_8_signed(p), load_8_signed(p + 8)};
}

#endif
