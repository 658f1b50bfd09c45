/* Log-sum-exp over a vocabulary: the kernels sum each block in float, the blocks are added here in double. */
#include "decode/logsum.h"

#include <math.h> /* INFINITY */

#include "base/maths.h"

static int64_t block_size(int64_t V, int64_t b) {
    int64_t left = V - b * NIB_LOGSUM_BLOCK;
    return left < NIB_LOGSUM_BLOCK ? left : NIB_LOGSUM_BLOCK;
}

void nib_logsum_total(nib_logsum *sum, const float *m, const float *s, int64_t blocks) {
    float max = -INFINITY;
    for (int64_t b = 0; b < blocks; b++) {
        max = m[b] > max ? m[b] : max;
    }
    double total = 0;
    for (int64_t b = 0; b < blocks; b++) {
        if (m[b] > -INFINITY) {
            total += (double)s[b] * nib_exp((double)m[b] - (double)max);
        }
    }
    sum->max = (double)max;
    sum->total = total;
}

bool nib_logsum_raw(nib_logsum *sum, float *m, float *s, const nib_kernels *kernels, const float *l, int64_t V) {
    int64_t blocks = nib_logsum_blocks(V);
    for (int64_t b = 0; b < blocks; b++) {
        if (!kernels->lse_block(&m[b], &s[b], l + b * NIB_LOGSUM_BLOCK, block_size(V, b))) {
            return false;
        }
    }
    nib_logsum_total(sum, m, s, blocks);
    return true;
}

void nib_logsum_tempered(nib_logsum *sum, float *m, float *s, const nib_kernels *kernels, const nib_logits *logits,
                         double T) {
    int64_t blocks = nib_logsum_blocks(logits->V);
    for (int64_t b = 0; b < blocks; b++) {
        m[b] = -INFINITY;
        s[b] = 0.0f;
        if (!(logits->block_max[b] > -INFINITY)) {
            continue;
        }
        float x[NIB_LOGSUM_BLOCK];
        int64_t n = block_size(logits->V, b);
        for (int64_t i = 0; i < n; i++) {
            x[i] = nib_tempered(logits->l[b * NIB_LOGSUM_BLOCK + i], logits->max, T);
        }
        (void)kernels->lse_block(&m[b], &s[b], x, n); /* x <= 0: neither NaN nor +infinity */
    }
    nib_logsum_total(sum, m, s, blocks);
}

float nib_logsum_logprob(const nib_logsum *sum, float l) {
    if (!(l > -INFINITY)) {
        return -INFINITY;
    }
    return (float)((double)l - sum->max - nib_log(sum->total));
}
