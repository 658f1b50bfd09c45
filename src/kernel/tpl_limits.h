/* Template: what the machine can do at most, to stand beside what the kernels do. */
#ifndef NIB_KERNEL_TPL_LIMITS_H
#define NIB_KERNEL_TPL_LIMITS_H

/* As many independent sums as hide the latency. */
enum { LIMIT_SUMS = PASS_LANES == 16 && PACKED_TOKENS == 1 ? 1 : 12 };

static double limit_f32(float *sink, int64_t n) {
    vpass sum[LIMIT_SUMS];
    const vpass a = vpass_set1(*sink), b = vpass_set1(0x1p-20f);
    for (int i = 0; i < LIMIT_SUMS; i++) {
        sum[i] = vpass_set1((float)i);
    }
    for (int64_t k = 0; k < n; k++) {
        for (int i = 0; i < LIMIT_SUMS; i++) {
            sum[i] = vpass_fma(a, b, sum[i]); /* in this order no instruction set has to copy */
        }
    }
    for (int i = 1; i < LIMIT_SUMS; i++) {
        sum[0] = vpass_add(sum[0], sum[i]);
    }
    float lanes[PASS_LANES];
    vpass_store(lanes, sum[0]);
    *sink = lanes[0];
    return 2.0 * PASS_LANES * LIMIT_SUMS * (double)n;
}

static double limit_int8(float *sink, int64_t n) {
    int8_t bytes[4 * PASS_LANES];
    for (int i = 0; i < 4 * PASS_LANES; i++) {
        bytes[i] = (int8_t)(i % 16);
    }
    memcpy(bytes, sink, sizeof *sink);
    const wpass w = wpass_low4(wpass_load((const unsigned char *)bytes)), x = wpass_spread(bytes + 4);
    dots sum[LIMIT_SUMS];
    for (int i = 0; i < LIMIT_SUMS; i++) {
        sum[i] = dots_begin(w, x);
    }
    for (int64_t k = 0; k < n; k++) {
        for (int i = 0; i < LIMIT_SUMS; i++) {
            /* Otherwise the products, which do not change, are computed once. */
            wpass same = x;
            __asm__("" : "+" ISA_REGISTER(same));
            sum[i] = dots_add(sum[i], w, same);
        }
    }
    vpass total = vpass_zero();
    for (int i = 0; i < LIMIT_SUMS; i++) {
        total = vpass_add(total, vpass_from_32(dots_sum(sum[i])));
    }
    float lanes[PASS_LANES];
    vpass_store(lanes, total);
    *sink = lanes[0];
    return 2.0 * 4 * PASS_LANES * LIMIT_SUMS * (double)n;
}

static void limit_read(float *sink, const void *data, size_t bytes) {
    const float *p = data;
    v16 sum[4];
    for (int i = 0; i < 4; i++) {
        sum[i] = v16_set1(0.0f);
    }
    for (size_t k = 0; k + 64 <= bytes / sizeof *p; k += 64) {
        for (int i = 0; i < 4; i++) {
            sum[i] = v16_add(sum[i], v16_load(p + k + 16 * (size_t)i));
        }
    }
    *sink = v16_first(v16_add(v16_add(sum[0], sum[1]), v16_add(sum[2], sum[3])));
}

#endif
