/* Faults for the check of the check. */
#include "kernel_plant.h"

#include <math.h>
#include <string.h>

#include "kernel_reference.h"
#include "quant_reference.h"

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

/* What a fault in a quantised product or in quantize is. */
typedef enum fault {
    NO_FAULT,
    MINUS_128_KEPT,
    SUMS_SATURATE,
    SPLIT_ACCUMULATOR,
    MINIMUM_FIRST,
    SCALES_APART,
    BIAS_FIRST,
    ROUNDS_AWAY,
    DIVIDES,
    EXACT_SUM,
    SMALL_KEPT
} fault;
static fault current_fault;

/* MINUS_128_KEPT: the sign of q goes to w, in 8 bits. SUMS_SATURATE: four products are added in 16 bits. */
static int dot(const reference_code *w, const signed char *q, int64_t width) {
    int D = 0, four = 0;
    for (int64_t i = 0; i < width; i++) {
        bool kept = current_fault == MINUS_128_KEPT && w[i].code == -128 && q[i] < 0;
        four += kept ? -(w[i].code * q[i]) : w[i].code * q[i];
        if (i % 4 == 3) {
            bool saturates = current_fault == SUMS_SATURATE && (four > 32767 || four < -32768);
            D += !saturates ? four : four < 0 ? -32768 : 32767;
            four = 0;
        }
    }
    return D;
}

static void add_minimum(float *sum, const reference_code *w, const reference_block *b) {
    if (w->has_minimum) {
        *sum = fmaf(w->minimum, b->S, *sum);
    }
}

static float wrong_product(const nib_matrix *w, int64_t r, const void *q, int64_t t, int64_t n, float start) {
    int64_t width = w->dtype == NIB_Q6_K ? 16 : 32;
    float sums[2] = {start, 0.0f};
    for (int64_t k = 0; k < w->cols; k += width) {
        reference_code code[32];
        for (int64_t i = 0; i < width; i++) {
            code[i] = reference_tiled(w, r, k + i);
        }
        reference_block b = reference_block_of(q, t, k / 32, n, w->cols);
        float D = (float)dot(code, b.q + k % 32, width),
              *sum = &sums[current_fault == SPLIT_ACCUMULATOR && k % 64 >= 32];
        if (current_fault == MINIMUM_FIRST) {
            add_minimum(sum, code, &b);
        }
        float step = code[0].scale * b.d, part = D * b.d;
        *sum = current_fault == SCALES_APART ? fmaf(part, code[0].scale, *sum) : fmaf(D, step, *sum);
        if (current_fault != MINIMUM_FIRST) {
            add_minimum(sum, code, &b);
        }
    }
    return current_fault == SPLIT_ACCUMULATOR ? sums[0] + sums[1] : sums[0];
}

static void wrong_packed_matmul(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1,
                                const void *q, int64_t n, const float *bias) {
    bool first = current_fault == BIAS_FIRST;
    for (int64_t r = row0; r < row1; r++) {
        float b = bias == NULL ? 0.0f : bias[r];
        for (int64_t t = 0; t < n; t++) {
            float product = wrong_product(w, r, q, t, n, first ? b : 0.0f);
            y[t * y_stride + r] = first || bias == NULL ? product : product + b;
        }
    }
}

/* The strip's rows that are none are written as well, where the next token's row does not begin. */
static void padding_row(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const void *q,
                        int64_t n, const float *bias) {
    right->packed_matmul(y, y_stride, w, row0, row1, q, n, bias);
    for (int64_t t = 0; t + 1 < n && row1 % 16 != 0 && row1 < y_stride; t++) {
        y[t * y_stride + row1] = 0.0f;
    }
}

