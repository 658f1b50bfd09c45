/* Test data for the kernels. */
#include "kernel_data.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/maths.h"
#include "base/random.h"

enum { N_REGIONS = 24, PAGE = 1 << 16, REGION = 1 << 23, FRONT = 64 }; /* 64 KB: the largest page of a common machine */

static struct {
    unsigned char *end[N_REGIONS];   /* where the page without access begins */
    unsigned char *start[N_REGIONS]; /* of the block that lies there now */
    size_t n;
} regions;

uint64_t draw(check *c, uint64_t n) {
    uint64_t r = nib_mix64(c->seed * 0x9e3779b97f4a7c15u, c->n_draws++);
    return n == 0 ? 0 : r % n;
}

int64_t draw_size(check *c, int64_t most) {
    if (c->seed < 70 || c->seed % 2 == 0) {
        return (int64_t)(c->seed % 70);
    }
    return (int64_t)draw(c, (uint64_t)most + 1);
}

void blocks_init(void) {
    for (int i = 0; i < N_REGIONS; i++) {
        unsigned char *p = mmap(NULL, REGION + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect(p + REGION, PAGE, PROT_NONE) != 0) {
            perror("mmap");
            exit(7);
        }
        regions.end[i] = p + REGION;
    }
}

void *block(size_t size_bytes) {
    if (regions.n == N_REGIONS || size_bytes + FRONT > REGION) {
        fprintf(stderr, "checkkern: a case needs more than %d blocks or %d bytes\n", N_REGIONS, REGION);
        exit(7);
    }
    unsigned char *start = regions.end[regions.n] - size_bytes;
    memset(start - FRONT, 0xa5, FRONT);
    memset(start, 0xff, size_bytes);
    regions.start[regions.n++] = start;
    return start;
}

bool blocks_intact(void) {
    for (size_t i = 0; i < regions.n; i++) {
        for (int j = 1; j <= FRONT; j++) {
            if (regions.start[i][-j] != 0xa5) {
                return false;
            }
        }
    }
    return true;
}

