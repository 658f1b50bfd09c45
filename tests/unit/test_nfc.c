/* Normalisation form C against Python's unicodedata: tests/golden/tokenizer/nfc.txt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden_tokens.h"
#include "text/nfc.h"

static void check(const char *text, size_t len, const char *want, size_t want_len) {
    size_t n;
    char *got = nib_nfc(&n, text, len);
    assert_non_null(got);
    assert_int_equal(n, want_len);
    assert_memory_equal(got, want, n);
    assert_true(nib_nfc_needed(text, len) || (n == len && memcmp(text, got, n) == 0));
    nib_free(got);
}

static void give_the_normal_form_of_mixed_texts(void **state) {
    (void)state;
    golden_lines lines = golden_read("nfc.txt");
    assert_true(lines.n > 300);
    for (size_t i = 2; i < lines.n; i++) {
        char *want = strchr(lines.lines[i], ' ');
        *want++ = '\0';
        size_t want_len = golden_unhex(want);
        check(lines.lines[i], golden_unhex(lines.lines[i]), want, want_len);
        check(want, want_len, want, want_len);
    }
    golden_free(&lines);
}

static void leave_bytes_that_are_no_character(void **state) {
    (void)state;
    check("", 0, "", 0);
    check("a\0\xff\xcc\x81\xcc", 6, "a\0\xff\xcc\x81\xcc", 6);
    check("e\xff\xcc\x81", 4, "e\xff\xcc\x81", 4);
    check("e\xcc\x81\xcc", 4, "\xc3\xa9\xcc", 3);
}

/* Two marks of different classes, in the wrong order, n times. */
static void order_a_long_run_of_marks(void **state) {
    (void)state;
    enum { N = 500000 };
    char *text = nib_alloc(N, 4);
    char *want = nib_alloc(N, 4);
    for (size_t i = 0; i < N; i++) {
        memcpy(text + 4 * i, "\xcc\x8d\xcc\xad", 4); /* U+030D above, U+032D below */
        memcpy(want + 2 * i, "\xcc\xad", 2);
        memcpy(want + 2 * N + 2 * i, "\xcc\x8d", 2);
    }
    check(text, 4 * N, want, 4 * N);
    nib_free(text);
    nib_free(want);
}

static void give_the_normal_form_of_every_character(void **state) {
    (void)state;
    golden_lines lines = golden_read("nfc.txt");
    nib_buffer text = golden_known_text("e*\xcc\xa7*\xcc\x81");
    size_t n;
    char *normal = nib_nfc(&n, text.bytes, text.len);
    assert_true(golden_hash(0, normal, n) == strtoull(lines.lines[1], NULL, 16));
    nib_free(normal);
    nib_buffer_free(&text);
    golden_free(&lines);
}

static void say_when_memory_runs_out(void **state) {
    (void)state;
    char *normal = NULL;
    size_t n_failed = 0;
    while (normal == NULL) {
        size_t len;
        nib_alloc_fail_at(++n_failed);
        normal = nib_nfc(&len, "e\xcc\x81\xcc\xad", 5);
        nib_alloc_fail_at(0);
    }
    assert_true(n_failed > 3);
    nib_free(normal);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(give_the_normal_form_of_mixed_texts),
        cmocka_unit_test(leave_bytes_that_are_no_character),
        cmocka_unit_test(order_a_long_run_of_marks),
        cmocka_unit_test(give_the_normal_form_of_every_character),
        cmocka_unit_test(say_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
