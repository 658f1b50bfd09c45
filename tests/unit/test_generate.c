/* Whole generations on models with known logits: lengths, sampling switches, seeds, batches, ends, cancellation, and what
 * is refused. */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plain_logsum.h"
#include "table_model.h"

static const float five[5] = {2, 1, 0.5f, 0, -1};
static const int32_t three[3] = {1, 2, 3};

/* A session on its own model. */
typedef struct fixture {
    table_model table;
    nib_model *model;
    nib_session *session;
} fixture;

static void open_fixture(fixture *f, table_model table, table_functions functions) {
    f->table = table;
    f->model = table_model_open(&f->table, functions);
    f->session = new_session(f->model);
}

static void close_fixture(fixture *f) {
    nib_session_free(f->session);
    nib_model_free(f->model);
}

/* A five-token model with the same logits everywhere. */
static table_model flat(const float *logits) {
    table_model table = TABLE_MODEL_INIT;
    table.V = 5;
    table.table = logits;
    table.n_rows = 1;
    return table;
}

static nib_generate_options drawn(uint64_t seed) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.has_seed = 1;
    options.seed = seed;
    options.max_new_tokens = 20;
    return options;
}

static void refused(fixture *f, const nib_prompt *prompts, size_t n, const nib_generate_options *options,
                    nib_status expected, const char *texts) {
    nib_error err;
    nib_result *result = (nib_result *)(uintptr_t)1;
    must_fail(nib_generate(&result, f->session, prompts, n, options, NULL, NULL, &err), expected, &err, texts);
    assert_null(result);
}

/* ---- lengths ---- */

static size_t new_tokens(fixture *f, const nib_generate_options *options, size_t n_prompt, nib_finish finish) {
    int32_t ids[TABLE_ROOM] = {0};
    nib_result *result = generate_one(f->session, ids, n_prompt, options);
    size_t n = result->rows[0].n;
    assert_int_equal(result->rows[0].finish, finish);
    assert_int_equal(result->lengths[0], n_prompt + n);
    nib_result_free(result);
    return n;
}

