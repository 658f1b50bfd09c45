/* Cutting text into words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/utf8.h"
#include "golden_tokens.h"
#include "text/pretokenizer.h"

static const char *const names[] = {"gpt-2",  "llama-bpe", "llama3",       "llama-v3",       "smollm",      "starcoder",
                                    "refact", "qwen2",     "deepseek-llm", "deepseek-coder", "deepseek-v3", "tekken"};
enum { N_NAMES = sizeof names / sizeof *names };

/* Appends word and a bar. */
static bool add_word(void *user, const char *word, size_t len) {
    assert_true(len > 0);
    return nib_buffer_add(user, word, len) && nib_buffer_add(user, "|", 1);
}

static void cut(nib_buffer *out, const nib_pretokenizer *pretokenizer, const char *text, size_t len) {
    nib_cutter *cutter = nib_cutter_new(pretokenizer);
    assert_non_null(cutter);
    nib_buffer_clear(out);
    assert_true(nib_cutter_run(cutter, text, len, add_word, out));
    nib_cutter_free(cutter);
}

static void check_cut(const char *name, const char *text, const char *want) {
    nib_pretokenizer *pretokenizer;
    assert_int_equal(nib_pretokenizer_new(&pretokenizer, name, NULL), NIB_OK);
    nib_buffer out = {0};
    cut(&out, pretokenizer, text, strlen(text));
    assert_true(nib_buffer_add(&out, "", 1));
    assert_string_equal(out.bytes, want);
    nib_buffer_free(&out);
    nib_pretokenizer_free(pretokenizer);
}

static void cut_as_each_family_does(void **state) {
    (void)state;
    check_cut("gpt-2", "it's IT'S 1234  x\n\n y", "it|'s| IT|'|S| 1234| | x|\n\n| y|");
    check_cut("smollm", "a 12  3", "a| |1|2|  |3|");
    check_cut("llama-bpe", "it's IT'S 1234567 x!\n\n  y", "it|'s| IT|'S| |123|456|7| x|!\n\n| | y|");
    check_cut("llama-bpe", " \n \n  a(b)", " \n \n| | a|(b|)|");
    check_cut("qwen2", "v12 a\tb", "v|1|2| a|\tb|");
    check_cut("tekken", "fooBAR FooBar x/\n1", "foo|BAR| Foo|Bar| x|/\n|1|");
    check_cut("deepseek-llm",
              "a  b\n 12 \xe4\xb8\xad"
              "c  ",
              "a| | b|\n| |1|2| |\xe4\xb8\xad|c|  |");
    check_cut("deepseek-coder", "x = (1)\r\n\xe4\xb8\xad", "x| =| (|1|)|\r|\n|\xe4\xb8\xad|");
    check_cut("deepseek-v3", "a1234 .b.c!!\n", "a|123|4| .|b|.c|!!\n|");
}

static bool hash_word(void *user, const char *word, size_t len) {
    (void)word;
    uint64_t *state = user; /* count, hash */
    int32_t length = (int32_t)len;
    state[0]++;
    state[1] = golden_hash(state[1], &length, sizeof length);
    return true;
}

static void cut_every_character_as_the_reference_does(void **state) {
    (void)state;
    golden_lines lines = golden_read("cuts.txt");
    nib_buffer text = golden_known_text("e* *1*!*\n*  E** ");
    for (size_t i = 1; i < lines.n; i++) {
        uint64_t words[2] = {0, 0};
        char *rest = strchr(lines.lines[i], ' ');
        *rest++ = '\0';
        nib_pretokenizer *pretokenizer;
        assert_int_equal(nib_pretokenizer_new(&pretokenizer, lines.lines[i], NULL), NIB_OK);
        nib_cutter *cutter = nib_cutter_new(pretokenizer);
        assert_true(nib_cutter_run(cutter, text.bytes, text.len, hash_word, words));
        if (words[0] != strtoull(rest, &rest, 10) || words[1] != strtoull(rest, NULL, 16)) {
            fail_msg("%s cuts otherwise: %zu words", lines.lines[i], (size_t)words[0]);
        }
        nib_cutter_free(cutter);
        nib_pretokenizer_free(pretokenizer);
    }
    nib_buffer_free(&text);
    golden_free(&lines);
}

