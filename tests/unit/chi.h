/* Chi-square of counts against expected counts, and its quantile, for tests with fixed seeds: the outcome is the same
 * on every run, so the bound is no matter of luck. */
#ifndef NIB_TESTS_CHI_H
#define NIB_TESTS_CHI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/maths.h"

/* A right sampler exceeds the quantile for one seed in 10,000. */
static const double chi_z = 3.719016485455709; /* the normal's quantile at 1 - 1e-4 */

/* Wilson and Hilferty 1931: the cube root of chi-square / n is nearly normal. Within 1 % for n >= 3 at this level. */
static inline double chi_bound(size_t freedom) {
    double n = (double)freedom, v = 2 / (9 * n), root = 1 - v + chi_z * nib_pow(v, 0.5);
    return n * root * root * root;
}

/* Bins of fewer than 10 expected counts are pooled. *freedom = bins - 1. A count where none is expected: +infinity. */
static inline double chi_square(size_t *freedom, const size_t *count, const double *expected, size_t bins) {
    double chi = 0, pool_expected = 0, pool_count = 0;
    size_t used = 0;
    for (size_t i = 0; i < bins; i++) {
        double c = (double)count[i];
        if (expected[i] <= 0 && count[i] > 0) {
            return 1e300;
        }
        if (expected[i] >= 10) {
            chi += (c - expected[i]) * (c - expected[i]) / expected[i];
            used++;
        } else {
            pool_expected += expected[i];
            pool_count += c;
        }
    }
    if (pool_expected > 0) {
        chi += (pool_count - pool_expected) * (pool_count - pool_expected) / pool_expected;
        used++;
    }
    *freedom = used > 1 ? used - 1 : 1;
    return chi;
}

/* Whether the counts may be those of the expected distribution. */
static inline bool chi_fits(const size_t *count, const double *expected, size_t bins) {
    size_t freedom = 1;
    double chi = chi_square(&freedom, count, expected, bins);
    return chi < chi_bound(freedom);
}

#endif
