/* The packed layout: sizes, where a code and a scale go, what fills up a strip, and rows that come back. That products
 * from tiles are those of the stored rows is tests/checkkern's to prove. */
#include "kernel/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static const nib_dtype quantised[] = {NIB_Q4_0, NIB_Q4_1, NIB_Q5_0, NIB_Q5_1, NIB_Q8_0, NIB_Q4_K, NIB_Q5_K, NIB_Q6_K};
enum { N_QUANTISED = sizeof quantised / sizeof *quantised, COLS = 512, MOST_ROWS = 40 };

static void the_quantised_types_with_kernels_pack_and_no_other(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        const nib_dtype_traits *traits = nib_dtype_find(i);
        if (traits != NULL) {
            assert_int_equal(nib_packs((nib_dtype)i), traits->computes && traits->block > 1);
        }
    }
}

static void a_strip_takes_the_bytes_of_its_words_and_scales(void **state) {
    (void)state;
    /* 16 rows of 256 columns, words of 64 bytes and 16 scales at a time. */
    static const size_t bytes[N_QUANTISED] = {
        8 * (4 * 64 + 32),                     /* Q4_0 */
        8 * (4 * 64 + 2 * 32),                 /* Q4_1 */
        8 * (5 * 64 + 32),                     /* Q5_0 */
        8 * (5 * 64 + 2 * 32),                 /* Q5_1 */
        8 * (8 * 64 + 32),                     /* Q8_0 */
        8 * 4 * 64 + 2 * 32 + 8 * 16 + 8 * 16, /* Q4_K: 8 bytes of 6 bits more than in the file for each row */
        8 * 5 * 64 + 2 * 32 + 8 * 16 + 8 * 16, /* Q5_K */
        8 * 6 * 64 + 32 + 16 * 16,             /* Q6_K */
    };
    for (int i = 0; i < N_QUANTISED; i++) {
        assert_int_equal(nib_strip_bytes(quantised[i], 256), bytes[i]);
        assert_int_equal(nib_strip_bytes(quantised[i], 1024), 4 * bytes[i]);
    }
}

static void rows_are_counted_in_strips_of_16(void **state) {
    (void)state;
    assert_int_equal(nib_strips(0), 0);
    assert_int_equal(nib_strips(1), 1);
    assert_int_equal(nib_strips(16), 1);
    assert_int_equal(nib_strips(17), 2);
}

/* A stored matrix of random bytes, freed by the caller. */
static nib_matrix random_matrix(nib_dtype dtype, int64_t rows) {
    const nib_dtype_traits *traits = nib_dtype_find((uint32_t)dtype);
    nib_matrix w = {.rows = rows, .cols = COLS, .dtype = dtype};
    w.row_bytes = COLS / traits->block * traits->block_bytes;
    unsigned char *data = malloc((size_t)rows * w.row_bytes);
    assert_non_null(data);
    for (size_t i = 0; i < (size_t)rows * w.row_bytes; i++) {
        data[i] = (unsigned char)nib_mix64((uint64_t)dtype, i);
    }
    w.data = data;
    return w;
}

/* All strips of w, freed by the caller. */
static nib_matrix packed_of(const nib_matrix *w) {
    nib_matrix packed = *w;
    size_t bytes = nib_strip_bytes(w->dtype, w->cols);
    unsigned char *tiles = malloc((size_t)nib_strips(w->rows) * bytes);
    assert_non_null(tiles);
    memset(tiles, 0xa5, (size_t)nib_strips(w->rows) * bytes);
    for (int64_t i = 0; i < nib_strips(w->rows); i++) {
        nib_pack_strip(tiles + (size_t)i * bytes, w, i);
    }
    packed.data = tiles;
    packed.packed = true;
    return packed;
}

static void release(nib_matrix *w) {
    free((void *)(uintptr_t)w->data);
}

/* Rows whose bytes are all zero are what a strip must be filled up with. */
static void a_strip_is_filled_up_with_rows_of_zeros(void **state) {
    (void)state;
    for (int i = 0; i < N_QUANTISED; i++) {
        for (int64_t rows = 1; rows <= MOST_ROWS; rows += 3) {
            nib_matrix whole = random_matrix(quantised[i], 16 * nib_strips(rows)), part = whole;
            part.rows = rows;
            nib_matrix filled = packed_of(&part); /* other numbers lie behind its rows */
            memset((unsigned char *)(uintptr_t)whole.data + (size_t)rows * whole.row_bytes, 0,
                   (size_t)(whole.rows - rows) * whole.row_bytes);
            nib_matrix tiles = packed_of(&whole);
            assert_memory_equal(filled.data, tiles.data,
                                (size_t)nib_strips(rows) * nib_strip_bytes(quantised[i], COLS));
            release(&whole);
            release(&tiles);
            release(&filled);
        }
    }
}

/* The bits of n floats, every NaN one of them. */
static void bits_of(uint32_t *bits, const float *x, int64_t n) {
    memcpy(bits, x, (size_t)n * sizeof *bits);
    for (int64_t i = 0; i < n; i++) {
        bits[i] = x[i] == x[i] ? bits[i] : 0x7fc00000u;
    }
}