static void lengths_follow_the_two_limits(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_STEP);
    const struct {
        int64_t max_new, max_length;
        size_t n_prompt, n;
    } cases[] = {
        {NIB_UNSET, NIB_UNSET, 3, 100}, {NIB_UNSET, 10, 3, 7}, {NIB_UNSET, 10, 10, 0},
        {NIB_UNSET, 10, 11, 0},         {NIB_UNSET, 10, 9, 1}, {NIB_UNSET, 0, 3, 0},
        {5, NIB_UNSET, 3, 5},           {5, 6, 3, 5},          {5, 2, 3, 5},
        {0, NIB_UNSET, 3, 0},           {0, 50, 3, 0},         {INT32_MAX, 4, 3, 253},
        {NIB_UNSET, INT32_MAX, 3, 253},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
        options.max_new_tokens = cases[i].max_new;
        options.max_length = cases[i].max_length;
        assert_int_equal(new_tokens(&f, &options, cases[i].n_prompt, NIB_FINISH_LENGTH), cases[i].n);
    }
    assert_int_equal(new_tokens(&f, NULL, 3, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

static void a_prompt_that_fills_the_context_is_refused_each_time(void **state) {
    (void)state;
    fixture f;
    int32_t ids[1000] = {0};
    table_model table = TABLE_MODEL_INIT;
    table.context = 64;
    open_fixture(&f, table, TABLE_FORWARD);
    for (int round = 0; round < 2; round++) {
        refused(&f, &(nib_prompt){ids, 64}, 1, NULL, NIB_EFULL, "prompt 0|64 tokens|context of 64");
        refused(&f, &(nib_prompt){ids, 65}, 1, NULL, NIB_EFULL, "prompt 0|65 tokens|context of 64");
        refused(&f, (nib_prompt[]){{ids, 3}, {ids, 1000}}, 2, NULL, NIB_EFULL, "prompt 1|1000 tokens|context of 64");
        assert_int_equal(new_tokens(&f, NULL, 63, NIB_FINISH_LENGTH), 1);
        nib_generate_options options = drawn(1);
        options.max_new_tokens = 100;
        assert_int_equal(new_tokens(&f, &options, 40, NIB_FINISH_LENGTH), 24);
    }
    close_fixture(&f);
}

/* ---- prompts ---- */

static void an_empty_prompt_begins_with_the_start_token(void **state) {
    (void)state;
    fixture f;
    const int32_t start[] = {7};
    table_model table = TABLE_MODEL_INIT;
    table.start_id = 7;
    open_fixture(&f, table, TABLE_FORWARD);
    nib_generate_options options = drawn(3);
    nib_result *empty = generate_one(f.session, NULL, 0, &options);
    nib_result *given = generate_one(f.session, start, 1, &options);
    assert_int_equal(empty->rows[0].n_prompt, 1);
    check_same_row(&empty->rows[0], &given->rows[0]);
    nib_result_free(empty);
    nib_result_free(given);
    close_fixture(&f);
}

static void bad_prompts_are_refused_by_row_and_index(void **state) {
    (void)state;
    fixture f;
    const int32_t minus[] = {0, -1}, above[] = {0, 1, 50}, largest[] = {INT32_MAX};
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    refused(&f, NULL, 0, NULL, NIB_EINVAL, "prompts: none");
    refused(&f, &(nib_prompt){three, 3}, 0, NULL, NIB_EINVAL, "prompts: none");
    refused(&f, NULL, 2, NULL, NIB_EINVAL, "prompts: none");
    refused(&f, (nib_prompt[]){{three, 3}, {NULL, 0}}, 2, NULL, NIB_EINVAL, "prompt 1|empty|start token");
    refused(&f, (nib_prompt[]){{three, 3}, {NULL, 2}}, 2, NULL, NIB_EINVAL, "prompt 1|NULL");
    refused(&f, (nib_prompt[]){{three, 3}, {minus, 2}}, 2, NULL, NIB_EINVAL, "prompt 1|id -1 at index 1|0 to 49");
    refused(&f, &(nib_prompt){above, 3}, 1, NULL, NIB_EINVAL, "prompt 0|id 50 at index 2|0 to 49");
    refused(&f, &(nib_prompt){largest, 1}, 1, NULL, NIB_EINVAL, "id 2147483647 at index 0");
    assert_int_equal(f.table.n_forward, 0);
    assert_int_equal(new_tokens(&f, NULL, 3, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

/* ---- the result ---- */

static void check_pad(table_model table, int64_t option, int32_t pad) {
    fixture f;
    const int32_t one[] = {9};
    nib_result *result;
    nib_error err;
    open_fixture(&f, table, TABLE_FORWARD);
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.max_length = 5;
    options.pad_id = option;
    const int32_t six[] = {1, 2, 3, 4, 5, 6};
    must(
        nib_generate(&result, f.session, (nib_prompt[]){{one, 1}, {six, 6}, {three, 3}}, 3, &options, NULL, NULL, &err),
        &err);
    assert_int_equal(result->B, 3);
    assert_int_equal(result->T, 6);
    const size_t lengths[] = {5, 6, 5};
    for (size_t b = 0; b < 3; b++) {
        assert_int_equal(result->lengths[b], lengths[b]);
        assert_int_equal(result->rows[b].row, b);
        assert_memory_equal(result->ids + b * 6, result->rows[b].ids, lengths[b] * sizeof(int32_t));
    }
    assert_memory_equal(result->rows[1].ids, six, sizeof six);
    assert_int_equal(result->rows[1].n, 0);
    assert_int_equal(result->ids[5], pad);
    assert_int_equal(result->ids[17], pad);
    nib_result_free(result);
    close_fixture(&f);
}

static void the_table_is_filled_with_pad(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    check_pad(table, NIB_UNSET, 0);
    table.pad_id = 11;
    check_pad(table, NIB_UNSET, 11);
    check_pad(table, 13, 13);
    check_pad(table, 0, 0);
}

/* ---- ends ---- */

static const int32_t two_then_three[] = {2, 3};

/* Rows of logits that write 1, 2, 3, 4 after a prompt of one token. */
static const float counting[4][5] = {{0, 9, 0, 0, 0}, {0, 0, 9, 0, 0}, {0, 0, 0, 9, 0}, {0, 0, 0, 0, 9}};

static void check_end(int32_t own_end, const nib_generate_options *options, size_t n, nib_finish finish) {
    fixture f;
    table_model table = flat(counting[0]);
    table.n_rows = 4;
    table.end_id = own_end;
    open_fixture(&f, table, TABLE_FORWARD);
    nib_result *result = generate_one(f.session, (const int32_t[]){0}, 1, options);
    const nib_row *row = &result->rows[0];
    assert_int_equal(row->n, n);
    assert_int_equal(row->finish, finish);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(row->ids[1 + i], i < 3 ? i + 1 : 4);
        assert_true(row->logprobs[i] <= 0 && row->logprobs[i] > -0.01f);
    }
    assert_null(row->text);
    nib_result_free(result);
    close_fixture(&f);
}

static void ends_are_the_models_own_replaced_or_added_to(void **state) {
    (void)state;
    nib_generate_options plain = NIB_GENERATE_OPTIONS_INIT;
    plain.do_sample = NIB_DO_SAMPLE_NO;
    plain.max_new_tokens = 6;
    check_end(-1, &plain, 6, NIB_FINISH_LENGTH);
    check_end(2, &plain, 2, NIB_FINISH_STOP);
    nib_generate_options options = plain;
    options.eos_id = two_then_three + 1;
    options.n_eos_id = 1;
    check_end(2, &options, 3, NIB_FINISH_STOP); /* 2 ends nothing any more */
    options.eos_id = two_then_three;
    options.n_eos_id = 2;
    check_end(1, &options, 2, NIB_FINISH_STOP);
    options = plain;
    options.stop_id = two_then_three;
    options.n_stop_id = 1;
    check_end(4, &options, 2, NIB_FINISH_STOP);
    check_end(1, &options, 1, NIB_FINISH_STOP);
    options.ignore_eos = NIB_IGNORE_EOS_YES;
    check_end(1, &options, 2, NIB_FINISH_STOP); /* a stop id stops all the same */
    options.n_stop_id = 0;
    check_end(1, &options, 6, NIB_FINISH_LENGTH);
    options.max_new_tokens = 2; /* an end at the limit is an end */
    options.ignore_eos = NIB_IGNORE_EOS_NO;
    check_end(2, &options, 2, NIB_FINISH_STOP);
}

/* ---- sampling ---- */

/* Which of five tokens 400 draws give, a bit each. */
static unsigned support(fixture *f, nib_generate_options options) {
    unsigned set = 0;
    options.max_new_tokens = 200;
    for (int sampler = 0; sampler < 2; sampler++) {
        options.sampler = sampler;
        nib_result *result = generate_one(f->session, three, 3, &options);
        for (size_t i = 0; i < result->rows[0].n; i++) {
            set |= 1u << result->rows[0].ids[3 + i];
        }
        nib_result_free(result);
    }
    return set;
}

static void filters_take_their_edge_values(void **state) {
    (void)state;
    fixture f;
    const double p[] = {0, 0.5, 0.8, 1};
    const unsigned p_sets[] = {1, 1, 7, 31};
    const int64_t k[] = {0, 1, 2, 4, 5, 6, INT32_MAX, INT64_MAX};
    const unsigned k_sets[] = {31, 1, 3, 15, 31, 31, 31, 31};
    open_fixture(&f, flat(five), TABLE_FORWARD);
    for (size_t i = 0; i < 4; i++) {
        nib_generate_options options = drawn(5);
        options.top_p = p[i];
        assert_int_equal(support(&f, options), p_sets[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        nib_generate_options options = drawn(6);
        options.top_k = k[i];
        assert_int_equal(support(&f, options), k_sets[i]);
    }
    nib_generate_options all = drawn(7);
    all.min_p = 0.2;
    assert_int_equal(support(&f, all), 7);
    all.top_k = 2;
    assert_int_equal(support(&f, all), 3);
    close_fixture(&f);
}

static void tiny_temperatures_are_greedy(void **state) {
    (void)state;
    fixture f;
    const double temperatures[] = {0, 1e-40, DBL_MIN, 1e-12, 1e-5};
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    nib_generate_options options = drawn(8);
    options.do_sample = NIB_DO_SAMPLE_NO;
    nib_result *greedy = generate_one(f.session, three, 3, &options);
    options.do_sample = NIB_DO_SAMPLE_UNSET;
    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++) {
        options.temperature = temperatures[i];
        nib_result *result = generate_one(f.session, three, 3, &options);
        check_same_row(&result->rows[0], &greedy->rows[0]);
        nib_result_free(result);
    }
    nib_result_free(greedy);
    close_fixture(&f);
}

static void do_sample_and_temperature_decide_together(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, flat(five), TABLE_FORWARD);
    nib_generate_options options = drawn(9);
    assert_int_equal(support(&f, options), 31); /* unset, 1 */
    options.do_sample = NIB_DO_SAMPLE_YES;
    assert_int_equal(support(&f, options), 31);
    options.do_sample = NIB_DO_SAMPLE_NO;
    assert_int_equal(support(&f, options), 1);
    options.temperature = 0;
    assert_int_equal(support(&f, options), 1);
    options.do_sample = NIB_DO_SAMPLE_UNSET;
    assert_int_equal(support(&f, options), 1);
    options.do_sample = NIB_DO_SAMPLE_YES;
    refused(&f, &(nib_prompt){three, 3}, 1, &options, NIB_EINVAL, "do_sample|temperature 0");
    close_fixture(&f);
}

static void penalties_reach_prompt_and_output_once(void **state) {
    (void)state;
    fixture f;
    const float logits[5] = {2, -1, 0.5f, -9, -9};
    const int32_t seen[] = {0, 1, 1, 0};
    const float penalised[5] = {1, -2, 0.5f, -9, -9};
    open_fixture(&f, flat(logits), TABLE_FORWARD);
    nib_generate_options options = drawn(10);
    options.max_new_tokens = 1;
    options.repetition_penalty = 2;
    options.logprobs = NIB_LOGPROBS_PROCESSED;
    for (int32_t id = 0; id < 3; id++) {
        options.do_sample = NIB_DO_SAMPLE_UNSET;
        for (uint64_t seed = 0;; seed++) { /* until the draw is that token */
            options.seed = seed;
            nib_result *result = generate_one(f.session, seen, 4, &options);
            int32_t got = result->rows[0].ids[4];
            float logprob = result->rows[0].logprobs[0];
            nib_result_free(result);
            if (got == id) {
                plain_sum sum = plain_logsum(penalised, 5);
                float expected = (float)((double)penalised[id] - sum.max - nib_log(sum.total));
                assert_memory_equal(&logprob, &expected, sizeof expected);
                break;
            }
        }
    }
    close_fixture(&f);
}

static void logprobs_are_raw_unless_asked_for_otherwise(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, flat(five), TABLE_FORWARD);
    nib_generate_options options = drawn(11);
    options.top_k = 1;
    options.temperature = 0.25;
    nib_result *raw = generate_one(f.session, three, 3, &options);
    options.logprobs = NIB_LOGPROBS_PROCESSED;
    nib_result *processed = generate_one(f.session, three, 3, &options);
    plain_sum sum = plain_logsum(five, 5);
    float expected = (float)(2.0 - sum.max - nib_log(sum.total));
    for (size_t i = 0; i < 20; i++) {
        assert_memory_equal(&raw->rows[0].logprobs[i], &expected, sizeof expected);
        assert_true(processed->rows[0].logprobs[i] == 0.0f);
    }
    nib_result_free(raw);
    nib_result_free(processed);
    close_fixture(&f);
}

/* ---- seeds and batches ---- */

static const uint64_t seeds[] = {0, 1, UINT32_MAX, UINT64_MAX};

static void every_seed_is_one_and_repeats(void **state) {
    (void)state;
    fixture f;
    nib_result *results[4];
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    for (size_t i = 0; i < 4; i++) {
        nib_generate_options options = drawn(seeds[i]);
        results[i] = generate_one(f.session, three, 3, &options);
        nib_result *again = generate_one(f.session, three, 3, &options);
        check_same_row(&again->rows[0], &results[i]->rows[0]);
        assert_true(results[i]->seed == seeds[i]);
        nib_result_free(again);
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(results[j]->rows[0].ids, results[i]->rows[0].ids, 23 * sizeof(int32_t));
        }
    }
    for (size_t i = 0; i < 4; i++) {
        nib_result_free(results[i]);
    }
    close_fixture(&f);
}

static void a_seed_nobody_gave_is_reported_and_repeats(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    nib_result *result = generate_one(f.session, three, 3, NULL);
    nib_generate_options options = drawn(result->seed);
    options.max_new_tokens = 100;
    nib_result *again = generate_one(f.session, three, 3, &options);
    check_same_row(&result->rows[0], &again->rows[0]);
    nib_result *other = generate_one(f.session, three, 3, NULL);
    assert_true(other->seed != result->seed);
    nib_result_free(result);
    nib_result_free(again);
    nib_result_free(other);
    close_fixture(&f);
}

static void neither_order_nor_neighbours_change_a_row(void **state) {
    (void)state;
    fixture f;
    const int32_t one[] = {9}, two[] = {1, 2};
    const nib_prompt prompts[] = {{one, 1}, {two, 2}, {three, 3}}, turned[] = {{three, 3}, {one, 1}, {two, 2}};
    const size_t place[] = {1, 2, 0};
    nib_result *batch, *other;
    nib_error err;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_STEP);
    for (size_t s = 0; s < 4; s++) {
        nib_generate_options options = drawn(seeds[s]);
        must(nib_generate(&batch, f.session, prompts, 3, &options, NULL, NULL, &err), &err);
        must(nib_generate(&other, f.session, turned, 3, &options, NULL, NULL, &err), &err);
        for (size_t i = 0; i < 3; i++) {
            nib_result *alone = generate_one(f.session, prompts[i].ids, prompts[i].n, &options);
            check_same_row(&batch->rows[i], &other->rows[place[i]]);
            check_same_row(&batch->rows[i], &alone->rows[0]);
            nib_result_free(alone);
        }
        nib_result_free(batch);
        nib_result_free(other);
    }
    close_fixture(&f);
}

static void candidate_0_is_the_single_run_and_the_others_differ(void **state) {
    (void)state;
    fixture f;
    nib_result *many;
    nib_error err;
    const int32_t one[] = {9};
    const nib_prompt prompts[] = {{three, 3}, {one, 1}};
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    nib_generate_options options = drawn(12);
    nib_result *single = generate_one(f.session, three, 3, &options);
    options.num_return = 4;
    must(nib_generate(&many, f.session, prompts, 2, &options, NULL, NULL, &err), &err);
    assert_int_equal(many->B, 8);
    check_same_row(&many->rows[0], &single->rows[0]);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(many->rows[i].row, i / 4);
        assert_int_equal(many->rows[i].index, i % 4);
        for (size_t j = i / 4 * 4; j < i; j++) {
            assert_memory_not_equal(many->rows[i].ids, many->rows[j].ids, many->lengths[i] * sizeof(int32_t));
        }
    }
    nib_result_free(single);
    nib_result_free(many);
    close_fixture(&f);
}

