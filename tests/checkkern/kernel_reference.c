/* What the kernels must compute, in plain C and one number at a time. */
#include "kernel_reference.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"
#include "quant_reference.h"

/* 16 lanes, element i goes to lane i mod 16; then lanes 8, 4, 2, 1 apart are added. */
typedef struct fold {
    float lane[16];
} fold;

static float fold_sum(const fold *f) {
    float a[8], b[4];
    for (int i = 0; i < 8; i++) {
        a[i] = f->lane[i] + f->lane[i + 8];
    }
    for (int i = 0; i < 4; i++) {
        b[i] = a[i] + a[i + 4];
    }
    return (b[0] + b[2]) + (b[1] + b[3]);
}

static uint16_t word(const unsigned char *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static float half(const unsigned char *p) {
    return nib_half_to_float(word(p));
}

float reference_weight(nib_dtype dtype, const unsigned char *row, int64_t k) {
    float x;
    switch (dtype) {
    case NIB_F32: memcpy(&x, row + 4 * k, sizeof x); return x;
    case NIB_F16: return half(row + 2 * k);
    case NIB_BF16: return nib_bf16_to_float(word(row + 2 * k));
    default: break;
    }
    reference_code c = reference_stored(dtype, row, k);
    float product = c.scale * (float)c.code;
    return c.has_minimum ? product + c.minimum : product;
}

void reference_matmul(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const float *x,
                      int64_t x_stride, int64_t n, const float *bias) {
    for (int64_t r = row0; r < row1; r++) {
        const unsigned char *row = (const unsigned char *)w->data + (size_t)r * w->row_bytes;
        for (int64_t t = 0; t < n; t++) {
            fold f = {{0}};
            for (int64_t k = 0; k < (w->cols + 15) / 16 * 16; k++) {
                bool there = k < w->cols;
                float a = there ? reference_weight(w->dtype, row, k) : 0.0f;
                f.lane[k % 16] = fmaf(a, there ? x[t * x_stride + k] : 0.0f, f.lane[k % 16]);
            }
            y[t * y_stride + r] = fold_sum(&f);
            if (bias != NULL) {
                y[t * y_stride + r] += bias[r];
            }
        }
    }
}

void reference_dequantize(float *y, const nib_matrix *w, int64_t row) {
    for (int64_t k = 0; k < w->cols; k++) {
        y[k] = reference_weight(w->dtype, (const unsigned char *)w->data + (size_t)row * w->row_bytes, k);
    }
}

/* Sum of the n products x*x (of x - mean, if centred), the last 16 filled up with 0. */
static float sum_of_squares(const float *x, int64_t n, float mean, bool centred) {
    fold f = {{0}};
    for (int64_t i = 0; i < (n + 15) / 16 * 16; i++) {
        float t = i >= n ? 0.0f : centred ? x[i] - mean : x[i];
        f.lane[i % 16] = fmaf(t, t, f.lane[i % 16]);
    }
    return fold_sum(&f);
}

void reference_rmsnorm(float *y, const float *x, const float *w, int64_t n, float eps) {
    float mean_square = sum_of_squares(x, n, 0.0f, false) / (float)n;
    float r = 1.0f / sqrtf(mean_square + eps);
    for (int64_t i = 0; i < n; i++) {
        float scaled = x[i] * r;
        y[i] = scaled * w[i];
    }
}

void reference_layernorm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps) {
    fold f = {{0}};
    for (int64_t i = 0; i < n; i++) {
        f.lane[i % 16] += x[i];
    }
    float mean = fold_sum(&f) / (float)n;
    float variance = sum_of_squares(x, n, mean, true) / (float)n;
    float r = 1.0f / sqrtf(variance + eps);
    for (int64_t i = 0; i < n; i++) {
        float t = x[i] - mean;
        y[i] = fmaf(t * r, w[i], b[i]);
    }
}

static float capped(float x, float cap) {
    float inverse = 1.0f / cap;
    return cap * nib_tanhf(x * inverse);
}

void reference_softcap(float *y, float cap, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = capped(y[i], cap);
    }
}

