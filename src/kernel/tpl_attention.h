/* Template: attention over one group of 64 keys, and the merging of groups. docs/numerics.md, rule 4. Several rows at a
 * time, so that K and V are read once for them. */
#ifndef NIB_KERNEL_TPL_ATTENTION_H
#define NIB_KERNEL_TPL_ATTENTION_H

#include "kernel/tpl_maths.h"
#include "kernel/tpl_rows.h"

enum { GROUP_PARTS = NIB_GROUP / 16 };

/* 16 elements of the cache from element i on. */
typedef v16 (*load_kv_fn)(const void *p, int64_t i);

LANE_OP v16 load_kv_f32(const void *p, int64_t i) {
    return v16_load((const float *)p + i);
}

LANE_OP v16 load_kv_f16(const void *p, int64_t i) {
    return v16_load_f16((const unsigned char *)p + 2 * i);
}

/* Bytes of the cache that are asked for before they are read: one token waits for memory, behind 1,000 others more than half
 * of its attention. V of a head lies behind its K. */
enum { KV_AHEAD_BYTES = 2048 };

LANE_OP void prefetch_kv(const void *p, int64_t i, size_t bytes, int64_t n) {
    const unsigned char *at = (const unsigned char *)p + (size_t)i * bytes + KV_AHEAD_BYTES;
    for (int64_t k = 0; k < n * (int64_t)bytes; k += 64) {
        __builtin_prefetch(at + k, 0, 3);
    }
}

/* Scores [n_rows][64] of 16 x n_parts keys from key j on: each a chain of fma over e. */
LANE_OP void score_tile(float *s, const float *const *q, const void *k, int64_t j, int64_t E, int n_rows, int n_parts,
                        load_kv_fn load, size_t bytes) {
    v16 sum[ATTN_ROWS][ATTN_PARTS];
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < n_parts; i++) {
            sum[r][i] = v16_set1(0.0f);
        }
    }
    for (int64_t e = 0; e < E; e++) {
        prefetch_kv(k, e * NIB_GROUP + j, bytes, 16 * n_parts);
        v16 keys[ATTN_PARTS];
        for (int i = 0; i < n_parts; i++) {
            keys[i] = load(k, e * NIB_GROUP + j + 16 * i);
        }
        for (int r = 0; r < n_rows; r++) {
            v16 qe = v16_set1(q[r][e]);
            for (int i = 0; i < n_parts; i++) {
                sum[r][i] = v16_fma(qe, keys[i], sum[r][i]);
            }
        }
    }
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < n_parts; i++) {
            v16_store(s + NIB_GROUP * r + j + 16 * i, sum[r][i]);
        }
    }
}

/* Of the parts of 16 keys that hold a visible one. */
LANE_OP void score_rows(float *s, const float *const *q, const void *k, const nib_attn_shape *shape, int n_rows,
                        load_kv_fn load, size_t bytes) {
    int64_t j = shape->lo / 16 * 16;
    for (; j + 16 * (ATTN_PARTS - 1) <= shape->hi; j += 16 * ATTN_PARTS) {
        score_tile(s, q, k, j, shape->E, n_rows, ATTN_PARTS, load, bytes);
    }
    for (; j <= shape->hi; j += 16) {
        score_tile(s, q, k, j, shape->E, n_rows, 1, load, bytes);
    }
}

