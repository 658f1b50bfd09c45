/* What the quantised products must compute, in plain C. */
#include "quant_reference.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"

static float half(const unsigned char *p) {
    return nib_half_to_float((uint16_t)(p[0] | p[1] << 8));
}

static int nibble(const unsigned char *bytes, int64_t index, bool high) {
    return high ? bytes[index] / 16 : bytes[index] % 16;
}

static int signed_byte(unsigned char byte) {
    return byte < 128 ? byte : byte - 256;
}

/* Types with blocks of 32: weight i < 16 is a low nibble, the others are high ones. */
static reference_code stored_32(nib_dtype dtype, const unsigned char *b, int64_t i) {
    reference_code c = {.scale = half(b)};
    bool upper = i >= 16;
    int64_t at = i % 16;
    switch (dtype) {
    case NIB_Q8_0: c.code = signed_byte(b[2 + i]); return c;
    case NIB_Q4_0: c.code = nibble(b + 2, at, upper) - 8; return c;
    case NIB_Q5_0: c.code = nibble(b + 6, at, upper) + 16 * (b[2 + i / 8] >> i % 8 & 1) - 16; return c;
    case NIB_Q4_1: c.code = nibble(b + 4, at, upper); break;
    default: c.code = nibble(b + 8, at, upper) + 16 * (b[4 + i / 8] >> i % 8 & 1); break;
    }
    c.has_minimum = true;
    c.minimum = half(b + 2);
    return c;
}

/* The 6-bit scale and minimum of sub-block j of Q4_K and Q5_K. */
static void six_bits(int *scale, int *minimum, const unsigned char *s, int64_t j) {
    if (j < 4) {
        *scale = s[j] % 64;
        *minimum = s[j + 4] % 64;
    } else {
        *scale = s[j + 4] % 16 + s[j - 4] / 64 * 16;
        *minimum = s[j + 4] / 16 + s[j] / 64 * 16;
    }
}

static reference_code stored_256(nib_dtype dtype, const unsigned char *b, int64_t i) {
    int64_t sub = i / 32, at = i % 32;
    if (dtype == NIB_Q6_K) {
        int64_t quarter = i % 128 / 32;
        int low = nibble(b + i / 128 * 64 + quarter % 2 * 32, at, quarter >= 2);
        int high = b[128 + i / 128 * 32 + at] >> 2 * quarter & 3;
        float scale = half(b + 208) * (float)signed_byte(b[192 + i / 16]);
        return (reference_code){.code = low + 16 * high - 32, .scale = scale};
    }
    int scale, minimum;
    six_bits(&scale, &minimum, b + 4, sub);
    const unsigned char *q = dtype == NIB_Q4_K ? b + 16 : b + 48;
    int code = nibble(q + sub / 2 * 32, at, sub % 2 == 1);
    if (dtype == NIB_Q5_K) {
        code += 16 * (b[16 + at] >> sub & 1);
    }
    return (reference_code){code, true, half(b) * (float)scale, -(half(b + 2) * (float)minimum)};
}

reference_code reference_stored(nib_dtype dtype, const unsigned char *row, int64_t k) {
    const nib_dtype_traits *traits = nib_dtype_find((uint32_t)dtype);
    const unsigned char *b = row + k / traits->block * traits->block_bytes;
    return traits->block == 32 ? stored_32(dtype, b, k % 32) : stored_256(dtype, b, k % 256);
}

enum { ROWS = 16, WORD = 64 };

/* Words of 64 bytes that the codes of 16 rows x 32 columns take. */
static int64_t code_words(nib_dtype dtype) {
    switch (dtype) {
    case NIB_Q4_0:
    case NIB_Q4_1:
    case NIB_Q4_K: return 4;
    case NIB_Q5_0:
    case NIB_Q5_1:
    case NIB_Q5_K: return 5;
    case NIB_Q6_K: return 6;
    default: return 8;
    }
}

