/* Template: the rung's table and its self-check. Included last by rung_<name>.c. */
#ifndef NIB_KERNEL_TPL_TABLE_H
#define NIB_KERNEL_TPL_TABLE_H

#include "kernel/tpl_attention.h"
#include "kernel/tpl_dense.h"
#include "kernel/tpl_limits.h"
#include "kernel/tpl_maths.h"
#include "kernel/tpl_packed.h"
#include "kernel/tpl_rows.h"

/* A value the compiler cannot know. */
LANE_OP float opaque(float x) {
    volatile float y = x;
    return y;
}

static bool is(float x, uint32_t bits) {
    uint32_t got;
    memcpy(&got, &x, sizeof got);
    return got == bits;
}

/* Each line has one answer in IEEE 754 arithmetic as written, and another one with the fault named. */
static bool scalars_are_sound(void) {
    float near_one = opaque(0x1.001p0f), big = opaque(0x1p25f), one = opaque(1.0f), tiny = opaque(0x1p-126f);
    float three = opaque(3.0f), zero = opaque(0.0f), quiet = zero / zero;
    bool sound = is(near_one * near_one - 0x1.002p0f, 0);                  /* contracted: 2^-24 */
    sound &= is(scalar_fma(near_one, near_one, -0x1.002p0f), 0x33800000u); /* rounded twice: 0 */
    sound &= is(tiny * opaque(0.5f), 0x00400000u);                         /* flushed to zero: 0 */
    sound &= is(opaque(0x1p-127f) * big, 0x0c800000u);                     /* denormals are zeros: 0 */
    sound &= is((one + big) - big, 0);                                     /* reassociated: 1 */
    sound &= is(one + opaque(0x1p-24f), 0x3f800000u);                      /* rounded up: 1 + 2^-23 */
    sound &= is(one + opaque(0x1.8p-24f), 0x3f800001u);                    /* rounded down: 1 */
    sound &= is(opaque(5.0f) / three, 0x3fd55555u);                        /* by a reciprocal: 0x3fd55556 */
    sound &= is(root(three), 0x3fddb3d7u);
    sound &= is(-zero + zero, 0) && is(-zero - zero, 0x80000000u); /* no signed zeros */
    sound &= !(quiet == quiet) && !(quiet > one);                  /* no NaN */
    return sound;
}

static bool vectors_are_sound(void) {
    v16 a = v16_set1(opaque(0x1.001p0f)), b = v16_set1(opaque(-0x1.002p0f)), tiny = v16_set1(opaque(0x1p-126f));
    float lanes[16];
    for (int i = 0; i < 16; i++) {
        lanes[i] = opaque(i == 0 ? 0x1p24f : 1.0f);
    }
    bool sound = is(v16_first(v16_add(v16_mul(a, a), b)), 0);
    sound &= is(v16_first(v16_fma(a, a, b)), 0x33800000u);
    sound &= is(v16_first(v16_mul(tiny, v16_set1(0.5f))), 0x00400000u);
    sound &= is(v16_fold(v16_load(lanes)), 0x4b800007u); /* 2^24 + 1 is lost once, 2, 4 and 8 more are not */
    sound &= is(v16_first(exp_16(v16_set1(opaque(1.0f)))), 0x402df854u);
    sound &= is(v16_first(exp_16(v16_set1(opaque(-90.0f)))), 0);
    return sound;
}

static bool selfcheck(void) {
    return scalars_are_sound() && vectors_are_sound();
}

const nib_kernels ISA_TABLE = {
    .name = ISA_NAME,
    .matmul = matmul,
    .dequantize = dequantize,
    .quantize = quantize,
    .packed_matmul = packed_matmul,
    .rmsnorm = rmsnorm,
    .layernorm = layernorm,
    .add = add,
    .scale = scale,
    .softcap = softcap,
    .rope_pairs = rope_pairs,
    .rope_halves = rope_halves,
    .silu = silu,
    .gelu_tanh = gelu_tanh,
    .gelu_erf = gelu_erf,
    .to_f16 = to_f16,
    .attn_group = attn_group,
    .attn_merge = attn_merge,
    .attn_finish = attn_finish,
    .lse_block = lse_block,
    .exp = exp_row,
    .selfcheck = selfcheck,
    .limit_f32 = limit_f32,
    .limit_int8 = limit_int8,
    .limit_read = limit_read,
};

#endif
