/* Faults for the check of the check. */
#include "kernel_plant.h"

#include <math.h>
#include <string.h>

static const nib_kernels *right; /* the table without the fault */
static nib_kernels wrong;

static void negative_zero_lost(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1,
                               const float *x, int64_t x_stride, int64_t n, const float *bias) {
    right->matmul(y, y_stride, w, row0, row1, x, x_stride, n, bias);
    for (int64_t r = row0; r < row1 && n > 0; r++) {
        y[r] += 0.0f;
    }
}

static void last_bit(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const float *x,
                     int64_t x_stride, int64_t n, const float *bias) {
    right->matmul(y, y_stride, w, row0, row1, x, x_stride, n, bias);
    if (n == 5 && row1 - row0 == 3) {
        float *last = &y[(n - 1) * y_stride + row1 - 1];
        *last = nextafterf(*last, 0.0f);
    }
}

static void row_too_many(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const float *x,
                         int64_t x_stride, int64_t n, const float *bias) {
    right->matmul(y, y_stride, w, row0, row1 + (row1 < w->rows), x, x_stride, n, bias);
}

/* -128 taken for 128: what a byte without its sign would give. */
static void sign_lost(float *y, const nib_matrix *w, int64_t row) {
    right->dequantize(y, w, row);
    const signed char *p = (const signed char *)w->data + (size_t)row * w->row_bytes;
    for (int64_t k = 0; w->dtype == NIB_Q8_0 && k < w->cols; k++) {
        y[k] = p[k / 32 * 34 + 2 + k % 32] == -128 ? -y[k] : y[k];
    }
}

static void reads_beyond(float *y, const float *x, const float *w, int64_t n, float eps) {
    right->rmsnorm(y, x, w, n, eps);
    volatile float beyond = x[n];
    (void)beyond;
}

static void writes_before(float *y, const float *x, int64_t n) {
    right->add(y, x, n);
    y[-1] = 0.0f;
}

static void writes_beyond(float *y, float s, int64_t n) {
    right->scale(y, s, n);
    y[n] = 0.0f;
}

static void two_roundings(float *x, const float *cos, const float *sin, int64_t half) {
    for (int64_t i = 0; i < half; i++) {
        volatile float a = x[i] * cos[i], b = x[i + half] * sin[i];
        volatile float c = x[i + half] * cos[i], d = x[i] * sin[i];
        x[i] = a - b;
        x[i + half] = c + d;
    }
}

static void subnormal_result(float *y, const float *x, int64_t n) {
    right->exp(y, x, n);
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] < -87.33654f && x[i] > -88.5f ? 0x1p-127f : y[i];
    }
}

/* A hidden key's value enters with weight 0: nothing, unless it is no number. */
static void hidden_value(nib_attn_state *state, float *o, int64_t o_stride, const float *q, int64_t q_stride,
                         int64_t n_q, const float *k, const float *v, const nib_attn_shape *shape) {
    right->attn_group(state, o, o_stride, q, q_stride, n_q, k, v, shape);
    for (int64_t e = 0; e < shape->E && shape->hi < NIB_GROUP - 1; e++) {
        o[e] += 0.0f * v[(shape->hi + 1) * shape->E + e];
    }
}

static bool infinity_passed(float *m, float *s, const float *l, int64_t n) {
    bool sound = right->lse_block(m, s, l, n);
    bool infinite = false;
    for (int64_t i = 0; i < n; i++) {
        infinite = infinite || l[i] == INFINITY;
    }
    return sound || infinite;
}

typedef struct plant {
    const char *name;
    void (*put)(void);
} plant;

static void put_negative_zero_lost(void) {
    wrong.matmul = negative_zero_lost;
}
static void put_last_bit(void) {
    wrong.matmul = last_bit;
}
static void put_row_too_many(void) {
    wrong.matmul = row_too_many;
}
static void put_sign_lost(void) {
    wrong.dequantize = sign_lost;
}
static void put_reads_beyond(void) {
    wrong.rmsnorm = reads_beyond;
}
static void put_writes_before(void) {
    wrong.add = writes_before;
}
static void put_writes_beyond(void) {
    wrong.scale = writes_beyond;
}
static void put_two_roundings(void) {
    wrong.rope_halves = two_roundings;
}
static void put_subnormal_result(void) {
    wrong.exp = subnormal_result;
}
static void put_hidden_value(void) {
    wrong.attn_group = hidden_value;
}
static void put_infinity_passed(void) {
    wrong.lse_block = infinity_passed;
}

static const plant plants[] = {
    {"negative-zero-lost", put_negative_zero_lost},
    {"last-bit", put_last_bit},
    {"row-too-many", put_row_too_many},
    {"sign-lost", put_sign_lost},
    {"reads-beyond", put_reads_beyond},
    {"writes-before", put_writes_before},
    {"writes-beyond", put_writes_beyond},
    {"two-roundings", put_two_roundings},
    {"subnormal-result", put_subnormal_result},
    {"hidden-value", put_hidden_value},
    {"infinity-passed", put_infinity_passed},
};
enum { N_PLANTS = sizeof plants / sizeof *plants };

const char *plant_name(size_t i) {
    return i < N_PLANTS ? plants[i].name : NULL;
}

const nib_kernels *planted(const nib_kernels *kernels, const char *fault) {
    for (size_t i = 0; i < N_PLANTS; i++) {
        if (strcmp(plants[i].name, fault) == 0) {
            right = kernels;
            wrong = *kernels;
            plants[i].put();
            return &wrong;
        }
    }
    return NULL;
}
