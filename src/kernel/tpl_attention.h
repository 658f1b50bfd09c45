/* Template: attention over one group of 64 keys, and the merging of groups. docs/numerics.md, rule 4. */
#ifndef NIB_KERNEL_TPL_ATTENTION_H
#define NIB_KERNEL_TPL_ATTENTION_H

#include "kernel/tpl_maths.h"
#include "kernel/tpl_rows.h"

enum { GROUP_PARTS = NIB_GROUP / 16 };

/* Scores of n x 16 keys from k on: each a chain of fma over e. */
LANE_OP void score_parts(v16 *s, const float *q, const float *k, int64_t E, int n) {
    v16 sum[GROUP_PARTS];
    for (int i = 0; i < n; i++) {
        sum[i] = v16_set1(0.0f);
    }
    for (int64_t e = 0; e < E; e++, k += NIB_GROUP) {
        v16 qe = v16_set1(q[e]);
        for (int i = 0; i < n; i++) {
            sum[i] = v16_fma(qe, v16_load(k + 16 * i), sum[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        s[i] = sum[i];
    }
}

/* o[e] over the visible keys for n x 16 elements; n_last of the last 16 exist. */
LANE_OP void value_parts(float *o, const float *p, const float *v, const nib_attn_shape *shape, int n, int64_t n_last) {
    v16 sum[GROUP_PARTS];
    for (int i = 0; i < n; i++) {
        sum[i] = v16_set1(0.0f);
    }
    for (int64_t j = shape->lo; j <= shape->hi; j++) {
        v16 pj = v16_set1(p[j]);
        const float *row = v + j * shape->E;
        for (int i = 0; i < n - 1; i++) {
            sum[i] = v16_fma(pj, v16_load(row + 16 * i), sum[i]);
        }
        v16 last = n_last == 16 ? v16_load(row + 16 * (n - 1)) : v16_load_n(row + 16 * (n - 1), n_last);
        sum[n - 1] = v16_fma(pj, last, sum[n - 1]);
    }
    for (int i = 0; i < n - 1; i++) {
        v16_store(o + 16 * i, sum[i]);
    }
    v16_store_n(o + 16 * (n - 1), sum[n - 1], n_last);
}

static void values(float *o, const float *p, const float *v, const nib_attn_shape *shape) {
    int64_t e = 0;
    for (; e + 64 <= shape->E; e += 64) {
        value_parts(o + e, p, v + e, shape, 4, 16);
    }
    for (; e < shape->E; e += 16) {
        value_parts(o + e, p, v + e, shape, 1, shape->E - e < 16 ? shape->E - e : 16);
    }
}

/* p_j = exp(s_j - m) of the visible keys, +0 of the hidden ones, whose scores are not looked at. */
static nib_attn_state weigh(float *p, v16 *s, const nib_attn_shape *shape) {
    const v16 lowest = v16_set1(-__builtin_inff()), none = v16_set1(0.0f);
    const v16 cap = v16_set1(shape->cap), inverse = v16_set1(1.0f / shape->cap);
    int first = (int)(shape->lo / 16), last = (int)(shape->hi / 16);
    v16 largest = lowest;
    for (int i = first; i <= last; i++) {
        if (shape->cap != 0.0f) {
            s[i] = cap_16(s[i], cap, inverse);
        }
        s[i] = v16_if_between(shape->lo - 16 * i, shape->hi - 16 * i, s[i], lowest);
        largest = v16_max(s[i], largest);
    }
    nib_attn_state state = {.m = v16_largest(largest) + 0.0f}; /* not -0, which would depend on the order */
    v16 sum = none;
    for (int i = first; i <= last; i++) {
        v16 e = exp_16(v16_sub(s[i], v16_set1(state.m)));
        e = v16_if_between(shape->lo - 16 * i, shape->hi - 16 * i, e, none);
        v16_store(p + 16 * i, e);
        sum = v16_add(sum, e);
    }
    state.l = v16_fold(sum);
    return state;
}

static void attn_group(nib_attn_state *state, float *o, int64_t o_stride, const float *q, int64_t q_stride, int64_t n_q,
                       const float *k, const float *v, const nib_attn_shape *shape) {
    int64_t first = shape->lo / 16, last = shape->hi / 16;
    for (int64_t h = 0; h < n_q; h++) {
        v16 s[GROUP_PARTS];
        float p[NIB_GROUP];
        if (first == 0 && last == GROUP_PARTS - 1) {
            score_parts(s, q + h * q_stride, k, shape->E, GROUP_PARTS);
        } else {
            for (int64_t i = first; i <= last; i++) {
                score_parts(s + i, q + h * q_stride, k + 16 * i, shape->E, 1);
            }
        }
        state[h] = weigh(p, s, shape);
        values(o + h * o_stride, p, v, shape);
    }
}

static void attn_merge(nib_attn_state *state, float *sum, const nib_attn_state *group, const float *o, int64_t E) {
    float m = state->m > group->m ? state->m : group->m;
    float a = ISA_EXP1(state->m - m), b = ISA_EXP1(group->m - m);
    state->l = scalar_fma(group->l, b, state->l * a);
    state->m = m;
    for (int64_t e = 0; e < E; e += 16) {
        v16 kept = v16_mul(load_part(sum, e, E), v16_set1(a));
        store_part(sum, e, E, v16_fma(load_part(o, e, E), v16_set1(b), kept));
    }
}

static void attn_finish(float *sum, float l, int64_t E) {
    scale(sum, 1.0f / l, E);
}

#endif
