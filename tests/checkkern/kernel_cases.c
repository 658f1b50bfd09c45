/* Every function of the table against the reference, a case at a time. Two copies of what is written, one for the
 * kernel and one for the reference, begin with the same bytes and are compared whole: an element that must not be
 * touched is a difference too. */
#include "kernel_cases.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"
#include "kernel_reference.h"

static float *copy_of(const float *x, int64_t n) {
    float *y = block((size_t)n * sizeof *y);
    if (n > 0) {
        memcpy(y, x, (size_t)n * sizeof *y);
    }
    return y;
}

static void check_dequantize(check *c) {
    nib_dtype dtype = draw_dtype(c);
    int64_t size = draw_size(c, 300), unit = nib_dtype_find((uint32_t)dtype)->block;
    int64_t cols = unit == 256 ? size % 4 * 256 : unit == 32 ? size % 9 * 32 : size, rows = 1 + (int64_t)draw(c, 3);
    nib_matrix w = draw_matrix(c, dtype, rows, cols);
    int64_t row = (int64_t)draw(c, (uint64_t)rows);
    float *got = block((size_t)cols * sizeof *got), *want = block((size_t)cols * sizeof *want);
    c->kernels->dequantize(got, &w, row);
    reference_dequantize(want, &w, row);
    expect_same(c, got, want, cols, "y");
}

/* Columns around the size, or around where the product is cut into blocks. */
static int64_t draw_cols(check *c, nib_dtype dtype, int64_t size) {
    int64_t unit = nib_dtype_find((uint32_t)dtype)->block;
    if (draw(c, 12) == 0) {
        int64_t around = 768 * (1 + (int64_t)draw(c, 2)) - 70 + size;
        return unit == 1 ? around : around / unit * unit;
    }
    return unit == 256 ? size % 3 * 256 : unit == 32 ? size % 8 * 32 : size;
}

static int64_t draw_n_tokens(check *c) {
    uint64_t r = draw(c, 32);
    return r < 10 ? 1 : r < 31 ? (int64_t)draw(c, 9) : 250 + (int64_t)draw(c, 12);
}

/* Weights and activations whose products are all negative and round to -0: so is the sum, unless somebody adds a +0. */
static void make_vanish(nib_matrix *w, float *x, int64_t n_x) {
    float *p = block((size_t)(w->rows * w->cols) * sizeof *p);
    for (int64_t i = 0; i < w->rows * w->cols; i++) {
        p[i] = 0.125f;
    }
    w->data = p;
    w->row_bytes = (size_t)w->cols * sizeof *p;
    for (int64_t i = 0; i < n_x; i++) {
        x[i] = -0x1p-149f;
    }
}

static void check_matmul(check *c) {
    bool vanish = draw(c, 16) == 0;
    nib_dtype dtype = vanish ? NIB_F32 : draw_dtype(c);
    int64_t size = draw_size(c, 200), cols = vanish ? NIB_PAD16(size) : draw_cols(c, dtype, size), n = draw_n_tokens(c);
    int64_t rows = n > 100 || cols > 500 ? 1 + (int64_t)draw(c, 6) : 1 + (int64_t)draw(c, 18);
    nib_matrix w = draw_matrix(c, dtype, rows, cols);
    int64_t row0 = (int64_t)draw(c, (uint64_t)rows), row1 = row0 + (int64_t)draw(c, (uint64_t)(rows - row0) + 1);
    int64_t padded = NIB_PAD16(cols), x_stride = padded + (int64_t)draw(c, 3), y_stride = rows + (int64_t)draw(c, 3);
    int64_t n_x = n == 0 ? 0 : (n - 1) * x_stride + padded, n_y = n == 0 ? 0 : (n - 1) * y_stride + rows;
    float *x = draw_floats(c, n_x, true), *bias = vanish || draw(c, 2) == 0 ? NULL : draw_floats(c, rows, true);
    if (vanish) {
        make_vanish(&w, x, n_x);
    }
    for (int64_t t = 0; t < n; t++) {
        for (int64_t k = cols; k < padded; k++) {
            x[t * x_stride + k] = 0.0f;
        }
    }
    float *got = block((size_t)n_y * sizeof *got), *want = block((size_t)n_y * sizeof *want);
    c->kernels->matmul(got, y_stride, &w, row0, row1, x, x_stride, n, bias);
    reference_matmul(want, y_stride, &w, row0, row1, x, x_stride, n, bias);
    expect_same(c, got, want, n_y, "y");
}

static float draw_eps(check *c) {
    static const float values[] = {1e-5f, 1e-6f, 0.0f, 1e-12f};
    return values[draw(c, 4)];
}

static void check_rmsnorm(check *c) {
    int64_t n = draw_size(c, 1000);
    float *x = draw_floats(c, n, true), *w = draw_floats(c, n, true), eps = draw_eps(c);
    bool in_place = draw(c, 2) == 0;
    float *want = block((size_t)n * sizeof *want), *got = in_place ? copy_of(x, n) : block((size_t)n * sizeof *got);
    c->kernels->rmsnorm(got, in_place ? got : x, w, n, eps);
    reference_rmsnorm(want, x, w, n, eps);
    expect_same(c, got, want, n, in_place ? "y, which is x," : "y");
}

