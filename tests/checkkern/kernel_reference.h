/* What the kernels must compute, in plain C and one number at a time. Shares no line with src/kernel; exp, tanh and
 * erf are the scalar definitions of base/maths.h, fma is the C library's. Arguments as in kernel/kernel.h. */
#ifndef NIB_KERNEL_REFERENCE_H
#define NIB_KERNEL_REFERENCE_H

#include "kernel/kernel.h"

/* Weight k of a row. */
float reference_weight(nib_dtype dtype, const unsigned char *row, int64_t k);

void reference_matmul(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const float *x,
                      int64_t x_stride, int64_t n, const float *bias);
void reference_dequantize(float *y, const nib_matrix *w, int64_t row);
void reference_rmsnorm(float *y, const float *x, const float *w, int64_t n, float eps);
void reference_layernorm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps);
void reference_softcap(float *y, float cap, int64_t n);

/* Pair i of x is elements i * step and i * step + apart. */
void reference_rope(float *x, const float *cos, const float *sin, int64_t half, int64_t step, int64_t apart);

float reference_silu(float g);
float reference_gelu_tanh(float g);
float reference_gelu_erf(float g);

/* Element i of K or V. */
float reference_element(const void *p, nib_kv_type type, int64_t i);

/* One row; k and v in binary32, whatever shape->type says. */
void reference_attn_group(nib_attn_state *state, float *o, const float *q, const float *k, const float *v,
                          const nib_attn_shape *shape);
void reference_attn_merge(nib_attn_state *running, float *sum, const nib_attn_state *group, const float *o, int64_t E);

uint16_t reference_to_f16(float x); /* a NaN is 0x7e00 */
bool reference_lse_block(float *m, float *s, const float *l, int64_t n);

#endif
