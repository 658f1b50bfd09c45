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

/* A weight matrix as stored, row r at data + r * row_bytes, or packed into tiles (pack.h). */
typedef struct nib_matrix {
    const void *data;
    int64_t rows, cols; /* cols is a multiple of the type's block */
    size_t row_bytes;   /* as stored */
    nib_dtype dtype;
    bool packed; /* quantised types only */
} nib_matrix;

/* Activations for packed products. Tokens go in groups of NIB_QUANT_TOKENS, the last may be smaller; group i begins at
 * byte i * NIB_QUANT_TOKENS * nib_quant_bytes(1, cols). A group of w tokens is cols / 32 records of
 *     int8_t q[w][32]; float d[w]; float S[w]; int16_t sums[w][2]   (of q 0-15 and 16-31)
 * so that a token takes NIB_QUANT_BLOCK bytes for each 32 columns. */
enum { NIB_QUANT_TOKENS = 8, NIB_QUANT_BLOCK = 44 };

static inline size_t nib_quant_bytes(int64_t n, int64_t cols) {
    return (size_t)n * (size_t)(cols / 32) * NIB_QUANT_BLOCK;
}

/* Element type of K and V in the cache. */
typedef enum nib_kv_type { NIB_KV_F32, NIB_KV_F16 } nib_kv_type;

/* Query rows that look at one group of one kv head and see the same keys of it; hidden keys are never multiplied. */
typedef struct nib_attn_shape {
    int64_t E;      /* width of a head */
    int64_t lo, hi; /* visible keys of the group, lo <= hi, 0 .. 63, both included */
    float cap;      /* 0: no cap; else s = cap * tanh(s * (1/cap)) */
    nib_kv_type type;
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

    /* y[k] = row `row` of w, which is not packed, dequantised: w = s*q exact, then + minimum rounded once. */
    void (*dequantize)(float *y, const nib_matrix *w, int64_t row);

    /* Activations x [n][cols] to int8 in blocks of 32 by rule 2; q is the beginning of a group of tokens and has
     * nib_quant_bytes(n, cols). cols is a multiple of 32. */
    void (*quantize)(void *q, const float *x, int64_t x_stride, int64_t n, int64_t cols);

    /* The product of a packed matrix with quantised activations by rule 2 (+ bias[r], added last), for rows row0 <= r <
     * row1 and the n tokens that begin at q, the beginning of a group. row0 is a multiple of 16, row1 one too or
     * w->rows. bias may be NULL. */
    void (*packed_matmul)(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const void *q,
                          int64_t n, const float *bias);

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

    /* x [n] rounded to binary16: clamped to +-65504 (NaN stays), nearest even. */
    void (*to_f16)(uint16_t *y, const float *x, int64_t n);

    /* One group for n_q query rows that share a kv head: scores, m (never -0), l and o of each by rule 4, alone.
     * state [n_q], o [n_q][o_stride], q[i] [E] row i (already scaled), k [E][64], v [64][E] of shape->type. */
    void (*attn_group)(nib_attn_state *state, float *o, int64_t o_stride, const float *const *q, int64_t n_q,
                       const void *k, const void *v, const nib_attn_shape *shape);

    /* Merge one group (m, l, o [E]) of each of n_q rows into the running states and sums by rule 4. A state begins as
     * m = -inf, l = 0, sum = 0. running, group [n_q]; sum[i] [E]; o [n_q][o_stride]. */
    void (*attn_merge)(nib_attn_state *running, float *const *sum, const nib_attn_state *group, const float *o,
                       int64_t o_stride, int64_t n_q, int64_t E);

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

    /* Limits of the machine, to be timed: each returns the operations it did (multiplications and additions counted
     * apart) after about n rounds of independent work in registers; what they compute goes to *sink. */
    double (*limit_f32)(float *sink, int64_t n);                     /* fma in binary32 */
    double (*limit_int8)(float *sink, int64_t n);                    /* int8 products as packed_matmul makes them */
    void (*limit_read)(float *sink, const void *data, size_t bytes); /* reads all; bytes a multiple of 256 */
} nib_kernels;

/* The names of all rungs, of every machine, in order, best last for a machine: base, avx2, avx512, avx512vnni, neon,
 * neondot. NULL at the end. */
const char *nib_kernels_name(size_t i);

/* The table of a rung; NULL when the name is unknown or this machine (processor or operating system) lacks it. "auto":
 * the best there is. */
const nib_kernels *nib_kernels_find(const char *name);

/* A dozen operations computed by the rung's object and compared with what they must give: false when the object was
 * compiled so that it does not keep the contract (contraction, flush to zero, fast maths). */
bool nib_kernels_selfcheck(const nib_kernels *kernels);

#endif
