/* Models that are a function of the caller's: what the functions are given, that both kinds say the same, and what is
 * refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table_model.h"

static const int32_t text[] = {3, 1, 4, 1, 5, 9, 2, 6};
enum { N_TEXT = 8, V = 50 };

static nib_generate_options ten(void) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.has_seed = 1;
    options.max_new_tokens = 10;
    return options;
}

static void forward_is_given_the_whole_prefix_each_time(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_session *session = new_session(model);
    nib_generate_options options = ten();
    nib_result *result = generate_one(session, text, N_TEXT, &options);
    assert_int_equal(table.n_forward, 10);
    assert_int_equal(table.longest, N_TEXT + 9);
    assert_int_equal(table.n, N_TEXT + 9);
    assert_memory_equal(table.tokens, result->rows[0].ids, (N_TEXT + 9) * sizeof(int32_t));
    nib_result_free(result);
    nib_session_free(session);
    nib_model_free(model);
}

static void step_is_given_each_token_once_and_rewinds(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    nib_generate_options options = ten();
    options.num_return = 2;
    nib_result *result = generate_one(session, text, N_TEXT, &options);
    /* Both candidates from 0 on, each in a row of its own: the prompts, then in turn. */
    assert_int_equal(table.n_step, 2 * (N_TEXT + 9));
    for (size_t i = 0; i < table.n_step; i++) {
        bool prompt = i < 2 * N_TEXT;
        assert_int_equal(table.rows[i], prompt ? i / N_TEXT : i % 2);
        assert_int_equal(table.positions[i], prompt ? i % N_TEXT : i / 2);
    }
    assert_memory_equal(table.tokens, result->rows[0].ids, (N_TEXT + 9) * sizeof(int32_t));
    nib_result_free(result);
    /* Rows that follow each other rewind the one that there is. */
    nib_session_options one = NIB_SESSION_OPTIONS_INIT;
    nib_error err;
    one.max_rows = 1;
    nib_session_free(session);
    must(nib_session_new(&session, model, &one, &err), &err);
    table.n_step = 0;
    result = generate_one(session, text, N_TEXT, &options);
    /* The first candidate from 0 on, the second from the prompt's last token on. */
    assert_int_equal(table.n_step, N_TEXT + 9 + 10);
    for (size_t i = 0; i < table.n_step; i++) {
        assert_int_equal(table.positions[i], i < N_TEXT + 9 ? i : i - 10);
    }
    assert_memory_equal(table.tokens, result->rows[1].ids, (N_TEXT + 9) * sizeof(int32_t));
    nib_result_free(result);
    nib_session_free(session);
    nib_model_free(model);
}

static void step_is_preferred_where_both_are_given(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_BOTH);
    nib_session *session = new_session(model);
    nib_result_free(generate_one(session, text, N_TEXT, NULL));
    assert_int_equal(table.n_forward, 0);
    nib_session_free(session);
    nib_model_free(model);
}

static void both_kinds_generate_the_same(void **state) {
    (void)state;
    table_model a = TABLE_MODEL_INIT, b = TABLE_MODEL_INIT;
    nib_model *by_forward = table_model_open(&a, TABLE_FORWARD), *by_step = table_model_open(&b, TABLE_STEP);
    nib_session *first = new_session(by_forward), *second = new_session(by_step);
    nib_generate_options options = ten();
    nib_result *x = generate_one(first, text, N_TEXT, &options), *y = generate_one(second, text, N_TEXT, &options);
    check_same_row(&x->rows[0], &y->rows[0]);
    nib_result_free(x);
    nib_result_free(y);
    nib_session_free(first);
    nib_session_free(second);
    nib_model_free(by_forward);
    nib_model_free(by_step);
}

static void the_sessions_logits_are_the_tables(void **state) {
    (void)state;
    for (table_functions functions = TABLE_FORWARD; functions <= TABLE_BOTH; functions++) {
        static float logits[N_TEXT][V], expected[V];
        table_model table = TABLE_MODEL_INIT;
        nib_model *model = table_model_open(&table, functions);
        nib_session *session = new_session(model);
        nib_error err;
        const size_t firsts[] = {N_TEXT - 1, 0, 3};
        for (size_t i = 0; i < 3; i++) {
            must(nib_session_logits(logits[firsts[i]], session, text, N_TEXT, firsts[i], &err), &err);
            for (size_t n = firsts[i]; n < N_TEXT; n++) {
                table_model_logits(expected, &table, text, n + 1);
                assert_memory_equal(logits[n], expected, sizeof expected);
            }
        }
        nib_session_free(session);
        nib_model_free(model);
    }
}

static void a_failing_function_is_named_with_its_answer_and_position(void **state) {
    (void)state;
    static float logits[N_TEXT][V];
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    nib_error err;
    table.fail_at = 5;
    must_fail(nib_session_logits(logits[0], session, text, N_TEXT, 0, &err), NIB_ECALLBACK, &err, "7|position 4");
    must(nib_session_logits(logits[0], session, text, N_TEXT, 0, &err), &err);
    nib_session_free(session);
    nib_model_free(model);
}