static void take_the_long_s_for_an_s_in_contractions(void **state) {
    (void)state;
    check_cut("qwen2", "it'\xc5\xbfx", "it|'\xc5\xbf|x|"); /* U+017F is an s to a pattern that ignores case */
    check_cut("gpt-2", "it'\xc5\xbf", "it|'|\xc5\xbf|");
}

static void count_no_mongolian_separator_as_space(void **state) {
    (void)state;
    check_cut("gpt-2", "a \xe1\xa0\x8e b", "a| \xe1\xa0\x8e| b|");
    check_cut("gpt-2", "a \xc2\x85 b", "a| \xc2\x85| b|");
}

static void cut_nothing_into_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) {
        check_cut(names[i], "", "");
    }
}

static void know_no_other_names(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "default", "gpt2", "gpt-2 ", "GPT-2", "llama"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        nib_pretokenizer *pretokenizer;
        nib_error err;
        assert_int_equal(nib_pretokenizer_new(&pretokenizer, wrong[i], &err), NIB_EUNSUPPORTED);
        assert_null(pretokenizer);
        for (size_t j = 0; j < N_NAMES; j++) {
            assert_non_null(strstr(err.message, names[j]));
        }
    }
}

/* A text of n characters from every corner. */
static nib_buffer make_text(uint64_t seed, size_t n) {
    static const char *const parts[] = {" ",
                                        "  ",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "a",
                                        "B",
                                        "'s",
                                        "'LL",
                                        "1",
                                        "\xc2\xbd",
                                        ".",
                                        "!?",
                                        "/",
                                        "\xc3\xa9",
                                        "e\xcc\x81",
                                        "\xe4\xb8\xad",
                                        "\xed\x95\x9c",
                                        "\xe3\x81\x82",
                                        "\xc2\xa0",
                                        "\xe3\x80\x80",
                                        "\xf0\x9f\x91\x8d",
                                        "\xe2\x80\x8d",
                                        "\xca\xb0",
                                        "\xc7\x85",
                                        "_",
                                        "$"};
    nib_buffer out = {0};
    for (size_t i = 0; i < n; i++) {
        const char *part = parts[nib_mix64(seed, i) % (sizeof parts / sizeof *parts)];
        assert_true(nib_buffer_add(&out, part, strlen(part)));
    }
    return out;
}

static void cut_the_same_interpreted(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) {
        nib_pretokenizer *pretokenizer;
        assert_int_equal(nib_pretokenizer_new(&pretokenizer, names[i], NULL), NIB_OK);
        nib_buffer text = make_text(i, 3000);
        nib_buffer compiled = {0}, interpreted = {0};
        cut(&compiled, pretokenizer, text.bytes, text.len);
        nib_pretokenizer_interpret(pretokenizer);
        cut(&interpreted, pretokenizer, text.bytes, text.len);
        assert_int_equal(compiled.len, interpreted.len);
        assert_memory_equal(compiled.bytes, interpreted.bytes, compiled.len);
        nib_buffer_free(&text);
        nib_buffer_free(&compiled);
        nib_buffer_free(&interpreted);
        nib_pretokenizer_free(pretokenizer);
    }
}

/* Where the interpreter was at the item before, and how far it has gone. */
typedef struct journey {
    size_t at, steps;
} journey;

/* The way from item to item counts, not only the items: a run of characters is one item. */
static int count_step(pcre2_callout_block *block, void *user) {
    journey *way = user;
    size_t at = block->current_position;
    way->steps += 1 + (at > way->at ? at - way->at : way->at - at);
    way->at = at;
    return 0;
}

