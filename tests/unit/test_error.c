/* Messages of failures: what is written, what is cut, and which bytes are replaced. */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void fail_fills_code_and_message_and_returns_the_code(void **state) {
    (void)state;
    nib_error err = {NIB_OK, "before"};
    assert_int_equal(nib_fail(&err, NIB_EFORMAT, "%s is %d, expected %d", "depth", 3, 4), NIB_EFORMAT);
    assert_int_equal(err.code, NIB_EFORMAT);
    assert_string_equal(err.message, "depth is 3, expected 4");
}

static void fail_accepts_no_error(void **state) {
    (void)state;
    assert_int_equal(nib_fail(NULL, NIB_EIO, "%s", "unread"), NIB_EIO);
    assert_int_equal(nib_fail_memory(NULL, 7, "nothing"), NIB_ENOMEM);
}

static void fail_memory_names_size_and_purpose(void **state) {
    (void)state;
    nib_error err;
    assert_int_equal(nib_fail_memory(&err, 4096, "the table"), NIB_ENOMEM);
    assert_string_equal(err.message, "out of memory: 4096 bytes for the table");
}

static void a_long_message_is_cut_and_terminated(void **state) {
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    nib_error err;
    (void)nib_fail(&err, NIB_EINVAL, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

/* 510 letters and a character of three bytes: the cut leaves one of them. */
static void a_character_that_is_cut_becomes_a_question_mark(void **state) {
    (void)state;
    char text[600];
    memset(text, 'x', 510);
    strcpy(text + 510, "\xe2\x82\xac");
    nib_error err;
    (void)nib_fail(&err, NIB_EINVAL, "%s", text);
    assert_int_equal(strlen(err.message), 511);
    assert_int_equal(err.message[510], '?');
}

static void control_bytes_and_broken_utf8_become_question_marks(void **state) {
    (void)state;
    nib_error err;
    (void)nib_fail(&err, NIB_EINVAL, "%s", "a\nb\x1b[31m\x7f \xc3\xa4 \xff\xc3 \xed\xa0\x80");
    assert_string_equal(err.message, "a?b?[31m? \xc3\xa4 ?? ???");
}

static void every_status_has_its_name(void **state) {
    (void)state;
    static const char *const names[] = {"NIB_OK",       "NIB_EINVAL",       "NIB_ENOMEM", "NIB_EIO",
                                        "NIB_EFORMAT",  "NIB_EUNSUPPORTED", "NIB_EFULL",  "NIB_ECANCELLED",
                                        "NIB_ENUMERIC", "NIB_ECALLBACK",    "NIB_ECHECK"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        assert_string_equal(nib_status_name((nib_status)-i), names[i]);
    }
    assert_string_equal(nib_status_name((nib_status)-1000), "unknown status");
    assert_string_equal(nib_status_name((nib_status)1), "unknown status");
}

static void versions_are_told(void **state) {
    (void)state;
    assert_string_equal(nib_version(), NIB_VERSION);
    assert_int_equal(nib_contract_version(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_fills_code_and_message_and_returns_the_code),
        cmocka_unit_test(fail_accepts_no_error),
        cmocka_unit_test(fail_memory_names_size_and_purpose),
        cmocka_unit_test(a_long_message_is_cut_and_terminated),
        cmocka_unit_test(a_character_that_is_cut_becomes_a_question_mark),
        cmocka_unit_test(control_bytes_and_broken_utf8_become_question_marks),
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(versions_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
