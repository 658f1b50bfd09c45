/* Oracle: the C library's long double functions (64 bits of mantissa, errors far below one ulp of a double); for
 * binary32 its double functions. The bounds are what was measured (in the comment), rounded up. */
#include "base/maths.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t random_state = 1;

static uint64_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = random_state ^ random_state >> 29;
    return x * 0xbf58476d1ce4e5b9u ^ x >> 32;
}

/* Evenly in [low, high). */
static double between(double low, double high) {
    return low + (high - low) * ((double)(random_bits() >> 11) * 0x1p-53);
}

static double ulp(double x) {
    int exponent;
    (void)frexp(x, &exponent);
    return ldexp(1.0, exponent - 53 < -1074 ? -1074 : exponent - 53);
}

static float ulp_float(double x) {
    int exponent;
    (void)frexp(x, &exponent);
    return (float)ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
}

typedef double (*real_fn)(double);
typedef long double (*long_fn)(long double);

/* The largest error of f in ulps over n random arguments. */
static double largest_error(real_fn f, long_fn oracle, double low, double high, int n) {
    double worst = 0.0;
    for (int i = 0; i < n; i++) {
        double x = between(low, high);
        long double want = oracle((long double)x);
        double error = (double)(fabsl((long double)f(x) - want) / (long double)ulp((double)want));
        worst = error > worst ? error : worst;
    }
    return worst;
}

static void within(const char *name, real_fn f, long_fn oracle, double low, double high, double bound) {
    double worst = largest_error(f, oracle, low, high, 200000);
    print_message("%-6s [%g, %g): %.3f ulp\n", name, low, high, worst);
    assert_true(worst <= bound);
}

static void exp_is_within_one_ulp(void **state) {
    (void)state;
    within("exp", nib_exp, expl, -708.0, 709.7, 1.0);
    within("exp", nib_exp, expl, -1.0, 1.0, 1.0);
    within("exp", nib_exp, expl, -745.0, -708.0, 1.0);
}

static void expm1_is_within_1_1_ulp(void **state) {
    (void)state;
    within("expm1", nib_expm1, expm1l, -1.0, 1.0, 1.1);
    within("expm1", nib_expm1, expm1l, -45.0, 60.0, 1.1);
    within("expm1", nib_expm1, expm1l, -1e-5, 1e-5, 1.0);
}

static void log_is_within_one_ulp(void **state) {
    (void)state;
    within("log", nib_log, logl, 0.0, 2.0, 1.0);
    within("log", nib_log, logl, 0.9, 1.1, 1.0);
    within("log", nib_log, logl, 1.0, 1e300, 1.0);
    within("log", nib_log, logl, 0.0, 1e-309, 1.0);
}

static void log1p_is_within_one_ulp(void **state) {
    (void)state;
    within("log1p", nib_log1p, log1pl, -1.0, 1.0, 1.0);
    within("log1p", nib_log1p, log1pl, -1e-4, 1e-4, 1.0);
    within("log1p", nib_log1p, log1pl, 0.0, 1e18, 1.0);
}

static void sin_and_cos_are_within_one_ulp(void **state) {
    (void)state;
    within("sin", nib_sin, sinl, -0.8, 0.8, 1.0);
    within("sin", nib_sin, sinl, -100.0, 100.0, 1.0);
    within("sin", nib_sin, sinl, -0x1p31, 0x1p31, 1.0);
    within("cos", nib_cos, cosl, -0.8, 0.8, 1.0);
    within("cos", nib_cos, cosl, -100.0, 100.0, 1.0);
    within("cos", nib_cos, cosl, -0x1p31, 0x1p31, 1.0);
}

/* Near multiples of pi/2 the result is what the reduction leaves. */
static void sin_and_cos_keep_their_precision_near_zeros(void **state) {
    (void)state;
    const long double right_angle = 1.57079632679489661923132169163975144L;
    for (int64_t n = 1; n < (int64_t)1 << 30; n += n / 7 + 1) {
        double x = (double)(right_angle * (long double)n);
        long double s = sinl((long double)x), c = cosl((long double)x);
        assert_true(fabsl((long double)nib_sin(x) - s) <= (long double)ulp((double)s));
        assert_true(fabsl((long double)nib_cos(x) - c) <= (long double)ulp((double)c));
    }
}

static void pow_is_within_one_ulp(void **state) {
    (void)state;
    double worst = 0.0;
    for (int i = 0; i < 300000; i++) {
        double x = i % 3 == 0 ? between(0.0, 2.0) : exp(between(-300.0, 300.0));
        double y = i % 2 == 0 ? between(-1.0, 1.0) : between(-300.0, 300.0);
        long double want = powl((long double)x, (long double)y);
        if (want > 1e308L || want < 1e-307L) {
            continue;
        }
        double error = (double)(fabsl((long double)nib_pow(x, y) - want) / (long double)ulp((double)want));
        worst = error > worst ? error : worst;
    }
    print_message("pow    %.3f ulp\n", worst);
    assert_true(worst <= 1.0);
}