/* ---- the callback and cancelling ---- */

/* What a callback saw and when it ends things. */
typedef struct watcher {
    size_t calls, end_at; /* the call that answers 1, from 1; 0: none */
    size_t cancel_at;     /* the call that cancels the session */
    nib_session *session;
    nib_token last;
    int32_t ids[TABLE_ROOM];
} watcher;

static int watch(const nib_token *token, void *user) {
    watcher *w = user;
    w->ids[w->calls % TABLE_ROOM] = token->id;
    w->calls++;
    w->last = *token;
    if (w->calls == w->cancel_at) {
        nib_session_cancel(w->session);
    }
    return w->calls == w->end_at ? 1 : 0;
}

static nib_result *watched(fixture *f, watcher *w) {
    nib_result *result;
    nib_error err;
    nib_generate_options options = drawn(13);
    w->session = f->session;
    must(nib_generate(&result, f->session, (nib_prompt[]){{three, 3}, {three, 3}, {three, 2}}, 3, &options, watch, w,
                      &err),
         &err);
    return result;
}

static void the_callback_sees_every_token(void **state) {
    (void)state;
    fixture f;
    watcher w = {0};
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    nib_result *result = watched(&f, &w);
    assert_int_equal(w.calls, 60);
    for (size_t i = 0; i < 60; i++) { /* in rounds over the rows */
        const nib_row *row = &result->rows[i % 3];
        assert_int_equal(w.ids[i], row->ids[row->n_prompt + i / 3]);
    }
    assert_int_equal(w.last.row, 2);
    assert_int_equal(w.last.pos, 21);
    assert_int_equal(w.last.finish, NIB_FINISH_LENGTH);
    assert_null(w.last.text);
    nib_result_free(result);
    close_fixture(&f);
}

