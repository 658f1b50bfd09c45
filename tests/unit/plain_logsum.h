/* The log-sum-exp rule written out plainly, never through src/kernel or src/decode: docs/numerics.md, rule 5. */
#ifndef NIB_TESTS_PLAIN_LOGSUM_H
#define NIB_TESTS_PLAIN_LOGSUM_H

#include <math.h>
#include <stdint.h>

#include "base/maths.h"

typedef struct plain_sum {
    double max, total;
} plain_sum;

static inline float plain_fold_of_exp(const float *l, int64_t n, float m) {
    float lane[16] = {0};
    for (int64_t i = 0; i < n; i++) {
        lane[i % 16] += nib_expf(l[i] - m);
    }
    for (int width = 8; width > 0; width /= 2) {
        for (int j = 0; j < width; j++) {
            lane[j] += lane[j + width];
        }
    }
    return lane[0];
}

static inline plain_sum plain_logsum(const float *l, int64_t V) {
    double max = -INFINITY, total = 0;
    for (int64_t i = 0; i < V; i++) {
        max = (double)l[i] > max ? (double)l[i] : max;
    }
    for (int64_t first = 0; first < V; first += 256) {
        int64_t n = V - first < 256 ? V - first : 256;
        float m = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            m = l[first + i] > m ? l[first + i] : m;
        }
        if (m > -INFINITY) {
            total += (double)plain_fold_of_exp(l + first, n, m) * nib_exp((double)m - max);
        }
    }
    return (plain_sum){max, total};
}

#endif
