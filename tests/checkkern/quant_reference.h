/* What the quantised products must compute, in plain C: weights from the file's blocks and, by other code, from tiles;
 * activations to int8; one accumulator per output. Shares no line with src/kernel. docs/numerics.md, rule 2. */
#ifndef NIB_QUANT_REFERENCE_H
#define NIB_QUANT_REFERENCE_H

#include "kernel/kernel.h"

/* Weight = scale * code, then + minimum where the type has one. */
typedef struct reference_code {
    int code; /* signed: its offset is subtracted */
    bool has_minimum;
    float scale, minimum;
} reference_code;

/* Weight k of a row as stored. */
reference_code reference_stored(nib_dtype dtype, const unsigned char *row, int64_t k);

/* Weight k of a row of a packed matrix. */
reference_code reference_tiled(const nib_matrix *w, int64_t row, int64_t k);

/* Bytes of 16 packed rows. */
size_t reference_strip_bytes(nib_dtype dtype, int64_t cols);

/* 32 activations of a token. */
typedef struct reference_block {
    signed char q[32];
    float d, S;
    int16_t sums[2]; /* of q 0-15 and 16-31 */
} reference_block;

/* Block `index` of token t of n: from where quantize put it, or to there. */
reference_block reference_block_of(const void *q, int64_t t, int64_t index, int64_t n, int64_t cols);
void reference_put_block(void *q, const reference_block *b, int64_t t, int64_t index, int64_t n, int64_t cols);

reference_block reference_quantize_block(const float *x);
void reference_quantize(void *q, const float *x, int64_t x_stride, int64_t n, int64_t cols);

/* w packed or as stored; cols <= REFERENCE_MOST_COLS. */
enum { REFERENCE_MOST_COLS = 8192 };
void reference_packed_matmul(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const void *q,
                             int64_t n, const float *bias);

#endif
