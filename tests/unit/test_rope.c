/* Rotary frequencies: scaled ones against what transformers computes, and the published numbers of llama3's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/rope.h"
#include "rope_numbers.h"

/* What binary32 loses in transformers' powers of up to 64 radians a token; the slightest wrong formula moves more. */
#define RELATIVE_BOUND 1e-6

enum { N_CASES = sizeof rope_numbers / sizeof rope_numbers[0], WIDEST = 64 };

/* What llama3's scaling divides by: files hold it in rope_freqs.weight, so the library has no such formula. Below `low`
 * turns in the original context a frequency is divided by all of the factor, above 4 * low not at all. */
static void llama3_divisors(float *divisors, int dim, double base, double factor, double original) {
    for (int i = 0; i < dim / 2; i++) {
        double turns = original * pow(base, -2.0 * i / dim) / (2.0 * acos(-1.0));
        double kept = (turns - 1.0) / 3.0;
        kept = kept < 0.0 ? 0.0 : kept > 1.0 ? 1.0 : kept;
        divisors[i] = (float)(1.0 / ((1.0 - kept) / factor + kept));
    }
}

static nib_config config_of(size_t i, const nib_arch *arch, float *divisors) {
    nib_config c = {.arch = arch, .rope_dim = rope_numbers[i].dim, .rope_base = rope_numbers[i].base};
    c.rope = (nib_rope_scaling){.kind = rope_numbers[i].kind,
                                .factor = rope_numbers[i].factor,
                                .original = rope_numbers[i].original,
                                .beta_fast = rope_numbers[i].beta_fast,
                                .beta_slow = rope_numbers[i].beta_slow,
                                .attn_factor = 1.0};
    if (rope_numbers[i].kind == NIB_ROPE_PLAIN) {
        llama3_divisors(divisors, rope_numbers[i].dim, rope_numbers[i].base, rope_numbers[i].factor,
                        rope_numbers[i].original);
        c.rope.divisors = divisors;
    }
    return c;
}

static void frequencies_are_transformers(void **state) {
    (void)state;
    const nib_arch arch = {.name = "llama"};
    double worst = 0;
    for (size_t i = 0; i < N_CASES; i++) {
        float divisors[WIDEST];
        double freq[WIDEST];
        nib_config c = config_of(i, &arch, divisors);
        nib_rope_frequencies(freq, &c, false);
        for (int j = 0; j < rope_numbers[i].dim / 2; j++) {
            double expected = rope_numbers[i].freq[j], difference = fabs(freq[j] - expected) / expected;
            if (!(difference <= RELATIVE_BOUND)) {
                fail_msg("case %zu, pair %d: %.9g, expected %.9g", i, j, freq[j], expected);
            }
            assert_true(freq[j] == (double)(float)freq[j]);
            worst = fmax(worst, difference);
        }
        assert_true(fabs(nib_rope_magnitude(&c.rope) - rope_numbers[i].magnitude) <= 1e-15);
    }
    print_message("           frequencies differ by %.2g of themselves at most\n", worst);
}

static void llama3_blends_three_frequencies_of_32(void **state) {
    (void)state;
    const nib_arch arch = {.name = "llama"};
    float divisors[WIDEST];
    double plain[WIDEST], freq[WIDEST];
    nib_config c = config_of(1, &arch, divisors);
    nib_rope_frequencies(freq, &c, false);
    c.rope.divisors = NULL;
    nib_rope_frequencies(plain, &c, false);
    for (int i = 0; i < 15; i++) {
        assert_true(freq[i] == plain[i]);
    }
    const double blended[3][2] = {{0.0021311, 0.0012905}, {0.0014142, 0.00042956}, {0.00093847, 0.000097083}};
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(plain[15 + i] / blended[i][0] - 1.0) < 5e-5);
        assert_true(fabs(freq[15 + i] / blended[i][1] - 1.0) < 5e-5);
    }
    for (int i = 18; i < 32; i++) {
        assert_true(freq[i] == plain[i] / 32.0);
    }
}

static void windowed_layers_with_their_own_base_are_not_scaled(void **state) {
    (void)state;
    const nib_arch arch = {.name = "gemma3", .window_period = 6, .local_rope_base = 10000.0};
    const nib_arch plain_arch = {.name = "llama"};
    double local[WIDEST], expected[WIDEST];
    nib_config c = config_of(0, &arch, NULL);
    c.rope_base = 1e6;
    nib_rope_frequencies(local, &c, true);
    nib_config plain = {.arch = &plain_arch, .rope_dim = c.rope_dim, .rope_base = 10000.0};
    nib_rope_frequencies(expected, &plain, false);
    for (int i = 0; i < 32; i++) {
        assert_true(local[i] == expected[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_transformers),
        cmocka_unit_test(llama3_blends_three_frequencies_of_32),
        cmocka_unit_test(windowed_layers_with_their_own_base_are_not_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