/* Bytes of scales and minimums for each row, after the codes of a block. */
static int64_t scale_bytes(nib_dtype dtype) {
    switch (dtype) {
    case NIB_Q4_1:
    case NIB_Q5_1: return 2 + 2;
    case NIB_Q4_K:
    case NIB_Q5_K: return 2 + 2 + 8 + 8;
    case NIB_Q6_K: return 2 + 16;
    default: return 2;
    }
}

/* Columns that have their scales in one place, and the bytes of 16 rows of them. */
static int64_t block_cols(nib_dtype dtype) {
    return dtype == NIB_Q4_K || dtype == NIB_Q5_K || dtype == NIB_Q6_K ? 256 : 32;
}

static int64_t tiled_block_bytes(nib_dtype dtype) {
    return block_cols(dtype) / 32 * code_words(dtype) * WORD + ROWS * scale_bytes(dtype);
}

size_t reference_strip_bytes(nib_dtype dtype, int64_t cols) {
    return (size_t)(cols / block_cols(dtype) * tiled_block_bytes(dtype));
}

/* The code of column k of 32 of row r of 16. */
static int tiled_code(nib_dtype dtype, const unsigned char *words, int64_t r, int64_t k) {
    int64_t at = 4 * r + k % 4, group = k / 4;
    if (dtype == NIB_Q8_0) {
        return signed_byte(words[group * WORD + at]);
    }
    int code = nibble(words, group % 4 * WORD + at, group >= 4);
    switch (dtype) {
    case NIB_Q4_0: return code - 8;
    case NIB_Q5_0: return code + 16 * (words[4 * WORD + at] >> group & 1) - 16;
    case NIB_Q5_1:
    case NIB_Q5_K: return code + 16 * (words[4 * WORD + at] >> group & 1);
    case NIB_Q6_K: return code + 16 * (words[(4 + group / 4) * WORD + at] >> 2 * (group % 4) & 3) - 32;
    default: return code;
    }
}

/* The scale and minimum of column k of a block, which are of row r: arrays of 16 rows after each other. */
static void tiled_scales(reference_code *c, nib_dtype dtype, const unsigned char *scales, int64_t r, int64_t k) {
    c->scale = half(scales + 2 * r);
    if (dtype == NIB_Q4_1 || dtype == NIB_Q5_1) {
        c->has_minimum = true;
        c->minimum = half(scales + 2 * ROWS + 2 * r);
    } else if (dtype == NIB_Q6_K) {
        c->scale *= (float)signed_byte(scales[2 * ROWS + k / 16 * ROWS + r]);
    } else if (dtype == NIB_Q4_K || dtype == NIB_Q5_K) {
        const unsigned char *factors = scales + 4 * ROWS + k / 32 * ROWS + r;
        c->has_minimum = true;
        c->scale *= (float)factors[0];
        c->minimum = -(half(scales + 2 * ROWS + 2 * r) * (float)factors[8 * ROWS]);
    }
}

reference_code reference_tiled(const nib_matrix *w, int64_t row, int64_t k) {
    const unsigned char *strip =
        (const unsigned char *)w->data + (size_t)(row / ROWS) * reference_strip_bytes(w->dtype, w->cols);
    int64_t cols = block_cols(w->dtype), tile_bytes = code_words(w->dtype) * WORD;
    const unsigned char *b = strip + k / cols * tiled_block_bytes(w->dtype);
    reference_code c = {.code = tiled_code(w->dtype, b + k % cols / 32 * tile_bytes, row % ROWS, k % 32)};
    tiled_scales(&c, w->dtype, b + cols / 32 * tile_bytes, row % ROWS, k % cols);
    return c;
}

/* Where the four arrays of a record begin, and the token's place in them. */
typedef struct place {
    size_t q, d, S, sums;
} place;

