/* Template: products of packed weights (pack.h) with activations of int8. docs/numerics.md, rule 2. PASS_LANES rows and up
 * to PACKED_TOKENS tokens at a time; every output is one chain of fma over all of k, in a register. */
#ifndef NIB_KERNEL_TPL_PACKED_H
#define NIB_KERNEL_TPL_PACKED_H

#include "kernel/tpl_maths.h"

enum { PACKED_PARTS = 16 / PASS_LANES };

/* ---- Activations. */

/* One block of one token. */
LANE_OP void quantize_block(int8_t *q, float *d, float *S, int16_t *sums, const float *x) {
    v16 a = v16_load(x), b = v16_load(x + 16);
    uint32_t bits = v16_largest_bits(v16_abs(a), v16_abs(b));
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    if (bits >= 0x7f800000u || largest < 0x1p-100f) {
        *d = bits >= 0x7f800000u ? __builtin_nanf("") : 0.0f;
        *S = *d;
        memset(q, 0, 32);
        memset(sums, 0, 2 * sizeof *sums);
        return;
    }
    v16 r = v16_set1(127.0f / largest);
    *d = largest / 127.0f;
    sums[0] = v16_round(q, v16_mul(a, r));
    sums[1] = v16_round(q + 16, v16_mul(b, r));
    *S = *d * (float)(sums[0] + sums[1]);
}

/* The n <= NIB_QUANT_TOKENS tokens of one group. */
static void quantize_group(unsigned char *q, const float *x, int64_t x_stride, int64_t n, int64_t cols) {
    for (int64_t t = 0; t < n; t++) {
        unsigned char *record = q;
        for (int64_t k = 0; k < cols; k += 32, record += n * NIB_QUANT_BLOCK) {
            unsigned char *rest = record + 32 * n + 4 * t;
            float d, S;
            int16_t sums[2];
            quantize_block((int8_t *)(record + 32 * t), &d, &S, sums, x + t * x_stride + k);
            memcpy(rest, &d, sizeof d);
            memcpy(rest + 4 * n, &S, sizeof S);
            memcpy(rest + 8 * n, sums, sizeof sums);
        }
    }
}

static void quantize(void *q, const float *x, int64_t x_stride, int64_t n, int64_t cols) {
    unsigned char *group = q;
    for (int64_t t = 0; t < n; t += NIB_QUANT_TOKENS) {
        int64_t w = n - t < NIB_QUANT_TOKENS ? n - t : NIB_QUANT_TOKENS;
        quantize_group(group, x + t * x_stride, x_stride, w, cols);
        group += nib_quant_bytes(w, cols);
    }
}

/* ---- Weights. `at` is the byte of a word at which the rows of this pass begin. */

/* Group g (0 .. 7) of a tile as codes without sign, or as wpass_signed makes them. */
typedef wpass (*codes_fn)(const unsigned char *tile, int g, int at);

/* Scales (and minimums) of tile c of a block. `at` counts rows here. */
typedef void (*pass_scales_fn)(vpass *s, vpass *m, const unsigned char *block, int c, int at);

LANE_OP wpass codes_4(const unsigned char *tile, int g, int at) {
    wpass word = wpass_load(tile + g % 4 * 64 + at);
    return g < 4 ? wpass_low4(word) : wpass_high4(word);
}

LANE_OP wpass codes_5(const unsigned char *tile, int g, int at) {
    return wpass_with_fifth(codes_4(tile, g, at), wpass_load(tile + 256 + at), g);
}

LANE_OP wpass codes_6(const unsigned char *tile, int g, int at) {
    return wpass_with_pair(codes_4(tile, g, at), wpass_load(tile + 256 + g / 4 * 64 + at), g % 4 * 2);
}

LANE_OP wpass codes_8(const unsigned char *tile, int g, int at) {
    return wpass_signed(wpass_load(tile + g * 64 + at));
}

LANE_OP void scales_at(vpass *s, vpass *m, const unsigned char *p, int at) {
    *s = vpass_load_f16(p + 2 * at);
    *m = *s;
}

LANE_OP void scales_pair_at(vpass *s, vpass *m, const unsigned char *p, int at) {
    *s = vpass_load_f16(p + 2 * at);
    *m = vpass_load_f16(p + 32 + 2 * at);
}

