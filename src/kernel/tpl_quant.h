/* Template: the numbers of weights as they lie in the file. Layouts: ggml-common.h of the ggml project. A weight is
 * s * q, exact in binary32, and in types with a minimum s * q + m, rounded once. */
#ifndef NIB_KERNEL_TPL_QUANT_H
#define NIB_KERNEL_TPL_QUANT_H

/* Scales of a block. Types of 32: d, minimum. Q4_K, Q5_K: 8 scales, 8 minimums. Q6_K: 16 scales, of 16 weights each. */
typedef struct scales {
    float s[16];
} scales;

/* A block's scales, and 32 weights: number c of the block. */
typedef void (*scales_fn)(scales *h, const unsigned char *block);
typedef void (*weights_fn)(v16 w[2], const unsigned char *block, const scales *h, int c);

LANE_OP void scales_32(scales *h, const unsigned char *block) {
    load_2_halves(h->s, block, 1.0f);
}

/* For codes that are made signed. */
LANE_OP void scales_32_unit(scales *h, const unsigned char *block) {
    load_2_halves(h->s, block, SIGNED_UNIT);
}

/* Of codes with a sign; s has the factor SIGNED_UNIT. */
LANE_OP v16 scaled(b16 q, float s) {
    return v16_mul(v16_from_signed(q), v16_set1(s));
}

LANE_OP v16 scaled_plus(b16 q, float s, float m) {
    return v16_fma_exact(v16_from_unsigned(q), v16_set1(s), v16_set1(m));
}

LANE_OP void weights_q8_0(v16 w[2], const unsigned char *block, const scales *h, int c) {
    (void)c;
    w[0] = v16_mul(v16_load_signed(block + 2), v16_set1(h->s[0]));
    w[1] = v16_mul(v16_load_signed(block + 18), v16_set1(h->s[0]));
}

LANE_OP void weights_q4_0(v16 w[2], const unsigned char *block, const scales *h, int c) {
    (void)c;
    b16 q = b16_load(block + 2);
    w[0] = scaled(b16_less(b16_low4(q), 8), h->s[0]);
    w[1] = scaled(b16_less(b16_high4(q), 8), h->s[0]);
}

LANE_OP void weights_q4_1(v16 w[2], const unsigned char *block, const scales *h, int c) {
    (void)c;
    b16 q = b16_load(block + 4);
    w[0] = scaled_plus(b16_low4(q), h->s[0], h->s[1]);
    w[1] = scaled_plus(b16_high4(q), h->s[0], h->s[1]);
}

LANE_OP void weights_q5_0(v16 w[2], const unsigned char *block, const scales *h, int c) {
    (void)c;
    b16 q = b16_load(block + 6);
    w[0] = scaled(b16_or(b16_low4(q), b16_spread_clear(block + 2)), h->s[0]);
    w[1] = scaled(b16_or(b16_high4(q), b16_spread_clear(block + 4)), h->s[0]);
}

LANE_OP void weights_q5_1(v16 w[2], const unsigned char *block, const scales *h, int c) {
    (void)c;
    b16 q = b16_load(block + 8);
    w[0] = scaled_plus(b16_or(b16_low4(q), b16_spread_to_4(block + 4)), h->s[0], h->s[1]);
    w[1] = scaled_plus(b16_or(b16_high4(q), b16_spread_to_4(block + 6)), h->s[0], h->s[1]);
}

/* Q4_K and Q5_K: 8 scales and 8 minimums of 6 bits in 12 bytes. Bytes 0-3 hold scales 0-3 in their low 6 bits, bytes
 * 4-7 minimums 0-3; bytes 8-11 the low 4 bits of scales (low nibble) and minimums (high) 4-7, whose upper 2 bits are
 * the upper 2 bits of bytes 0-3 and 4-7. */
LANE_OP void scales_k(scales *h, const unsigned char *block) {
    uint32_t a, b, c;
    memcpy(&a, block + 4, sizeof a);
    memcpy(&b, block + 8, sizeof b);
    memcpy(&c, block + 12, sizeof c);
    const uint32_t low4 = 0x0f0f0f0fu, high2 = 0x30303030u, low6 = 0x3f3f3f3fu;
    uint32_t scales_0_3 = a & low6, scales_4_7 = (c & low4) | (a >> 2 & high2);
    uint32_t minimums_0_3 = b & low6, minimums_4_7 = (c >> 4 & low4) | (b >> 2 & high2);
    b16 codes = b16_from_words((uint64_t)scales_4_7 << 32 | scales_0_3, (uint64_t)minimums_4_7 << 32 | minimums_0_3);
    v16_store(h->s, v16_mul(v16_from_unsigned(codes), v16_set2(load_half(block), -load_half(block + 2))));
}

/* Weights 64 i .. 64 i + 31 are the low nibbles of 32 bytes, the next 32 their high nibbles. */
LANE_OP b16 nibbles_k(const unsigned char *q, int c, int half) {
    b16 bytes = b16_load(q + c / 2 * 32 + half * 16);
    return c % 2 == 0 ? b16_low4(bytes) : b16_high4(bytes);
}

LANE_OP void weights_q4_k(v16 w[2], const unsigned char *block, const scales *h, int c) {
    w[0] = scaled_plus(nibbles_k(block + 16, c, 0), h->s[c], h->s[c + 8]);
    w[1] = scaled_plus(nibbles_k(block + 16, c, 1), h->s[c], h->s[c + 8]);
}