static place place_of(int64_t t, int64_t index, int64_t n, int64_t cols) {
    int64_t first = t / 8 * 8, width = n - first < 8 ? n - first : 8, i = t - first;
    int64_t record = first * (cols / 32) * 44 + index * width * 44;
    return (place){(size_t)(record + 32 * i), (size_t)(record + 32 * width + 4 * i),
                   (size_t)(record + 36 * width + 4 * i), (size_t)(record + 40 * width + 4 * i)};
}

reference_block reference_block_of(const void *q, int64_t t, int64_t index, int64_t n, int64_t cols) {
    const unsigned char *bytes = q;
    place p = place_of(t, index, n, cols);
    reference_block b;
    memcpy(b.q, bytes + p.q, sizeof b.q);
    memcpy(&b.d, bytes + p.d, sizeof b.d);
    memcpy(&b.S, bytes + p.S, sizeof b.S);
    memcpy(b.sums, bytes + p.sums, sizeof b.sums);
    return b;
}

void reference_put_block(void *q, const reference_block *b, int64_t t, int64_t index, int64_t n, int64_t cols) {
    unsigned char *bytes = q;
    place p = place_of(t, index, n, cols);
    memcpy(bytes + p.q, b->q, sizeof b->q);
    memcpy(bytes + p.d, &b->d, sizeof b->d);
    memcpy(bytes + p.S, &b->S, sizeof b->S);
    memcpy(bytes + p.sums, b->sums, sizeof b->sums);
}

reference_block reference_quantize_block(const float *x) {
    reference_block b = {.sums = {0, 0}};
    float largest = 0.0f;
    bool finite = true;
    for (int i = 0; i < 32; i++) {
        finite = finite && isfinite(x[i]);
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    }
    b.d = !finite ? NAN : largest < 0x1p-100f ? 0.0f : largest / 127.0f;
    float r = 127.0f / largest;
    for (int i = 0; i < 32 && b.d > 0.0f; i++) {
        float scaled = x[i] * r;
        b.q[i] = (signed char)rintf(scaled);
        b.sums[i / 16] = (int16_t)(b.sums[i / 16] + b.q[i]);
    }
    b.S = b.d * (float)(b.sums[0] + b.sums[1]);
    return b;
}

void reference_quantize(void *q, const float *x, int64_t x_stride, int64_t n, int64_t cols) {
    for (int64_t t = 0; t < n; t++) {
        for (int64_t i = 0; i < cols / 32; i++) {
            reference_block b = reference_quantize_block(x + t * x_stride + 32 * i);
            reference_put_block(q, &b, t, i, n, cols);
        }
    }
}

/* One token and row: `width` columns share a scale. */
static float product(const reference_code *row, const nib_matrix *w, const void *q, int64_t t, int64_t n) {
    int64_t width = w->dtype == NIB_Q6_K ? 16 : 32;
    float sum = 0.0f;
    for (int64_t k = 0; k < w->cols; k += width) {
        reference_block b = reference_block_of(q, t, k / 32, n, w->cols);
        int D = 0;
        for (int64_t i = 0; i < width; i++) {
            D += row[k + i].code * b.q[k % 32 + i];
        }
        float step = row[k].scale * b.d;
        sum = fmaf((float)D, step, sum);
        if (row[k].has_minimum) {
            sum = fmaf(row[k].minimum, b.S, sum);
        }
    }
    return sum;
}

void reference_packed_matmul(float *y, int64_t y_stride, const nib_matrix *w, int64_t row0, int64_t row1, const void *q,
                             int64_t n, const float *bias) {
    static reference_code row[REFERENCE_MOST_COLS];
    for (int64_t r = row0; r < row1; r++) {
        for (int64_t k = 0; k < w->cols; k++) {
            const unsigned char *stored = (const unsigned char *)w->data + (size_t)r * w->row_bytes;
            row[k] = w->packed ? reference_tiled(w, r, k) : reference_stored(w->dtype, stored, k);
        }
        for (int64_t t = 0; t < n; t++) {
            float sum = product(row, w, q, t, n);
            y[t * y_stride + r] = bias == NULL ? sum : sum + bias[r];
        }
    }
}
