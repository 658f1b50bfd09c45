/* The work area of a session: activations of the rows that go through the model together. */
#ifndef NIB_MODEL_WORK_H
#define NIB_MODEL_WORK_H

#include "kernel/kernel.h"
#include "model/arch.h"

enum { NIB_ATTEND_ROWS = 32 /* query rows of a unit of attention at most */ };

/* Rows of one timeline that attend together, so that a page of the cache is read once for them. */
typedef struct nib_tile {
    int64_t first, n;
} nib_tile;

/* Rows that products read are padded to 16 columns with +0: their strides are NIB_PAD16 of the width. */
typedef struct nib_work {
    int64_t n;           /* rows there is room for */
    float *x;            /* [n][D] the residual stream */
    float *h;            /* [n][pad D] normed */
    float *q;            /* [n][H*E] */
    float *k, *v;        /* [n][K*E] */
    float *a;            /* [n][pad H*E] what attention gives */
    float *gate;         /* [n][pad F] */
    float *up;           /* [n][F] */
    float *y;            /* [n][D] what a sub-block gives */
    float *cos, *sin;    /* [2][n][rope_dim / 2] the angles of global layers, then of windowed ones */
    float *quant;        /* [nib_quant_bytes(n, widest)] the input of the next product in int8 */
    double *freq;        /* [2][rope_dim / 2] radians a token: nib_rope_frequencies */
    double magnitude[2]; /* of the rotation: nib_rope_magnitude */
    float *block;        /* what all of them lie in */

    int threads;
    float *group_o;      /* [threads][NIB_ATTEND_ROWS][E] one group of attention of a unit */
    nib_tile *tiles;     /* [n] */
    unsigned char *kept; /* [cap_kept] groups of attention that wait for being merged */
    size_t cap_kept;
    size_t bytes; /* of block */
} nib_work;

/* Floats of a thread's group_o. */
size_t nib_work_group_floats(const nib_config *config);

/* Bytes of block for n rows; false when they do not fit a size. */
bool nib_work_bytes(size_t *bytes, const nib_config *config, int64_t n);

/* Room for n rows and so many threads; keeps what is large enough. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_work_reserve(nib_work *work, const nib_config *config, int64_t n, int threads, nib_error *err);

/* Room for the groups of a split attention. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_work_reserve_kept(nib_work *work, size_t bytes, nib_error *err);

void nib_work_free(nib_work *work);

#endif
