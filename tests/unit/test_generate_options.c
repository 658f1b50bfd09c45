/* Options of generation as a caller gives them: texts become tokens, lists are copied by a stream, alternatives and the
 * function of the caller reach rows, steps and batches. What they do to logits is asked in test_processors.c. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/request.h"
#include "script_model.h"
#include "table_model.h"

#define PIECE(text)                                                                                                    \
    { text, sizeof(text) - 1 }

static const script_piece words[] = {PIECE("He"), PIECE(" said"), PIECE(":"), PIECE(" no"), PIECE("\n"), PIECE(" end")};
static const int32_t he[] = {SCRIPT_FIRST};

static nib_generate_options greedy(void) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.do_sample = NIB_DO_SAMPLE_NO;
    options.has_seed = 1;
    options.max_new_tokens = 12;
    return options;
}

static script_model open_words(void) {
    script_spec script = SCRIPT_INIT;
    script.pieces = words;
    script.n = sizeof words / sizeof words[0];
    return script_model_open(&script);
}

/* Generates behind "He" in a session of its own. */
static nib_result *run(nib_model *model, const nib_generate_options *options) {
    nib_session *session = new_session(model);
    nib_result *result = generate_one(session, he, 1, options);
    nib_session_free(session);
    return result;
}

static void assert_text(nib_model *model, const nib_generate_options *options, const char *text, nib_finish finish) {
    nib_result *result = run(model, options);
    assert_int_equal(result->rows[0].finish, finish);
    assert_int_equal(result->rows[0].text_len, strlen(text));
    assert_memory_equal(result->rows[0].text, text, strlen(text));
    nib_result_free(result);
}

static void bad_words_do_not_appear_with_or_without_a_space(void **state) {
    (void)state;
    script_model opened = open_words();
    nib_generate_options options = greedy();
    assert_text(opened.model, &options, " said: no\n end", NIB_FINISH_STOP);
    const nib_text no = {"no", 2}, both[] = {{"end", 3}, {"said", 4}}, many = {" said:", 6};
    options.bad_words = &no;
    options.n_bad_words = 1;
    options.max_new_tokens = 3;
    assert_text(opened.model, &options, " said:!", NIB_FINISH_LENGTH); /* the best that is left */
    options.bad_words = both;
    options.n_bad_words = 2;
    options.max_new_tokens = 1;
    assert_text(opened.model, &options, "!", NIB_FINISH_LENGTH);
    options.bad_words = &many; /* only its last token, behind the others */
    options.n_bad_words = 1;
    options.max_new_tokens = 2;
    assert_text(opened.model, &options, " said!", NIB_FINISH_LENGTH);
    script_model_close(&opened);
}

static void nothing_ends_a_row_before_its_least_number_of_tokens(void **state) {
    (void)state;
    script_model opened = open_words();
    nib_generate_options options = greedy();
    const nib_text colon = {":", 1};
    const int32_t id = SCRIPT_FIRST + 2;
    options.stop = &colon;
    options.n_stop = 1;
    assert_text(opened.model, &options, " said", NIB_FINISH_STOP);
    options.min_new_tokens = 2;
    assert_text(opened.model, &options, " said", NIB_FINISH_STOP); /* it is the second */
    options.min_new_tokens = 3;
    assert_text(opened.model, &options, " said: no\n end", NIB_FINISH_STOP);
    options = greedy();
    options.stop_id = &id;
    options.n_stop_id = 1;
    options.min_new_tokens = 2; /* the second token may not be it, nor the end */
    nib_result *result = run(opened.model, &options);
    assert_int_not_equal(result->rows[0].ids[2], id);
    nib_result_free(result);
    options = greedy();
    options.min_new_tokens = 8;
    result = run(opened.model, &options);
    assert_true(result->rows[0].n >= 8);
    for (size_t t = 1; t < 8; t++) {
        assert_int_not_equal(result->rows[0].ids[t], SCRIPT_END);
    }
    nib_result_free(result);
    options.ignore_eos = NIB_IGNORE_EOS_BAN;
    options.min_new_tokens = 0;
    result = run(opened.model, &options);
    assert_int_equal(result->rows[0].n, 12);
    assert_int_equal(result->rows[0].finish, NIB_FINISH_LENGTH);
    nib_result_free(result);
    script_model_close(&opened);
}

