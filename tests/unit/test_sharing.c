/* What sessions save, in counts: tokens that are not encoded again, pages that rows have in common, pages that are given
 * back, bytes that are read; and what a static cache refuses before anything is computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/model.h"
#include "quant_model.h"
#include "table_model.h"

enum { MOST = 2000, V = 256 };

static void make_text(int32_t *ids, size_t n, uint64_t stream) {
    for (size_t i = 0; i < n; i++) {
        ids[i] = (int32_t)(nib_mix64(stream, i) % V);
    }
}

static nib_model *open_random(const char *name) {
    nib_model *model;
    nib_error err;
    must(nib_model_open(&model, name, NULL, &err), &err);
    return model;
}

static nib_session *session_with(nib_model *model, int cache, int64_t max_cache_len, int64_t max_rows) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_session *session;
    nib_error err;
    options.cache = cache;
    options.max_cache_len = max_cache_len;
    options.max_rows = max_rows;
    options.threads = 2;
    must(nib_session_new(&session, model, &options, &err), &err);
    return session;
}

static nib_session_stats stats_of(const nib_session *session) {
    nib_session_stats stats = {.size = sizeof stats};
    nib_error err;
    must(nib_session_get_stats(&stats, session, &err), &err);
    return stats;
}

static nib_generate_options take(int64_t n_new, int64_t n_return) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.max_new_tokens = n_new;
    options.num_return = n_return;
    options.has_seed = 1;
    options.seed = 3;
    return options;
}

static void run(nib_session *session, const nib_prompt *prompts, size_t n, nib_generate_options options) {
    nib_result *result;
    nib_error err;
    must(nib_generate(&result, session, prompts, n, &options, NULL, NULL, &err), &err);
    nib_result_free(result);
}

/* Bytes of a page of one layer, k and v. */
static size_t page_bytes(const nib_model *model) {
    return (size_t)(model->config.K * model->config.E) * 2 * 64 * sizeof(uint16_t);
}

/* ---- tokens ---- */

static void a_second_prompt_encodes_what_differs(void **state) {
    (void)state;
    int32_t a[MOST], b[MOST];
    nib_model *model = open_random("random:llama-tiny,max_seq_len=2048,n_layers=1");
    nib_session *session = session_with(model, NIB_CACHE_DYNAMIC, NIB_UNSET, 32);
    make_text(a, 950, 1);
    memcpy(b, a, 900 * sizeof b[0]);
    make_text(b + 900, 100, 2);
    run(session, &(nib_prompt){a, 950}, 1, take(5, 1));
    assert_int_equal(stats_of(session).tokens_encoded, 950 + 4);
    run(session, &(nib_prompt){b, 1000}, 1, take(5, 1));
    assert_int_equal(stats_of(session).tokens_encoded, 954 + 100 + 4);
    assert_int_equal(stats_of(session).tokens_reused, 900);
    assert_int_equal(stats_of(session).tokens_again, 0);
    nib_session_free(session);
    /* In one call too. */
    session = session_with(model, NIB_CACHE_DYNAMIC, NIB_UNSET, 32);
    run(session, (nib_prompt[]){{a, 950}, {b, 1000}, {a, 920}}, 3, take(5, 1));
    assert_int_equal(stats_of(session).tokens_encoded, 950 + 100 + 1 + 3 * 4);
    nib_session_free(session);
    nib_model_free(model);
}

static void rows_that_ended_cost_nothing(void **state) {
    (void)state;
    int32_t ids[MOST];
    nib_model *model = open_random("random:llama-tiny");
    nib_session *session = session_with(model, NIB_CACHE_DYNAMIC, NIB_UNSET, 32);
    nib_generate_options each[3] = {take(1, 1), take(20, 1), take(7, 1)};
    const nib_generate_options *options[3] = {&each[0], &each[1], &each[2]};
    nib_result *result;
    nib_error err;
    make_text(ids, 30, 1);
    must(nib_generate_each(&result, session, (nib_prompt[]){{ids, 10}, {ids + 10, 10}, {ids + 20, 10}}, 3, options,
                           NULL, NULL, &err),
         &err);
    assert_int_equal(stats_of(session).tokens_encoded, 3 * 10 + 0 + 19 + 6);
    assert_int_equal(stats_of(session).forward_passes,
                     20); /* the prompts, then one for each token of the longest row */
    nib_result_free(result);
    nib_session_free(session);
    nib_model_free(model);
}

/* ---- pages ---- */

