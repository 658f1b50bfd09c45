/* The table of options: that it says what the structs, the INIT macros and the checks do, for every row. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nib/options.h>

/* One of the three structs. */
typedef union any_options {
    nib_model_options model;
    nib_session_options session;
    nib_generate_options generate;
} any_options;

static any_options initial(nib_option_scope scope) {
    any_options options;
    memset(&options, 0, sizeof options);
    switch (scope) {
    case NIB_SCOPE_MODEL: options.model = (nib_model_options)NIB_MODEL_OPTIONS_INIT; break;
    case NIB_SCOPE_SESSION: options.session = (nib_session_options)NIB_SESSION_OPTIONS_INIT; break;
    case NIB_SCOPE_GENERATE: options.generate = (nib_generate_options)NIB_GENERATE_OPTIONS_INIT; break;
    }
    return options;
}

static const nib_option *find(const char *name) {
    size_t n;
    const nib_option *list = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    fail_msg("no option %s", name);
    return NULL;
}

static int64_t whole_of(const any_options *options, const nib_option *option) {
    int64_t value;
    memcpy(&value, (const char *)options + option->offset, sizeof value);
    return value;
}

static double real_of(const any_options *options, const nib_option *option) {
    double value;
    memcpy(&value, (const char *)options + option->offset, sizeof value);
    return value;
}

static int choice_of(const any_options *options, const nib_option *option) {
    int value;
    memcpy(&value, (const char *)options + option->offset, sizeof value);
    return value;
}

/* Sets and answers; the error names the option when there is one. */
static nib_status set(any_options *options, const nib_option *option, const char *text) {
    nib_error err = {NIB_OK, ""};
    nib_status status = nib_option_set(options, option, text, strlen(text), &err);
    assert_int_equal(status, err.code);
    if (status != NIB_OK) {
        assert_non_null(strstr(err.message, option->name));
    }
    return status;
}

/* Checks the whole struct; the error names the field. */
static void check(const any_options *options, nib_option_scope scope, nib_status expected, const char *name) {
    nib_error err = {NIB_OK, ""};
    nib_status status = nib_options_check(options, scope, &err);
    if (status != expected || err.code != expected || (status != NIB_OK && strstr(err.message, name) == NULL)) {
        fail_msg("%s: %s \"%s\", expected %s", name, nib_status_name(status), err.message, nib_status_name(expected));
    }
}

/* Word i of a list separated by spaces; false when there are fewer. */
static bool word_at(char word[32], const char *words, size_t i) {
    for (; i > 0 && *words != '\0'; i--) {
        words += strcspn(words, " ");
        words += strspn(words, " ");
    }
    size_t n = strcspn(words, " ");
    assert_true(n < 32);
    memcpy(word, words, n);
    word[n] = '\0';
    return n > 0;
}

static void the_defaults_are_those_of_the_macros_and_pass(void **state) {
    (void)state;
    size_t n;
    const nib_option *list = nib_option_list(&n);
    assert_true(n > 20);
    for (size_t i = 0; i < n; i++) {
        any_options options = initial(list[i].scope);
        check(&options, list[i].scope, NIB_OK, list[i].name);
        const char *text = list[i].initial;
        switch (list[i].kind) {
        case NIB_OPTION_KIND_INT:
            assert_true(whole_of(&options, &list[i]) == (strcmp(text, "NIB_UNSET") == 0 ? NIB_UNSET : atoll(text)));
            break;
        case NIB_OPTION_KIND_REAL: assert_true(real_of(&options, &list[i]) == atof(text)); break;
        case NIB_OPTION_KIND_CHOICE: assert_int_equal(choice_of(&options, &list[i]), atoi(text)); break;
        case NIB_OPTION_KIND_SEED: assert_int_equal(choice_of(&options, &list[i]), 0); break;
        case NIB_OPTION_KIND_IDS:
        case NIB_OPTION_KIND_TEXTS:
        case NIB_OPTION_KIND_BIASES:
        case NIB_OPTION_KIND_HOOK:
            assert_int_equal(whole_of(&options, &list[i]), 0); /* NULL, and its length behind it */
            assert_int_equal(set(&options, &list[i], "1"), NIB_EINVAL);
            break;
        }
    }
}