/* ---- breakers ---- */

static void assert_breakers(nib_model *model, const nib_text *texts, size_t n, const int32_t *heads,
                            const size_t *tails, size_t n_heads) {
    nib_session *session = new_session(model);
    nib_generate_options options = greedy();
    nib_request request;
    nib_error err;
    options.dry_multiplier = 1;
    options.dry_breaker = texts;
    options.n_dry_breaker = n;
    must(nib_request_init(&request, session, &options, &err), &err);
    assert_int_equal(request.params.n_breakers, n_heads);
    for (size_t i = 0; i < n_heads; i++) {
        assert_int_equal(request.params.breakers[i].head, heads[i]);
        assert_int_equal(request.params.breakers[i].n, tails[i]);
    }
    nib_request_free(&request);
    nib_session_free(session);
}

static void breakers_are_tokens_that_hold_or_begin_the_text(void **state) {
    (void)state;
    enum { SAID = SCRIPT_FIRST + 1, COLON, NO, LINE };
    script_model opened = open_words();
    const nib_text none = {"none", 4}, letter = {"id", 2}, over = {"d: no", 5};
    assert_breakers(opened.model, NULL, 0, (const int32_t[]){COLON, LINE}, (const size_t[]){0, 0}, 2);
    assert_breakers(opened.model, &none, 1, NULL, NULL, 0);
    assert_breakers(opened.model, &letter, 1, (const int32_t[]){SAID}, (const size_t[]){0}, 1);
    /* " said" and " end" end with its beginning, ":" and " no" follow. */
    assert_breakers(opened.model, &over, 1, (const int32_t[]){SAID, LINE + 1}, (const size_t[]){2, 2}, 2);
    script_model_close(&opened);
}

/* ---- streams ---- */

static void a_stream_keeps_lists_of_its_own(void **state) {
    (void)state;
    script_model opened = open_words();
    nib_session *session = new_session(opened.model);
    nib_error err;
    nib_stream *stream;
    const nib_token *token;
    int32_t suppress[] = {SCRIPT_OTHER},
            allowed[] = {SCRIPT_OTHER, SCRIPT_FIRST + 1, SCRIPT_FIRST + 2, SCRIPT_FIRST + 5},
            pair[] = {SCRIPT_FIRST + 2, SCRIPT_FIRST + 5};
    char no[] = "no", breaker[] = ":";
    nib_text bad = {no, 2}, breakers = {breaker, 1};
    nib_bias bias = {pair, 2, 1e4};
    nib_generate_options options = greedy();
    options.max_new_tokens = 4;
    options.suppress_id = suppress, options.n_suppress_id = 1;
    options.allowed_id = allowed, options.n_allowed_id = 4;
    options.bad_words = &bad, options.n_bad_words = 1;
    options.logit_bias = &bias, options.n_logit_bias = 1;
    options.dry_breaker = &breakers, options.n_dry_breaker = 1;
    options.dry_multiplier = 1e-3;
    nib_result *result = generate_one(session, he, 1, &options);
    must(nib_stream_open(&stream, session, (nib_prompt){he, 1}, &options, &err), &err);
    memset(suppress, 0x7f, sizeof suppress), memset(allowed, 0x7f, sizeof allowed), memset(pair, 0x7f, sizeof pair);
    memset(no, 'x', 2), memset(breaker, 'x', 1);
    memset(&bad, 0, sizeof bad), memset(&bias, 0, sizeof bias), memset(&breakers, 0, sizeof breakers);
    assert_int_equal(result->rows[0].ids[3], SCRIPT_FIRST + 5); /* the bias worked */
    for (size_t t = 0; t < result->rows[0].n; t++) {
        must(nib_stream_next(&token, stream, &err), &err);
        assert_int_equal(token->id, result->rows[0].ids[1 + t]);
    }
    nib_stream_free(stream);
    nib_result_free(result);
    nib_session_free(session);
    script_model_close(&opened);
}