void reference_rope(float *x, const float *cos, const float *sin, int64_t half_width, int64_t step, int64_t apart) {
    for (int64_t i = 0; i < half_width; i++) {
        float *a = &x[i * step], *b = &x[i * step + apart];
        float bs = *b * sin[i], as = *a * sin[i];
        float first = fmaf(*a, cos[i], -bs);
        *b = fmaf(*b, cos[i], as);
        *a = first;
    }
}

float reference_silu(float g) {
    return g / (1.0f + nib_expf(-g));
}

float reference_gelu_tanh(float g) {
    float square = g * g, h = g * 0.5f;
    float inner = g * fmaf(square, 0.0356774081f, 0.7978845608f);
    return fmaf(h, nib_tanhf(inner), h);
}

float reference_gelu_erf(float g) {
    float h = g * 0.5f;
    return fmaf(h, nib_erff(g * 0.7071067812f), h);
}

float reference_element(const void *p, nib_kv_type type, int64_t i) {
    const unsigned char *bytes = p;
    float x;
    if (type == NIB_KV_F16) {
        return half(bytes + 2 * i);
    }
    memcpy(&x, bytes + 4 * i, sizeof x);
    return x;
}

void reference_attn_group(nib_attn_state *state, float *o, const float *q, const float *k, const float *v,
                          const nib_attn_shape *shape) {
    float s[NIB_GROUP], p[NIB_GROUP] = {0};
    float m = -INFINITY;
    for (int64_t j = shape->lo; j <= shape->hi; j++) {
        s[j] = 0.0f;
        for (int64_t e = 0; e < shape->E; e++) {
            s[j] = fmaf(q[e], k[e * NIB_GROUP + j], s[j]);
        }
        if (shape->cap != 0.0f) {
            s[j] = capped(s[j], shape->cap);
        }
        m = s[j] > m ? s[j] : m;
    }
    m += 0.0f; /* -0 becomes +0 */
    fold f = {{0}};
    for (int64_t j = shape->lo; j <= shape->hi; j++) {
        p[j] = nib_expf(s[j] - m);
    }
    for (int64_t j = 0; j < NIB_GROUP; j++) {
        f.lane[j % 16] += p[j];
    }
    *state = (nib_attn_state){m, fold_sum(&f)};
    for (int64_t e = 0; e < shape->E; e++) {
        o[e] = 0.0f;
        for (int64_t j = shape->lo; j <= shape->hi; j++) {
            o[e] = fmaf(p[j], v[j * shape->E + e], o[e]);
        }
    }
}

void reference_attn_merge(nib_attn_state *running, float *sum, const nib_attn_state *group, const float *o, int64_t E) {
    float m = running->m > group->m ? running->m : group->m;
    float a = nib_expf(running->m - m), b = nib_expf(group->m - m);
    float old = running->l * a;
    *running = (nib_attn_state){m, fmaf(group->l, b, old)};
    for (int64_t e = 0; e < E; e++) {
        float kept = sum[e] * a;
        sum[e] = fmaf(o[e], b, kept);
    }
}

/* The multiple of 2^-24, or of the unit of x's own binade, that is nearest: every step but rint is exact in double. */
uint16_t reference_to_f16(float x) {
    unsigned sign = signbit(x) ? 0x8000u : 0u;
    double size = fabs((double)x);
    if (isnan(x)) {
        return 0x7e00u;
    }
    size = size > 65504.0 ? 65504.0 : size;
    int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    /* Steps of 2^(exponent - 10); 1024 of them are the next binade's first. Subnormal numbers count from 0. */
    double steps = rint(ldexp(size, 10 - exponent));
    unsigned base = size < 0x1p-14 ? 0u : (unsigned)(exponent + 14) << 10;
    return (uint16_t)(sign | (base + (unsigned)steps));
}

bool reference_lse_block(float *m, float *s, const float *l, int64_t n) {
    *m = -INFINITY;
    *s = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(l[i]) || l[i] == INFINITY) {
            return false;
        }
        *m = l[i] > *m ? l[i] : *m;
    }
    if (*m == -INFINITY) {
        return true;
    }
    *m += 0.0f;
    fold f = {{0}};
    for (int64_t i = 0; i < n; i++) {
        f.lane[i % 16] += nib_expf(l[i] - *m);
    }
    *s = fold_sum(&f);
    return true;
}