/* What the interpreter does to find all matches in text. */
static size_t count_steps(const char *pattern, const char *text, size_t len) {
    int error;
    size_t offset;
    journey way = {0, 0};
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_AUTO_CALLOUT;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &offset, NULL);
    assert_non_null(code);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    (void)pcre2_set_callout(context, count_step, &way);
    (void)pcre2_set_match_limit(context, UINT32_MAX);
    for (size_t from = 0; from < len; from = pcre2_get_ovector_pointer(match)[1]) {
        if (pcre2_match(code, (PCRE2_SPTR)text, len, from, PCRE2_NO_UTF_CHECK, match, context) < 0) {
            break;
        }
    }
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_code_free(code);
    return way.steps;
}

/* n times unit between before and after. */
static size_t count_run(const char *pattern, const char *before, const char *unit, const char *after, size_t n) {
    nib_buffer text = {0};
    assert_true(nib_buffer_add(&text, before, strlen(before)));
    for (size_t i = 0; i < n; i++) {
        assert_true(nib_buffer_add(&text, unit, strlen(unit)));
    }
    assert_true(nib_buffer_add(&text, after, strlen(after)));
    size_t steps = count_steps(pattern, text.bytes, text.len);
    nib_buffer_free(&text);
    return steps;
}

static void take_steps_in_proportion_to_a_run(void **state) {
    (void)state;
    static const char *const units[] = {"A",
                                        "a",
                                        " ",
                                        "\n",
                                        "\r\n",
                                        "1",
                                        ".",
                                        "'",
                                        "\xcc\x81",
                                        "\xe4\xb8\xad",
                                        ("\xca\xb0" /* ends the escape */ "A"),
                                        " \n",
                                        "\xc2\xa0",
                                        "aB",
                                        "/\n"};
    static const char *const ends[] = {"", "a", "1", "\n", "\xe2\x82\xac", " ", "\xcc\x81", "!"};
    for (size_t i = 0; i < N_NAMES; i++) {
        const nib_pretokenizer_kind *kind = nib_pretokenizer_find(names[i]);
        for (size_t p = 0; p < NIB_MAX_PATTERNS && kind->patterns[p] != NULL; p++) {
            for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
                for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
                    size_t once = count_run(kind->patterns[p], ends[(e + u) % 8], units[u], ends[e], 200);
                    size_t twice = count_run(kind->patterns[p], ends[(e + u) % 8], units[u], ends[e], 400);
                    assert_true(10 * twice <= 26 * once + 500);
                }
            }
        }
    }
}

static void survive_a_lack_of_memory(void **state) {
    (void)state;
    nib_pretokenizer *pretokenizer = NULL;
    for (size_t n = 1; pretokenizer == NULL; n++) {
        nib_error err;
        nib_alloc_fail_at(n);
        nib_status status = nib_pretokenizer_new(&pretokenizer, "deepseek-llm", &err);
        nib_alloc_fail_at(0);
        assert_true(pretokenizer != NULL ? status == NIB_OK : status == NIB_ENOMEM && err.code == NIB_ENOMEM);
    }
    nib_cutter *cutter = NULL;
    for (size_t n = 1; cutter == NULL; n++) {
        nib_alloc_fail_at(n);
        cutter = nib_cutter_new(pretokenizer);
        nib_alloc_fail_at(0);
    }
    nib_cutter_free(cutter);
    nib_cutter_free(NULL);
    nib_pretokenizer_free(pretokenizer);
    nib_pretokenizer_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_as_each_family_does),
        cmocka_unit_test(cut_every_character_as_the_reference_does),
        cmocka_unit_test(take_the_long_s_for_an_s_in_contractions),
        cmocka_unit_test(count_no_mongolian_separator_as_space),
        cmocka_unit_test(cut_nothing_into_nothing),
        cmocka_unit_test(know_no_other_names),
        cmocka_unit_test(cut_the_same_interpreted),
        cmocka_unit_test(take_steps_in_proportion_to_a_run),
        cmocka_unit_test(survive_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