/* ---- alternatives ---- */

typedef struct heard {
    nib_alternative top[8][40];
    size_t n_top[8], n;
} heard;

static int hear(const nib_token *token, void *user) {
    heard *h = user;
    memcpy(h->top[h->n], token->top, token->n_top * sizeof token->top[0]);
    h->n_top[h->n++] = token->n_top;
    return 0;
}

static void rows_and_steps_hold_the_alternatives(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT, without = options;
    nib_result *result, *plain;
    nib_error err;
    heard h = {.n = 0};
    options.has_seed = without.has_seed = 1;
    options.max_new_tokens = without.max_new_tokens = 8;
    options.top_logprobs = 3;
    plain = generate_one(session, he, 1, &without);
    must(nib_generate(&result, session, &(nib_prompt){he, 1}, 1, &options, hear, &h, &err), &err);
    const nib_row *row = &result->rows[0];
    check_same_row(&plain->rows[0], row); /* asking changes nothing */
    assert_null(plain->rows[0].top);
    assert_int_equal(row->stride_top, 4);
    for (size_t t = 0; t < 8; t++) {
        const nib_alternative *top = row->top + t * row->stride_top;
        float logits[50];
        bool among = false;
        table_model_logits(logits, &table, row->ids, 1 + t);
        assert_int_equal(row->n_top[t], h.n_top[t]);
        for (size_t i = 0; i < row->n_top[t]; i++) {
            assert_int_equal(top[i].id, h.top[t][i].id);
            among = among || (top[i].id == row->ids[1 + t] && top[i].logprob == row->logprobs[t]);
            assert_true(i == 0 || i == 3 || logits[top[i].id] <= logits[top[i - 1].id]);
        }
        for (int32_t id = 0; id < 50; id++) {
            assert_true(logits[id] <= logits[top[0].id]);
        }
        assert_true(among);
    }
    nib_result_free(plain);
    nib_result_free(result);
    options.top_logprobs = 1000; /* more than there are: all */
    result = generate_one(session, he, 1, &options);
    assert_int_equal(result->rows[0].stride_top, 51);
    assert_int_equal(result->rows[0].n_top[0], 50);
    nib_result_free(result);
    nib_session_free(session);
    nib_model_free(model);
}

/* ---- the caller's function ---- */

typedef struct asked {
    pthread_t thread;
    size_t n, last_row;
    bool ordered;
} asked;

/* Allows one token for each row and place. */
static int only_one(float *logits, size_t V, const nib_logits_place *place, void *user) {
    asked *a = user;
    a->ordered = a->ordered && pthread_equal(pthread_self(), a->thread);
    a->n++;
    for (size_t id = 0; id < V; id++) {
        logits[id] = id == (place->row * 7 + place->index * 3 + place->n) % V ? logits[id] : -INFINITY;
    }
    return 0;
}

static int always_nine(float *logits, size_t V, const nib_logits_place *place, void *user) {
    (void)logits, (void)V, (void)place, (void)user;
    return 9;
}

