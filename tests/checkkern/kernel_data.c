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

/* Where in a block its binary16 numbers lie; -1: none. */
static void scale_offsets(int at[2], nib_dtype dtype) {
    at[0] = dtype == NIB_Q6_K ? 208 : 0;
    bool two = dtype == NIB_Q4_1 || dtype == NIB_Q5_1 || dtype == NIB_Q4_K || dtype == NIB_Q5_K;
    at[1] = two ? 2 : -1;
}

static void draw_block(check *c, unsigned char *b, nib_dtype dtype, size_t bytes, uint64_t style) {
    static const unsigned char extremes[] = {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0};
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
    nib_matrix w = {NULL, rows, cols, row_bytes + gap, dtype};
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

nib_dtype draw_dtype(check *c) {
    static const nib_dtype types[] = {NIB_F32,  NIB_F16,  NIB_BF16, NIB_Q8_0, NIB_Q4_0, NIB_Q4_1,
                                      NIB_Q5_0, NIB_Q5_1, NIB_Q4_K, NIB_Q5_K, NIB_Q6_K};
    return types[draw(c, sizeof types / sizeof *types)];
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