LANE_OP void packed_scales_q8_0(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    (void)c;
    scales_at(s, m, block + 512, at);
}

LANE_OP void packed_scales_q4_0(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    (void)c;
    scales_at(s, m, block + 256, at);
}

LANE_OP void packed_scales_q4_1(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    (void)c;
    scales_pair_at(s, m, block + 256, at);
}

LANE_OP void packed_scales_q5_0(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    (void)c;
    scales_at(s, m, block + 320, at);
}

LANE_OP void packed_scales_q5_1(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    (void)c;
    scales_pair_at(s, m, block + 320, at);
}

/* Behind 8 tiles: d, dmin, scales [8][16], minimums [8][16]. */
LANE_OP void packed_scales_k(vpass *s, vpass *m, const unsigned char *head, int c, int at) {
    vpass d, dmin;
    scales_pair_at(&d, &dmin, head, at);
    *s = vpass_mul(d, vpass_load_unsigned(head + 64 + 16 * c + at));
    *m = vpass_neg(vpass_mul(dmin, vpass_load_unsigned(head + 192 + 16 * c + at)));
}

LANE_OP void packed_scales_q4_k(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    packed_scales_k(s, m, block + 8 * 256, c, at);
}

LANE_OP void packed_scales_q5_k(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    packed_scales_k(s, m, block + 8 * 320, c, at);
}

/* Two scales for each tile: of columns 0-15 and 16-31. */
LANE_OP void packed_scales_q6_k(vpass *s, vpass *m, const unsigned char *block, int c, int at) {
    const unsigned char *head = block + 8 * 384;
    vpass d = vpass_load_f16(head + 2 * at);
    *s = vpass_mul(d, vpass_load_signed(head + 32 + 32 * c + at));
    *m = vpass_mul(d, vpass_load_signed(head + 32 + 32 * c + 16 + at));
}

/* What the code of a type depends on; constants where it is inlined. */
typedef struct packed_kind {
    int tile_bytes, tiles, head_bytes; /* of a block */
    int chain;                         /* groups that dots can hold */
    int offset;                        /* of the codes */
    bool is_signed, minimum, halves;   /* halves: sub-blocks of 16 columns */
} packed_kind;

#define PACKED_TYPES(X)                                                                                                \
    X(q8_0, NIB_Q8_0, codes_8, 512, 1, 32, CHAIN_8, OFFSET_8, true, false, false)                                      \
    X(q4_0, NIB_Q4_0, codes_4, 256, 1, 32, CHAIN_4, 8, false, false, false)                                            \
    X(q4_1, NIB_Q4_1, codes_4, 256, 1, 64, CHAIN_4, 0, false, true, false)                                             \
    X(q5_0, NIB_Q5_0, codes_5, 320, 1, 32, CHAIN_5, 16, false, false, false)                                           \
    X(q5_1, NIB_Q5_1, codes_5, 320, 1, 64, CHAIN_5, 0, false, true, false)                                             \
    X(q4_k, NIB_Q4_K, codes_4, 256, 8, 320, CHAIN_4, 0, false, true, false)                                            \
    X(q5_k, NIB_Q5_K, codes_5, 320, 8, 320, CHAIN_5, 0, false, true, false)                                            \
    X(q6_k, NIB_Q6_K, codes_6, 384, 8, 288, CHAIN_6, 32, false, false, true)

/* ---- Products. */

/* Where a pass of n_tokens reads and what it adds to. */
typedef struct packed_place {
    const unsigned char *q;    /* int8 of the first token of a record; tokens are 32 bytes apart */
    const unsigned char *rest; /* its d; S and sums lie rest_step and 2 * rest_step further */
    int64_t rest_step;
    const unsigned char *tile;
    int at; /* byte of a word */
} packed_place;