static void the_callers_function_sees_each_row_on_its_own_thread(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_session_options wide = NIB_SESSION_OPTIONS_INIT;
    nib_session *session;
    nib_result *result;
    nib_error err;
    asked a = {pthread_self(), 0, 0, true};
    const int32_t two[] = {1, 2};
    const nib_prompt prompts[] = {{he, 1}, {two, 2}};
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    wide.threads = 3;
    must(nib_session_new(&session, model, &wide, &err), &err);
    options.max_new_tokens = 5;
    options.num_return = 2;
    options.logits_callback = only_one;
    options.logits_callback_user = &a;
    must(nib_generate(&result, session, prompts, 2, &options, NULL, NULL, &err), &err);
    assert_true(a.ordered);
    assert_int_equal(a.n, 20);
    for (size_t i = 0; i < 4; i++) {
        const nib_row *row = &result->rows[i];
        for (size_t t = row->n_prompt; t < row->n_prompt + row->n; t++) {
            assert_int_equal(row->ids[t], (row->row * 7 + row->index * 3 + t) % 50);
        }
    }
    nib_result_free(result);
    options.logits_callback = always_nine;
    must_fail(nib_generate(&result, session, prompts, 2, &options, NULL, NULL, &err), NIB_ECALLBACK, &err,
              "logits_callback answered 9|row 0");
    nib_session_free(session);
    nib_model_free(model);
}

/* ---- refusals ---- */

static void impossible_lists_are_refused(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_session *session = new_session(model);
    static const int32_t bad[] = {3, 50};
    const nib_text word = {"x", 1}, empty = {"", 0};
    const double wrong[] = {NAN, INFINITY, 1e31};
    nib_result *result;
    nib_error err;
    const nib_prompt prompt = {he, 1};
    for (size_t i = 0; i < 3; i++) {
        nib_bias bias = {bad, 1, wrong[i]};
        nib_generate_options o = NIB_GENERATE_OPTIONS_INIT;
        o.logit_bias = &bias, o.n_logit_bias = 1;
        must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EINVAL, &err,
                  "logit_bias|-1e+30 to 1e+30, or -inf");
    }
    nib_bias out = {bad, 2, 1}, none = {bad, 0, 1};
    nib_generate_options o = NIB_GENERATE_OPTIONS_INIT;
    o.logit_bias = &out, o.n_logit_bias = 1;
    must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EINVAL, &err,
              "logit_bias|50|0 to 49");
    o.logit_bias = &none;
    must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EINVAL, &err, "bias 0 has no ids");
    o = (nib_generate_options)NIB_GENERATE_OPTIONS_INIT;
    o.suppress_id = bad, o.n_suppress_id = 2;
    must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EINVAL, &err, "suppress_id|50");
    o = (nib_generate_options)NIB_GENERATE_OPTIONS_INIT;
    o.allowed_id = bad, o.n_allowed_id = 2;
    must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EINVAL, &err, "allowed_id|50");
    o = (nib_generate_options)NIB_GENERATE_OPTIONS_INIT;
    o.bad_words = &word, o.n_bad_words = 1;
    must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EUNSUPPORTED, &err,
              "bad_words|no tokenizer");
    o.bad_words = &empty;
    must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EINVAL, &err, "bad_words|empty");
    o = (nib_generate_options)NIB_GENERATE_OPTIONS_INIT;
    o.dry_breaker = &word, o.n_dry_breaker = 1;
    must_fail(nib_generate(&result, session, &prompt, 1, &o, NULL, NULL, &err), NIB_EUNSUPPORTED, &err,
              "dry_breaker|no tokenizer");
    nib_session_free(session);
    nib_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_words_do_not_appear_with_or_without_a_space),
        cmocka_unit_test(nothing_ends_a_row_before_its_least_number_of_tokens),
        cmocka_unit_test(breakers_are_tokens_that_hold_or_begin_the_text),
        cmocka_unit_test(a_stream_keeps_lists_of_its_own),
        cmocka_unit_test(rows_and_steps_hold_the_alternatives),
        cmocka_unit_test(the_callers_function_sees_each_row_on_its_own_thread),
        cmocka_unit_test(impossible_lists_are_refused),
    };
    return cmocka_run_group_tests_name("options of generation", tests, NULL, NULL);
}