/* The last token's neighbour in the record gives d: what a wrong width of the last group leads to. */
static void wrong_width(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const void *q,
                        int64_t n, const float *bias) {
    right->packed_matmul(y, y_stride, w, row0, row1, q, n - n % 8, bias);
    for (int64_t t = n - n % 8; t < n; t++) {
        const unsigned char *token = (const unsigned char *)q + (size_t)(t * (w->cols / 32)) * 44;
        right->packed_matmul(y + t * y_stride, y_stride, w, row0, row1, token, 1, bias);
    }
}

static void wrong_quantize_block(reference_block *b, const float *x) {
    float largest = 0.0f;
    for (int i = 0; i < 32; i++) {
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    }
    bool small = largest < 0x1p-100f;
    if (isnan(b->d) || largest == 0.0f || (small && current_fault != SMALL_KEPT)) {
        return;
    }
    b->d = largest / 127.0f;
    float r = 127.0f / largest;
    memset(b->sums, 0, sizeof b->sums);
    for (int i = 0; i < 32; i++) {
        float scaled = current_fault == DIVIDES ? x[i] / b->d : small ? x[i] / largest * 127.0f : x[i] * r;
        b->q[i] = (signed char)(current_fault == ROUNDS_AWAY ? roundf(scaled) : rintf(scaled));
        b->sums[i / 16] = (int16_t)(b->sums[i / 16] + b->q[i]);
    }
    float sum = (float)(b->sums[0] + b->sums[1]);
    b->S = current_fault == EXACT_SUM ? (float)((double)largest / 127.0 * (double)sum) : b->d * sum;
}

static void wrong_quantize(void *q, const float *x, int64_t x_stride, int64_t n, int64_t cols) {
    for (int64_t t = 0; t < n; t++) {
        for (int64_t i = 0; i < cols / 32; i++) {
            const float *from = x + t * x_stride + 32 * i;
            reference_block b = reference_quantize_block(from);
            wrong_quantize_block(&b, from);
            reference_put_block(q, &b, t, i, n, cols);
        }
    }
}

static void f16_infinite(uint16_t *y, const float *x, int64_t n) {
    right->to_f16(y, x, n);
    for (int64_t i = 0; i < n; i++) {
        y[i] = (uint16_t)(fabsf(x[i]) >= 65520.0f ? (y[i] & 0x8000) | 0x7c00 : y[i]);
    }
}

static void f16_flushed(uint16_t *y, const float *x, int64_t n) {
    right->to_f16(y, x, n);
    for (int64_t i = 0; i < n; i++) {
        y[i] = (uint16_t)((y[i] & 0x7c00) == 0 ? y[i] & 0x8000 : y[i]);
    }
}

/* A hidden key's value enters with weight 0: nothing, unless it is no number. */
static void hidden_value(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, int64_t n_q,
                         const void *k, const void *v, const nib_attn_shape *shape) {
    right->attn_group(state, o, o_stride, q, n_q, k, v, shape);
    for (int64_t e = 0; e < shape->E && shape->hi < NIB_GROUP - 1; e++) {
        o[e] += 0.0f * reference_element(v, shape->type, (shape->hi + 1) * shape->E + e);
    }
}

/* The same of a key in binary16, whose score enters the sum of the weights. */
static void hidden_f16_key(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, int64_t n_q,
                           const void *k, const void *v, const nib_attn_shape *shape) {
    right->attn_group(state, o, o_stride, q, n_q, k, v, shape);
    for (int64_t e = 0; e < shape->E && shape->lo > 0 && shape->type == NIB_KV_F16; e++) {
        state[n_q - 1].l += 0.0f * reference_element(k, shape->type, e * NIB_GROUP + shape->lo - 1);
    }
}

/* L = l * b + L: without the factor a. */
static void old_sum_kept(nib_attn_state *running, float *const *sum, const nib_attn_state *group, const float *o,
                         int64_t o_stride, int64_t n_q, int64_t E) {
    float before = running[n_q - 1].l, m = running[n_q - 1].m;
    right->attn_merge(running, sum, group, o, o_stride, n_q, E);
    if (m < group[n_q - 1].m) {
        running[n_q - 1].l = before + group[n_q - 1].l;
    }
}

