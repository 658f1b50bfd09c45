/* Elementary functions with the same bits on every machine: only + - x / and integers in binary64 (no fma: most
 * machines' baseline lacks it), + - x / fma in binary32, in a fixed order. docs/numerics.md, rule 0.
 *
 * The binary64 series are Taylor and area-hyperbolic-tangent series cut where the next term is below 2^-57 of the
 * sum. The binary32 polynomials are minimax fits with coefficients rounded to binary32 one after the other, lowest
 * power first. */
#include "base/maths.h"

#include <float.h>
#include <stdbool.h>
#include <string.h>

#include "base/fma.h"

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||                         \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "nib computes the same bits everywhere; it cannot be compiled with fast-math flags"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "float and double must be evaluated in their own precision");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "nib reads files and counts random words in little endian");

#define INFINITE     __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n, -1022 <= n <= 1023. */
static double power_of_two(int n) {
    return from_bits((uint64_t)(n + 1023) << 52);
}

/* x * 2^n, -2044 <= n <= 2046, rounded once when the result is normal. */
static double scale_by(double x, int n) {
    int half = n / 2;
    return x * power_of_two(half) * power_of_two(n - half);
}

/* ln 2 as a part of 32 bits, whose products with integers below 2^21 are exact, and the rest. */
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
static const double log2_e = 0x1.71547652b82fep+0;

/* The integer nearest to x, |x| < 2^51. */
static double nearest(double x) {
    const double magic = 0x1.8p52;
    return (x + magic) - magic;
}

/* Sum of c[i] x^i, by Horner's rule. */
static double polynomial(const double *c, int n, double x) {
    double sum = c[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        sum = sum * x + c[i];
    }
    return sum;
}

/* (e^r - 1 - r) / r^2 for |r| <= 0.35: 1 / (i + 2)!. */
static const double exp_terms[] = {1.0 / 2,         1.0 / 6,          1.0 / 24,          1.0 / 120,
                                   1.0 / 720,       1.0 / 5040,       1.0 / 40320,       1.0 / 362880,
                                   1.0 / 3628800.0, 1.0 / 39916800.0, 1.0 / 479001600.0, 1.0 / 6227020800.0};
enum { EXP_TERMS = sizeof exp_terms / sizeof *exp_terms };

/* x + x_low = n ln 2 + r + rest, |r| <= 0.35; rest is what r lost to rounding. */
static int reduce_exp(double *r, double *rest, double x, double x_low) {
    double n = nearest(x * log2_e);
    double high = x - n * ln2_high; /* exact */
    double low = n * ln2_low - x_low;
    *r = high - low;
    *rest = (high - *r) - low;
    return (int)n;
}

double nib_exp(double x) {
    if (x != x) {
        return x;
    }
    if (x > 709.79) {
        return INFINITE;
    }
    if (x < -745.14) {
        return 0.0;
    }
    double r, rest;
    int n = reduce_exp(&r, &rest, x, 0.0);
    double tail = r * r * polynomial(exp_terms, EXP_TERMS, r) + rest;
    return scale_by(1.0 + (r + tail), n);
}

double nib_expm1(double x) {
    if (x != x) {
        return x;
    }
    if (x > 40.0) {
        return nib_exp(x) - 1.0;
    }
    if (x < -40.0) {
        return -1.0;
    }
    if (x > -0.34 && x < 0.34) {
        return x == 0.0 ? x : x + x * x * polynomial(exp_terms, EXP_TERMS, x);
    }
    double r, rest;
    int n = reduce_exp(&r, &rest, x, 0.0);
    double tail = r * r * polynomial(exp_terms, EXP_TERMS, r) + (rest + rest * r);
    double scale = power_of_two(n);
    /* scale - 1 is exact up to 2^53, and so is scale * r: what is rounded is small beside the sum. */
    double whole = scale - 1.0, part = scale * r;
    double sum = whole + part;
    double error = n > 0 ? (whole - sum) + part : (part - sum) + whole;
    return sum + (scale * tail + error);
}