static void logits_that_are_none_are_named_with_their_position(void **state) {
    (void)state;
    const float rows[3][2] = {{0, 1}, {-INFINITY, 0}, {NAN, 0}}, none[1][2] = {{-INFINITY, -INFINITY}};
    float logits[3][2];
    nib_error err;
    table_model table = TABLE_MODEL_INIT;
    table.V = 2;
    table.table = rows[0];
    table.n_rows = 3;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_session *session = new_session(model);
    const int32_t ids[] = {0, 1, 1};
    must(nib_session_logits(logits[0], session, ids, 2, 0, &err), &err);
    must_fail(nib_session_logits(logits[0], session, ids, 3, 0, &err), NIB_ENUMERIC, &err, "row 0|position 2|NaN");
    table.table = none[0];
    table.n_rows = 1;
    must_fail(nib_session_logits(logits[0], session, ids, 3, 1, &err), NIB_ENUMERIC, &err,
              "row 0|position 1|none is finite");
    nib_session_free(session);
    nib_model_free(model);
}

static void a_cancelled_function_ends_the_call(void **state) {
    (void)state;
    static float logits[N_TEXT][V];
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    nib_error err;
    table.cancel = session;
    table.cancel_at = 3;
    must_fail(nib_session_logits(logits[0], session, text, N_TEXT, 0, &err), NIB_ECANCELLED, &err, "cancelled");
    assert_int_equal(table.n_step, 3);
    must(nib_session_logits(logits[0], session, text, N_TEXT, 0, &err), &err);
    nib_session_free(session);
    nib_model_free(model);
}

static int never(float *logits, const int32_t *prefix, size_t rows, size_t n, void *user) {
    (void)logits, (void)prefix, (void)rows, (void)n, (void)user;
    return 1;
}

static void refused(const nib_custom_model *custom, const char *texts) {
    nib_model *model = (nib_model *)(uintptr_t)1;
    nib_error err;
    must_fail(nib_model_custom(&model, custom, &err), NIB_EINVAL, &err, texts);
    assert_null(model);
}

static void impossible_models_are_refused(void **state) {
    (void)state;
    nib_custom_model good = NIB_CUSTOM_MODEL_INIT, c;
    good.V = 5;
    good.context = 10;
    good.forward = never;
    nib_model *model;
    nib_error err;
    must(nib_model_custom(&model, &good, &err), &err);
    nib_model_free(model);
    c = good, c.size = 8;
    refused(&c, "nib_custom_model.size: 8");
    c = good, c.forward = NULL;
    refused(&c, "no function");
    const int64_t sizes[] = {0, -1, INT64_MIN, (int64_t)INT32_MAX + 1};
    for (size_t i = 0; i < 4; i++) {
        c = good, c.V = sizes[i];
        refused(&c, "V|expected 1 to");
        c = good, c.context = sizes[i];
        refused(&c, "context|expected 1 to");
    }
    const int32_t ids[] = {-2, 5, INT32_MIN};
    for (size_t i = 0; i < 3; i++) {
        c = good, c.pad_id = ids[i];
        refused(&c, "pad_id|expected -1 to 4");
        c = good, c.start_id = ids[i];
        refused(&c, "start_id|expected -1 to 4");
        c = good, c.end_id = ids[i];
        refused(&c, "end_id|expected -1 to 4");
    }
}

static void a_custom_model_says_what_it_is(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    table.pad_id = 1;
    table.start_id = 2;
    table.end_id = 3;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_model_info info = {.size = sizeof info};
    nib_error err;
    must(nib_model_get_info(&info, model, &err), &err);
    assert_string_equal(info.architecture, "custom");
    assert_string_equal(info.name, "");
    assert_int_equal(info.V, V);
    assert_int_equal(info.context, TABLE_ROOM);
    assert_int_equal(info.D + info.L + info.H + info.K + info.head_dim + info.n_params, 0);
    assert_int_equal(info.pad_id, 1);
    assert_int_equal(info.start_id, 2);
    assert_int_equal(info.end_id, 3);
    assert_int_equal(info.n_end_ids, 1);
    assert_int_equal(info.end_ids[0], 3);
    assert_null(nib_model_tokenizer(model));
    nib_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_given_the_whole_prefix_each_time),
        cmocka_unit_test(step_is_given_each_token_once_and_rewinds),
        cmocka_unit_test(step_is_preferred_where_both_are_given),
        cmocka_unit_test(both_kinds_generate_the_same),
        cmocka_unit_test(the_sessions_logits_are_the_tables),
        cmocka_unit_test(a_failing_function_is_named_with_its_answer_and_position),
        cmocka_unit_test(logits_that_are_none_are_named_with_their_position),
        cmocka_unit_test(a_cancelled_function_ends_the_call),
        cmocka_unit_test(impossible_models_are_refused),
        cmocka_unit_test(a_custom_model_says_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