static void check_layernorm(check *c) {
    int64_t n = draw_size(c, 1000);
    float *x = draw_floats(c, n, true), *w = draw_floats(c, n, true), *b = draw_floats(c, n, true), eps = draw_eps(c);
    bool in_place = draw(c, 2) == 0;
    float *want = block((size_t)n * sizeof *want), *got = in_place ? copy_of(x, n) : block((size_t)n * sizeof *got);
    c->kernels->layernorm(got, in_place ? got : x, w, b, n, eps);
    reference_layernorm(want, x, w, b, n, eps);
    expect_same(c, got, want, n, in_place ? "y, which is x," : "y");
}

static void check_add(check *c) {
    int64_t n = draw_size(c, 1000);
    float *x = draw_floats(c, n, true), *want = draw_floats(c, n, true), *got = copy_of(want, n);
    c->kernels->add(got, x, n);
    for (int64_t i = 0; i < n; i++) {
        want[i] += x[i];
    }
    expect_same(c, got, want, n, "y");
}

static void check_scale(check *c) {
    int64_t n = draw_size(c, 1000);
    float *want = draw_floats(c, n, true), *got = copy_of(want, n), s = *draw_floats(c, 1, true);
    c->kernels->scale(got, s, n);
    for (int64_t i = 0; i < n; i++) {
        want[i] *= s;
    }
    expect_same(c, got, want, n, "y");
}

static float draw_cap(check *c) {
    static const float values[] = {30.0f, 50.0f, 1.0f, 0.1f};
    return values[draw(c, 4)];
}

static void check_softcap(check *c) {
    int64_t n = draw_size(c, 1000);
    float *want = draw_floats(c, n, true), *got = copy_of(want, n), cap = draw_cap(c);
    c->kernels->softcap(got, cap, n);
    reference_softcap(want, cap, n);
    expect_same(c, got, want, n, "y");
}

static void check_rope_pairs(check *c) {
    int64_t half = draw_size(c, 200);
    float *want = draw_floats(c, 2 * half, true), *got = copy_of(want, 2 * half);
    float *cos = draw_floats(c, half, true), *sin = draw_floats(c, half, true);
    c->kernels->rope_pairs(got, cos, sin, half);
    reference_rope(want, cos, sin, half, 2, 1);
    expect_same(c, got, want, 2 * half, "x");
}

static void check_rope_halves(check *c) {
    int64_t half = draw_size(c, 200);
    float *want = draw_floats(c, 2 * half, true), *got = copy_of(want, 2 * half);
    float *cos = draw_floats(c, half, true), *sin = draw_floats(c, half, true);
    c->kernels->rope_halves(got, cos, sin, half);
    reference_rope(want, cos, sin, half, 1, half);
    expect_same(c, got, want, 2 * half, "x");
}

static void check_activation(check *c, void (*kernel)(float *, const float *, int64_t), float (*reference)(float)) {
    int64_t n = draw_size(c, 1000);
    float *want = draw_floats(c, n, true), *got = copy_of(want, n),
          *up = draw(c, 3) == 0 ? NULL : draw_floats(c, n, true);
    kernel(got, up, n);
    for (int64_t i = 0; i < n; i++) {
        float a = reference(want[i]);
        want[i] = up == NULL ? a : a * up[i];
    }
    expect_same(c, got, want, n, "gate");
}

static void check_silu(check *c) {
    check_activation(c, c->kernels->silu, reference_silu);
}

static void check_gelu_tanh(check *c) {
    check_activation(c, c->kernels->gelu_tanh, reference_gelu_tanh);
}

static void check_gelu_erf(check *c) {
    check_activation(c, c->kernels->gelu_erf, reference_gelu_erf);
}

static void check_exp(check *c) {
    int64_t n = draw_size(c, 1000);
    float *x = draw_floats(c, n, true), *got = block((size_t)n * sizeof *got), *want = block((size_t)n * sizeof *want);
    c->kernels->exp(got, x, n);
    for (int64_t i = 0; i < n; i++) {
        want[i] = nib_expf(x[i]);
    }
    expect_same(c, got, want, n, "y");
}

/* Keys and values of one group; hidden ones hold NaN, infinities or garbage that would show. */
static void hide(check *c, float *k, float *v, const nib_attn_shape *shape) {
    static const uint32_t garbage[] = {0x7fc00000u, 0x7f800000u, 0xff800000u, 0x7f7fffffu, 0xffffffffu, 0x3f800000u};
    for (int64_t j = 0; j < NIB_GROUP; j++) {
        if (j >= shape->lo && j <= shape->hi) {
            continue;
        }
        for (int64_t e = 0; e < shape->E; e++) {
            memcpy(&k[e * NIB_GROUP + j], &garbage[draw(c, 6)], sizeof *k);
            memcpy(&v[j * shape->E + e], &garbage[draw(c, 6)], sizeof *v);
        }
    }
}

