/* Packed weights: quantised matrices rearranged for products with int8 activations, one layout for all rungs. Lossless:
 * the same codes, scales and minimums. docs/numerics.md, rule 2.
 *
 * 16 rows are a strip; rows are filled up to a multiple of 16 with zeros. Strips follow each other. In a strip the tiles
 * of 16 rows x 32 columns follow each other in increasing k, a tile having 8 groups of 4 columns:
 *
 *     nibbles  4 words of 64 bytes; byte 4 r + j of word g: low nibble column 4 g + j of row r, high nibble column
 *              16 + 4 g + j (groups 0-3 low, 4-7 high)
 *     fifths   1 word of 64 bytes: bit g of byte 4 r + j is the fifth bit of column 4 g + j
 *     pairs    2 words of 64 bytes: bits 2 g, 2 g + 1 of byte 4 r + j of word h: the upper two bits of column
 *              16 h + 4 g + j
 *     bytes    8 words of 64 bytes: byte 4 r + j of word g is column 4 g + j, signed
 *
 *     Q4_0  nibbles, d[16]                      Q5_0  nibbles, fifths, d[16]           Q8_0  bytes, d[16]
 *     Q4_1  nibbles, d[16], m[16]               Q5_1  nibbles, fifths, d[16], m[16]
 *     Q4_K  8 x nibbles, d[16], dmin[16], scales[8][16], minimums[8][16]      for each 256 columns
 *     Q5_K  8 x (nibbles, fifths), d[16], dmin[16], scales[8][16], minimums[8][16]
 *     Q6_K  8 x (nibbles, pairs), d[16], scales[16][16] (signed)
 *
 * d, m, dmin are binary16 as in the file; scales and minimums one byte each. Codes keep their offsets (8, 16, 32). */
#ifndef NIB_KERNEL_PACK_H
#define NIB_KERNEL_PACK_H

#include "kernel/kernel.h"

enum { NIB_STRIP = 16 }; /* rows */

/* Whether packed products exist for the type: the quantised ones. */
bool nib_packs(nib_dtype dtype);

/* Bytes of one strip of `cols` columns. */
size_t nib_strip_bytes(nib_dtype dtype, int64_t cols);

/* Strips of a matrix. */
static inline int64_t nib_strips(int64_t rows) {
    return (rows + NIB_STRIP - 1) / NIB_STRIP;
}

/* One strip (rows 16 * strip and on) of w, which is not packed, to tiles [nib_strip_bytes]. */
void nib_pack_strip(void *tiles, const nib_matrix *w, int64_t strip);

/* y [cols] = row `row` of a packed matrix, dequantised; the same bits as dequantize of the row as stored. */
void nib_packed_row(float *y, const nib_matrix *w, int64_t row);

#endif
