/* Log-sum-exp over a vocabulary: the rule once more, written out plainly, bit for bit; and against a sum in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/maths.h"
#include "base/random.h"
#include "decode/logsum.h"
#include "plain_logsum.h"

enum { MOST = 50257, BLOCKS = (MOST + 255) / 256 };

static const int64_t sizes[] = {1, 2, 5, 15, 16, 17, 255, 256, 257, 512, 1000, MOST};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static float logits[MOST], part_m[BLOCKS], part_s[BLOCKS], largest[BLOCKS];

/* kind 0: -16 .. 16; 1: the same with two of three masked and whole blocks too; 2: all equal; 3: hugely apart */
static void fill(int64_t V, int kind) {
    for (int64_t i = 0; i < V; i++) {
        uint64_t r = nib_mix64((uint64_t)(V + kind), (uint64_t)i);
        logits[i] = (float)(int32_t)(r >> 32) * (kind == 3 ? 0x1p+60f : 0x1p-27f);
        if (kind == 1 && (r % 3 != 0 || i >> 8 == 1) && i != V - 1) {
            logits[i] = -INFINITY;
        }
        if (kind == 2) {
            logits[i] = -2.5f;
        }
    }
}

static void assert_same_sum(nib_logsum a, plain_sum b) {
    assert_memory_equal(&a.max, &b.max, sizeof a.max);
    assert_memory_equal(&a.total, &b.total, sizeof a.total);
}

static void every_rung_equals_the_rule_bit_for_bit(void **state) {
    (void)state;
    for (size_t k = 0; nib_kernels_name(k) != NULL; k++) {
        const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(k));
        for (size_t i = 0; kernels != NULL && i < (size_t)N_SIZES * 4; i++) {
            int64_t V = sizes[i / 4];
            fill(V, (int)(i % 4));
            nib_logsum sum;
            assert_true(nib_logsum_raw(&sum, part_m, part_s, kernels, logits, V));
            assert_same_sum(sum, plain_logsum(logits, V));
        }
    }
}

static void the_tempered_sum_is_the_sum_of_the_tempered_logits(void **state) {
    (void)state;
    static const double temperatures[] = {1e-40, 1e-5, 0.7, 1, 3, 1e30};
    static float x[MOST];
    const nib_kernels *kernels = nib_kernels_find("auto");
    for (size_t i = 0; i < (size_t)N_SIZES * 4 * 6; i++) {
        int64_t V = sizes[i / 24];
        double T = temperatures[i % 6];
        fill(V, (int)(i / 6 % 4));
        nib_logsum raw, sum;
        assert_true(nib_logsum_raw(&raw, largest, part_s, kernels, logits, V));
        nib_logits view = {logits, largest, V, (float)raw.max};
        nib_logsum_tempered(&sum, part_m, part_s, kernels, &view, T);
        for (int64_t t = 0; t < V; t++) {
            x[t] = (float)(((double)logits[t] - raw.max) / T);
        }
        assert_same_sum(sum, plain_logsum(x, V));
        assert_true(sum.max == 0 && sum.total >= 1);
    }
}

/* A float exp of at most 2 ulp, a float sum of 16 additions a lane and 4 more: relative 22 * 2^-24 on the total, an
 * absolute 22 * 2^-24 on its logarithm; and the result is rounded to float. */
static void log_probabilities_are_those_of_double_arithmetic(void **state) {
    (void)state;
    const nib_kernels *kernels = nib_kernels_find("auto");
    fill(MOST, 0);
    nib_logsum sum;
    assert_true(nib_logsum_raw(&sum, part_m, part_s, kernels, logits, MOST));
    double total = 0, mass = 0;
    for (int64_t i = 0; i < MOST; i++) {
        total += nib_exp((double)logits[i] - sum.max);
    }
    for (int64_t i = 0; i < MOST; i++) {
        double want = (double)logits[i] - sum.max - nib_log(total), got = (double)nib_logsum_logprob(&sum, logits[i]);
        double bound = 22 * 0x1p-24 + -want * 0x1p-24;
        assert_true(got - want <= bound && want - got <= bound);
        mass += nib_exp(got);
    }
    assert_true(mass > 1 - 1e-5 && mass < 1 + 1e-5);
}

static void a_masked_token_has_no_probability_and_no_influence(void **state) {
    (void)state;
    const nib_kernels *kernels = nib_kernels_find("auto");
    static float few[1000];
    for (int i = 0; i < 1000; i++) {
        few[i] = -INFINITY;
    }
    few[700] = 2.0f;
    few[999] = 2.0f;
    nib_logsum sum;
    assert_true(nib_logsum_raw(&sum, part_m, part_s, kernels, few, 1000));
    assert_true(sum.max == 2 && sum.total == 2);
    assert_true(nib_logsum_logprob(&sum, few[0]) == -INFINITY);
    assert_true(nib_logsum_logprob(&sum, few[700]) == (float)-nib_log(2));
}

static void without_a_finite_logit_the_sum_is_zero(void **state) {
    (void)state;
    static float none[300];
    for (int i = 0; i < 300; i++) {
        none[i] = -INFINITY;
    }
    nib_logsum sum;
    assert_true(nib_logsum_raw(&sum, part_m, part_s, nib_kernels_find("auto"), none, 300));
    assert_true(sum.max == -INFINITY && sum.total == 0);
    assert_true(nib_logsum_logprob(&sum, -INFINITY) == -INFINITY);
}

static void nan_and_infinity_are_reported_wherever_they_stand(void **state) {
    (void)state;
    static const int64_t places[] = {0, 15, 16, 255, 256, 511, 512, 998, 999};
    for (size_t k = 0; nib_kernels_name(k) != NULL; k++) {
        const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(k));
        for (size_t i = 0; kernels != NULL && i < 2 * sizeof places / sizeof *places; i++) {
            fill(1000, 0);
            logits[places[i / 2]] = i % 2 == 0 ? NAN : INFINITY;
            nib_logsum sum = {-1, -1};
            assert_false(nib_logsum_raw(&sum, part_m, part_s, kernels, logits, 1000));
            assert_true(sum.max == -1 && sum.total == -1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rung_equals_the_rule_bit_for_bit),
        cmocka_unit_test(the_tempered_sum_is_the_sum_of_the_tempered_logits),
        cmocka_unit_test(log_probabilities_are_those_of_double_arithmetic),
        cmocka_unit_test(a_masked_token_has_no_probability_and_no_influence),
        cmocka_unit_test(without_a_finite_logit_the_sum_is_zero),
        cmocka_unit_test(nan_and_infinity_are_reported_wherever_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