/* The fifth bit of weight l of sub-block c is bit c of byte l of 32. */
LANE_OP void weights_q5_k(v16 w[2], const unsigned char *block, const scales *h, int c) {
    for (int i = 0; i < 2; i++) {
        b16 high = b16_bit_to_4(b16_load(block + 16 + 16 * i), c);
        w[i] = scaled_plus(b16_or(nibbles_k(block + 48, c, i), high), h->s[c], h->s[c + 8]);
    }
}

/* ql [128], qh [64], 16 signed scales, d. */
LANE_OP void scales_q6_k(scales *h, const unsigned char *block) {
    float d = load_half(block + 208) * SIGNED_UNIT;
    v16_store(h->s, v16_mul(v16_load_signed(block + 192), v16_set1(d)));
}

/* Each half of the block has 128 weights: their low 4 bits in 64 bytes (low nibbles 0-63, high 64-127), their upper 2
 * bits in 32 bytes, 32 weights to a pair of bits. */
LANE_OP void weights_q6_k(v16 w[2], const unsigned char *block, const scales *h, int c) {
    int part = c % 4;
    const unsigned char *ql = block + c / 4 * 64 + part % 2 * 32, *qh = block + 128 + c / 4 * 32;
    for (int i = 0; i < 2; i++) {
        b16 low = b16_load(ql + 16 * i);
        low = part < 2 ? b16_low4(low) : b16_high4(low);
        b16 high = b16_pair_to_4(b16_load(qh + 16 * i), 2 * part);
        w[i] = scaled(b16_less(b16_or(low, high), 32), h->s[2 * c + i]);
    }
}

/* Every quantised type: X(suffix, number, bytes of a block, its sub-blocks of 32, scales). */
#define QUANT_TYPES(X)                                                                                                 \
    X(q8_0, NIB_Q8_0, 34, 1, scales_32)                                                                                \
    X(q4_0, NIB_Q4_0, 18, 1, scales_32_unit)                                                                           \
    X(q4_1, NIB_Q4_1, 20, 1, scales_32)                                                                                \
    X(q5_0, NIB_Q5_0, 22, 1, scales_32_unit)                                                                           \
    X(q5_1, NIB_Q5_1, 24, 1, scales_32)                                                                                \
    X(q4_k, NIB_Q4_K, 144, 8, scales_k)                                                                                \
    X(q5_k, NIB_Q5_K, 176, 8, scales_k)                                                                                \
    X(q6_k, NIB_Q6_K, 210, 8, scales_q6_k)

/* y [n] from whole blocks. */
LANE_OP void unpack_blocks(float *y, const unsigned char *block, int64_t n, int64_t bytes, int parts,
                           scales_fn get_scales, weights_fn get_weights) {
    for (int64_t k = 0; k < n; block += bytes) {
        scales h;
        get_scales(&h, block);
        UNROLL_PARTS
        for (int c = 0; c < parts; c++, k += 32) {
            v16 w[2];
            get_weights(w, block, &h, c);
            v16_store(y + k, w[0]);
            v16_store(y + k + 16, w[1]);
        }
    }
}

#define DEFINE_UNPACK(suffix, number, bytes, parts, get_scales)                                                        \
    static void unpack_##suffix(float *y, const unsigned char *block, int64_t n) {                                     \
        unpack_blocks(y, block, n, bytes, parts, get_scales, weights_##suffix);                                        \
    }
QUANT_TYPES(DEFINE_UNPACK)

/* 16 weights of a plain type from byte p on. */
typedef v16 (*load_fn)(const unsigned char *p);

LANE_OP v16 load_f32(const unsigned char *p) {
    return v16_load((const float *)(const void *)p);
}

/* The last n < 16 weights, the others +0. */
LANE_OP v16 load_tail(const unsigned char *p, int64_t n, size_t size, load_fn load) {
    unsigned char padded[64] = {0};
    memcpy(padded, p, (size_t)n * size);
    return load(padded);
}

LANE_OP void unpack_plain(float *y, const unsigned char *p, int64_t n, size_t size, load_fn load) {
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) {
        v16_store(y + k, load(p + (size_t)k * size));
    }
    if (k < n) {
        v16_store_n(y + k, load_tail(p + (size_t)k * size, n - k, size, load), n - k);
    }
}

static const unsigned char *row_of(const nib_matrix *w, int64_t row) {
    return (const unsigned char *)w->data + (size_t)row * w->row_bytes;
}

/* y [n] = weights k0 .. k0 + n - 1 of a row; k0 is a multiple of 256, so of every block. */
static void unpack(float *y, const nib_matrix *w, int64_t row, int64_t k0, int64_t n) {
    const unsigned char *p = row_of(w, row);
    switch (w->dtype) {
    case NIB_F32: memcpy(y, p + (size_t)k0 * 4, (size_t)n * 4); return;
    case NIB_F16: unpack_plain(y, p + (size_t)k0 * 2, n, 2, v16_load_f16); return;
    case NIB_BF16: unpack_plain(y, p + (size_t)k0 * 2, n, 2, v16_load_bf16); return;
#define UNPACK_CASE(suffix, number, bytes, parts, get_scales)                                                          \
    case number: unpack_##suffix(y, p + (size_t)(k0 / ((parts)*32)) * (bytes), n); return;
        QUANT_TYPES(UNPACK_CASE)
    }
}

static void dequantize(float *y, const nib_matrix *w, int64_t row) {
    unpack(y, w, row, 0, w->cols);
}

#endif