static void candidates_share_the_pages_of_the_prompt(void **state) {
    (void)state;
    int32_t ids[MOST];
    nib_model *model = open_random("random:llama-tiny,max_seq_len=2048,n_layers=2");
    nib_session *session = session_with(model, NIB_CACHE_DYNAMIC, NIB_UNSET, 32);
    make_text(ids, 10 * 64 + 30, 1);
    run(session, &(nib_prompt){ids, 10 * 64 + 30}, 1, take(20, 8));
    assert_int_equal(stats_of(session).tokens_encoded, 10 * 64 + 30 + 8 * 19);
    assert_int_equal(stats_of(session).cache_peak_bytes, (10 + 8) * 2 * page_bytes(model));
    nib_session_free(session);
    nib_model_free(model);
}

/* Two layers with a window of 40, and two rows; what is behind the window is given back while they grow. */
static void memory_stays_flat_beyond_the_window(void **state) {
    (void)state;
    quant_spec spec = {.name = "window of 40",
                       .arch = "gemma3",
                       .D = 32,
                       .L = 2,
                       .H = 2,
                       .K = 1,
                       .E = 16,
                       .F = 32,
                       .V = V,
                       .window = 40,
                       .n_types = 1,
                       .types = {NIB_F32},
                       .tied = 1,
                       .context = MOST};
    size_t len, peak = 0;
    unsigned char *file = quant_file(&len, &spec);
    nib_model *model = quant_open(file, len, NIB_COMPUTE_FAST, NIB_CPU_AUTO);
    const int64_t n_new[] = {200, 1500};
    for (size_t i = 0; i < 2; i++) {
        int32_t ids[2] = {1, 2};
        nib_session *session = session_with(model, NIB_CACHE_DYNAMIC, NIB_UNSET, 32);
        nib_generate_options options = take(n_new[i], 1);
        options.ignore_eos = 1;
        run(session, (nib_prompt[]){{ids, 1}, {ids + 1, 1}}, 2, options);
        peak = i == 0 ? stats_of(session).cache_peak_bytes : peak;
        assert_int_equal(stats_of(session).cache_peak_bytes, peak);
        assert_true(peak <= 2 * 2 * 2 * (size_t)(16 * 2 * 64) * sizeof(uint16_t)); /* rows, layers, pages */
        nib_session_free(session);
    }
    nib_model_free(model);
    free(file);
}

static void a_static_cache_reads_what_a_dynamic_one_reads(void **state) {
    (void)state;
    int32_t ids[MOST];
    nib_model *model = open_random("random:llama-tiny,max_seq_len=1000000,n_layers=2");
    uint64_t expected = 0;
    make_text(ids, 300, 1);
    const int64_t lengths[] = {NIB_UNSET, NIB_UNSET, 330, 1000000};
    for (size_t i = 0; i < 4; i++) {
        nib_session *session = session_with(model, i == 0 ? NIB_CACHE_DYNAMIC : NIB_CACHE_STATIC, lengths[i], 4);
        run(session, (nib_prompt[]){{ids, 100}, {ids + 100, 200}}, 2, take(30, 2));
        nib_session_stats stats = stats_of(session);
        expected = i == 0 ? stats.cache_read_bytes : expected;
        assert_true(stats.cache_read_bytes == expected && expected > 0);
        nib_session_free(session);
    }
    nib_model_free(model);
}

/* ---- what cannot fit ---- */

static void a_row_too_long_for_a_static_cache_is_refused_at_once(void **state) {
    (void)state;
    int32_t ids[MOST];
    nib_model *model = open_random("random:llama-tiny");
    nib_session *session = session_with(model, NIB_CACHE_STATIC, 64, 32);
    nib_generate_options options = take(25, 1);
    nib_result *result;
    nib_error err;
    make_text(ids, 100, 1);
    must_fail(nib_generate(&result, session, (nib_prompt[]){{ids, 10}, {ids, 40}}, 2, &options, NULL, NULL, &err),
              NIB_EFULL, &err, "prompt 1|40|25|65|max_cache_len 64");
    assert_null(result);
    assert_int_equal(stats_of(session).tokens_encoded, 0);
    float logits[V];
    must_fail(nib_session_logits(logits, session, ids, 65, 64, &err), NIB_EFULL, &err, "65|max_cache_len 64");
    run(session, &(nib_prompt){ids, 39}, 1, options);
    nib_session_free(session);
    nib_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_prompt_encodes_what_differs),
        cmocka_unit_test(rows_that_ended_cost_nothing),
        cmocka_unit_test(candidates_share_the_pages_of_the_prompt),
        cmocka_unit_test(memory_stays_flat_beyond_the_window),
        cmocka_unit_test(a_static_cache_reads_what_a_dynamic_one_reads),
        cmocka_unit_test(a_row_too_long_for_a_static_cache_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
