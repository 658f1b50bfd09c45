/* Every function of the table against the reference, a case at a time. Two copies of what is written, one for the
 * kernel and one for the reference, begin with the same bytes and are compared whole: an element that must not be
 * touched is a difference too. */
#include "kernel_cases.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"
#include "kernel/pack.h"
#include "kernel_reference.h"
#include "quant_reference.h"

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

/* NaNs to one pattern: their payloads are nobody's. */
static void make_nans_one(void *q, int64_t n, int64_t cols) {
    for (int64_t t = 0; t < n; t++) {
        for (int64_t i = 0; i < cols / 32; i++) {
            reference_block b = reference_block_of(q, t, i, n, cols);
            b.d = isnan(b.d) ? NAN : b.d;
            b.S = isnan(b.S) ? NAN : b.S;
            reference_put_block(q, &b, t, i, n, cols);
        }
    }
}

static int64_t draw_n_quantised(check *c) {
    uint64_t r = draw(c, 40);
    return r < 10 ? 1 : r == 10 ? 60 : (int64_t)draw(c, 21);
}

static void check_quantize(check *c) {
    int64_t cols = 32 * (1 + draw_size(c, 100) % 9), n = draw_n_quantised(c), x_stride = cols + (int64_t)draw(c, 3);
    bool wild = draw(c, 4) == 0, largest = draw(c, 8) == 0;
    float *x = draw_activations(c, n, x_stride, cols, wild, largest);
    size_t len = (size_t)(n * cols / 32) * 44;
    void *got = block(len), *want = block(len);
    c->kernels->quantize(got, x, x_stride, n, cols);
    reference_quantize(want, x, x_stride, n, cols);
    make_nans_one(got, n, cols);
    make_nans_one(want, n, cols);
    expect_same_bytes(c, got, want, len, "q");
}

/* Memory of odd alignment, but for what ends at the page behind it. */
static unsigned char *draw_room(check *c, size_t len) {
    return block(len + (draw(c, 2) == 0 ? 0 : 1 + draw(c, 3)));
}

/* All strips of w. */
static nib_matrix pack(check *c, const nib_matrix *w) {
    size_t strip = reference_strip_bytes(w->dtype, w->cols);
    int64_t n = (w->rows + 15) / 16;
    unsigned char *tiles = draw_room(c, (size_t)n * strip);
    if (nib_strip_bytes(w->dtype, w->cols) != strip) {
        report(c, "nib_strip_bytes is %zu, expected %zu", nib_strip_bytes(w->dtype, w->cols), strip);
        return *w;
    }
    for (int64_t i = 0; i < n; i++) {
        nib_pack_strip(tiles + (size_t)i * strip, w, i);
    }
    nib_matrix packed = *w;
    packed.data = tiles;
    packed.packed = true;
    return packed;
}