void blocks_release(void) {
    regions.n = 0;
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A random fraction and sign with an exponent in low .. high. */
static float with_exponent(check *c, int low, int high) {
    uint32_t r = (uint32_t)draw(c, (uint64_t)1 << 32);
    uint32_t exponent = (uint32_t)(127 + low + (int)draw(c, (uint64_t)(high - low + 1)));
    return from_bits((r & 0x807fffffu) | exponent << 23);
}

static float special(check *c, bool wild) {
    static const float values[] = {0.0f,      -0.0f,   1.0f,      -1.0f,  0x1p-149f,       -0x1p-149f,
                                   0x1p-126f, -87.34f, 88.72283f, -88.0f, 0x1.fffffep127f, -0x1.fffffep127f};
    uint64_t r = draw(c, wild ? 15 : 12);
    return r < 12 ? values[r] : r == 12 ? INFINITY : r == 13 ? -INFINITY : NAN;
}

static float draw_float(check *c, uint64_t style, float before, bool wild) {
    switch (style) {
    case 0:
    case 1:
    case 2: return with_exponent(c, -4, 2);                                           /* ordinary */
    case 3: return draw(c, 2) == 0 ? -before : with_exponent(c, -12, 12);             /* sums cancel */
    case 4: return with_exponent(c, 60, 127);                                         /* products overflow */
    case 5: return from_bits((uint32_t)draw(c, (uint64_t)1 << 32) & 0x807fffffu);     /* subnormal */
    case 6: return draw(c, 3) == 0 ? with_exponent(c, -80, -60) : -0.0f;              /* underflow, signed zeros */
    case 7: return draw(c, 4) == 0 ? special(c, wild) : with_exponent(c, -20, 7);     /* borders among ordinary ones */
    default: return draw(c, 8) == 0 ? special(c, wild) : with_exponent(c, -126, 127); /* anything */
    }
}

float *draw_floats(check *c, int64_t n, bool wild) {
    float *x = block((size_t)n * sizeof *x);
    uint64_t style = draw(c, 9);
    float before = 1.0f;
    for (int64_t i = 0; i < n; i++) {
        x[i] = before = draw_float(c, style, before, wild);
    }
    return x;
}

float *draw_near_halves(check *c, int64_t n) {
    float *x = block((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        int exponent = -26 + (int)draw(c, 44);
        uint32_t bits = (uint32_t)draw(c, (uint64_t)1 << 32) & 0x807fffffu;
        bits |= (uint32_t)(127 + exponent) << 23;
        /* Bits of binary32 that binary16 lacks here; from 24 on the middle is the power of 2 itself or above it. */
        int lost = exponent < -14 ? 13 - 14 - exponent : 13;
        lost = lost > 24 ? 24 : lost;
        bits = lost == 24 ? bits & ~0x7fffffu : (bits >> lost << lost) + (1u << (lost - 1));
        x[i] = from_bits(bits + (uint32_t)draw(c, 3) - 1u);
    }
    return x;
}

enum { N_BLOCK = 32 };

static float random_sign(check *c, float x) {
    return draw(c, 2) == 0 ? x : -x;
}

/* x * (127 / a) at k + 1/2, with a ratio that is a power of 2 or, within a unit in the last place, any. */
static void draw_ties(check *c, float *x, bool exact) {
    float power = from_bits((uint32_t)(127 - 10 + (int)draw(c, 20)) << 23);
    float a = exact ? 127.0f * power : with_exponent(c, -20, 20);
    float r = 127.0f / fabsf(a);
    for (int i = 0; i < N_BLOCK; i++) {
        float tie = ((float)draw(c, 127) + 0.5f) / r;
        uint32_t bits;
        memcpy(&bits, &tie, sizeof bits);
        bits += exact ? 0 : (uint32_t)draw(c, 3) - 1u;
        x[i] = random_sign(c, from_bits(bits));
    }
    x[draw(c, N_BLOCK)] = a;
}

/* Largest element around the border 2^-100. */
static void draw_border(check *c, float *x) {
    static const float largest[] = {0x1p-100f, -0x1p-100f, 0x1.fffffep-101f, -0x1.fffffep-101f, 0x1p-101f};
    for (int i = 0; i < N_BLOCK; i++) {
        x[i] = with_exponent(c, -126, -102);
    }
    uint64_t at = draw(c, N_BLOCK);
    x[at] = largest[draw(c, 5)];
}

static void fill_block(check *c, float *x, float a, bool both_signs) {
    for (int i = 0; i < N_BLOCK; i++) {
        x[i] = both_signs ? random_sign(c, a) : a;
    }
}

static void make_hard_block(check *c, float *x, bool wild) {
    static const float borders[] = {INFINITY, -INFINITY, NAN, 0x1.fffffep127f, -0x1.fffffep127f};
    uint64_t kind = draw(c, 14), at = draw(c, N_BLOCK);
    switch (kind) {
    case 0: fill_block(c, x, 0.0f, true); return;
    case 1: fill_block(c, x, with_exponent(c, -20, 20), true); return;
    case 2: x[at] = borders[wild ? draw(c, 5) : 3 + draw(c, 2)]; return;
    case 3: draw_border(c, x); return;
    case 4:
    case 5: draw_ties(c, x, true); return;
    case 6:
    case 7: draw_ties(c, x, false); return;
    case 8: fill_block(c, x, from_bits((uint32_t)draw(c, 0x0d800000)), true); return; /* below 2^-100 */
    default: return;
    }
}

float *draw_activations(check *c, int64_t n, int64_t x_stride, int64_t cols, bool wild, bool largest) {
    float *x = draw_floats(c, n == 0 ? 0 : (n - 1) * x_stride + cols, wild);
    uint64_t signs = draw(c, 3);
    for (int64_t t = 0; t < n; t++) {
        for (int64_t k = 0; k < cols; k += N_BLOCK) {
            float *p = x + t * x_stride + k;
            if (largest) {
                float a = with_exponent(c, -8, 8);
                fill_block(c, p, signs == 0 ? fabsf(a) : signs == 1 ? -fabsf(a) : a, signs == 2);
            } else {
                make_hard_block(c, p, wild);
            }
        }
    }
    return x;
}

/* Writes a binary16 number: ordinary, or any bits without NaN and infinity, or with. */
static void draw_half(check *c, unsigned char *p, uint64_t style) {
    uint32_t bits = (uint32_t)draw(c, 65536);
    if (style < 4) {
        bits = (bits & 0x83ffu) | (uint32_t)(15 - 8 + draw(c, 10)) << 10;
    } else if (style < 8 && (bits & 0x7c00u) == 0x7c00u) {
        bits &= 0xbfffu;
    }
    p[0] = (unsigned char)bits;
    p[1] = (unsigned char)(bits >> 8);
}

void *draw_kv(check *c, nib_kv_type type, int64_t n, bool wild) {
    int64_t gap = (int64_t)draw(c, 3);
    if (type == NIB_KV_F32) {
        return draw_floats(c, n + gap, wild);
    }
    unsigned char *p = block((size_t)(n + gap) * 2);
    uint64_t style = draw(c, wild ? 9 : 8);
    for (int64_t i = 0; i < n + gap; i++) {
        draw_half(c, p + 2 * i, style);
    }
    return p;
}

/* Where in a block its binary16 numbers lie; -1: none. */
static void scale_offsets(int at[2], nib_dtype dtype) {
    at[0] = dtype == NIB_Q6_K ? 208 : 0;
    bool two = dtype == NIB_Q4_1 || dtype == NIB_Q5_1 || dtype == NIB_Q4_K || dtype == NIB_Q5_K;
    at[1] = two ? 2 : -1;
}

/* Of bytes that hold codes or scales: -128 and 127, nibbles of 15, all fifth bits, scales of 63 and others. */
static const unsigned char extremes[] = {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0};

static void draw_block(check *c, unsigned char *b, nib_dtype dtype, size_t bytes, uint64_t style) {
    bool extreme = draw(c, 4) == 0;
    unsigned char fill = extremes[draw(c, sizeof extremes)];
    for (size_t i = 0; i < bytes; i++) {
        b[i] = extreme ? fill : (unsigned char)draw(c, 256);
    }
    int at[2];
    scale_offsets(at, dtype);
    for (int i = 0; i < 2; i++) {
        if (at[i] >= 0) {
            draw_half(c, b + at[i], style);
        }
    }
}

nib_matrix draw_matrix(check *c, nib_dtype dtype, int64_t rows, int64_t cols) {
    const nib_dtype_traits *traits = nib_dtype_find((uint32_t)dtype);
    size_t row_bytes = (size_t)(cols / traits->block) * traits->block_bytes, gap = draw(c, 3);
    nib_matrix w = {.rows = rows, .cols = cols, .row_bytes = row_bytes + gap, .dtype = dtype};
    /* The last row needs no gap behind it; an odd number of bytes after it would be a gap as well. */
    size_t size = rows == 0 ? 0 : (size_t)rows * w.row_bytes - gap;
    unsigned char *data = block(size);
    uint64_t style = draw(c, 9);
    for (int64_t r = 0; r < rows; r++) {
        unsigned char *p = data + (size_t)r * w.row_bytes;
        for (size_t i = 0; i < row_bytes; i += traits->block_bytes) {
            float x = dtype == NIB_F32 || dtype == NIB_BF16 ? draw_float(c, style, 1.0f, true) : 0.0f;
            switch (dtype) {
            case NIB_F32: memcpy(p + i, &x, 4); break;
            case NIB_BF16: memcpy(p + i, (unsigned char *)&x + 2, 2); break;
            case NIB_F16: draw_half(c, p + i, style); break;
            default: draw_block(c, p + i, dtype, traits->block_bytes, style); break;
            }
        }
    }
    w.data = data;
    return w;
}

enum { N_PLAIN = 3, N_DTYPES = 11 };
static const nib_dtype types[N_DTYPES] = {NIB_F32,  NIB_F16,  NIB_BF16, NIB_Q8_0, NIB_Q4_0, NIB_Q4_1,
                                          NIB_Q5_0, NIB_Q5_1, NIB_Q4_K, NIB_Q5_K, NIB_Q6_K};

nib_dtype draw_dtype(check *c) {
    return types[draw(c, N_DTYPES)];
}

nib_dtype draw_quantised_dtype(check *c) {
    return types[N_PLAIN + draw(c, N_DTYPES - N_PLAIN)];
}

/* Calls change for every block of a quantised matrix. */
static void for_blocks(check *c, nib_matrix *w, void (*change)(check *c, unsigned char *b, nib_dtype dtype, void *user),
                       void *user) {
    const nib_dtype_traits *traits = nib_dtype_find((uint32_t)w->dtype);
    for (int64_t r = 0; r < w->rows; r++) {
        unsigned char *row = (unsigned char *)w->data + (size_t)r * w->row_bytes;
        for (int64_t i = 0; i < w->cols / traits->block; i++) {
            change(c, row + i * traits->block_bytes, w->dtype, user);
        }
    }
}

static void fill_codes(check *c, unsigned char *b, nib_dtype dtype, void *user) {
    (void)c;
    unsigned char fill = *(unsigned char *)user;
    int at[2];
    scale_offsets(at, dtype);
    for (int i = 0; i < (int)nib_dtype_find((uint32_t)dtype)->block_bytes; i++) {
        bool scale = (i - at[0]) / 2 == 0 && i >= at[0];
        bool minimum = at[1] >= 0 && (i - at[1]) / 2 == 0 && i >= at[1];
        b[i] = scale || minimum ? b[i] : fill;
    }
}

void make_extreme(check *c, nib_matrix *w) {
    unsigned char fill = extremes[draw(c, sizeof extremes)];
    for_blocks(c, w, fill_codes, &fill);
}

static void harden(check *c, unsigned char *b, nib_dtype dtype, void *user) {
    static const uint16_t hard[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff,
                                    0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00};
    bool wild = *(bool *)user;
    int at[2];
    scale_offsets(at, dtype);
    for (int i = 0; i < 2; i++) {
        if (at[i] >= 0 && draw(c, 4) == 0) {
            uint16_t half = hard[draw(c, wild ? 11 : 8)];
            b[at[i]] = (unsigned char)half;
            b[at[i] + 1] = (unsigned char)(half >> 8);
        }
    }
}

void make_hard_scales(check *c, nib_matrix *w, bool wild) {
    for_blocks(c, w, harden, &wild);
}

void report(check *c, const char *format, ...) {
    if (c->failed) {
        return;
    }
    c->failed = true;
    va_list args;
    va_start(args, format);
    printf("%s: ", c->function);
    vprintf(format, args);
    va_end(args);
    printf("\n  repeat: checkkern --rung %s --function %s --seed %llu\n", c->kernels->name, c->function,
           (unsigned long long)c->seed);
}

void expect_same(check *c, const float *got, const float *want, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t a, b;
        memcpy(&a, got + i, sizeof a);
        memcpy(&b, want + i, sizeof b);
        a = isnan(got[i]) ? 0x7fc00000u : a;
        b = isnan(want[i]) ? 0x7fc00000u : b;
        if (a != b) {
            report(c, "%s[%lld] of %lld is %a (%08x), expected %a (%08x)", what, (long long)i, (long long)n,
                   (double)got[i], a, (double)want[i], b);
        }
        c->hash = (c->hash ^ a) * 0x100000001b3u;
    }
}

void expect_same_bytes(check *c, const void *got, const void *want, size_t len, const char *what) {
    const unsigned char *a = got, *b = want;
    for (size_t i = 0; i < len; i++) {
        if (a[i] != b[i]) {
            report(c, "byte %zu of %zu of %s is %02x, expected %02x", i, len, what, a[i], b[i]);
        }
        c->hash = (c->hash ^ a[i]) * 0x100000001b3u;
    }
}
