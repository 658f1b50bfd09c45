/* Packing of quantised weights into tiles, and single rows back out of them. Runs once for each weight, or once for each
 * token, at the speed of memory: plain C for all rungs. */
#include "kernel/pack.h"

#include <string.h>

#include "base/maths.h"

/* How the tiles of a type are made. Offsets are of the block as stored. */
typedef struct layout {
    nib_dtype dtype;
    int block_bytes;           /* as stored */
    int tiles;                 /* of 32 columns in a block */
    int tile_bytes;            /* packed */
    int head_bytes;            /* packed, behind the tiles */
    int quants, fifths, pairs; /* offsets as stored; 0: the type has none */
} layout;

static const layout layouts[] = {
    {NIB_Q8_0, 34, 1, 512, 32, 2, 0, 0},     {NIB_Q4_0, 18, 1, 256, 32, 2, 0, 0},
    {NIB_Q4_1, 20, 1, 256, 64, 4, 0, 0},     {NIB_Q5_0, 22, 1, 320, 32, 6, 2, 0},
    {NIB_Q5_1, 24, 1, 320, 64, 8, 4, 0},     {NIB_Q4_K, 144, 8, 256, 320, 16, 0, 0},
    {NIB_Q5_K, 176, 8, 320, 320, 48, 16, 0}, {NIB_Q6_K, 210, 8, 384, 288, 0, 0, 128},
};

static const layout *find_layout(nib_dtype dtype) {
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i].dtype == dtype) {
            return &layouts[i];
        }
    }
    return NULL;
}

bool nib_packs(nib_dtype dtype) {
    return find_layout(dtype) != NULL;
}

static size_t packed_block_bytes(const layout *l) {
    return (size_t)l->tiles * (size_t)l->tile_bytes + (size_t)l->head_bytes;
}

size_t nib_strip_bytes(nib_dtype dtype, int64_t cols) {
    const layout *l = find_layout(dtype);
    return l == NULL ? 0 : (size_t)(cols / (32 * l->tiles)) * packed_block_bytes(l);
}

/* ---- One row's share of a tile. */

/* The low 4 bits of columns 0-15 and 16-31 of sub-block c of a K block: low [16], high [16], not masked apart. */
static void k_nibbles(unsigned char out[16], const unsigned char *q, int shift_low, int shift_high, int apart) {
    for (int i = 0; i < 16; i++) {
        out[i] = (unsigned char)((q[i] >> shift_low & 15) | (q[i + apart] >> shift_high & 15) << 4);
    }
}

/* nibbles[i]: column i low, column 16 + i high. */
static void tile_nibbles(unsigned char nibbles[16], const layout *l, const unsigned char *block, int c) {
    const unsigned char *q = block + l->quants;
    if (l->tiles == 1) {
        memcpy(nibbles, q, 16);
    } else if (l->dtype == NIB_Q6_K) {
        /* Of each 128 columns: 64 bytes, low nibbles columns 0-63, high 64-127. */
        int shift = c % 4 < 2 ? 0 : 4;
        k_nibbles(nibbles, q + c / 4 * 64 + c % 2 * 32, shift, shift, 16);
    } else {
        int shift = c % 2 == 0 ? 0 : 4;
        k_nibbles(nibbles, q + c / 2 * 32, shift, shift, 16);
    }
}

/* The fifth bit of column i of sub-block c. */
static int fifth_of(const layout *l, const unsigned char *block, int c, int i) {
    const unsigned char *h = block + l->fifths;
    return l->tiles == 1 ? h[i / 8] >> i % 8 & 1 : h[i] >> c & 1;
}

static void put_nibbles(unsigned char *tile, const unsigned char nibbles[16], int r) {
    for (int g = 0; g < 4; g++) {
        memcpy(tile + 64 * g + 4 * r, nibbles + 4 * g, 4);
    }
}

static void put_fifths(unsigned char *word, const layout *l, const unsigned char *block, int c, int r) {
    for (int i = 0; i < 32; i++) {
        unsigned char *byte = word + 4 * r + i % 4;
        *byte = (unsigned char)(*byte | fifth_of(l, block, c, i) << i / 4);
    }
}

static void put_pairs(unsigned char *words, const layout *l, const unsigned char *block, int c, int r) {
    const unsigned char *h = block + l->pairs + c / 4 * 32;
    for (int i = 0; i < 32; i++) {
        unsigned char *byte = words + i / 16 * 64 + 4 * r + i % 4;
        *byte = (unsigned char)(*byte | (h[i] >> c % 4 * 2 & 3) << i % 16 / 4 * 2);
    }
}

static void put_tile(unsigned char *tile, const layout *l, const unsigned char *block, int c, int r) {
    if (l->dtype == NIB_Q8_0) {
        for (int g = 0; g < 8; g++) {
            memcpy(tile + 64 * g + 4 * r, block + l->quants + 4 * g, 4);
        }
        return;
    }
    unsigned char nibbles[16];
    tile_nibbles(nibbles, l, block, c);
    put_nibbles(tile, nibbles, r);
    if (l->fifths != 0) {
        put_fifths(tile + 256, l, block, c, r);
    }
    if (l->pairs != 0) {
        put_pairs(tile + 256, l, block, c, r);
    }
}