/* (log(1 + f) - 2 s) / s with s = f / (2 + f), |s| <= 0.172, in z = s^2: 2 z^i / (2 i + 1). */
static const double log_terms[] = {0.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                   2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
enum { LOG_TERMS = sizeof log_terms / sizeof *log_terms };

/* n ln 2 + log(1 + f) + rest for -0.293 <= f <= 0.4143, from 2 s = f - s f. */
static double log_sum(int n, double f, double rest) {
    double s = f / (2.0 + f);
    double series = polynomial(log_terms, LOG_TERMS, s * s);
    double k = (double)n;
    return k * ln2_high + (f - (s * (f - series) - (k * ln2_low + rest)));
}

/* x = 2^n (1 + f) for finite x > 0, 1 + f in [sqrt 1/2, sqrt 2). */
static int split_log(double *f, double x) {
    int n = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        n = -54;
    }
    uint64_t bits = bits_of(x);
    const uint64_t root_half = 0x3fe6a09e667f3bcdu; /* sqrt 1/2 */
    uint64_t above = bits - root_half;
    int shift = (int)((int64_t)above >> 52);
    *f = from_bits(bits - ((uint64_t)(int64_t)shift << 52)) - 1.0;
    return n + shift;
}

double nib_log(double x) {
    if (x != x || x == INFINITE) {
        return x;
    }
    if (x <= 0.0) {
        return x == 0.0 ? -INFINITE : NOT_A_NUMBER;
    }
    double f;
    int n = split_log(&f, x);
    return log_sum(n, f, 0.0);
}

double nib_log1p(double x) {
    if (x != x || x == INFINITE || x == 0.0) {
        return x;
    }
    if (x <= -1.0) {
        return x == -1.0 ? -INFINITE : NOT_A_NUMBER;
    }
    if (x > -0.29 && x < 0.41) {
        return log_sum(0, x, 0.0);
    }
    double sum = 1.0 + x;
    double lost = x > 1.0 ? 1.0 - (sum - x) : x - (sum - 1.0);
    double f;
    int n = split_log(&f, sum);
    return log_sum(n, f, lost / sum);
}

/* A number as an unevaluated sum, |low| <= ulp(high) / 2. */
typedef struct pair {
    double high, low;
} pair;

/* a + b, exact; |a| >= |b| or a = 0. */
static pair sum_ordered(double a, double b) {
    double sum = a + b;
    return (pair){sum, b - (sum - a)};
}

/* a + b, exact. */
static pair sum_exact(double a, double b) {
    double sum = a + b;
    double part = sum - a;
    return (pair){sum, (a - (sum - part)) + (b - part)};
}

/* The upper 26 bits of x, |x| < 2^995. */
static double upper(double x) {
    double scaled = x * 0x1.0000002p27;
    return scaled - (scaled - x);
}