static void whole_numbers_keep_their_bounds(void **state) {
    (void)state;
    size_t n;
    const nib_option *list = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        const nib_option *o = &list[i];
        if (o->kind != NIB_OPTION_KIND_INT) {
            continue;
        }
        any_options options = initial(o->scope);
        const int64_t inside[] = {o->low, o->high};
        char text[32];
        for (size_t j = 0; j < 2; j++) {
            (void)snprintf(text, sizeof text, "%lld", (long long)inside[j]);
            assert_int_equal(set(&options, o, text), NIB_OK);
            assert_true(whole_of(&options, o) == inside[j]);
        }
        const int64_t outside[] = {o->low - 1, o->high < INT64_MAX ? o->high + 1 : -1, NIB_UNSET + 1};
        for (size_t j = 0; j < 3; j++) {
            (void)snprintf(text, sizeof text, "%lld", (long long)outside[j]);
            assert_int_equal(set(&options, o, text), NIB_EINVAL);
            any_options direct = initial(o->scope);
            memcpy((char *)&direct + o->offset, &outside[j], sizeof outside[j]);
            check(&direct, o->scope, NIB_EINVAL, o->name);
        }
        const char *const no[] = {"", " 1", "1 ", "1x", "1.0", "0x1", "+", "9223372036854775808", "nan", "unset"};
        for (size_t j = 0; j < sizeof no / sizeof no[0]; j++) {
            assert_int_equal(set(&options, o, no[j]), NIB_EINVAL);
        }
        assert_true(whole_of(&options, o) == o->high); /* what is refused changes nothing */
    }
}

static void real_numbers_keep_their_bounds(void **state) {
    (void)state;
    size_t n;
    const nib_option *list = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        const nib_option *o = &list[i];
        if (o->kind != NIB_OPTION_KIND_REAL) {
            continue;
        }
        any_options options = initial(o->scope);
        const char *inside = o->real_low > 0.25 ? "1.5" : "0.25";
        double value = o->real_low > 0.25 ? 1.5 : 0.25;
        assert_int_equal(set(&options, o, inside), NIB_OK);
        assert_true(real_of(&options, o) == value);
        const char *const no[] = {"", "-1e7", "nan", "inf", "1e400", "0x1p3", "1,5", "1.5.", "x", " 1"};
        for (size_t j = 0; j < sizeof no / sizeof no[0]; j++) {
            assert_int_equal(set(&options, o, no[j]), NIB_EINVAL);
        }
        assert_true(real_of(&options, o) == value);
        const double bounds[] = {o->real_low, o->real_high};
        const double outside[] = {nextafter(o->real_low, -INFINITY), nextafter(o->real_high, INFINITY), NAN, INFINITY,
                                  -INFINITY};
        for (size_t j = 0; j < 2; j++) {
            memcpy((char *)&options + o->offset, &bounds[j], sizeof bounds[j]);
            check(&options, o->scope, NIB_OK, o->name);
        }
        for (size_t j = 0; j < 5; j++) {
            memcpy((char *)&options + o->offset, &outside[j], sizeof outside[j]);
            check(&options, o->scope, NIB_EINVAL, o->name);
        }
    }
}

static void the_hosts_rounding_changes_no_number(void **state) {
    (void)state;
    const nib_option *top_p = find("top_p");
    const char *const texts[] = {"0.7", "0.1", "0.95", "1e-3", "0.3333333333333333333"};
    const int roundings[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < 5; i++) {
        any_options expected = initial(NIB_SCOPE_GENERATE), got = expected;
        assert_int_equal(set(&expected, top_p, texts[i]), NIB_OK);
        for (size_t j = 0; j < 3; j++) {
            assert_int_equal(fesetround(roundings[j]), 0);
            nib_status status = set(&got, top_p, texts[i]);
            assert_int_equal(fesetround(FE_TONEAREST), 0);
            assert_int_equal(status, NIB_OK);
            assert_memory_equal(&got.generate.top_p, &expected.generate.top_p, sizeof(double));
        }
    }
}

static void words_are_known_or_come_later(void **state) {
    (void)state;
    size_t n;
    const nib_option *list = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        const nib_option *o = &list[i];
        if (o->kind != NIB_OPTION_KIND_CHOICE) {
            continue;
        }
        char word[32];
        int j = 0;
        for (; word_at(word, o->words, (size_t)j); j++) {
            any_options options = initial(o->scope);
            nib_status expected = o->there[j] == 'y' ? NIB_OK : NIB_EUNSUPPORTED;
            assert_int_equal(set(&options, o, word), expected);
            assert_int_equal(choice_of(&options, o), expected == NIB_OK ? j : atoi(o->initial));
            memcpy((char *)&options + o->offset, &j, sizeof j);
            check(&options, o->scope, expected, expected == NIB_OK ? o->name : word);
        }
        assert_int_equal(strlen(o->there), j);
        const int outside[] = {-1, j, 1000};
        for (size_t k = 0; k < 3; k++) {
            any_options options = initial(o->scope);
            memcpy((char *)&options + o->offset, &outside[k], sizeof outside[k]);
            check(&options, o->scope, NIB_EINVAL, o->name);
        }
        any_options options = initial(o->scope);
        assert_int_equal(set(&options, o, "nonsense"), NIB_EINVAL);
        assert_int_equal(set(&options, o, ""), NIB_EINVAL);
        assert_int_equal(set(&options, o, o->words), NIB_EINVAL);
    }
}

