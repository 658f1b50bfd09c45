/* Elementary functions with the same bits on every machine: + - x / sqrt fma, comparison and integers only, no libm.
 * docs/numerics.md, rule 0. Accuracies are measured by tests/unit/test_maths.c. */
#ifndef NIB_BASE_MATHS_H
#define NIB_BASE_MATHS_H

#include <stdint.h>

/* binary64; the same special values as C99's functions (exp(-inf) 0, log(0) -inf, log(-1) NaN, ..). */
double nib_exp(double x);
double nib_expm1(double x);
double nib_log(double x);
double nib_log1p(double x);
double nib_pow(double x, double y); /* x > 0, or x = 0 and y > 0 */
double nib_sin(double x);           /* |x| <= 2^31 */
double nib_cos(double x);

/* binary32, the scalar definitions of what the kernels compute: exp(0) = 1; 0 below -87.33654, +inf above 88.72283. */
float nib_expf(float x);
float nib_tanhf(float x);
float nib_erff(float x);

/* fma(a, b, c) rounded once, whatever the instruction set. */
float nib_fmaf(float a, float b, float c);
double nib_fma(double a, double b, double c);

/* IEEE 754 binary16 and bfloat16 as bits; to 16 bits nearest even. */
float nib_half_to_float(uint16_t half);
uint16_t nib_half_from_float(float x);
float nib_bf16_to_float(uint16_t bits);

#endif