/* The rows have what `calls` calls gave them in rounds; those that had not ended are cancelled. */
static void check_cancelled(const nib_result *result, size_t calls) {
    assert_int_equal(result->B, 3);
    for (size_t i = 0; i < 3; i++) {
        size_t n = calls / 3 + (i < calls % 3);
        assert_int_equal(result->rows[i].n, n);
        assert_int_equal(result->rows[i].finish, n == 20 ? NIB_FINISH_LENGTH : NIB_FINISH_CANCELLED);
        assert_int_equal(result->lengths[i], result->rows[i].n_prompt + result->rows[i].n);
    }
}

static void a_callback_ends_all_that_have_not_ended(void **state) {
    (void)state;
    fixture f;
    const size_t ends[] = {1, 2, 3, 5, 57, 58, 59, 60};
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    for (size_t i = 0; i < 8; i++) {
        watcher w = {.end_at = ends[i]};
        nib_result *result = watched(&f, &w);
        check_cancelled(result, ends[i]);
        assert_int_equal(w.calls, ends[i]); /* never again */
        nib_result_free(result);
    }
    assert_int_equal(new_tokens(&f, NULL, 3, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

static void a_session_cancelled_within_a_callback_ends_after_that_round(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    watcher w = {.cancel_at = 25}; /* the first of a round of three */
    nib_result *result = watched(&f, &w);
    check_cancelled(result, 27);
    nib_result_free(result);
    assert_int_equal(new_tokens(&f, NULL, 3, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

static void a_session_cancelled_before_ends_the_next_call_only(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    nib_session_cancel(f.session);
    watcher w = {0};
    nib_result *result = watched(&f, &w);
    check_cancelled(result, 0);
    nib_result_free(result);
    assert_int_equal(f.table.n_forward, 0);
    assert_int_equal(new_tokens(&f, NULL, 3, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

static void a_prompt_is_cancelled_while_it_is_encoded(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_STEP);
    f.table.cancel = f.session;
    f.table.cancel_at = 4;
    assert_int_equal(new_tokens(&f, NULL, 40, NIB_FINISH_CANCELLED), 0);
    assert_int_equal(f.table.n_step, 4);
    f.table.cancel = NULL;
    assert_int_equal(new_tokens(&f, NULL, 40, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

static void *cancel_session(void *session) {
    nib_session_cancel(session);
    return NULL;
}

/* A callback that lets another thread cancel, once, and waits for it: no time is measured. */
static int cancel_by_thread(const nib_token *token, void *user) {
    watcher *w = user;
    pthread_t thread;
    if (token->pos == 9 && token->row == 0) {
        assert_int_equal(pthread_create(&thread, NULL, cancel_session, w->session), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    return 0;
}

static void another_thread_cancels(void **state) {
    (void)state;
    fixture f;
    nib_result *result;
    nib_error err;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    watcher w = {.session = f.session};
    must(nib_generate(&result, f.session, &(nib_prompt){three, 3}, 1, NULL, cancel_by_thread, &w, &err), &err);
    assert_int_equal(result->rows[0].finish, NIB_FINISH_CANCELLED);
    assert_int_equal(result->rows[0].n, 7);
    nib_result_free(result);
    assert_int_equal(new_tokens(&f, NULL, 3, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

/* ---- what is refused ---- */

static void logits_that_are_none_are_an_error_with_row_and_position(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -NAN};
    for (size_t i = 0; i < 3; i++) {
        for (size_t at = 0; at < 5; at += 2) {
            fixture f;
            float rows[2][5];
            memcpy(rows[0], five, sizeof five);
            memcpy(rows[1], five, sizeof five);
            rows[1][at] = bad[i];
            table_model table = flat(rows[0]);
            table.n_rows = 2;
            open_fixture(&f, table, TABLE_FORWARD);
            nib_generate_options options = drawn(14);
            const nib_prompt prompts[] = {{three, 1}, {three, 1}};
            refused(&f, prompts, 2, &options, NIB_ENUMERIC, "row 0|position 2");
            options.max_new_tokens = 1;
            const nib_prompt second[] = {{three, 1}, {three, 2}};
            refused(&f, second, 2, &options, NIB_ENUMERIC, "row 1|position 2");
            close_fixture(&f);
        }
    }
}

static void no_finite_logit_is_an_error_and_minus_infinity_is_not(void **state) {
    (void)state;
    fixture f;
    float logits[5] = {-INFINITY, -INFINITY, 1, -INFINITY, -INFINITY};
    open_fixture(&f, flat(logits), TABLE_FORWARD);
    nib_generate_options options = drawn(15);
    assert_int_equal(support(&f, options), 4);
    logits[2] = -INFINITY;
    refused(&f, &(nib_prompt){three, 3}, 1, &options, NIB_ENUMERIC, "row 0|position 3");
    options.do_sample = NIB_DO_SAMPLE_NO;
    refused(&f, &(nib_prompt){three, 3}, 1, &options, NIB_ENUMERIC, "row 0|position 3");
    logits[1] = 0;
    assert_int_equal(support(&f, options), 2); /* usable afterwards */
    close_fixture(&f);
}

static void impossible_options_are_refused_before_anything_runs(void **state) {
    (void)state;
    fixture f;
    const int32_t bad[] = {3, 50};
    const nib_text stop = {"x", 1};
    nib_generate_options o;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    const nib_prompt p = {three, 3};
    const double temperatures[] = {-1, -1e-300, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 5; i++) {
        o = drawn(1);
        o.temperature = temperatures[i];
        refused(&f, &p, 1, &o, NIB_EINVAL, "temperature|expected 0 to");
    }
    o = drawn(1), o.size = 3;
    refused(&f, &p, 1, &o, NIB_EINVAL, "nib_generate_options.size: 3");
    o = drawn(1), o.stop_id = bad, o.n_stop_id = 2;
    refused(&f, &p, 1, &o, NIB_EINVAL, "stop_id|50|number 1");
    o = drawn(1), o.eos_id = bad + 1, o.n_eos_id = 1;
    refused(&f, &p, 1, &o, NIB_EINVAL, "eos_id|50|0 to 49");
    o = drawn(1), o.pad_id = 50;
    refused(&f, &p, 1, &o, NIB_EINVAL, "pad_id|50");
    o = drawn(1), o.stop = &stop, o.n_stop = 1;
    refused(&f, &p, 1, &o, NIB_EUNSUPPORTED, "stop|no tokenizer");
    assert_int_equal(f.table.n_forward, 0);
    close_fixture(&f);
}

static void a_failing_function_of_the_caller_is_reported(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, (table_model)TABLE_MODEL_INIT, TABLE_FORWARD);
    f.table.fail_at = 3;
    refused(&f, &(nib_prompt){three, 3}, 1, NULL, NIB_ECALLBACK, "7|position 4");
    f.table.fail_at = 0;
    assert_int_equal(new_tokens(&f, NULL, 3, NIB_FINISH_LENGTH), 100);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_follow_the_two_limits),
        cmocka_unit_test(a_prompt_that_fills_the_context_is_refused_each_time),
        cmocka_unit_test(an_empty_prompt_begins_with_the_start_token),
        cmocka_unit_test(bad_prompts_are_refused_by_row_and_index),
        cmocka_unit_test(the_table_is_filled_with_pad),
        cmocka_unit_test(ends_are_the_models_own_replaced_or_added_to),
        cmocka_unit_test(filters_take_their_edge_values),
        cmocka_unit_test(tiny_temperatures_are_greedy),
        cmocka_unit_test(do_sample_and_temperature_decide_together),
        cmocka_unit_test(penalties_reach_prompt_and_output_once),
        cmocka_unit_test(logprobs_are_raw_unless_asked_for_otherwise),
        cmocka_unit_test(every_seed_is_one_and_repeats),
        cmocka_unit_test(a_seed_nobody_gave_is_reported_and_repeats),
        cmocka_unit_test(neither_order_nor_neighbours_change_a_row),
        cmocka_unit_test(candidate_0_is_the_single_run_and_the_others_differ),
        cmocka_unit_test(the_callback_sees_every_token),
        cmocka_unit_test(a_callback_ends_all_that_have_not_ended),
        cmocka_unit_test(a_session_cancelled_within_a_callback_ends_after_that_round),
        cmocka_unit_test(a_session_cancelled_before_ends_the_next_call_only),
        cmocka_unit_test(a_prompt_is_cancelled_while_it_is_encoded),
        cmocka_unit_test(another_thread_cancels),
        cmocka_unit_test(logits_that_are_none_are_an_error_with_row_and_position),
        cmocka_unit_test(no_finite_logit_is_an_error_and_minus_infinity_is_not),
        cmocka_unit_test(impossible_options_are_refused_before_anything_runs),
        cmocka_unit_test(a_failing_function_of_the_caller_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
