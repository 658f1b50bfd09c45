/* Numbers to text and back, under the C locale and under one with a decimal comma. */
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(double value, int digits) {
    static char text[NIB_NUMBER_ROOM];
    return nib_format_real(text, value, digits);
}

static void reals_are_written_as_by_percent_g(void **state) {
    (void)state;
    assert_string_equal(text_of(0.1, 9), "0.1");
    assert_string_equal(text_of(0.1, 17), "0.10000000000000001");
    assert_string_equal(text_of(-1e300, 3), "-1e+300");
    assert_string_equal(text_of(-0.0, 9), "-0");
    assert_string_equal(text_of(123456789.0, 9), "123456789");
    assert_string_equal(text_of((double)NAN, 9), "nan");
    assert_string_equal(text_of(-(double)INFINITY, 9), "-inf");
    assert_string_equal(text_of((double)INFINITY, 9), "inf");
    assert_string_equal(text_of(-DBL_TRUE_MIN, 17), "-4.9406564584124654e-324");
}

/* NIB_LOCALE_COMMA names a locale with a decimal comma, if the machine has one that is not among these. */
static bool set_comma(void) {
    const char *own = getenv("NIB_LOCALE_COMMA");
    const char *const names[] = {own == NULL ? "" : own, "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i][0] != '\0' && setlocale(LC_ALL, names[i]) != NULL && localeconv()->decimal_point[0] == ',') {
            return true;
        }
    }
    return false;
}

static void a_decimal_comma_changes_nothing(void **state) {
    (void)state;
    if (!set_comma()) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    double x = 0.0;
    bool read = nib_parse_real(&x, "1.5", 3), comma = nib_parse_real(&x, "1,5", 3);
    char text[NIB_NUMBER_ROOM];
    (void)nib_format_real(text, 0.25, 9);
    (void)setlocale(LC_ALL, "C");
    assert_true(read && x == 1.5);
    assert_false(comma);
    assert_string_equal(text, "0.25");
}

static void whole_numbers_are_read_to_the_ends_of_their_range(void **state) {
    (void)state;
    int64_t i = 0;
    uint64_t u = 0;
    assert_true(nib_parse_int(&i, "-9223372036854775808", 20) && i == INT64_MIN);
    assert_true(nib_parse_int(&i, "9223372036854775807", 19) && i == INT64_MAX);
    assert_true(nib_parse_uint(&u, "18446744073709551615", 20) && u == UINT64_MAX);
    assert_true(nib_parse_int(&i, "-0", 2) && i == 0);
    assert_true(nib_parse_uint(&u, "007", 3) && u == 7);
    assert_true(nib_parse_uint(&u, "12345", 2) && u == 12); /* the length decides */
}

static void what_is_no_whole_number_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "-",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1.0",
                                        "0x10",
                                        "1e3",
                                        "nan",
                                        "--1",
                                        "1_000",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        int64_t i = 5;
        assert_false(nib_parse_int(&i, wrong[k], strlen(wrong[k])));
        assert_int_equal(i, 5);
    }
    uint64_t u = 5;
    assert_false(nib_parse_uint(&u, "-1", 2));
    assert_false(nib_parse_uint(&u, "18446744073709551616", 20));
    assert_false(nib_parse_uint(&u, "1\0", 2));
    assert_int_equal(u, 5);
}

static void decimals_are_read_to_the_nearest_double(void **state) {
    (void)state;
    double x = 0.0;
    assert_true(nib_parse_real(&x, "0.1", 3) && x == 0.1);
    assert_true(nib_parse_real(&x, "-1.5e-3", 7) && x == -1.5e-3);
    assert_true(nib_parse_real(&x, "+2.", 3) && x == 2.0);
    assert_true(nib_parse_real(&x, ".5", 2) && x == 0.5);
    assert_true(nib_parse_real(&x, "1E+2", 4) && x == 100.0);
    assert_true(nib_parse_real(&x, "1e-400", 6) && x == 0.0);
    assert_true(nib_parse_real(&x, "1.7976931348623157e308", 22) && x == DBL_MAX);
}

static void what_is_no_decimal_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",    "-",  ".",  "e5",  "1e",   "1e+",   "nan", "inf", "infinity",
                                        "0x1", "1 ", " 1", "1..", "1e5.", "1e400", "1,5", "1f"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        double x = 5.0;
        assert_false(nib_parse_real(&x, wrong[k], strlen(wrong[k])));
    }
    char longest[500];
    memset(longest, '1', sizeof longest);
    double x;
    assert_false(nib_parse_real(&x, longest, sizeof longest));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_are_written_as_by_percent_g),
        cmocka_unit_test(a_decimal_comma_changes_nothing),
        cmocka_unit_test(whole_numbers_are_read_to_the_ends_of_their_range),
        cmocka_unit_test(what_is_no_whole_number_is_refused),
        cmocka_unit_test(decimals_are_read_to_the_nearest_double),
        cmocka_unit_test(what_is_no_decimal_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