/* s [64] becomes p_j = exp(s_j - m) of the visible keys, +0 of the hidden ones, whose scores are not looked at. */
static nib_attn_state weigh(float *s, const nib_attn_shape *shape) {
    const v16 lowest = v16_set1(-__builtin_inff()), none = v16_set1(0.0f);
    const v16 cap = v16_set1(shape->cap), inverse = v16_set1(1.0f / shape->cap);
    int first = (int)(shape->lo / 16), last = (int)(shape->hi / 16);
    v16 largest = lowest;
    for (int i = first; i <= last; i++) {
        v16 part = v16_load(s + 16 * i);
        if (shape->cap != 0.0f) {
            part = cap_16(part, cap, inverse);
        }
        part = v16_if_between(shape->lo - 16 * i, shape->hi - 16 * i, part, lowest);
        v16_store(s + 16 * i, part);
        largest = v16_max(part, largest);
    }
    nib_attn_state state = {.m = v16_largest(largest) + 0.0f}; /* not -0, which would depend on the order */
    v16 sum = none;
    for (int i = first; i <= last; i++) {
        v16 e = exp_16(v16_sub(v16_load(s + 16 * i), v16_set1(state.m)));
        e = v16_if_between(shape->lo - 16 * i, shape->hi - 16 * i, e, none);
        v16_store(s + 16 * i, e);
        sum = v16_add(sum, e);
    }
    state.l = v16_fold(sum);
    return state;
}

/* o [n_rows][o_stride] of 16 x n_parts elements from e on, over the visible keys. */
LANE_OP void value_tile(float *o, int64_t o_stride, const float *p, const void *v, int64_t e,
                        const nib_attn_shape *shape, int n_rows, int n_parts, load_kv_fn load, size_t bytes) {
    v16 sum[ATTN_ROWS][ATTN_PARTS];
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < n_parts; i++) {
            sum[r][i] = v16_set1(0.0f);
        }
    }
    for (int64_t j = shape->lo; j <= shape->hi; j++) {
        prefetch_kv(v, j * shape->E + e, bytes, 16 * n_parts);
        v16 values[ATTN_PARTS];
        for (int i = 0; i < n_parts; i++) {
            values[i] = load(v, j * shape->E + e + 16 * i);
        }
        for (int r = 0; r < n_rows; r++) {
            v16 pj = v16_set1(p[NIB_GROUP * r + j]);
            for (int i = 0; i < n_parts; i++) {
                sum[r][i] = v16_fma(pj, values[i], sum[r][i]);
            }
        }
    }
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < n_parts; i++) {
            v16_store(o + o_stride * r + e + 16 * i, sum[r][i]);
        }
    }
}

/* The elements of a head behind the last 16. */
static void value_tail(float *o, const float *p, const void *v, int64_t e, const nib_attn_shape *shape) {
    const unsigned char *bytes = v;
    size_t size = shape->type == NIB_KV_F16 ? 2 : 4;
    int64_t n = shape->E - e;
    v16 sum = v16_set1(0.0f);
    for (int64_t j = shape->lo; j <= shape->hi; j++) {
        unsigned char row[64] = {0};
        memcpy(row, bytes + (size_t)(j * shape->E + e) * size, (size_t)n * size);
        v16 values = size == 2 ? load_kv_f16(row, 0) : load_kv_f32(row, 0);
        sum = v16_fma(v16_set1(p[j]), values, sum);
    }
    v16_store_n(o + e, sum, n);
}

LANE_OP void value_rows(float *o, int64_t o_stride, const float *p, const void *v, const nib_attn_shape *shape,
                        int n_rows, load_kv_fn load, size_t bytes) {
    int64_t e = 0;
    for (; e + 16 * ATTN_PARTS <= shape->E; e += 16 * ATTN_PARTS) {
        value_tile(o, o_stride, p, v, e, shape, n_rows, ATTN_PARTS, load, bytes);
    }
    for (; e + 16 <= shape->E; e += 16) {
        value_tile(o, o_stride, p, v, e, shape, n_rows, 1, load, bytes);
    }
    for (int r = 0; e < shape->E && r < n_rows; r++) {
        value_tail(o + o_stride * r, p + NIB_GROUP * r, v, e, shape);
    }
}

LANE_OP void group_rows(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, const void *k,
                        const void *v, const nib_attn_shape *shape, int n_rows, load_kv_fn load, size_t bytes) {
    _Alignas(64) float s[ATTN_ROWS * NIB_GROUP];
    score_rows(s, q, k, shape, n_rows, load, bytes);
    for (int r = 0; r < n_rows; r++) {
        state[r] = weigh(s + NIB_GROUP * r, shape);
    }
    value_rows(o, o_stride, s, v, shape, n_rows, load, bytes);
}

