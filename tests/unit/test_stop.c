/* Stop strings: random lists that nearly or really occur in random texts, cut into random pieces, against a search of the
 * whole text; and the cases that users of other programs met. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "decode/stop.h"

enum { TEXT_ROOM = 64, MOST_STOPS = 4 };

/* Numbers below n, one after the other. */
typedef struct dice {
    uint64_t seed, drawn;
} dice;

static size_t roll(dice *d, size_t n) {
    return (size_t)(nib_mix64(d->seed, d->drawn++) % n);
}

/* Where the text ends by the rule, searched anew: the earliest stop string within text [len]; len when there is none. */
static size_t plain_end(const nib_text *stops, size_t n_stops, const char *text, size_t len) {
    for (size_t start = 0; start < len; start++) {
        for (size_t i = 0; i < n_stops; i++) {
            if (stops[i].len <= len - start && memcmp(text + start, stops[i].bytes, stops[i].len) == 0) {
                return start;
            }
        }
    }
    return len;
}

/* Whether text [len] ends with a beginning of a stop string that is n long. */
static int ends_with_beginning(const nib_text *stops, size_t n_stops, const char *text, size_t len, size_t n) {
    for (size_t i = 0; i < n_stops; i++) {
        if (n < stops[i].len && n <= len && memcmp(text + len - n, stops[i].bytes, n) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Push a text in pieces and check every step. Returns whether it was stopped. */
static bool run(const nib_text *stops, size_t n_stops, const char *text, size_t len, dice *d) {
    nib_stop stop = {.texts = stops, .n_texts = n_stops};
    nib_buffer out = {0};
    bool found = false;
    size_t given = 0;
    while (given < len && !found) {
        size_t n = 1 + roll(d, 5);
        n = n < len - given ? n : len - given;
        assert_true(nib_stop_push(&stop, &out, &found, text + given, n));
        given += n;
        size_t end = plain_end(stops, n_stops, text, given);
        assert_int_equal(found, end < given);
        if (!found) {
            size_t held = given - out.len;
            assert_int_equal(stop.held.len, held);
            assert_true(held == 0 || ends_with_beginning(stops, n_stops, text, given, held));
            for (size_t more = held + 1; more < TEXT_ROOM; more++) {
                assert_false(ends_with_beginning(stops, n_stops, text, given, more));
            }
        }
    }
    assert_true(nib_stop_finish(&stop, &out));
    assert_int_equal(out.len, plain_end(stops, n_stops, text, given));
    if (out.len > 0) {
        assert_memory_equal(out.bytes, text, out.len);
    }
    nib_buffer_free(&out);
    nib_buffer_free(&stop.held);
    return found;
}

static void random_lists_end_where_a_search_of_the_whole_text_ends(void **state) {
    (void)state;
    size_t stopped = 0;
    enum { RUNS = 20000 };
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        dice d = {seed, 0};
        char text[TEXT_ROOM], bytes[MOST_STOPS][TEXT_ROOM];
        nib_text stops[MOST_STOPS];
        size_t len = roll(&d, TEXT_ROOM), n_stops = 1 + roll(&d, MOST_STOPS), letters = 1 + roll(&d, 3);
        for (size_t i = 0; i < len; i++) {
            text[i] = (char)('a' + roll(&d, letters));
        }
        for (size_t i = 0; i < n_stops; i++) {
            /* A piece of the text, or one with its last byte changed; or anything. */
            size_t from = len > 0 ? roll(&d, len) : 0;
            size_t n = 1 + roll(&d, 8);
            for (size_t j = 0; j < n; j++) {
                bytes[i][j] = from + j < len ? text[from + j] : (char)('a' + roll(&d, letters));
            }
            bytes[i][n - 1] = roll(&d, 2) == 0 ? bytes[i][n - 1] : 'z';
            stops[i] = (nib_text){bytes[i], n};
        }
        stopped += run(stops, n_stops, text, len, &d);
    }
    assert_true(stopped > RUNS / 4 && stopped < RUNS * 3 / 4);
}

static void push(nib_stop *stop, nib_buffer *out, const char *text, bool expected) {
    bool found;
    assert_true(nib_stop_push(stop, out, &found, text, strlen(text)));
    assert_int_equal(found, expected);
}

static void check_text(nib_buffer *out, const char *text) {
    assert_int_equal(out->len, strlen(text));
    assert_memory_equal(out->bytes, text, out->len);
}

static void a_near_miss_is_given_out_once(void **state) {
    (void)state;
    const nib_text stops[] = {{"\n", 1}, {"Alice:", 6}};
    nib_stop stop = {.texts = stops, .n_texts = 2};
    nib_buffer out = {0};
    push(&stop, &out, " Ali", false);
    check_text(&out, " ");
    push(&stop, &out, "ce", false);
    check_text(&out, " ");
    push(&stop, &out, "!", false);
    check_text(&out, " Alice!");
    assert_true(nib_stop_finish(&stop, &out));
    check_text(&out, " Alice!");
    nib_buffer_free(&out);
    nib_buffer_free(&stop.held);
}

static void what_is_held_back_at_the_end_is_given_out_once(void **state) {
    (void)state;
    const nib_text stops[] = {{"Alice:", 6}};
    nib_stop stop = {.texts = stops, .n_texts = 1};
    nib_buffer out = {0};
    push(&stop, &out, "Alice", false);
    assert_int_equal(out.len, 0);
    assert_true(nib_stop_finish(&stop, &out) && nib_stop_finish(&stop, &out));
    check_text(&out, "Alice");
    nib_buffer_free(&out);
    nib_buffer_free(&stop.held);
}

static void the_earliest_of_several_ends_the_text(void **state) {
    (void)state;
    const nib_text stops[] = {{"cd", 2}, {"bcd", 3}, {"d", 1}};
    nib_stop stop = {.texts = stops, .n_texts = 3};
    nib_buffer out = {0};
    push(&stop, &out, "abcde", true);
    check_text(&out, "a");
    nib_buffer_free(&out);
    nib_buffer_free(&stop.held);
}

static void bytes_of_any_value_can_stop(void **state) {
    (void)state;
    const nib_text stops[] = {{"\0\xff", 2}};
    nib_stop stop = {.texts = stops, .n_texts = 1};
    nib_buffer out = {0};
    bool found;
    assert_true(nib_stop_push(&stop, &out, &found, "a\0", 2) && !found);
    check_text(&out, "a");
    push(&stop, &out, "\xff", true);
    check_text(&out, "a");
    nib_buffer_free(&out);
    nib_buffer_free(&stop.held);
}

static void without_a_list_nothing_is_held_back(void **state) {
    (void)state;
    nib_stop stop = {0};
    nib_buffer out = {0};
    push(&stop, &out, "text", false);
    check_text(&out, "text");
    nib_buffer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lists_end_where_a_search_of_the_whole_text_ends),
        cmocka_unit_test(a_near_miss_is_given_out_once),
        cmocka_unit_test(what_is_held_back_at_the_end_is_given_out_once),
        cmocka_unit_test(the_earliest_of_several_ends_the_text),
        cmocka_unit_test(bytes_of_any_value_can_stop),
        cmocka_unit_test(without_a_list_nothing_is_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
