/* Template: exp, tanh and erf of 16 lanes. The formulas and coefficients are those of base/maths.c (nib_expf,
 * nib_tanhf, nib_erff), step by step; there both sides of a branch, here both and a selection. */
#ifndef NIB_KERNEL_TPL_MATHS_H
#define NIB_KERNEL_TPL_MATHS_H

/* Sum of c[i] x^i, by Horner's rule. */
LANE_OP v16 polynomial_16(const float *c, int n, v16 x) {
    v16 sum = v16_set1(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) {
        sum = v16_fma(sum, x, v16_set1(c[i]));
    }
    return sum;
}

LANE_OP v16 exp_16(v16 x) {
    const float terms[] = {1.0f,           1.0f,          0x1p-1f,         0x1.555554p-3f,
                           0x1.5554e8p-5f, 0x1.11131p-7f, 0x1.6d4cc0p-10f, 0x1.9df74cp-13f};
    const v16 low = v16_set1(-87.33654f), high = v16_set1(88.72283f), magic = v16_set1(0x1.8p23f);
    v16 kept = v16_min(v16_max(x, low), high);
    v16 shifted = v16_fma(kept, v16_set1(0x1.715476p+0f), magic);
    v16 n = v16_sub(shifted, magic);
    v16 r = v16_fma(n, v16_set1(-0x1.62e4p-1f), kept);
    r = v16_fma(n, v16_set1(-0x1.7f7d1cp-20f), r);
    v16 y = v16_scale_by_bits(polynomial_16(terms, 8, r), shifted);
    y = v16_if_above(low, x, v16_set1(0.0f), y);
    y = v16_if_above(x, high, v16_set1(__builtin_inff()), y);
    return v16_if_nan(x, x, y);
}

LANE_OP float exp_lane_0(float x) {
    return v16_first(exp_16(v16_set1(x)));
}

/* y [n <= 16] = exp of itself; all 16 are read and written. */
LANE_OP void exp_rows_16(float *y, int64_t n) {
    (void)n;
    v16_store(y, exp_16(v16_load(y)));
}

LANE_OP v16 tanh_16(v16 x) {
    const float terms[] = {-0x1.555554p-2f, 0x1.11107cp-3f,  -0x1.b9f220p-5f,
                           0x1.63ad18p-6f,  -0x1.0c895ep-7f, 0x1.1ace3ep-9f};
    const v16 one = v16_set1(1.0f);
    v16 a = v16_abs(x);
    v16 z = v16_mul(a, a);
    v16 small = v16_fma(v16_mul(a, z), polynomial_16(terms, 6, z), a);
    v16 capped = v16_min(a, v16_set1(10.0f));
    v16 e = exp_16(v16_add(capped, capped));
    v16 large = v16_sub(one, v16_div(v16_set1(2.0f), v16_add(e, one)));
    return v16_sign(v16_if_above(a, v16_set1(0.625f), large, small), x);
}

LANE_OP v16 erf_16(v16 x) {
    const float small_terms[] = {0x1.06eba8p-3f, -0x1.812740p-2f,  0x1.ce2d62p-4f, -0x1.b800d0p-6f,
                                 0x1.5446b2p-8f, -0x1.a5ea9cp-11f, 0x1.4f045ep-14f};
    const float large_terms[] = {-0x1.7ea5bcp-13f, 0x1.212a52p+0f, 0x1.443c4ep-1f,   0x1.bbd8f6p-4f,
                                 -0x1.9c68c0p-6f,  0x1.12a3acp-8f, -0x1.cbc67ep-12f, 0x1.67b1eep-16f};
    v16 a = v16_abs(x);
    v16 z = v16_mul(a, a);
    v16 small = v16_fma(a, polynomial_16(small_terms, 7, z), a);
    v16 capped = v16_min(a, v16_set1(4.0f));
    v16 large = v16_sub(v16_set1(1.0f), exp_16(v16_neg(polynomial_16(large_terms, 8, capped))));
    return v16_sign(v16_if_above(a, v16_set1(0.95f), large, small), x);
}

#endif
