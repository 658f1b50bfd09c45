/* The compute kernels: one table of functions for each instruction set ("rung"), the same bits from each.
 *
 * Owns no memory, knows no threads, files or errors. Rules: docs/numerics.md. "fold" is the sum of 16 lanes defined
 * there. Rows of activations that matmul reads are padded: x[cols .. NIB_PAD16(cols) - 1] are +0. Nothing need be
 * aligned. Outputs never overlap inputs unless a comment says so. */
#ifndef NIB_KERNEL_KERNEL_H
#define NIB_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/dtype.h"

#define NIB_PAD16(n) (((n) + 15) & ~(int64_t)15)

enum { NIB_GROUP = 64 }; /* keys of an attention group, positions of a cache page */

/* A weight matrix as stored: row r at data + r * row_bytes. */
typedef struct nib_matrix {
    const void *data;
    int64_t rows, cols; /* cols is a multiple of the type's block */
    size_t row_bytes;
    nib_dtype dtype;
} nib_matrix;

/* One group of an attention row: hidden keys are never multiplied. */
typedef struct nib_attn_shape {
    int64_t E;      /* width of a head */
    int64_t lo, hi; /* visible keys of the group, lo <= hi, 0 .. 63, both included */
    float cap;      /* 0: no cap; else s = cap * tanh(s * (1/cap)) */
} nib_attn_shape;

/* The state of an attention row and head over the groups that were merged. */
typedef struct nib_attn_state {
    float m, l;
} nib_attn_state;

typedef struct nib_kernels {
    const char *name;

    /* y[t * y_stride + r] = fold over k of fma(w[r][k], x[t * x_stride + k]) (+ bias[r], added after the fold), for
     * rows row0 <= r < row1 and tokens 0 <= t < n. bias may be NULL. Takes up to 96 KB of stack. */
    void (*matmul)(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const float *x,
                   int64_t x_stride, int64_t n, const float *bias);

    /* y[k] = row `row` of w, dequantised: w = s*q exact, then + minimum rounded once. */
    void (*dequantize)(float *y, const nib_matrix *w, int64_t row);

    /* y may be x. */
    void (*rmsnorm)(float *y, const float *x, const float *w, int64_t n, float eps);
    void (*layernorm)(float *y, const float *x, const float *w, const float *b, int64_t n, float eps);

    void (*add)(float *y, const float *x, int64_t n); /* y[i] += x[i] */
    void (*scale)(float *y, float s, int64_t n);      /* y[i] *= s */
    void (*softcap)(float *y, float cap, int64_t n);  /* y[i] = cap * tanh(y[i] * (1/cap)) */

    /* Turn pairs by the angles of cos, sin [half]: pairs (2i, 2i+1) of x; or, for _halves, (i, i + half). */
    void (*rope_pairs)(float *x, const float *cos, const float *sin, int64_t half);
    void (*rope_halves)(float *x, const float *cos, const float *sin, int64_t half);

    /* gate[i] = act(gate[i]) * up[i]; up may be NULL: gate[i] = act(gate[i]). */
    void (*silu)(float *gate, const float *up, int64_t n);
    void (*gelu_tanh)(float *gate, const float *up, int64_t n);
    void (*gelu_erf)(float *gate, const float *up, int64_t n);

    /* One group for n_q query heads that share a kv head: scores, m (never -0), l and o of each by rule 4, alone.
     * state [n_q], o [n_q][o_stride], q [n_q][q_stride] (already scaled), k [E][64], v [64][E]. */
    void (*attn_group)(nib_attn_state *state, float *o, int64_t o_stride, const float *q, int64_t q_stride, int64_t n_q,
                       const float *k, const float *v, const nib_attn_shape *shape);

    /* Merge one group (m, l, o [E]) into the running state and sum [E] by rule 4. The state begins as m = -inf, l = 0,
     * sum = 0. */
    void (*attn_merge)(nib_attn_state *state, float *sum, const nib_attn_state *group, const float *o, int64_t E);

    /* sum[e] *= 1 / l */
    void (*attn_finish)(float *sum, float l, int64_t E);

    /* One block of the log-sum-exp over V: *m = the largest of l [n] (never -0), n <= 256, *s = fold of exp(l - m). A
     * block without a finite element gives m = -inf, s = 0. Returns false when an element is NaN or +infinity, m and
     * s then mean nothing. */
    bool (*lse_block)(float *m, float *s, const float *l, int64_t n);

    /* y[i] = exp(x[i]), for tests and for what needs it by itself. */
    void (*exp)(float *y, const float *x, int64_t n);

    /* What nib_kernels_selfcheck runs. */
    bool (*selfcheck)(void);
} nib_kernels;

/* The names in order, best last: "base", "avx2". NULL at the end. */
const char *nib_kernels_name(size_t i);

/* The table of a rung; NULL when the name is unknown or this machine (processor or operating system) lacks it. "auto":
 * the best there is. */
const nib_kernels *nib_kernels_find(const char *name);

/* A dozen operations computed by the rung's object and compared with what they must give: false when the object was
 * compiled so that it does not keep the contract (contraction, flush to zero, fast maths). */
bool nib_kernels_selfcheck(const nib_kernels *kernels);

#endif