static void is_same(double got, double want) {
    if (isnan(want)) {
        assert_true(isnan(got));
        return;
    }
    assert_memory_equal(&got, &want, sizeof got);
}

static void special_values_are_those_of_the_c_standard(void **state) {
    (void)state;
    is_same(nib_exp(-INFINITY), 0.0);
    is_same(nib_exp(INFINITY), INFINITY);
    is_same(nib_exp(0.0), 1.0);
    is_same(nib_exp(NAN), NAN);
    is_same(nib_exp(710.0), INFINITY);
    is_same(nib_exp(-746.0), 0.0);
    is_same(nib_expm1(-0.0), -0.0);
    is_same(nib_expm1(-INFINITY), -1.0);
    is_same(nib_expm1(INFINITY), INFINITY);
    is_same(nib_expm1(NAN), NAN);
    is_same(nib_log(0.0), -INFINITY);
    is_same(nib_log(-0.0), -INFINITY);
    is_same(nib_log(-1.0), NAN);
    is_same(nib_log(1.0), 0.0);
    is_same(nib_log(INFINITY), INFINITY);
    is_same(nib_log(NAN), NAN);
    is_same(nib_log1p(-1.0), -INFINITY);
    is_same(nib_log1p(-2.0), NAN);
    is_same(nib_log1p(-0.0), -0.0);
    is_same(nib_log1p(INFINITY), INFINITY);
    is_same(nib_pow(0.0, 2.0), 0.0);
    is_same(nib_pow(0.0, -2.0), INFINITY);
    is_same(nib_pow(INFINITY, -2.0), 0.0);
    is_same(nib_pow(INFINITY, 2.0), INFINITY);
    is_same(nib_pow(3.0, 0.0), 1.0);
    is_same(nib_pow(1.0, 1e300), 1.0);
    is_same(nib_pow(2.0, 2000.0), INFINITY);
    is_same(nib_pow(2.0, -2000.0), 0.0);
    is_same(nib_pow(2.0, 10.0), 1024.0);
    is_same(nib_pow(-1.0, 2.0), NAN);
    is_same(nib_sin(-0.0), -0.0);
    is_same(nib_sin(INFINITY), NAN);
    is_same(nib_cos(0.0), 1.0);
    is_same(nib_cos(NAN), NAN);
}

/* Every 3001st of the binary32 numbers: largest error in ulps. */
static double largest_float_error(float (*f)(float), double (*oracle)(double)) {
    double worst = 0.0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 3001) {
        uint32_t word = (uint32_t)bits;
        float x;
        memcpy(&x, &word, sizeof x);
        double want = oracle((double)x);
        float got = f(x);
        if (isnan(x)) {
            assert_true(isnan(got));
        } else if (fabs(want) >= 0x1p-126 && fabs(want) < 0x1p128) {
            double error = fabs((double)got - want) / (double)ulp_float(want);
            worst = error > worst ? error : worst;
        }
    }
    return worst;
}

static void float_functions_are_close(void **state) {
    (void)state;
    double e = largest_float_error(nib_expf, exp), t = largest_float_error(nib_tanhf, tanh),
           f = largest_float_error(nib_erff, erf);
    print_message("expf %.3f tanhf %.3f erff %.3f ulp\n", e, t, f);
    assert_true(e <= 1.0);
    assert_true(t <= 1.3);
    assert_true(f <= 1.0);
}

static void float_functions_have_their_borders(void **state) {
    (void)state;
    assert_true(nib_expf(0.0f) == 1.0f && nib_expf(-0.0f) == 1.0f);
    assert_true(nib_expf(-87.33654f) >= 0x1p-126f);
    assert_true(nib_expf(nextafterf(-87.33654f, -100.0f)) == 0.0f);
    assert_true(isfinite(nib_expf(88.72283f)));
    assert_true(isinf(nib_expf(nextafterf(88.72283f, 100.0f))));
    assert_true(nib_expf(-INFINITY) == 0.0f && isinf(nib_expf(INFINITY)));
    assert_true(signbit(nib_tanhf(-0.0f)) && nib_tanhf(-0.0f) == 0.0f);
    assert_true(nib_tanhf(INFINITY) == 1.0f && nib_tanhf(-INFINITY) == -1.0f);
    assert_true(signbit(nib_erff(-0.0f)) && nib_erff(INFINITY) == 1.0f);
}