/* Scale and minimum j of the 12 bytes of Q4_K and Q5_K: 6 bits each; of the last four the upper 2 lie apart. */
static void six_bits(unsigned char *scale, unsigned char *minimum, const unsigned char *s, int j) {
    if (j < 4) {
        *scale = s[j] & 63;
        *minimum = s[j + 4] & 63;
    } else {
        *scale = (unsigned char)((s[j + 4] & 15) | (s[j - 4] >> 6) << 4);
        *minimum = (unsigned char)(s[j + 4] >> 4 | (s[j] >> 6) << 4);
    }
}

static void put_head(unsigned char *head, const layout *l, const unsigned char *block, int r) {
    if (l->tiles == 1) {
        memcpy(head + 2 * r, block, 2);
        if (l->head_bytes == 64) {
            memcpy(head + 32 + 2 * r, block + 2, 2);
        }
    } else if (l->dtype == NIB_Q6_K) {
        memcpy(head + 2 * r, block + 208, 2);
        for (int j = 0; j < 16; j++) {
            head[32 + 16 * j + r] = block[192 + j];
        }
    } else {
        memcpy(head + 2 * r, block, 2);
        memcpy(head + 32 + 2 * r, block + 2, 2);
        for (int j = 0; j < 8; j++) {
            six_bits(&head[64 + 16 * j + r], &head[192 + 16 * j + r], block + 4, j);
        }
    }
}

void nib_pack_strip(void *tiles, const nib_matrix *w, int64_t strip) {
    const layout *l = find_layout(w->dtype);
    int64_t n_blocks = w->cols / (32 * l->tiles), row0 = strip * NIB_STRIP;
    int n_rows = w->rows - row0 < NIB_STRIP ? (int)(w->rows - row0) : NIB_STRIP;
    memset(tiles, 0, nib_strip_bytes(w->dtype, w->cols));
    for (int r = 0; r < n_rows; r++) {
        const unsigned char *block = (const unsigned char *)w->data + (size_t)(row0 + r) * w->row_bytes;
        unsigned char *out = tiles;
        for (int64_t b = 0; b < n_blocks; b++, block += l->block_bytes, out += packed_block_bytes(l)) {
            for (int c = 0; c < l->tiles; c++) {
                put_tile(out + c * l->tile_bytes, l, block, c, r);
            }
            put_head(out + l->tiles * l->tile_bytes, l, block, r);
        }
    }
}

/* ---- Back: row r of a tile, dequantised. */

/* The code of column i, without its offset. */
static int code_of(const layout *l, const unsigned char *tile, int r, int i) {
    int at = 4 * r + i % 4;
    if (l->dtype == NIB_Q8_0) {
        return (int8_t)tile[64 * (i / 4) + at];
    }
    int code = tile[64 * (i % 16 / 4) + at] >> i / 16 * 4 & 15;
    if (l->fifths != 0) {
        code |= (tile[256 + at] >> i / 4 & 1) << 4;
    }
    if (l->pairs != 0) {
        code |= (tile[256 + i / 16 * 64 + at] >> i % 16 / 4 * 2 & 3) << 4;
    }
    switch (l->dtype) {
    case NIB_Q4_0: return code - 8;
    case NIB_Q5_0: return code - 16;
    case NIB_Q6_K: return code - 32;
    default: return code;
    }
}

static float half_at(const unsigned char *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return nib_half_to_float(half);
}

/* Scale of column i of tile c, and the minimum, 0 where the type has none. */
static void scale_of(float *s, float *m, const layout *l, const unsigned char *head, int c, int r, int i) {
    *s = half_at(head + 2 * r);
    *m = 0.0f;
    if (l->dtype == NIB_Q6_K) {
        *s *= (float)(int8_t)head[32 + 16 * (2 * c + i / 16) + r];
    } else if (l->tiles == 8) {
        *s *= (float)head[64 + 16 * c + r];
        *m = -(half_at(head + 32 + 2 * r) * (float)head[192 + 16 * c + r]);
    } else if (l->head_bytes == 64) {
        *m = half_at(head + 32 + 2 * r);
    }
}

static bool has_minimum(const layout *l) {
    return l->head_bytes == 64 || l->head_bytes == 320;
}

void nib_packed_row(float *y, const nib_matrix *w, int64_t row) {
    const layout *l = find_layout(w->dtype);
    const unsigned char *block =
        (const unsigned char *)w->data + (size_t)(row / NIB_STRIP) * nib_strip_bytes(w->dtype, w->cols);
    int r = (int)(row % NIB_STRIP);
    for (int64_t k = 0; k < w->cols; block += packed_block_bytes(l)) {
        const unsigned char *head = block + l->tiles * l->tile_bytes;
        for (int c = 0; c < l->tiles; c++, k += 32) {
            for (int i = 0; i < 32; i++) {
                float s, m;
                scale_of(&s, &m, l, head, c, r, i);
                float product = s * (float)code_of(l, block + c * l->tile_bytes, r, i);
                y[k + i] = has_minimum(l) ? product + m : product;
            }
        }
    }
}
