/* Template: products of weight rows with activations, in fold order: lane j takes k = j, j + 16, ... One token goes
 * row by row straight from the packed weights; several tokens go in tiles over blocks of k, the 16 lanes of each
 * output kept in memory between blocks. */
#ifndef NIB_KERNEL_TPL_DENSE_H
#define NIB_KERNEL_TPL_DENSE_H

#include "kernel/tpl_quant.h"

enum {
    BLOCK_K = 768,     /* weights of a row unpacked at a time */
    BLOCK_ROWS = 8,    /* rows unpacked at a time: 24 KB of L1, a tile's x takes 12 KB more */
    BLOCK_TOKENS = 128 /* tokens for which they are used; the lanes of all outputs are 64 KB of L2 */
};

LANE_OP float biased(float y, const float *bias, int64_t row) {
    return bias == NULL ? y : y + bias[row];
}

/* The dot products of x with n_rows rows that lie row_bytes apart, from whole blocks. */
LANE_OP void dot_blocks(float *y, const unsigned char *p, size_t row_bytes, const float *x, int64_t cols, int n_rows,
                        int64_t bytes, int parts, scales_fn get_scales, weights_fn get_weights) {
    v16 sum[MATVEC_ROWS];
    for (int r = 0; r < n_rows; r++) {
        sum[r] = v16_set1(0.0f);
    }
    for (int64_t k = 0; k < cols; k += 32 * parts, p += bytes) {
        scales h[MATVEC_ROWS];
        for (int r = 0; r < n_rows; r++) {
            get_scales(&h[r], p + (size_t)r * row_bytes);
        }
        UNROLL_PARTS
        for (int c = 0; c < parts; c++) {
            v16 x0 = v16_load(x + k + 32 * c), x1 = v16_load(x + k + 32 * c + 16);
            for (int r = 0; r < n_rows; r++) {
                v16 w[2];
                get_weights(w, p + (size_t)r * row_bytes, &h[r], c);
                sum[r] = v16_fma(w[0], x0, sum[r]);
                sum[r] = v16_fma(w[1], x1, sum[r]);
            }
        }
    }
    for (int r = 0; r < n_rows; r++) {
        y[r] = v16_fold(sum[r]);
    }
}

/* Several rows at a time: one row's chain of fma is longer than its unpacking. */
LANE_OP void matvec_blocks(float *y, const nib_matrix *w, int64_t row0, int64_t row1, const float *x, const float *bias,
                           int64_t bytes, int parts, scales_fn get_scales, weights_fn get_weights) {
    int64_t r = row0;
    float sum[MATVEC_ROWS];
    for (; r + MATVEC_ROWS <= row1; r += MATVEC_ROWS) {
        dot_blocks(sum, row_of(w, r), w->row_bytes, x, w->cols, MATVEC_ROWS, bytes, parts, get_scales, get_weights);
        for (int i = 0; i < MATVEC_ROWS; i++) {
            y[r + i] = biased(sum[i], bias, r + i);
        }
    }
    for (; MATVEC_ROWS > 1 && r < row1; r++) {
        dot_blocks(sum, row_of(w, r), w->row_bytes, x, w->cols, 1, bytes, parts, get_scales, get_weights);
        y[r] = biased(sum[0], bias, r);
    }
}