LANE_OP float number_at(const unsigned char *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* sum[t] += the sub-block of n_groups groups from group g0 on. */
LANE_OP void add_groups(vpass *sum, const packed_place *p, packed_kind kind, codes_fn codes, vpass s, int g0,
                        int n_groups, int n_tokens) {
    dots part[PACKED_TOKENS];
    wpass whole[PACKED_TOKENS];
    UNROLL_PARTS
    for (int i = 0; i < n_groups; i++) {
        /* Groups g and g + 4 share a word. */
        int g = n_groups == 8 && !kind.is_signed ? i / 2 + i % 2 * 4 : g0 + i;
        wpass w = codes(p->tile, g, p->at);
        UNROLL_PARTS
        for (int t = 0; t < n_tokens; t++) {
            wpass x = wpass_spread(p->q + 32 * t + 4 * g);
            if (i % kind.chain == 0) {
                part[t] = kind.is_signed ? dots_begin_signed(w, x) : dots_begin(w, x);
            } else {
                part[t] = kind.is_signed ? dots_add_signed(part[t], w, x) : dots_add(part[t], w, x);
            }
            if ((i + 1) % kind.chain == 0 || i == n_groups - 1) {
                whole[t] = i < kind.chain ? dots_sum(part[t]) : wpass_add_32(whole[t], dots_sum(part[t]));
            }
        }
    }
    UNROLL_PARTS
    for (int t = 0; t < n_tokens; t++) {
        if (kind.offset != 0) {
            const unsigned char *sums = p->rest + 2 * p->rest_step + 4 * t;
            whole[t] = wpass_less_sums(whole[t], sums, g0 == 0 ? kind.offset : 0, g0 + n_groups == 8 ? kind.offset : 0);
        }
        vpass scale = vpass_mul(s, vpass_set1(number_at(p->rest + 4 * t)));
        sum[t] = vpass_fma(vpass_from_32(whole[t]), scale, sum[t]);
    }
}

/* One tile. */
LANE_OP void add_tile(vpass *sum, const packed_place *p, packed_kind kind, codes_fn codes, vpass s, vpass m,
                      int n_tokens) {
    if (kind.halves) {
        add_groups(sum, p, kind, codes, s, 0, 4, n_tokens);
        add_groups(sum, p, kind, codes, m, 4, 4, n_tokens);
        return;
    }
    add_groups(sum, p, kind, codes, s, 0, 8, n_tokens);
    if (!kind.minimum) {
        return;
    }
    UNROLL_PARTS
    for (int t = 0; t < n_tokens; t++) {
        sum[t] = vpass_fma(m, vpass_set1(number_at(p->rest + p->rest_step + 4 * t)), sum[t]);
    }
}

/* What a product of one strip works on. */
typedef struct strip_job {
    const unsigned char *strip;
    float *y; /* row 0 of the strip, token 0 of the group */
    int64_t y_stride;
    int n_rows;             /* of 16, that exist */
    const float *bias;      /* of row 0, or NULL */
    const unsigned char *q; /* the group */
    int64_t width;          /* its tokens */
    int64_t cols;
} strip_job;

/* One core reads 12 instead of 9.5 GB/s of the 14.5 that it can when it asks this far ahead (Q4_1, one token), and
 * computes 294 instead of 210 GOP/s with 16 tokens. */
enum { AHEAD_BYTES = 2048 };

LANE_OP void prefetch(const unsigned char *p, int bytes) {
    UNROLL_PARTS
    for (int i = 0; i < bytes; i += 64) {
        __builtin_prefetch(p + AHEAD_BYTES + i, 0, 3);
    }
}

/* Rows of n_parts passes from `part` on and n_tokens tokens from t on. */
LANE_OP void strip_tile(const strip_job *job, int part, int n_parts, int64_t t, int n_tokens, packed_kind kind,
                        codes_fn codes, pass_scales_fn get_scales) {
    vpass sum[PACKED_PARTS][PACKED_TOKENS];
    for (int i = 0; i < n_parts; i++) {
        for (int j = 0; j < n_tokens; j++) {
            sum[i][j] = vpass_zero();
        }
    }
    const unsigned char *block = job->strip;
    packed_place p = {job->q + 32 * t, job->q + 32 * job->width + 4 * t, 4 * job->width, block, 0};
    for (int64_t k = 0; k < job->cols; k += 32 * kind.tiles) {
        p.tile = block;
        for (int c = 0; c < kind.tiles; c++) {
            prefetch(p.tile, kind.tile_bytes + (kind.tiles == 1 ? kind.head_bytes : 0));
            UNROLL_PARTS
            for (int i = 0; i < n_parts; i++) {
                vpass s, m;
                int row = (part + i) * PASS_LANES;
                p.at = 4 * row;
                get_scales(&s, &m, block, c, row);
                add_tile(sum[i], &p, kind, codes, s, m, n_tokens);
            }
            p.tile += kind.tile_bytes;
            p.q += job->width * NIB_QUANT_BLOCK;
            p.rest += job->width * NIB_QUANT_BLOCK;
        }
        block = p.tile + kind.head_bytes;
    }
    for (int j = 0; j < n_tokens; j++) {
        float *y = job->y + (t + j) * job->y_stride;
        for (int i = 0; i < n_parts; i++) {
            int row = (part + i) * PASS_LANES;
            float room[PASS_LANES];
            bool all = row + PASS_LANES <= job->n_rows;
            if (job->bias != NULL) {
                for (int r = 0; r < PASS_LANES; r++) {
                    room[r] = row + r < job->n_rows ? job->bias[row + r] : 0.0f;
                }
                sum[i][j] = vpass_add(sum[i][j], vpass_load(room));
            }
            vpass_store(all ? y + row : room, sum[i][j]);
            for (int r = 0; !all && row + r < job->n_rows; r++) {
                y[row + r] = room[r];
            }
        }
    }
}

/* One token reads the strip once; for several it stays in the first level cache while the passes follow each other. */
LANE_OP void strip_tokens(const strip_job *job, int64_t t, int n_tokens, packed_kind kind, codes_fn codes,
                          pass_scales_fn get_scales) {
    if (n_tokens == 1) {
        strip_tile(job, 0, PACKED_PARTS, t, 1, kind, codes, get_scales);
        return;
    }
    for (int part = 0; part < PACKED_PARTS; part++) {
        strip_tile(job, part, 1, t, n_tokens, kind, codes, get_scales);
    }
}

LANE_OP void strip_group(const strip_job *job, packed_kind kind, codes_fn codes, pass_scales_fn get_scales) {
    int64_t t = 0;
    for (; t + PACKED_TOKENS <= job->width; t += PACKED_TOKENS) {
        strip_tokens(job, t, PACKED_TOKENS, kind, codes, get_scales);
    }
    if (PACKED_TOKENS > 4 && t + 4 <= job->width) {
        strip_tokens(job, t, 4, kind, codes, get_scales);
        t += 4;
    }
    if (PACKED_TOKENS > 2 && t + 2 <= job->width) {
        strip_tokens(job, t, 2, kind, codes, get_scales);
        t += 2;
    }
    if (PACKED_TOKENS > 1 && t < job->width) {
        strip_tokens(job, t, 1, kind, codes, get_scales);
    }
}

#define DEFINE_STRIP(suffix, number, codes, tile, tiles, head, chain, offset, is_signed, minimum, halves)              \
    static void strip_##suffix(const strip_job *job) {                                                                 \
        strip_group(job, (packed_kind){tile, tiles, head, chain, offset, is_signed, minimum, halves}, codes,           \
                    packed_scales_##suffix);                                                                           \
    }
PACKED_TYPES(DEFINE_STRIP)

static void strip_product(nib_dtype dtype, const strip_job *job) {
    switch (dtype) {
#define STRIP_CASE(suffix, number, ...)                                                                                \
    case number: strip_##suffix(job); return;
        PACKED_TYPES(STRIP_CASE)
    case NIB_F32:
    case NIB_F16:
    case NIB_BF16: return;
    }
}

static void packed_matmul(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const void *q,
                          int64_t n, const float *bias) {
    size_t strip_bytes = nib_strip_bytes(w->dtype, w->cols);
    for (int64_t row = row0; row < row1; row += NIB_STRIP) {
        strip_job job = {.strip = (const unsigned char *)w->data + (size_t)(row / NIB_STRIP) * strip_bytes,
                         .y_stride = y_stride,
                         .n_rows = row1 - row < NIB_STRIP ? (int)(row1 - row) : NIB_STRIP,
                         .bias = bias == NULL ? NULL : bias + row,
                         .cols = w->cols};
        for (int64_t t = 0; t < n; t += NIB_QUANT_TOKENS) {
            job.width = n - t < NIB_QUANT_TOKENS ? n - t : NIB_QUANT_TOKENS;
            job.q = (const unsigned char *)q + nib_quant_bytes(t, w->cols);
            job.y = y + t * y_stride + row;
            strip_product(w->dtype, &job);
        }
    }
}

#endif