/* The groups of the rows after the first enter with the first one's weight. */
static void rows_crossed(nib_attn_state *running, float *const *sum, const nib_attn_state *group, const float *o,
                         int64_t o_stride, int64_t n_q, int64_t E) {
    for (int64_t i = 0; i < n_q; i++) {
        right->attn_merge(running + i, sum + i, i == 0 ? group : group + i - 1, o + i * o_stride, o_stride, 1, E);
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
    fault fault; /* of the functions that have several */
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
static void put_packed_matmul(void) {
    wrong.packed_matmul = wrong_packed_matmul;
}
static void put_quantize(void) {
    wrong.quantize = wrong_quantize;
}
static void put_padding_row(void) {
    wrong.packed_matmul = padding_row;
}
static void put_wrong_width(void) {
    wrong.packed_matmul = wrong_width;
}
static void put_f16_infinite(void) {
    wrong.to_f16 = f16_infinite;
}
static void put_f16_flushed(void) {
    wrong.to_f16 = f16_flushed;
}
static void put_hidden_f16_key(void) {
    wrong.attn_group = hidden_f16_key;
}
static void put_old_sum_kept(void) {
    wrong.attn_merge = old_sum_kept;
}
static void put_rows_crossed(void) {
    wrong.attn_merge = rows_crossed;
}

static const plant plants[] = {
    {"negative-zero-lost", put_negative_zero_lost, NO_FAULT},
    {"last-bit", put_last_bit, NO_FAULT},
    {"row-too-many", put_row_too_many, NO_FAULT},
    {"sign-lost", put_sign_lost, NO_FAULT},
    {"reads-beyond", put_reads_beyond, NO_FAULT},
    {"writes-before", put_writes_before, NO_FAULT},
    {"writes-beyond", put_writes_beyond, NO_FAULT},
    {"two-roundings", put_two_roundings, NO_FAULT},
    {"subnormal-result", put_subnormal_result, NO_FAULT},
    {"hidden-value", put_hidden_value, NO_FAULT},
    {"infinity-passed", put_infinity_passed, NO_FAULT},
    {"minus-128-kept", put_packed_matmul, MINUS_128_KEPT},
    {"sums-saturate", put_packed_matmul, SUMS_SATURATE},
    {"split-accumulator", put_packed_matmul, SPLIT_ACCUMULATOR},
    {"minimum-first", put_packed_matmul, MINIMUM_FIRST},
    {"scales-apart", put_packed_matmul, SCALES_APART},
    {"bias-first", put_packed_matmul, BIAS_FIRST},
    {"padding-row", put_padding_row, NO_FAULT},
    {"wrong-width", put_wrong_width, NO_FAULT},
    {"rounds-away", put_quantize, ROUNDS_AWAY},
    {"divides", put_quantize, DIVIDES},
    {"exact-sum", put_quantize, EXACT_SUM},
    {"small-kept", put_quantize, SMALL_KEPT},
    {"f16-infinite", put_f16_infinite, NO_FAULT},
    {"f16-flushed", put_f16_flushed, NO_FAULT},
    {"hidden-f16-key", put_hidden_f16_key, NO_FAULT},
    {"old-sum-kept", put_old_sum_kept, NO_FAULT},
    {"rows-crossed", put_rows_crossed, NO_FAULT},
};
enum { N_PLANTS = sizeof plants / sizeof *plants };

const char *plant_name(size_t i) {
    return i < N_PLANTS ? plants[i].name : NULL;
}

const nib_kernels *planted(const nib_kernels *kernels, const char *name) {
    for (size_t i = 0; i < N_PLANTS; i++) {
        if (strcmp(plants[i].name, name) == 0) {
            right = kernels;
            wrong = *kernels;
            current_fault = plants[i].fault;
            plants[i].put();
            return &wrong;
        }
    }
    return NULL;
}