static void seeds_take_all_of_64_bits(void **state) {
    (void)state;
    const nib_option *seed = find("seed");
    const char *const texts[] = {"0", "1", "4294967295", "18446744073709551615"};
    const uint64_t seeds[] = {0, 1, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        any_options options = initial(NIB_SCOPE_GENERATE);
        assert_int_equal(set(&options, seed, texts[i]), NIB_OK);
        assert_true(options.generate.seed == seeds[i] && options.generate.has_seed == 1);
    }
    const char *const no[] = {"", "-1", "18446744073709551616", "1.5", "random"};
    for (size_t i = 0; i < 5; i++) {
        any_options options = initial(NIB_SCOPE_GENERATE);
        assert_int_equal(set(&options, seed, no[i]), NIB_EINVAL);
        assert_int_equal(options.generate.has_seed, 0);
    }
}

static void a_struct_of_another_size_is_refused(void **state) {
    (void)state;
    const char *const names[] = {"nib_model_options.size", "nib_session_options.size", "nib_generate_options.size"};
    for (int scope = 0; scope < 3; scope++) {
        any_options options = initial((nib_option_scope)scope);
        const uint32_t sizes[] = {0, 4, options.model.size - 1, options.model.size + 8, UINT32_MAX};
        for (size_t i = 0; i < 5; i++) {
            options.model.size = sizes[i]; /* the first field of each */
            check(&options, (nib_option_scope)scope, NIB_EINVAL, names[scope]);
        }
    }
}

static void lists_need_what_their_length_says(void **state) {
    (void)state;
    any_options options = initial(NIB_SCOPE_GENERATE);
    options.generate.n_stop = 1;
    check(&options, NIB_SCOPE_GENERATE, NIB_EINVAL, "stop");
    options = initial(NIB_SCOPE_GENERATE);
    options.generate.n_eos_id = 2;
    check(&options, NIB_SCOPE_GENERATE, NIB_EINVAL, "eos_id");
    options = initial(NIB_SCOPE_GENERATE);
    options.generate.n_stop_id = 2;
    check(&options, NIB_SCOPE_GENERATE, NIB_EINVAL, "stop_id");
    const nib_text empty[] = {{"a", 1}, {"b", 0}}, missing[] = {{NULL, 3}};
    options = initial(NIB_SCOPE_GENERATE);
    options.generate.stop = empty;
    options.generate.n_stop = 2;
    check(&options, NIB_SCOPE_GENERATE, NIB_EINVAL, "stop: text 1");
    options.generate.stop = missing;
    options.generate.n_stop = 1;
    check(&options, NIB_SCOPE_GENERATE, NIB_EINVAL, "stop: text 0");
}

static void options_against_each_other_are_refused(void **state) {
    (void)state;
    any_options options = initial(NIB_SCOPE_GENERATE);
    options.generate.do_sample = NIB_DO_SAMPLE_YES;
    options.generate.temperature = 0;
    check(&options, NIB_SCOPE_GENERATE, NIB_EINVAL, "do_sample");
    options = initial(NIB_SCOPE_SESSION);
    options.session.max_cache_len = 100;
    check(&options, NIB_SCOPE_SESSION, NIB_EINVAL, "max_cache_len");
    options = initial(NIB_SCOPE_SESSION);
    options.session.threads = 256;
    check(&options, NIB_SCOPE_SESSION, NIB_OK, "threads");
    options.session.threads = 257;
    check(&options, NIB_SCOPE_SESSION, NIB_EINVAL, "threads");
}

static void every_row_is_described(void **state) {
    (void)state;
    size_t n;
    const nib_option *list = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        bool in_c = list[i].kind == NIB_OPTION_KIND_HOOK; /* no flag can give a function */
        assert_true(strlen(list[i].help) > 10 && strlen(list[i].source) > 0);
        assert_true(list[i].flags[0] == (in_c ? '\0' : '-'));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(list[i].name, list[j].name);
            assert_string_not_equal(list[i].flags, list[j].flags);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_those_of_the_macros_and_pass),
        cmocka_unit_test(whole_numbers_keep_their_bounds),
        cmocka_unit_test(real_numbers_keep_their_bounds),
        cmocka_unit_test(the_hosts_rounding_changes_no_number),
        cmocka_unit_test(words_are_known_or_come_later),
        cmocka_unit_test(seeds_take_all_of_64_bits),
        cmocka_unit_test(a_struct_of_another_size_is_refused),
        cmocka_unit_test(lists_need_what_their_length_says),
        cmocka_unit_test(options_against_each_other_are_refused),
        cmocka_unit_test(every_row_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