static void check_attn_group(check *c) {
    int64_t E = draw_size(c, 300), n_q = 1 + (int64_t)draw(c, 5), stride = E + (int64_t)draw(c, 3);
    nib_attn_shape shape = {E, 0, NIB_GROUP - 1, draw(c, 3) == 0 ? draw_cap(c) : 0.0f};
    if (draw(c, 3) != 0) {
        shape.lo = draw(c, 2) == 0 ? 0 : (int64_t)draw(c, NIB_GROUP);
        shape.hi = shape.lo + (int64_t)draw(c, (uint64_t)(NIB_GROUP - shape.lo));
    }
    bool wild = draw(c, 4) == 0;
    float *k = draw_floats(c, E * NIB_GROUP, wild), *v = draw_floats(c, E * NIB_GROUP, wild);
    hide(c, k, v, &shape);
    int64_t n = (n_q - 1) * stride + E;
    float *q = draw_floats(c, n, wild), *got = block((size_t)n * sizeof *got), *want = block((size_t)n * sizeof *want);
    nib_attn_state *got_state = block((size_t)n_q * sizeof *got_state),
                   *want_state = block((size_t)n_q * sizeof *want_state);
    c->kernels->attn_group(got_state, got, stride, q, stride, n_q, k, v, &shape);
    for (int64_t h = 0; h < n_q; h++) {
        reference_attn_group(&want_state[h], want + h * stride, q + h * stride, k, v, &shape);
        expect_same(c, &got_state[h].m, &want_state[h].m, 1, "m");
        expect_same(c, &got_state[h].l, &want_state[h].l, 1, "l");
    }
    expect_same(c, got, want, n, "o");
}

static void check_attn_merge(check *c) {
    int64_t E = draw_size(c, 300);
    bool begin = draw(c, 4) == 0;
    float *got = draw_floats(c, E, true), *o = draw_floats(c, E, true);
    float *m = draw_floats(c, 2, true), *l = draw_floats(c, 2, true);
    if (begin) {
        memset(got, 0, (size_t)E * sizeof *got);
        m[0] = -INFINITY;
        l[0] = 0.0f;
    }
    float *want = copy_of(got, E);
    nib_attn_state got_state = {m[0], l[0]}, want_state = got_state, group = {m[1], l[1]};
    c->kernels->attn_merge(&got_state, got, &group, o, E);
    reference_attn_merge(&want_state, want, &group, o, E);
    expect_same(c, &got_state.m, &want_state.m, 1, "m");
    expect_same(c, &got_state.l, &want_state.l, 1, "l");
    expect_same(c, got, want, E, "sum");
}

static void check_attn_finish(check *c) {
    int64_t E = draw_size(c, 300);
    float *want = draw_floats(c, E, true), *got = copy_of(want, E), l = *draw_floats(c, 1, true);
    c->kernels->attn_finish(got, l, E);
    float inverse = 1.0f / l;
    for (int64_t e = 0; e < E; e++) {
        want[e] *= inverse;
    }
    expect_same(c, got, want, E, "sum");
}

static void check_lse_block(check *c) {
    int64_t n = draw_size(c, 256);
    bool wild = draw(c, 4) == 0;
    float *l = draw_floats(c, n, wild);
    for (int64_t i = 0; i < n && draw(c, 4) == 0; i++) { /* masked tokens, sometimes all */
        l[i] = -INFINITY;
    }
    float got[2] = {0.0f, 0.0f}, want[2] = {0.0f, 0.0f};
    bool got_sound = c->kernels->lse_block(&got[0], &got[1], l, n);
    bool want_sound = reference_lse_block(&want[0], &want[1], l, n);
    if (got_sound != want_sound) {
        report(c, "returns %d for n = %lld, expected %d", got_sound, (long long)n, want_sound);
    }
    c->hash = (c->hash ^ got_sound) * 0x100000001b3u;
    if (want_sound) {
        expect_same(c, got, want, 2, "m, s");
    }
}

const check_function check_functions[] = {
    {"matmul", check_matmul, 6000},
    {"dequantize", check_dequantize, 4000},
    {"rmsnorm", check_rmsnorm, 2000},
    {"layernorm", check_layernorm, 2000},
    {"add", check_add, 1000},
    {"scale", check_scale, 1000},
    {"softcap", check_softcap, 2000},
    {"rope_pairs", check_rope_pairs, 1400},
    {"rope_halves", check_rope_halves, 1400},
    {"silu", check_silu, 2000},
    {"gelu_tanh", check_gelu_tanh, 2000},
    {"gelu_erf", check_gelu_erf, 2000},
    {"attn_group", check_attn_group, 2000},
    {"attn_merge", check_attn_merge, 1400},
    {"attn_finish", check_attn_finish, 700},
    {"lse_block", check_lse_block, 3000},
    {"exp", check_exp, 4000},
};
const size_t n_check_functions = sizeof check_functions / sizeof *check_functions;