static void a_row_comes_back_as_every_rung_dequantises_it(void **state) {
    (void)state;
    for (int i = 0; i < N_QUANTISED; i++) {
        nib_matrix w = random_matrix(quantised[i], MOST_ROWS), packed = packed_of(&w);
        for (int64_t row = 0; row < MOST_ROWS; row++) {
            float got[COLS], want[COLS];
            uint32_t got_bits[COLS], want_bits[COLS];
            nib_packed_row(got, &packed, row);
            bits_of(got_bits, got, COLS);
            for (size_t j = 0; nib_kernels_name(j) != NULL; j++) {
                const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(j));
                if (kernels != NULL) {
                    kernels->dequantize(want, &w, row);
                    bits_of(want_bits, want, COLS);
                    assert_memory_equal(got_bits, want_bits, sizeof got_bits);
                }
            }
        }
        release(&w);
        release(&packed);
    }
}

/* The only byte of n that is not 0; n: there is none. Fails when there are several. */
static size_t only_byte(const unsigned char *p, size_t n) {
    size_t found = n;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0) {
            assert_int_equal(found, n);
            found = i;
        }
    }
    return found;
}

static void a_signed_byte_goes_to_its_group_and_row(void **state) {
    (void)state;
    unsigned char stored[16 * 2 * 34], tiles[2 * (512 + 32)];
    const nib_matrix w = {.data = stored, .rows = 16, .cols = 64, .row_bytes = 2 * 34, .dtype = NIB_Q8_0};
    for (size_t row = 0; row < 16; row++) {
        for (size_t k = 0; k < 64; k++) {
            memset(stored, 0, sizeof stored);
            stored[row * w.row_bytes + k / 32 * 34 + 2 + k % 32] = 0x80;
            nib_pack_strip(tiles, &w, 0);
            size_t at = k / 32 * 544 + k % 32 / 4 * 64 + 4 * row + k % 4;
            assert_int_equal(only_byte(tiles, sizeof tiles), at);
            assert_int_equal(tiles[at], 0x80);
        }
    }
}

/* Column 16 and on are high nibbles in the file and in the tile; the byte is another one. */
static void a_nibble_and_a_fifth_bit_go_to_their_group_and_row(void **state) {
    (void)state;
    unsigned char stored[16 * 22], tiles[5 * 64 + 32];
    const nib_matrix w = {.data = stored, .rows = 16, .cols = 32, .row_bytes = 22, .dtype = NIB_Q5_0};
    for (size_t row = 0; row < 16; row++) {
        for (size_t k = 0; k < 32; k++) {
            size_t place = 4 * row + k % 4, word = k % 16 / 4;
            memset(stored, 0, sizeof stored);
            stored[row * 22 + 6 + k % 16] = k < 16 ? 0x0d : 0xd0;
            nib_pack_strip(tiles, &w, 0);
            assert_int_equal(only_byte(tiles, sizeof tiles), word * 64 + place);
            assert_int_equal(tiles[word * 64 + place], k < 16 ? 0x0d : 0xd0);
            memset(stored, 0, sizeof stored);
            stored[row * 22 + 2 + k / 8] = (unsigned char)(1u << k % 8);
            nib_pack_strip(tiles, &w, 0);
            assert_int_equal(only_byte(tiles, sizeof tiles), 4 * 64 + place);
            assert_int_equal(tiles[4 * 64 + place], 1u << k / 4);
        }
    }
}

static void scales_and_minimums_follow_the_codes_row_by_row(void **state) {
    (void)state;
    unsigned char stored[16 * 20], tiles[4 * 64 + 2 * 32];
    const nib_matrix w = {.data = stored, .rows = 16, .cols = 32, .row_bytes = 20, .dtype = NIB_Q4_1};
    for (size_t row = 0; row < 16; row++) {
        for (size_t byte = 0; byte < 4; byte++) { /* d, m */
            memset(stored, 0, sizeof stored);
            stored[row * 20 + byte] = 0x3c;
            nib_pack_strip(tiles, &w, 0);
            assert_int_equal(only_byte(tiles, sizeof tiles), 4 * 64 + byte / 2 * 32 + 2 * row + byte % 2);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quantised_types_with_kernels_pack_and_no_other),
        cmocka_unit_test(a_strip_takes_the_bytes_of_its_words_and_scales),
        cmocka_unit_test(rows_are_counted_in_strips_of_16),
        cmocka_unit_test(a_strip_is_filled_up_with_rows_of_zeros),
        cmocka_unit_test(a_row_comes_back_as_every_rung_dequantises_it),
        cmocka_unit_test(a_signed_byte_goes_to_its_group_and_row),
        cmocka_unit_test(a_nibble_and_a_fifth_bit_go_to_their_group_and_row),
        cmocka_unit_test(scales_and_minimums_follow_the_codes_row_by_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