/* n elements that are no NaN and no result: one that is written where none should be is seen. */
static float *guarded(int64_t n) {
    float *y = block((size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        y[i] = 0x1.234568p99f;
    }
    return y;
}

/* A packed product: what is multiplied, for which rows. */
typedef struct packed_case {
    nib_matrix stored, packed;
    int64_t row0, row1, n, y_stride;
    void *q;
    const float *bias;
} packed_case;

static packed_case draw_packed_case(check *c) {
    packed_case p = {.n = draw_n_quantised(c)};
    nib_dtype dtype = draw_quantised_dtype(c);
    int64_t unit = nib_dtype_find((uint32_t)dtype)->block, size = draw_size(c, 100), rows = 1 + (int64_t)draw(c, 50);
    int64_t cols = unit * (1 + size % (unit == 256 ? 3 : 9));
    if (draw(c, 24) == 0) { /* beyond where a product may be cut into blocks */
        cols = 2048 + unit * (int64_t)draw(c, 2048 / (uint64_t)unit);
        rows = 1 + (int64_t)draw(c, 20);
        p.n = p.n > 9 ? 9 : p.n;
    }
    p.stored = draw_matrix(c, dtype, rows, cols);
    bool extreme = draw(c, 4) == 0, wild = draw(c, 4) == 0;
    if (extreme) {
        make_extreme(c, &p.stored);
    } else if (draw(c, 4) == 0) {
        make_hard_scales(c, &p.stored, wild);
    }
    p.packed = pack(c, &p.stored);
    int64_t n_strips = (rows + 15) / 16, first = (int64_t)draw(c, (uint64_t)n_strips);
    int64_t end = first + (int64_t)draw(c, (uint64_t)(n_strips - first) + 1), x_stride = cols + (int64_t)draw(c, 3);
    p.row0 = 16 * first;
    p.row1 = 16 * end < rows ? 16 * end : rows;
    p.y_stride = rows + (int64_t)draw(c, 20);
    p.bias = draw(c, 2) == 0 ? NULL : draw_floats(c, rows, true);
    const float *x = draw_activations(c, p.n, x_stride, cols, wild, extreme && draw(c, 4) != 0);
    p.q = draw_room(c, (size_t)(p.n * cols / 32) * 44);
    reference_quantize(p.q, x, x_stride, p.n, cols);
    return p;
}

/* The tokens at once, or in two calls that part at a group. */
static void call_packed(check *c, float *y, const packed_case *p) {
    int64_t first = draw(c, 4) == 0 ? 8 * (int64_t)draw(c, (uint64_t)p->n / 8 + 1) : p->n;
    const unsigned char *q = p->q;
    c->kernels->packed_matmul(y, p->y_stride, &p->packed, p->row0, p->row1, q, first, p->bias);
    if (first < p->n) {
        c->kernels->packed_matmul(y + first * p->y_stride, p->y_stride, &p->packed, p->row0, p->row1,
                                  q + first * (p->packed.cols / 32) * 44, p->n - first, p->bias);
    }
}

static void check_packed_matmul(check *c) {
    packed_case p = draw_packed_case(c);
    if (c->failed) {
        return;
    }
    int64_t n_y = p.n == 0 ? 0 : (p.n - 1) * p.y_stride + p.stored.rows;
    float *from_stored = guarded(n_y), *want = guarded(n_y), *got = guarded(n_y);
    reference_packed_matmul(from_stored, p.y_stride, &p.stored, p.row0, p.row1, p.q, p.n, p.bias);
    reference_packed_matmul(want, p.y_stride, &p.packed, p.row0, p.row1, p.q, p.n, p.bias);
    expect_same(c, want, from_stored, n_y, "the reference's y from tiles, and so nib_pack_strip:");
    call_packed(c, got, &p);
    expect_same(c, got, want, n_y, "y");
    int64_t row = (int64_t)draw(c, (uint64_t)p.stored.rows), cols = p.stored.cols;
    float *got_row = block((size_t)cols * sizeof *got_row), *want_row = block((size_t)cols * sizeof *want_row);
    nib_packed_row(got_row, &p.packed, row);
    reference_dequantize(want_row, &p.stored, row);
    expect_same(c, got_row, want_row, cols, "nib_packed_row's y");
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

static void check_to_f16(check *c) {
    int64_t n = draw_size(c, 1000);
    float *x = draw(c, 2) == 0 ? draw_near_halves(c, n) : draw_floats(c, n, true);
    uint16_t *got = block((size_t)n * sizeof *got), *want = block((size_t)n * sizeof *want);
    c->kernels->to_f16(got, x, n);
    for (int64_t i = 0; i < n; i++) {
        want[i] = reference_to_f16(x[i]);
        bool is_nan = (got[i] & 0x7fff) > 0x7c00;
        got[i] = is_nan ? 0x7e00 : got[i];
    }
    expect_same_bytes(c, got, want, (size_t)n * sizeof *got, "y");
}

/* Element i of K or V to a number that would show: NaN, infinity, the largest, 1. */
static void spoil(check *c, void *p, nib_kv_type type, int64_t i) {
    static const uint32_t garbage[] = {0x7fc00000u, 0x7f800000u, 0xff800000u, 0x7f7fffffu, 0xffffffffu, 0x3f800000u};
    static const uint16_t garbage_f16[] = {0x7e00u, 0x7c00u, 0xfc00u, 0x7bffu, 0xffffu, 0x3c00u};
    uint64_t which = draw(c, 6);
    if (type == NIB_KV_F16) {
        memcpy((unsigned char *)p + 2 * i, &garbage_f16[which], 2);
    } else {
        memcpy((unsigned char *)p + 4 * i, &garbage[which], 4);
    }
}

static void spoil_hidden(check *c, void *k, void *v, const nib_attn_shape *shape) {
    for (int64_t j = 0; j < NIB_GROUP; j++) {
        for (int64_t e = 0; e < shape->E && (j < shape->lo || j > shape->hi); e++) {
            spoil(c, k, shape->type, e * NIB_GROUP + j);
            spoil(c, v, shape->type, j * shape->E + e);
        }
    }
}

static nib_attn_shape draw_shape(check *c) {
    nib_attn_shape shape = {.E = draw_size(c, 300), .hi = NIB_GROUP - 1};
    shape.type = draw(c, 2) == 0 ? NIB_KV_F32 : NIB_KV_F16;
    shape.cap = draw(c, 3) == 0 ? draw_cap(c) : 0.0f;
    if (draw(c, 3) != 0) {
        shape.lo = draw(c, 2) == 0 ? 0 : (int64_t)draw(c, NIB_GROUP);
        shape.hi = shape.lo + (int64_t)draw(c, (uint64_t)(NIB_GROUP - shape.lo));
    }
    return shape;
}

enum { MOST_ROWS = 20 };

static int64_t draw_n_rows(check *c) {
    return 1 + (int64_t)draw(c, draw(c, 4) == 0 ? MOST_ROWS : 5);
}

/* Pointers to n rows of x, in no order. */
static void shuffled_rows(check *c, float *row[MOST_ROWS], float *x, int64_t stride, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t j = (int64_t)draw(c, (uint64_t)i + 1);
        row[i] = row[j];
        row[j] = x + i * stride;
    }
}

static const float *as_floats(const void *p, nib_kv_type type, int64_t n) {
    float *x = block((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = reference_element(p, type, i);
    }
    return x;
}

static void expect_same_state(check *c, const nib_attn_state *got, const nib_attn_state *want) {
    expect_same(c, &got->m, &want->m, 1, "m");
    expect_same(c, &got->l, &want->l, 1, "l");
}

static void check_attn_group(check *c) {
    nib_attn_shape shape = draw_shape(c);
    int64_t E = shape.E, n_q = draw_n_rows(c), q_stride = E + (int64_t)draw(c, 3), stride = E + (int64_t)draw(c, 3);
    bool wild = draw(c, 4) == 0;
    void *k = draw_kv(c, shape.type, E * NIB_GROUP, wild), *v = draw_kv(c, shape.type, E * NIB_GROUP, wild);
    spoil_hidden(c, k, v, &shape);
    float *q[MOST_ROWS] = {0};
    shuffled_rows(c, q, draw_floats(c, (n_q - 1) * q_stride + E, wild), q_stride, n_q);
    int64_t n = (n_q - 1) * stride + E;
    float *got = guarded(n), *want = guarded(n);
    nib_attn_state *got_state = block((size_t)n_q * sizeof *got_state), want_state;
    c->kernels->attn_group(got_state, got, stride, (const float *const *)q, n_q, k, v, &shape);
    const float *k_floats = as_floats(k, shape.type, E * NIB_GROUP),
                *v_floats = as_floats(v, shape.type, E * NIB_GROUP);
    for (int64_t i = 0; i < n_q; i++) {
        reference_attn_group(&want_state, want + i * stride, q[i], k_floats, v_floats, &shape);
        expect_same_state(c, &got_state[i], &want_state);
    }
    expect_same(c, got, want, n, "o");
}

/* n states, some of them as one begins, with no finite score, or no number. */
static nib_attn_state *draw_states(check *c, int64_t n, uint64_t begin) {
    nib_attn_state *state = block((size_t)n * sizeof *state);
    const float *m = draw_floats(c, n, true), *l = draw_floats(c, n, true);
    for (int64_t i = 0; i < n; i++) {
        state[i] = (nib_attn_state){m[i], l[i]};
        uint64_t r = draw(c, 24);
        if (r < begin) {
            state[i] = (nib_attn_state){-INFINITY, 0.0f};
        } else if (r >= 22) {
            state[i].m = r == 22 ? -INFINITY : NAN;
        }
    }
    return state;
}

static void check_attn_merge(check *c) {
    int64_t E = draw_size(c, 300), n_q = draw_n_rows(c), stride = E + (int64_t)draw(c, 3), n = (n_q - 1) * stride + E;
    float *o = draw_floats(c, n, true), *got = draw_floats(c, n, true), *want = copy_of(got, n);
    nib_attn_state *running = draw_states(c, n_q, 6), *group = draw_states(c, n_q, 0), before[MOST_ROWS];
    memcpy(before, running, (size_t)n_q * sizeof *before);
    float *sum[MOST_ROWS] = {0};
    shuffled_rows(c, sum, got, stride, n_q);
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t e = 0; e < E && before[i].m == -INFINITY && before[i].l == 0.0f; e++) {
            sum[i][e] = want[sum[i] - got + e] = 0.0f;
        }
    }
    c->kernels->attn_merge(running, sum, group, o, stride, n_q, E);
    for (int64_t i = 0; i < n_q; i++) {
        reference_attn_merge(&before[i], want + (sum[i] - got), &group[i], o + i * stride, E);
        expect_same_state(c, &running[i], &before[i]);
    }
    expect_same(c, got, want, n, "sum");
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
    {"quantize", check_quantize, 2000},
    {"packed_matmul", check_packed_matmul, 3000},
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
    {"to_f16", check_to_f16, 2000},
    {"attn_group", check_attn_group, 2000},
    {"attn_merge", check_attn_merge, 1400},
    {"attn_finish", check_attn_finish, 700},
    {"lse_block", check_lse_block, 3000},
    {"exp", check_exp, 4000},
};
const size_t n_check_functions = sizeof check_functions / sizeof *check_functions;
