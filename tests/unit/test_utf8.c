/* Every well-formed character and every kind of broken one, alone and through the stream, cut at every byte. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

/* UTF-8 of any number below 2^21 with n bytes, valid or not. */
static void encode(char *text, unsigned c, int n) {
    static const unsigned char leads[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6) {
        text[i] = (char)(0x80 | (c & 0x3f));
    }
    text[0] = (char)(leads[n] | c);
}

static void exactly_the_scalar_values_in_shortest_form_are_valid(void **state) {
    (void)state;
    static const unsigned below[] = {0, 0x80, 0x800, 0x10000, 0x200000};
    for (int n = 1; n <= 4; n++) {
        for (unsigned c = 0; c < below[n]; c++) {
            char text[4];
            encode(text, c, n);
            bool shortest = n == 1 || c >= below[n - 1];
            bool valid = shortest && c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
            assert_int_equal(nib_utf8_len(text, 4), valid ? n : 0);
            assert_int_equal(nib_utf8_len(text, (size_t)n - 1), 0);
        }
    }
}

static void broken_bytes_come_in_maximal_runs(void **state) {
    (void)state;
    /* Unicode 15, table 3-8: F1 80 80 | E1 80 | C2 | 41 */
    static const char text[] = "\xf1\x80\x80\xe1\x80\xc2\x41";
    static const size_t runs[] = {3, 2, 1};
    size_t at = 0;
    bool later;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(nib_utf8_broken_len(text + at, 7 - at, &later), runs[i]);
        assert_false(later);
        at += runs[i];
    }
    assert_int_equal(nib_utf8_broken_len("\xf0\x9f\x98", 3, &later), 3);
    assert_true(later);
    assert_int_equal(nib_utf8_broken_len("\xed\xa0", 2, &later), 1); /* a surrogate: ED alone is broken */
    assert_false(later);
    assert_int_equal(nib_utf8_broken_len("\x80", 1, &later), 1);
    assert_false(later);
    assert_int_equal(nib_utf8_broken_len("", 0, &later), 0);
    assert_false(later);
}

static void expect(const nib_buffer *out, const char *text) {
    assert_int_equal(out->len, strlen(text));
    if (out->len > 0) {
        assert_memory_equal(out->bytes, text, out->len);
    }
}

/* The same text in pieces of 1, 2, .. bytes gives the same characters. */
static void a_stream_gives_the_same_however_it_is_cut(void **state) {
    (void)state;
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff\xf1\x80\x80"
                               "A\xe2\x82"
                               "B\xed\xa0\x80\xf4\x90\x80\x80\xc3";
    static const char want[] =
        "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd"
        "A\xef\xbf\xbd"
        "B"
        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd";
    size_t len = sizeof text - 1;
    for (size_t piece = 1; piece <= len; piece++) {
        nib_utf8_stream stream = {0};
        nib_buffer out = {0};
        for (size_t i = 0; i < len; i += piece) {
            assert_true(nib_utf8_push(&stream, &out, text + i, len - i < piece ? len - i : piece));
        }
        assert_true(nib_utf8_finish(&stream, &out));
        expect(&out, want);
        nib_buffer_free(&out);
    }
}

static void an_unfinished_character_waits(void **state) {
    (void)state;
    nib_utf8_stream stream = {0};
    nib_buffer out = {0};
    assert_true(nib_utf8_push(&stream, &out, "x\xf0\x9f", 3));
    expect(&out, "x");
    assert_true(nib_utf8_push(&stream, &out, "\x98\x80", 2));
    expect(&out, "x\xf0\x9f\x98\x80");
    assert_true(nib_utf8_finish(&stream, &out));
    expect(&out, "x\xf0\x9f\x98\x80");
    nib_buffer_free(&out);
}

static void a_buffer_that_cannot_grow_stays_as_it_was(void **state) {
    (void)state;
    nib_buffer buffer = {0};
    assert_true(nib_buffer_add(&buffer, "abc", 3));
    nib_alloc_fail_at(1);
    char more[100] = {0};
    assert_false(nib_buffer_add(&buffer, more, sizeof more));
    nib_alloc_fail_at(0);
    expect(&buffer, "abc");
    assert_false(nib_buffer_add(&buffer, more, (size_t)-1));
    expect(&buffer, "abc");
    nib_buffer_clear(&buffer);
    assert_int_equal(buffer.len, 0);
    assert_true(buffer.cap >= 3);
    nib_buffer_free(&buffer);
    assert_null(buffer.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_scalar_values_in_shortest_form_are_valid),
        cmocka_unit_test(broken_bytes_come_in_maximal_runs),
        cmocka_unit_test(a_stream_gives_the_same_however_it_is_cut),
        cmocka_unit_test(an_unfinished_character_waits),
        cmocka_unit_test(a_buffer_that_cannot_grow_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