#define DEFINE_MATVEC(suffix, number, bytes, parts, get_scales)                                                        \
    static void matvec_##suffix(float *y, const nib_matrix *w, int64_t row0, int64_t row1, const float *x,             \
                                const float *bias) {                                                                   \
        matvec_blocks(y, w, row0, row1, x, bias, bytes, parts, get_scales, weights_##suffix);                          \
    }
QUANT_TYPES(DEFINE_MATVEC)

/* Bytes that are asked for before they are read. */
enum { ROWS_AHEAD_BYTES = 8192 };

/* One row after the other: several at once are several streams from memory, which is slower. */
LANE_OP void matvec_plain(float *y, const nib_matrix *w, int64_t row0, int64_t row1, const float *x, const float *bias,
                          size_t size, load_fn load) {
    for (int64_t r = row0; r < row1; r++) {
        const unsigned char *p = row_of(w, r);
        v16 sum = v16_set1(0.0f);
        int64_t k = 0;
        for (; k + 16 <= w->cols; k += 16) {
            __builtin_prefetch(p + (size_t)k * size + ROWS_AHEAD_BYTES, 0, 3);
            sum = v16_fma(load(p + (size_t)k * size), v16_load(x + k), sum);
        }
        if (k < w->cols) {
            sum = v16_fma(load_tail(p + (size_t)k * size, w->cols - k, size, load), v16_load(x + k), sum);
        }
        y[r] = biased(v16_fold(sum), bias, r);
    }
}

static void matvec(float *y, const nib_matrix *w, int64_t row0, int64_t row1, const float *x, const float *bias) {
    switch (w->dtype) {
    case NIB_F32: matvec_plain(y, w, row0, row1, x, bias, 4, load_f32); return;
    case NIB_F16: matvec_plain(y, w, row0, row1, x, bias, 2, v16_load_f16); return;
    case NIB_BF16: matvec_plain(y, w, row0, row1, x, bias, 2, v16_load_bf16); return;
#define MATVEC_CASE(suffix, number, bytes, parts, get_scales)                                                          \
    case number: matvec_##suffix(y, w, row0, row1, x, bias); return;
        QUANT_TYPES(MATVEC_CASE)
    }
}

/* A block of unpacked rows (or of f32 rows where they lie) and the tokens it meets. */
typedef struct tile_block {
    const float *w[BLOCK_ROWS]; /* [n_k] each */
    const float *x;             /* token t at x + t * x_stride */
    int64_t x_stride;
    int64_t n_k;  /* a multiple of 16 */
    float *lanes; /* [BLOCK_TOKENS][BLOCK_ROWS][16] */
    bool first;   /* the lanes begin at +0 */
} tile_block;

LANE_OP float *lanes_of(const tile_block *b, int row, int64_t t) {
    return b->lanes + (t * BLOCK_ROWS + row) * 16;
}

/* Some lanes, from `lane` on, of n_rows x n_tokens outputs from (row, t) on; both are constants where it is inlined. */
LANE_OP void tile_pass(const tile_block *b, int row, int64_t t, int n_rows, int n_tokens, int lane) {
    vpass sum[TILE_ROWS][TILE_TOKENS];
    for (int i = 0; i < n_rows; i++) {
        for (int j = 0; j < n_tokens; j++) {
            sum[i][j] = b->first ? vpass_zero() : vpass_load(lanes_of(b, row + i, t + j) + lane);
        }
    }
    const float *x = b->x + t * b->x_stride;
    for (int64_t k = lane; k < b->n_k; k += 16) {
        vpass w[TILE_ROWS];
        for (int i = 0; i < n_rows; i++) {
            w[i] = vpass_load(b->w[row + i] + k);
        }
        for (int j = 0; j < n_tokens; j++) {
            vpass xj = vpass_load(x + j * b->x_stride + k);
            for (int i = 0; i < n_rows; i++) {
                sum[i][j] = vpass_fma(w[i], xj, sum[i][j]);
            }
        }
    }
    for (int i = 0; i < n_rows; i++) {
        for (int j = 0; j < n_tokens; j++) {
            vpass_store(lanes_of(b, row + i, t + j) + lane, sum[i][j]);
        }
    }
}

LANE_OP void tile(const tile_block *b, int row, int64_t t, int n_rows, int n_tokens) {
    for (int lane = 0; lane < 16; lane += PASS_LANES) {
        tile_pass(b, row, t, n_rows, n_tokens, lane);
    }
}

/* n_tokens of x, which then lie in L1, with all rows of the block, which lie there too. */
LANE_OP void tiles_of_tokens(const tile_block *b, int n_rows, int64_t t, int n_tokens) {
    int row = 0;
    for (; row + TILE_ROWS <= n_rows; row += TILE_ROWS) {
        tile(b, row, t, TILE_ROWS, n_tokens);
    }
    switch (n_rows - row) {
#if TILE_ROWS > 3
    case 3: tile(b, row, t, 3, n_tokens); break;
#endif
#if TILE_ROWS > 2
    case 2: tile(b, row, t, 2, n_tokens); break;
#endif
#if TILE_ROWS > 1
    case 1: tile(b, row, t, 1, n_tokens); break;
#endif
    default: break;
    }
}

static void tiles(const tile_block *b, int n_rows, int64_t n) {
    int64_t t = 0;
    for (; t + TILE_TOKENS <= n; t += TILE_TOKENS) {
        tiles_of_tokens(b, n_rows, t, TILE_TOKENS);
    }
    switch (n - t) {
#if TILE_TOKENS > 3
    case 3: tiles_of_tokens(b, n_rows, t, 3); break;
#endif
#if TILE_TOKENS > 2
    case 2: tiles_of_tokens(b, n_rows, t, 2); break;
#endif
#if TILE_TOKENS > 1
    case 1: tiles_of_tokens(b, n_rows, t, 1); break;
#endif
    default: break;
    }
}

/* Points the block at weights k0 .. of a row: where they lie, if they are f32 and need no padding, else unpacked. */
static void take_row(tile_block *b, float *room, const nib_matrix *w, int64_t row, int i, int64_t k0) {
    int64_t n = w->cols - k0 < BLOCK_K ? w->cols - k0 : BLOCK_K;
    b->n_k = NIB_PAD16(n);
    if (w->dtype == NIB_F32 && n == b->n_k) {
        b->w[i] = (const float *)(const void *)(row_of(w, row) + (size_t)k0 * 4);
        return;
    }
    unpack(room, w, row, k0, n);
    for (int64_t k = n; k < b->n_k; k++) {
        room[k] = 0.0f;
    }
    b->w[i] = room;
}

/* y and bias from the block's first row on. */
static void fold_outputs(float *y, int64_t y_stride, const tile_block *b, int n_rows, int64_t n, const float *bias) {
    for (int64_t t = 0; t < n; t++, y += y_stride) {
        float sum[BLOCK_ROWS];
        if (n_rows == 8) {
            v16_fold_8(sum, lanes_of(b, 0, t));
        } else {
            for (int i = 0; i < n_rows; i++) {
                sum[i] = v16_fold(v16_load(lanes_of(b, i, t)));
            }
        }
        for (int i = 0; i < n_rows; i++) {
            y[i] = biased(sum[i], bias, i);
        }
    }
}

/* Up to BLOCK_ROWS rows and BLOCK_TOKENS tokens. */
static void block_product(float *y, int64_t y_stride, const nib_matrix *w, int64_t row, int n_rows, const float *x,
                          int64_t x_stride, int64_t n, const float *bias) {
    _Alignas(64) float room[BLOCK_ROWS][BLOCK_K];
    _Alignas(64) float lanes[BLOCK_TOKENS * BLOCK_ROWS * 16];
    tile_block b = {.x_stride = x_stride, .lanes = lanes, .first = true};
    for (int64_t k0 = 0; k0 < w->cols || b.first; k0 += BLOCK_K) {
        for (int i = 0; i < n_rows; i++) {
            take_row(&b, room[i], w, row + i, i, k0);
        }
        b.x = x + k0;
        tiles(&b, n_rows, n);
        b.first = false;
    }
    fold_outputs(y + row, y_stride, &b, n_rows, n, bias == NULL ? NULL : bias + row);
}

static void matmul(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const float *x,
                   int64_t x_stride, int64_t n, const float *bias) {
    if (n == 1) {
        matvec(y, w, row0, row1, x, bias);
        return;
    }
    for (int64_t t = 0; t < n; t += BLOCK_TOKENS) {
        int64_t tokens = n - t < BLOCK_TOKENS ? n - t : BLOCK_TOKENS;
        for (int64_t row = row0; row < row1; row += BLOCK_ROWS) {
            int rows = row1 - row < BLOCK_ROWS ? (int)(row1 - row) : BLOCK_ROWS;
            block_product(y + t * y_stride, y_stride, w, row, rows, x + t * x_stride, x_stride, tokens, bias);
        }
    }
}

#endif