static double random_double(void) {
    uint64_t bits = random_bits();
    if (random_bits() % 4 != 0) { /* exponents near each other, so that sums cancel and products meet the addend */
        bits = (bits & 0x800fffffffffffffu) | (uint64_t)(1023 + random_bits() % 120) << 52;
    }
    if (random_bits() % 3 == 0) {
        bits &= ~(((uint64_t)1 << random_bits() % 53) - 1);
    }
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void fma_is_the_libraries(void **state) {
    (void)state;
    for (int i = 0; i < 1000000; i++) {
        double a = random_double(), b = random_double();
        double c = i % 3 == 0 ? -(a * b) : i % 3 == 1 ? random_double() : -(a * b) * (1.0 + 0x1p-52);
        is_same(nib_fma(a, b, c), fma(a, b, c));
    }
    const double edges[] = {0.0,      -0.0, 1.0, -1.0, 0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023,
                            INFINITY, NAN};
    for (int i = 0; i < 1000; i++) {
        double a = edges[i % 10], b = edges[i / 10 % 10], c = edges[i / 100];
        is_same(nib_fma(a, b, c), fma(a, b, c));
    }
}

static float random_float(void) {
    uint32_t bits = (uint32_t)random_bits();
    if (random_bits() % 4 != 0) {
        bits = (bits & 0x807fffffu) | (uint32_t)(127 + random_bits() % 50 - 25) << 23;
    }
    if (random_bits() % 3 == 0) {
        bits &= ~(((uint32_t)1 << random_bits() % 24) - 1);
    }
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void fmaf_is_the_libraries(void **state) {
    (void)state;
    for (int i = 0; i < 3000000; i++) {
        float a = random_float(), b = random_float();
        float c = i % 4 == 0 ? -(a * b) : random_float();
        if (i % 5 == 0) { /* a sum near a tie of binary32 */
            c = (float)ldexp((double)(a * b), 24);
        }
        float got = nib_fmaf(a, b, c), want = fmaf(a, b, c);
        if (isnan(want)) {
            assert_true(isnan(got));
        } else {
            assert_memory_equal(&got, &want, sizeof got);
        }
    }
}

/* (float)((double)a * b + c) is wrong here: the sum in double is a tie that it is not exactly. */
static void fmaf_rounds_once(void **state) {
    (void)state;
    float a = 1.0f + 0x1p-12f, c = 0x1p-60f;
    assert_true((float)((double)a * (double)a + (double)c) == 1.0f + 0x1p-11f);
    assert_true(nib_fmaf(a, a, c) == 1.0f + 0x1p-11f + 0x1p-23f);
    assert_true(nib_fmaf(a, a, -c) == 1.0f + 0x1p-11f);
    assert_true(nib_fmaf(0x1p-140f, 0.5f, 0x1.8p-148f) == fmaf(0x1p-140f, 0.5f, 0x1.8p-148f));
}

static void halves_go_to_float_and_back(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        float x = nib_half_to_float((uint16_t)half);
        if ((half & 0x7fffu) > 0x7c00u) {
            assert_true(isnan(x) && isnan(nib_half_to_float(nib_half_from_float(x))));
            continue;
        }
        assert_int_equal(nib_half_from_float(x), half);
        double exponent = (double)(half >> 10 & 31), fraction = (double)(half & 1023);
        double want = exponent == 0.0 ? ldexp(fraction, -24) : ldexp(1024.0 + fraction, (int)exponent - 25);
        want = exponent == 31.0 ? INFINITY : want;
        is_same((double)x, (half & 0x8000u) != 0 ? -want : want);
    }
}

static void floats_go_to_the_nearest_half_ties_to_even(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 0x7bffu; half++) {
        float low = nib_half_to_float((uint16_t)half), high = nib_half_to_float((uint16_t)(half + 1));
        float middle = low + (high - low) / 2.0f;
        assert_int_equal(nib_half_from_float(middle), half + (half & 1u));
        assert_int_equal(nib_half_from_float(nextafterf(middle, 0.0f)), half);
        assert_int_equal(nib_half_from_float(nextafterf(middle, INFINITY)), half + 1);
        assert_int_equal(nib_half_from_float(-middle), 0x8000u | (half + (half & 1u)));
    }
    assert_int_equal(nib_half_from_float(65519.996f), 0x7bff);
    assert_int_equal(nib_half_from_float(65520.0f), 0x7c00);
    assert_int_equal(nib_half_from_float(0x1p-149f), 0);
}

static void bf16_is_the_upper_half_of_a_float(void **state) {
    (void)state;
    assert_true(nib_bf16_to_float(0x3f80) == 1.0f);
    assert_true(nib_bf16_to_float(0xc049) == -3.140625f);
    assert_true(isinf(nib_bf16_to_float(0x7f80)));
    assert_true(nib_bf16_to_float(1) == 0x1p-133f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_one_ulp),
        cmocka_unit_test(expm1_is_within_1_1_ulp),
        cmocka_unit_test(log_is_within_one_ulp),
        cmocka_unit_test(log1p_is_within_one_ulp),
        cmocka_unit_test(sin_and_cos_are_within_one_ulp),
        cmocka_unit_test(sin_and_cos_keep_their_precision_near_zeros),
        cmocka_unit_test(pow_is_within_one_ulp),
        cmocka_unit_test(special_values_are_those_of_the_c_standard),
        cmocka_unit_test(float_functions_are_close),
        cmocka_unit_test(float_functions_have_their_borders),
        cmocka_unit_test(fma_is_the_libraries),
        cmocka_unit_test(fmaf_is_the_libraries),
        cmocka_unit_test(fmaf_rounds_once),
        cmocka_unit_test(halves_go_to_float_and_back),
        cmocka_unit_test(floats_go_to_the_nearest_half_ties_to_even),
        cmocka_unit_test(bf16_is_the_upper_half_of_a_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
