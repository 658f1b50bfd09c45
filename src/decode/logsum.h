/* The logarithm of the sum of exponentials over a vocabulary, in blocks of 256 ids, and log-probabilities from it.
 * docs/numerics.md, rule 5, "log-sum-exp" and "filters". */
#ifndef NIB_DECODE_LOGSUM_H
#define NIB_DECODE_LOGSUM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/kernel.h"

enum { NIB_LOGSUM_BLOCK = 256 };

static inline int64_t nib_logsum_blocks(int64_t V) {
    return (V + NIB_LOGSUM_BLOCK - 1) / NIB_LOGSUM_BLOCK;
}

/* Logits of one position; what may not be drawn is -infinity. */
typedef struct nib_logits {
    const float *l;         /* [V] */
    const float *block_max; /* [blocks] the largest of each 256 ids */
    int64_t V;
    float max; /* the largest of all */
} nib_logits;

/* total = sum of exp(l - max); 0, with max = -infinity, when no logit is finite. */
typedef struct nib_logsum {
    double max, total;
} nib_logsum;

/* The sum from the blocks' parts m and s [blocks], as lse_block of nib_kernels gives them. */
void nib_logsum_total(nib_logsum *sum, const float *m, const float *s, int64_t blocks);

/* Of l [V]; m and s [blocks] are left filled. False when l holds a NaN or +infinity: sum is then untouched. */
bool nib_logsum_raw(nib_logsum *sum, float *m, float *s, const nib_kernels *kernels, const float *l, int64_t V);

/* x = (float)((l - max) / T): 0 for the largest logit, -infinity for what is masked or too far below. */
static inline float nib_tempered(float l, float max, double T) {
    return (float)(((double)l - (double)max) / T);
}

/* Of x of all tokens of logits, whose max is finite; m and s [blocks] are work areas. */
void nib_logsum_tempered(nib_logsum *sum, float *m, float *s, const nib_kernels *kernels, const nib_logits *logits,
                         double T);

/* l - max - log(total), nats; -infinity for l = -infinity. */
float nib_logsum_logprob(const nib_logsum *sum, float l);

#endif
