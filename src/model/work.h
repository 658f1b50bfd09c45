/* The work area of a session: activations of the rows that go through the model together. */
#ifndef NIB_MODEL_WORK_H
#define NIB_MODEL_WORK_H

#include "kernel/kernel.h"
#include "model/arch.h"

/* Rows that matmul reads are padded to 16 columns with +0: their strides are NIB_PAD16 of the width. */
typedef struct nib_work {
    int64_t n;        /* rows there is room for */
    float *x;         /* [n][D] the residual stream */
    float *h;         /* [n][pad D] normed */
    float *q;         /* [n][H*E] */
    float *k, *v;     /* [n][K*E] */
    float *a;         /* [n][pad H*E] what attention gives */
    float *gate;      /* [n][pad F] */
    float *up;        /* [n][F] */
    float *y;         /* [n][D] what a sub-block gives */
    float *cos, *sin; /* [2][n][rope_dim / 2] the angles of global layers, then of windowed ones */
    float *group_o;   /* [H / K][E] one group of attention */
    double *freq;     /* [2][rope_dim / 2] inverse frequencies, rounded to binary32 */
    float *block;     /* what all of them lie in */
    size_t bytes;
} nib_work;

/* Bytes for n rows; false when they do not fit a size. */
bool nib_work_bytes(size_t *bytes, const nib_config *config, int64_t n);

/* Room for n rows; keeps what is large enough. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_work_reserve(nib_work *work, const nib_config *config, int64_t n, nib_error *err);

void nib_work_free(nib_work *work);

#endif