LANE_OP void group(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, int64_t n_q, const void *k,
                   const void *v, const nib_attn_shape *shape, load_kv_fn load, size_t bytes) {
    int64_t i = 0;
    for (; i + ATTN_ROWS <= n_q; i += ATTN_ROWS) {
        group_rows(state + i, o + i * o_stride, o_stride, q + i, k, v, shape, ATTN_ROWS, load, bytes);
    }
    switch (n_q - i) {
#define REST_CASE(n)                                                                                                   \
    case n:                                                                                                            \
        group_rows(state + i, o + i * o_stride, o_stride, q + i, k, v, shape, n, load, bytes);                         \
        break;
#if ISA_ATTN_ROWS > 5
        REST_CASE(5)
        REST_CASE(4)
        REST_CASE(3)
#endif
#if ISA_ATTN_ROWS > 2
        REST_CASE(2)
#endif
#if ISA_ATTN_ROWS > 1
        REST_CASE(1)
#endif
    default: break;
    }
}

static void group_f32(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, int64_t n_q,
                      const void *k, const void *v, const nib_attn_shape *shape) {
    group(state, o, o_stride, q, n_q, k, v, shape, load_kv_f32, sizeof(float));
}

static void group_f16(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, int64_t n_q,
                      const void *k, const void *v, const nib_attn_shape *shape) {
    group(state, o, o_stride, q, n_q, k, v, shape, load_kv_f16, sizeof(uint16_t));
}

static void attn_group(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, int64_t n_q,
                       const void *k, const void *v, const nib_attn_shape *shape) {
    if (shape->type == NIB_KV_F16) {
        group_f16(state, o, o_stride, q, n_q, k, v, shape);
    } else {
        group_f32(state, o, o_stride, q, n_q, k, v, shape);
    }
}

static void attn_merge(nib_attn_state *running, float *const *sum, const nib_attn_state *group_state, const float *o,
                       int64_t o_stride, int64_t n_q, int64_t E) {
    for (int64_t i = 0; i < n_q; i += 16) {
        int64_t n = lanes_left(n_q, i);
        float m[16] = {0}, a[16] = {0}, b[16] = {0};
        for (int64_t r = 0; r < n; r++) {
            float old = running[i + r].m, new = group_state[i + r].m;
            m[r] = old > new ? old : new;
            a[r] = old - m[r];
            b[r] = new - m[r];
        }
        ISA_EXP_ROWS(a, n);
        ISA_EXP_ROWS(b, n);
        for (int64_t r = 0; r < n; r++) {
            nib_attn_state *state = &running[i + r];
            state->l = scalar_fma(group_state[i + r].l, b[r], state->l * a[r]);
            state->m = m[r];
            float *row = sum[i + r];
            const float *new = o + (i + r) * o_stride;
            for (int64_t e = 0; e < E; e += 16) {
                v16 kept = v16_mul(load_part(row, e, E), v16_set1(a[r]));
                store_part(row, e, E, v16_fma(load_part(new, e, E), v16_set1(b[r]), kept));
            }
        }
    }
}

static void attn_finish(float *sum, float l, int64_t E) {
    scale(sum, 1.0f / l, E);
}

static void to_f16(uint16_t *y, const float *x, int64_t n) {
    const v16 high = v16_set1(65504.0f), low = v16_set1(-65504.0f);
    for (int64_t i = 0; i < n; i += 16) {
        v16 a = v16_max(low, v16_min(high, load_part(x, i, n))); /* a NaN stays: the second is taken */
        uint16_t room[16];
        int64_t left = lanes_left(n, i);
        v16_store_f16(left == 16 ? y + i : room, a);
        if (left < 16) {
            memcpy(y + i, room, (size_t)left * sizeof *y);
        }
    }
}

#endif
