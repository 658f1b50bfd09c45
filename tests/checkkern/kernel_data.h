/* Test data: a counter-based generator, blocks that end at a page nobody may touch, numbers that are hard. */
#ifndef NIB_KERNEL_DATA_H
#define NIB_KERNEL_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"

/* One case of one function on one rung. */
typedef struct check {
    const nib_kernels *kernels;
    const char *function;
    uint64_t seed;
    uint64_t n_draws;
    uint64_t hash; /* of the results so far; NaNs count as one */
    bool failed;
} check;

/* Evenly in 0 .. n-1. Never two in one expression without an order: the data would depend on the compiler. */
uint64_t draw(check *c, uint64_t n);

/* The case's size: 0 .. 69 one after the other in the first 70 seeds, then every second case; else up to `most`. */
int64_t draw_size(check *c, int64_t most);

/* Memory for one case: blocks end where a page without access begins, so that reading or writing beyond them ends the
 * program, and 64 bytes before them are checked. */
void blocks_init(void);
void *block(size_t size_bytes); /* filled with a pattern of NaNs */
bool blocks_intact(void);       /* whether the bytes before every block are as they were */
void blocks_release(void);      /* all of them, for the next case */

/* n floats: one style for all. With `wild` also infinities and NaN. */
float *draw_floats(check *c, int64_t n, bool wild);

/* n floats near the middle between two binary16 numbers, subnormal and too large ones among them. */
float *draw_near_halves(check *c, int64_t n);

/* Activations [n][cols]: blocks of 32 that are hard to quantise among ordinary ones. With `wild` also infinities and
 * NaN. With `largest` every element is as large as its block's largest: codes of +-127. */
float *draw_activations(check *c, int64_t n, int64_t x_stride, int64_t cols, bool wild, bool largest);

/* n elements of K or V, not always aligned to more than their size. */
void *draw_kv(check *c, nib_kv_type type, int64_t n, bool wild);

/* A weight matrix, not aligned to anything: scales of every kind, codes random or all at an extreme. */
nib_matrix draw_matrix(check *c, nib_dtype dtype, int64_t rows, int64_t cols);

/* One of the types with kernels. */
nib_dtype draw_dtype(check *c);

/* One of the types that can be packed. */
nib_dtype draw_quantised_dtype(check *c);

/* All codes of a quantised matrix to one extreme; its scales in binary16 stay. */
void make_extreme(check *c, nib_matrix *w);

/* Some scales and minimums of a quantised matrix to +-0, subnormal, largest; with `wild` also infinities and NaN. */
void make_hard_scales(check *c, nib_matrix *w, bool wild);

/* Compares n floats bit for bit, NaN equal to NaN, and adds what was got to the hash. Reports the first difference. */
void expect_same(check *c, const float *got, const float *want, int64_t n, const char *what);

/* The same for any bytes. */
void expect_same_bytes(check *c, const void *got, const void *want, size_t len, const char *what);

/* Reports a failure with the command that repeats it. */
void report(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