/* a * b, exact (T. Dekker, 1971). */
static pair product_exact(double a, double b) {
    double product = a * b;
    double ah = upper(a), al = a - ah, bh = upper(b), bl = b - bh;
    return (pair){product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

static pair product_pair(pair a, pair b) {
    pair p = product_exact(a.high, b.high);
    return sum_ordered(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static pair sum_pair(pair a, pair b) {
    pair s = sum_exact(a.high, b.high);
    return sum_ordered(s.high, s.low + (a.low + b.low));
}

/* log(x) to about 2^-64 of its size, for finite x > 0: 2 s + 2/3 s^3 as pairs, the rest of the series plain. */
static pair log_pair(double x) {
    static const pair two_thirds = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
    double f;
    int n = split_log(&f, x);
    pair divisor = sum_ordered(2.0, f);
    double s = f / divisor.high;
    pair back = product_exact(s, divisor.high);
    double s_low = (((f - back.high) - back.low) - s * divisor.low) / divisor.high;
    pair root = sum_ordered(s, s_low);
    pair square = product_pair(root, root);
    double z = square.high;
    double rest = z * z * root.high * polynomial(log_terms + 2, LOG_TERMS - 2, z);
    pair cube = product_pair(product_pair(square, root), two_thirds);
    pair twice = {2.0 * root.high, 2.0 * root.low};
    double k = (double)n;
    pair whole = sum_exact(k * ln2_high, k * ln2_low);
    return sum_pair(whole, sum_pair(twice, sum_pair(cube, (pair){rest, 0.0})));
}

double nib_pow(double x, double y) {
    if (y == 0.0 || x == 1.0) {
        return 1.0;
    }
    if (x != x || y != y || x < 0.0) {
        return NOT_A_NUMBER;
    }
    if (x == 0.0 || x == INFINITE) {
        return (x == 0.0) == (y > 0.0) ? 0.0 : INFINITE;
    }
    pair l = log_pair(x);
    double size = y * l.high;
    if (!(size > -746.0 && size < 710.0)) {
        return size > 0.0 ? INFINITE : 0.0;
    }
    if (size > -0x1p-60 && size < 0x1p-60) {
        return 1.0; /* y may be so small or l so large that the split below would lose it */
    }
    pair e = product_pair(l, (pair){y, 0.0});
    double r, rest;
    int n = reduce_exp(&r, &rest, e.high, e.low);
    double tail = r * r * polynomial(exp_terms, EXP_TERMS, r) + rest;
    return scale_by(1.0 + (r + tail), n);
}

/* x = n pi/2 + r + rest, |r| <= 0.79, for |x| <= 2^31; returns n mod 4. The first parts of pi/2 have 22 bits, so that
 * their products with n < 2^31 are exact; the first two differences are exact as well. */
static unsigned reduce_angle(double *r, double *rest, double x) {
    static const double parts[] = {0x1.921fbp+0, 0x1.5110bp-22, 0x1.184698p-44, 0x1.3198ap-69, 0x1.701b839a25205p-92};
    double n = nearest(x * 0x1.45f306dc9c883p-1);
    double high = (x - n * parts[0]) - n * parts[1];
    pair third = sum_exact(high, -(n * parts[2]));
    pair fourth = sum_exact(third.high, -(n * parts[3]));
    pair sum = sum_ordered(fourth.high, (third.low + fourth.low) - n * parts[4]);
    *r = sum.high;
    *rest = sum.low;
    return (unsigned)(int64_t)n & 3u;
}

/* (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 in z = r^2. */
static const double sin_terms[] = {-1.0 / 6,
                                   1.0 / 120,
                                   -1.0 / 5040,
                                   1.0 / 362880,
                                   -1.0 / 39916800,
                                   1.0 / 6227020800.0,
                                   -1.0 / 1307674368000.0,
                                   1.0 / 355687428096000.0};
static const double cos_terms[] = {1.0 / 24,        -1.0 / 720,           1.0 / 40320,           -1.0 / 3628800,
                                   1.0 / 479001600, -1.0 / 87178291200.0, 1.0 / 20922789888000.0};
enum { SIN_TERMS = sizeof sin_terms / sizeof *sin_terms, COS_TERMS = sizeof cos_terms / sizeof *cos_terms };

static double sin_small(double r, double rest) {
    double z = r * r;
    return r + (r * z * polynomial(sin_terms, SIN_TERMS, z) + rest * (1.0 - 0.5 * z));
}

static double cos_small(double r, double rest) {
    double z = r * r;
    double half = 0.5 * z;
    double sum = 1.0 - half;
    return sum + (((1.0 - sum) - half) + (z * z * polynomial(cos_terms, COS_TERMS, z) - r * rest));
}

/* The sine of x plus `quarters` right angles. */
static double sin_turned(double x, unsigned quarters) {
    if (!(x >= -0x1p31 && x <= 0x1p31)) {
        return NOT_A_NUMBER;
    }
    double r, rest;
    unsigned n = reduce_angle(&r, &rest, x) + quarters;
    double y = (n & 1u) != 0 ? cos_small(r, rest) : sin_small(r, rest);
    return (n & 2u) != 0 ? -y : y;
}

double nib_sin(double x) {
    return x == 0.0 ? x : sin_turned(x, 0);
}

double nib_cos(double x) {
    return sin_turned(x, 1);
}

float nib_fmaf(float a, float b, float c) {
    return fma_by_odd(a, b, c);
}

static float polynomial_float(const float *c, int n, float x) {
    float sum = c[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        sum = nib_fmaf(sum, x, c[i]);
    }
    return sum;
}

float nib_expf(float x) {
    static const float terms[] = {1.0f,           1.0f,          0x1p-1f,         0x1.555554p-3f,
                                  0x1.5554e8p-5f, 0x1.11131p-7f, 0x1.6d4cc0p-10f, 0x1.9df74cp-13f};
    if (x != x) {
        return x;
    }
    if (x < -87.33654f) {
        return 0.0f;
    }
    if (x > 88.72283f) {
        return __builtin_inff();
    }
    const float magic = 0x1.8p23f;
    float shifted = nib_fmaf(x, 0x1.715476p+0f, magic); /* its low bits are the integer nearest to x / ln 2 */
    float n = shifted - magic;
    float r = nib_fmaf(n, -0x1.62e4p-1f, x);
    r = nib_fmaf(n, -0x1.7f7d1cp-20f, r);
    float y = polynomial_float(terms, 8, r);
    return float_from_bits(bits_of_float(y) + (bits_of_float(shifted) << 23));
}

/* |x| and the sign of x. */
static float magnitude(float x) {
    return float_from_bits(bits_of_float(x) & 0x7fffffffu);
}

static float with_sign(float y, float x) {
    return float_from_bits(bits_of_float(y) | (bits_of_float(x) & 0x80000000u));
}

float nib_tanhf(float x) {
    static const float terms[] = {-0x1.555554p-2f, 0x1.11107cp-3f,  -0x1.b9f220p-5f,
                                  0x1.63ad18p-6f,  -0x1.0c895ep-7f, 0x1.1ace3ep-9f};
    float a = magnitude(x);
    if (a > 0.625f) {
        a = a < 10.0f ? a : 10.0f;
        float e = nib_expf(a + a);
        return with_sign(1.0f - 2.0f / (e + 1.0f), x);
    }
    float z = a * a;
    return with_sign(nib_fmaf(a * z, polynomial_float(terms, 6, z), a), x);
}

float nib_erff(float x) {
    static const float small[] = {0x1.06eba8p-3f, -0x1.812740p-2f,  0x1.ce2d62p-4f, -0x1.b800d0p-6f,
                                  0x1.5446b2p-8f, -0x1.a5ea9cp-11f, 0x1.4f045ep-14f};
    static const float large[] = {-0x1.7ea5bcp-13f, 0x1.212a52p+0f, 0x1.443c4ep-1f,   0x1.bbd8f6p-4f,
                                  -0x1.9c68c0p-6f,  0x1.12a3acp-8f, -0x1.cbc67ep-12f, 0x1.67b1eep-16f};
    float a = magnitude(x);
    if (a > 0.95f) {
        a = a < 4.0f ? a : 4.0f;
        return with_sign(1.0f - nib_expf(-polynomial_float(large, 8, a)), x);
    }
    float z = a * a;
    return with_sign(nib_fmaf(a, polynomial_float(small, 7, z), a), x);
}

__extension__ typedef unsigned __int128 uint128;

/* The parts of a finite double that is not 0: |x| = mantissa * 2^exponent, 2^52 <= mantissa < 2^53. */
static uint64_t split_double(int *exponent, double x) {
    uint64_t mantissa = bits_of(x) & (((uint64_t)1 << 52) - 1);
    int biased = (int)(bits_of(x) >> 52 & 0x7ff);
    if (biased != 0) {
        *exponent = biased - 1075;
        return mantissa | (uint64_t)1 << 52;
    }
    int shift = __builtin_clzll(mantissa) - 11;
    *exponent = -1074 - shift;
    return mantissa << shift;
}

/* x / 2^n, the last bit set when a bit was lost. */
static uint128 shift_sticky(uint128 x, int n) {
    if (n <= 0) {
        return x;
    }
    if (n > 127) {
        return x != 0;
    }
    uint128 kept = x >> n;
    return kept | (kept << n != x);
}

/* The double nearest to x * 2^exponent, x > 0 and below 2^127, with a sign. */
static double round_wide(uint128 x, int exponent, bool negative) {
    uint64_t top = (uint64_t)(x >> 64);
    int width = top != 0 ? 128 - __builtin_clzll(top) : 64 - __builtin_clzll((uint64_t)x);
    int drop = width - 53; /* bits below the mantissa; more of them when the result is subnormal */
    if (exponent + drop < -1074) {
        drop = -1074 - exponent;
    }
    if (drop < 2) { /* room for the half and the sticky bit */
        x <<= 2 - drop;
        exponent -= 2 - drop;
        drop = 2;
    }
    uint64_t rough = (uint64_t)shift_sticky(x, drop - 2);
    uint64_t mantissa = rough >> 2;
    mantissa += (rough & 3) > 2 || ((rough & 3) == 2 && (mantissa & 1) != 0);
    int scale = exponent + drop; /* of the last bit, >= -1074 */
    if (scale > 971 || (scale == 971 && mantissa >> 53 != 0)) {
        return negative ? -INFINITE : INFINITE;
    }
    /* mantissa < 2^52 only at scale -1074, where the encoding is the integer itself; a carry to 2^53 moves the
     * exponent. */
    uint64_t bits = ((uint64_t)(scale + 1074) << 52) + mantissa;
    return from_bits(bits | (uint64_t)negative << 63);
}

/* a * b + c for finite numbers that are not 0. */
static double fma_finite(double a, double b, double c) {
    int ea, eb, ec;
    uint64_t ma = split_double(&ea, a), mb = split_double(&eb, b), mc = split_double(&ec, c);
    bool product_negative = ((bits_of(a) ^ bits_of(b)) >> 63) != 0, negative = bits_of(c) >> 63 != 0;
    /* The product below 2^126, the addend in the same unit as far up as it may go; the smaller one moves down. */
    uint128 product = (uint128)ma * mb << 20, addend = mc;
    int exponent = ea + eb - 20, up = ec - exponent;
    if (up < 0) {
        addend = shift_sticky(addend, -up);
    } else if (up <= 73) {
        addend <<= up;
    } else {
        addend <<= 73;
        product = shift_sticky(product, up - 73);
        exponent += up - 73;
    }
    if (product_negative == negative) {
        return round_wide(product + addend, exponent, negative);
    }
    if (product == addend) {
        return 0.0;
    }
    return product > addend ? round_wide(product - addend, exponent, product_negative)
                            : round_wide(addend - product, exponent, negative);
}

double nib_fma(double a, double b, double c) {
    bool finite = a - a == 0.0 && b - b == 0.0;
    if (!finite || a == 0.0 || b == 0.0) {
        return a * b + c;
    }
    if (c - c != 0.0) {
        return c; /* a * b may overflow, the exact product does not */
    }
    return c == 0.0 ? a * b : fma_finite(a, b, c); /* a product that underflows to 0 keeps its sign */
}

float nib_half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 31u, fraction = half & 1023u;
    if (exponent == 31) {
        return float_from_bits(sign | 0x7f800000u | fraction << 13);
    }
    if (exponent == 0) {
        return with_sign((float)fraction * 0x1p-24f, float_from_bits(sign));
    }
    return float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t nib_half_from_float(float x) {
    uint32_t bits = bits_of_float(x);
    uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (size >= 0x477ff000u) { /* 65520, half way to the number after the largest */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (size < 0x38800000u) {
        /* A subnormal half: 2^-1 + x has its units of 2^-24 as last bits, rounded by the addition. */
        float shifted = float_from_bits(size) + 0.5f;
        return (uint16_t)(sign | (bits_of_float(shifted) - 0x3f000000u));
    }
    uint32_t odd = size >> 13 & 1u;
    return (uint16_t)(sign | (size - 0x38000000u + 0xfffu + odd) >> 13);
}

float nib_bf16_to_float(uint16_t bits) {
    return float_from_bits((uint32_t)bits << 16);
}
