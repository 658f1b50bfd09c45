/* Template: what works on one row of activations: norms, sums, rotations, activations, log-sum-exp. docs/numerics.md,
 * rule 5. */
#ifndef NIB_KERNEL_TPL_ROWS_H
#define NIB_KERNEL_TPL_ROWS_H

#include "kernel/tpl_maths.h"

/* How many of the 16 elements from i on there are. */
LANE_OP int64_t lanes_left(int64_t n, int64_t i) {
    return n - i < 16 ? n - i : 16;
}

/* Elements i .. of a row of n, +0 beyond its end. */
LANE_OP v16 load_part(const float *p, int64_t i, int64_t n) {
    return i + 16 <= n ? v16_load(p + i) : v16_load_n(p + i, n - i);
}

LANE_OP void store_part(float *p, int64_t i, int64_t n, v16 a) {
    if (i + 16 <= n) {
        v16_store(p + i, a);
    } else {
        v16_store_n(p + i, a, n - i);
    }
}

LANE_OP float root(float x) {
    return __builtin_sqrtf(x);
}

static void rmsnorm(float *y, const float *x, const float *w, int64_t n, float eps) {
    v16 squares = v16_set1(0.0f);
    for (int64_t i = 0; i < n; i += 16) {
        v16 a = load_part(x, i, n);
        squares = v16_fma(a, a, squares);
    }
    v16 r = v16_set1(1.0f / root(v16_fold(squares) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 16) {
        store_part(y, i, n, v16_mul(v16_mul(load_part(x, i, n), r), load_part(w, i, n)));
    }
}

static void layernorm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps) {
    v16 sum = v16_set1(0.0f), squares = sum, none = sum;
    for (int64_t i = 0; i < n; i += 16) {
        sum = v16_add(sum, load_part(x, i, n));
    }
    v16 mean = v16_set1(v16_fold(sum) / (float)n);
    for (int64_t i = 0; i < n; i += 16) {
        v16 t = v16_if_between(0, lanes_left(n, i) - 1, v16_sub(load_part(x, i, n), mean), none);
        squares = v16_fma(t, t, squares);
    }
    v16 r = v16_set1(1.0f / root(v16_fold(squares) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 16) {
        v16 t = v16_sub(load_part(x, i, n), mean);
        store_part(y, i, n, v16_fma(v16_mul(t, r), load_part(w, i, n), load_part(b, i, n)));
    }
}

static void add(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        store_part(y, i, n, v16_add(load_part(y, i, n), load_part(x, i, n)));
    }
}

static void scale(float *y, float s, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        store_part(y, i, n, v16_mul(load_part(y, i, n), v16_set1(s)));
    }
}

LANE_OP v16 cap_16(v16 a, v16 cap, v16 inverse) {
    return v16_mul(cap, tanh_16(v16_mul(a, inverse)));
}

static void softcap(float *y, float cap, int64_t n) {
    v16 inverse = v16_set1(1.0f / cap);
    for (int64_t i = 0; i < n; i += 16) {
        store_part(y, i, n, cap_16(load_part(y, i, n), v16_set1(cap), inverse));
    }
}

/* a' = a c - b s, b' = b c + a s, each a product rounded and an fma. */
LANE_OP void turn(v16 *a, v16 *b, v16 c, v16 s) {
    v16 first = v16_fma(*a, c, v16_neg(v16_mul(*b, s)));
    *b = v16_fma(*b, c, v16_mul(*a, s));
    *a = first;
}

static void rope_pairs(float *x, const float *cos, const float *sin, int64_t half) {
    for (int64_t i = 0; i < half; i += 16) {
        int64_t n = lanes_left(half, i);
        float pairs[32] = {0};
        float *p = x + 2 * i;
        if (n < 16) {
            memcpy(pairs, p, (size_t)n * 2 * sizeof *p);
            p = pairs;
        }
        v16 a, b;
        v16_unzip(&a, &b, p);
        turn(&a, &b, load_part(cos, i, half), load_part(sin, i, half));
        v16_zip(p, a, b);
        if (n < 16) {
            memcpy(x + 2 * i, pairs, (size_t)n * 2 * sizeof *p);
        }
    }
}

static void rope_halves(float *x, const float *cos, const float *sin, int64_t half) {
    for (int64_t i = 0; i < half; i += 16) {
        v16 a = load_part(x, i, half), b = load_part(x + half, i, half);
        turn(&a, &b, load_part(cos, i, half), load_part(sin, i, half));
        store_part(x, i, half, a);
        store_part(x + half, i, half, b);
    }
}

LANE_OP v16 silu_16(v16 g) {
    return v16_div(g, v16_add(v16_set1(1.0f), exp_16(v16_neg(g))));
}

/* h + h tanh(g (0.7978845608 + 0.0356774081 g^2)), h = g / 2. */
LANE_OP v16 gelu_tanh_16(v16 g) {
    v16 h = v16_mul(v16_set1(0.5f), g);
    v16 slope = v16_fma(v16_set1(0.0356774081f), v16_mul(g, g), v16_set1(0.7978845608f));
    return v16_fma(h, tanh_16(v16_mul(g, slope)), h);
}

/* h + h erf(g / sqrt 2), h = g / 2. */
LANE_OP v16 gelu_erf_16(v16 g) {
    v16 h = v16_mul(v16_set1(0.5f), g);
    return v16_fma(h, erf_16(v16_mul(g, v16_set1(0.7071067812f))), h);
}

LANE_OP void activate(float *gate, const float *up, int64_t n, v16 (*f)(v16)) {
    for (int64_t i = 0; i < n; i += 16) {
        v16 a = f(load_part(gate, i, n));
        store_part(gate, i, n, up == NULL ? a : v16_mul(a, load_part(up, i, n)));
    }
}

static void silu(float *gate, const float *up, int64_t n) {
    activate(gate, up, n, silu_16);
}

static void gelu_tanh(float *gate, const float *up, int64_t n) {
    activate(gate, up, n, gelu_tanh_16);
}

static void gelu_erf(float *gate, const float *up, int64_t n) {
    activate(gate, up, n, gelu_erf_16);
}

static void exp_row(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        store_part(y, i, n, exp_16(load_part(x, i, n)));
    }
}

static bool lse_block(float *m, float *s, const float *l, int64_t n) {
    const v16 infinite = v16_set1(__builtin_inff()), lowest = v16_neg(infinite);
    v16 largest = lowest;
    bool sound = true;
    for (int64_t i = 0; i < n; i += 16) {
        v16 a = v16_if_between(0, lanes_left(n, i) - 1, load_part(l, i, n), lowest);
        largest = v16_max(a, largest);
        sound = v16_all_below(a, infinite) && sound;
    }
    *m = v16_largest(largest) + 0.0f; /* not -0, which would depend on the order */
    *s = 0.0f;
    if (!sound || *m < -0x1.fffffep127f) {
        return sound;
    }
    v16 sum = v16_set1(0.0f), none = sum;
    for (int64_t i = 0; i < n; i += 16) {
        v16 e = exp_16(v16_sub(load_part(l, i, n), v16_set1(*m)));
        sum = v16_add(sum, v16_if_between(0, lanes_left(n, i) - 1, e, none));
    }
    *s = v16_fold(sum);
    return true;
}

#endif
