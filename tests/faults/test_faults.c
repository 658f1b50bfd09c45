/* Allocations fail: the first, or the second, and so on, and all behind it, until a call succeeds. Each failing call
 * answers NIB_ENOMEM and gives nothing out; what it was called on works afterwards as if nothing had been. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "script_model.h"
#include "table_model.h"

/* What a call under faults works on and gives. */
typedef struct subject {
    nib_model *model;
    nib_session *session;
    const unsigned char *file; /* [len] */
    size_t len;
} subject;

/* Runs a call; checks and frees what it gives. Returns its status. */
typedef nib_status (*call_fn)(subject *s, nib_error *err);

/* Runs the call with a fault at its n-th allocation. Returns whether it succeeded without meeting one. */
static bool run_with_fault(call_fn call, subject *s, size_t n) {
    nib_error err = {NIB_OK, ""};
    nib_alloc_fail_at(n);
    nib_status status = call(s, &err);
    size_t count = nib_alloc_count();
    nib_alloc_fail_at(0);
    if (status == NIB_OK) {
        if (count >= n) {
            fail_msg("allocation %zu of %zu failed and the call succeeded", n, count);
        }
        return true;
    }
    must_fail(status, NIB_ENOMEM, &err, "memory");
    return false;
}

/* Faults at every allocation of the call; each time it must succeed right after, on the same subject. A call that keeps
 * what it allocated is given a new session each time. Returns the number of allocations. */
static size_t fail_everywhere(call_fn call, subject *s) {
    for (size_t n = 1;; n++) {
        nib_error err;
        bool fresh = s->session != NULL;
        if (fresh) {
            nib_session_free(s->session);
            s->session = new_session(s->model);
        }
        if (run_with_fault(call, s, n)) {
            return n - 1;
        }
        must(call(s, &err), &err);
    }
}

static const script_piece pieces[] = {{" one", 4}, {" \xc3", 2}, {"\xa9", 1}, {" Al", 3}, {"ice", 3}, {" six", 4}};

static script_model open_script(void) {
    script_spec script = SCRIPT_INIT;
    script.pieces = pieces;
    script.n = 6;
    script.spelling[0] = "<|im_end|>";
    script.n_control = 1;
    return script_model_open(&script);
}

/* ---- opening ---- */

static nib_status open_memory(subject *s, nib_error *err) {
    nib_model *model = (nib_model *)(uintptr_t)1;
    nib_status status = nib_model_open_memory(&model, s->file, s->len, NULL, err);
    assert_int_equal(model == NULL, status != NIB_OK);
    nib_model_free(model);
    return status;
}

static void models_in_memory(void **state) {
    (void)state;
    script_spec script = SCRIPT_INIT;
    subject s = {0};
    script.pieces = pieces;
    script.n = 6;
    unsigned char *file = script_file(&s.len, &script);
    s.file = file;
    assert_true(fail_everywhere(open_memory, &s) > 20);
    free(file);
}

static nib_status open_file(subject *s, nib_error *err) {
    (void)s;
    nib_model *model = (nib_model *)(uintptr_t)1;
    nib_status status = nib_model_open(&model, NIB_TEST_GOLDEN "/tiny/llama-text.gguf", NULL, err);
    assert_int_equal(model == NULL, status != NIB_OK);
    nib_model_free(model);
    return status;
}

static nib_status estimate_file(subject *s, nib_error *err) {
    (void)s;
    nib_model_memory memory = {.size = sizeof memory};
    return nib_model_estimate(&memory, NIB_TEST_GOLDEN "/tiny/gemma3-window8-f16.gguf", err);
}

static nib_status open_file_to_show(subject *s, nib_error *err) {
    (void)s;
    nib_file *file = (nib_file *)(uintptr_t)1;
    nib_status status = nib_file_open(&file, NIB_TEST_GOLDEN "/tiny/llama-text.gguf", err);
    assert_int_equal(file == NULL, status != NIB_OK);
    nib_file_free(file);
    return status;
}

static void files(void **state) {
    (void)state;
    subject s = {0};
    assert_true(fail_everywhere(open_file, &s) > 20);
    assert_true(fail_everywhere(estimate_file, &s) > 2);
    assert_true(fail_everywhere(open_file_to_show, &s) > 2);
}

static nib_status open_random(subject *s, nib_error *err) {
    (void)s;
    nib_model *model = (nib_model *)(uintptr_t)1;
    nib_status status = nib_model_random(&model, "gpt-tiny", "n_layers=1", 3, NULL, err);
    assert_int_equal(model == NULL, status != NIB_OK);
    nib_model_free(model);
    return status;
}

static int no_forward(float *logits, const int32_t *prefix, size_t rows, size_t n, void *user) {
    (void)logits, (void)prefix, (void)rows, (void)n, (void)user;
    return 1;
}

static nib_status open_custom(subject *s, nib_error *err) {
    (void)s;
    nib_custom_model custom = NIB_CUSTOM_MODEL_INIT;
    nib_model *model = (nib_model *)(uintptr_t)1;
    custom.V = 5;
    custom.context = 5;
    custom.end_id = 3;
    custom.forward = no_forward;
    nib_status status = nib_model_custom(&model, &custom, err);
    assert_int_equal(model == NULL, status != NIB_OK);
    nib_model_free(model);
    return status;
}

static void random_and_custom_models(void **state) {
    (void)state;
    subject s = {0};
    assert_true(fail_everywhere(open_random, &s) >= 4);
    assert_true(fail_everywhere(open_custom, &s) >= 2);
}

static nib_status open_session(subject *s, nib_error *err) {
    nib_session *session = (nib_session *)(uintptr_t)1;
    nib_status status = nib_session_new(&session, s->model, NULL, err);
    assert_int_equal(session == NULL, status != NIB_OK);
    nib_session_free(session);
    return status;
}

static void sessions(void **state) {
    (void)state;
    script_model opened = open_script();
    subject s = {.model = opened.model};
    assert_true(fail_everywhere(open_session, &s) >= 1);
    script_model_close(&opened);
}

/* ---- generating ---- */

static const int32_t start[] = {SCRIPT_START}, one[] = {SCRIPT_START, 3};

static nib_generate_options with_stops(const nib_text stops[2]) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.stop = stops;
    options.n_stop = 2;
    options.stop_id = start;
    options.n_stop_id = 1;
    options.has_seed = 1;
    options.top_p = 0.9;
    options.repetition_penalty = 1.1;
    options.num_return = 2;
    return options;
}

static const nib_text stops[2] = {{"Alice:", 6}, {"six", 3}};
static const char expected[] = " one \xc3\xa9 Alice ";

static nib_status generate(subject *s, nib_error *err) {
    nib_generate_options options = with_stops(stops);
    nib_result *result = (nib_result *)(uintptr_t)1;
    const nib_prompt prompts[] = {{start, 1}, {one, 2}};
    nib_status status = nib_generate(&result, s->session, prompts, 2, &options, NULL, NULL, err);
    if (status != NIB_OK) {
        assert_null(result);
        return status;
    }
    assert_int_equal(result->B, 4);
    assert_string_equal(result->rows[0].text, expected);
    assert_string_equal(result->rows[3].text, expected + 4);
    nib_result_free(result);
    return NIB_OK;
}

static nib_status stream(subject *s, nib_error *err) {
    nib_generate_options options = with_stops(stops);
    nib_stream *opened = (nib_stream *)(uintptr_t)1;
    char text[64];
    size_t len = 0;
    nib_status status = nib_stream_open(&opened, s->session, (nib_prompt){start, 1}, &options, err);
    assert_int_equal(opened == NULL, status != NIB_OK);
    for (const nib_token *token = NULL; status == NIB_OK;) {
        status = nib_stream_next(&token, opened, err);
        if (token == NULL) {
            break;
        }
        assert_int_equal(status, NIB_OK);
        assert_true(len + token->text_len < sizeof text);
        memcpy(text + len, token->text, token->text_len);
        len += token->text_len;
    }
    if (status == NIB_OK) {
        assert_int_equal(len, 2 * strlen(expected));
        assert_memory_equal(text, expected, strlen(expected));
    }
    nib_stream_free(opened);
    return status;
}

static nib_status logits(subject *s, nib_error *err) {
    static float rows[3][64];
    const int32_t ids[] = {SCRIPT_START, 3, 4};
    nib_status status = nib_session_logits(rows[0], s->session, ids, 3, 0, err);
    if (status == NIB_OK) {
        assert_true(rows[0][3] > 100 && rows[1][0] == 0.0f); /* the first row is for the token behind <start> */
    }
    return status;
}

static void generations(void **state) {
    (void)state;
    script_model opened = open_script();
    subject s = {.model = opened.model, .session = new_session(opened.model)};
    assert_true(fail_everywhere(generate, &s) > 20);
    assert_true(fail_everywhere(stream, &s) > 15);
    assert_true(fail_everywhere(logits, &s) > 5);
    nib_session_free(s.session);
    script_model_close(&opened);
}

static nib_status generate_custom(subject *s, nib_error *err) {
    nib_result *result = (nib_result *)(uintptr_t)1;
    const int32_t ids[] = {1, 2};
    nib_status status = nib_generate(&result, s->session, &(nib_prompt){ids, 2}, 1, NULL, NULL, NULL, err);
    assert_int_equal(result == NULL, status != NIB_OK);
    nib_result_free(result);
    return status;
}

static void generations_of_custom_models(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    subject s = {.model = model, .session = new_session(model)};
    assert_true(fail_everywhere(generate_custom, &s) > 8);
    nib_session_free(s.session);
    nib_model_free(model);
}

/* Rows that begin alike, part in the middle of a page and have candidates; the session must be as good as new after a
 * fault. */
static int batch_cache;
static nib_result *batch_expected;

static nib_status run_batch(nib_result **result, nib_session *session, nib_error *err) {
    int32_t ids[2][70];
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    for (int i = 0; i < 70; i++) {
        ids[0][i] = i;
        ids[1][i] = i < 40 ? i : i + 1;
    }
    options.has_seed = 1;
    options.max_new_tokens = 3;
    options.num_return = 2;
    return nib_generate(result, session, (nib_prompt[]){{ids[0], 70}, {ids[1], 70}, {ids[0] + 5, 9}}, 3, &options, NULL,
                        NULL, err);
}

static nib_status generate_batch(subject *s, nib_error *err) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_session *session;
    nib_result *result = NULL;
    options.cache = batch_cache;
    options.max_rows = 4;
    options.threads = 2;
    nib_status status = nib_session_new(&session, s->model, &options, err);
    if (status != NIB_OK) {
        return status;
    }
    status = run_batch(&result, session, err);
    if (status != NIB_OK) {
        nib_error again;
        assert_null(result);
        nib_alloc_fail_at(0);
        must(run_batch(&result, session, &again), &again);
    }
    for (size_t i = 0; i < 6 && batch_expected != NULL; i++) {
        check_same_row(&result->rows[i], &batch_expected->rows[i]);
    }
    nib_session_free(session);
    if (batch_expected == NULL) {
        batch_expected = result;
    } else {
        nib_result_free(result);
    }
    return status;
}

static void generations_of_batches(void **state) {
    (void)state;
    subject s = {0};
    nib_error err;
    must(nib_model_random(&s.model, "llama-tiny", "n_layers=1", 3, NULL, &err), &err);
    const int caches[] = {NIB_CACHE_DYNAMIC, NIB_CACHE_STATIC, NIB_CACHE_NONE};
    must(generate_batch(&s, &err), &err);
    for (size_t i = 0; i < 3; i++) {
        batch_cache = caches[i];
        assert_true(fail_everywhere(generate_batch, &s) > 40);
    }
    nib_result_free(batch_expected);
    nib_model_free(s.model);
}

/* ---- timing ---- */

static nib_status time_decoding(subject *s, nib_error *err) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_bench_work work = NIB_BENCH_WORK_INIT;
    double seconds[1];
    options.threads = 2;
    work.batch = 2;
    work.depth = 3;
    work.tokens = work.repeat = 1;
    return nib_bench_run(seconds, NULL, s->model, &options, &work, err);
}

static nib_status measure_limits(subject *s, nib_error *err) {
    nib_bench_limits limits = {.size = sizeof limits};
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    options.threads = 2;
    return nib_bench_measure_limits(&limits, s->model, &options, err);
}

static void timings(void **state) {
    (void)state;
    script_model opened = open_script();
    subject s = {.model = opened.model};
    assert_true(fail_everywhere(time_decoding, &s) > 6);
    assert_true(fail_everywhere(measure_limits, &s) >= 3);
    script_model_close(&opened);
}

/* ---- text ---- */

static const char text[] = "The river stood at 212 cm\n\n  it's <|x|> \xf0\x9f\x98\x80 \xff falling";

static nib_status encode(subject *s, nib_error *err) {
    int32_t *ids = (int32_t *)(uintptr_t)1;
    size_t n = 1;
    nib_status status = nib_tokenizer_encode(&ids, &n, nib_model_tokenizer(s->model), text, sizeof text - 1,
                                             NIB_TOKENIZE_ADD_BOS | NIB_TOKENIZE_SPECIAL, err);
    assert_int_equal(ids == NULL, status != NIB_OK);
    nib_free(ids);
    return status;
}

static nib_status decode(subject *s, nib_error *err) {
    char *said = (char *)(uintptr_t)1;
    size_t len;
    const int32_t ids[] = {30, 40, 50, 60, 70, 80};
    nib_status status = nib_tokenizer_decode(&said, &len, nib_model_tokenizer(s->model), ids, 6, 0, err);
    assert_int_equal(said == NULL, status != NIB_OK);
    nib_free(said);
    return status;
}

static nib_status decode_by_piece(subject *s, nib_error *err) {
    nib_decoder *decoder = (nib_decoder *)(uintptr_t)1;
    const char *piece;
    size_t len;
    nib_status status = nib_decoder_new(&decoder, nib_model_tokenizer(s->model), 0, err);
    assert_int_equal(decoder == NULL, status != NIB_OK);
    for (int32_t id = 0; id < 400 && status == NIB_OK; id += 7) {
        status = nib_decoder_push(&piece, &len, decoder, id, err);
    }
    if (status == NIB_OK) {
        (void)nib_decoder_finish(&len, decoder);
    }
    nib_decoder_free(decoder);
    return status;
}

static nib_status to_utf8(subject *s, nib_error *err) {
    (void)s;
    char *clean = (char *)(uintptr_t)1;
    size_t len;
    nib_status status = nib_text_to_utf8(&clean, &len, text, sizeof text - 1, err);
    assert_int_equal(clean == NULL, status != NIB_OK);
    nib_free(clean);
    return status;
}

static void texts(void **state) {
    (void)state;
    subject s = {0};
    nib_error err;
    must(nib_model_open(&s.model, NIB_TEST_GOLDEN "/tiny/llama-text.gguf", NULL, &err), &err);
    assert_true(fail_everywhere(encode, &s) > 2);
    assert_true(fail_everywhere(decode, &s) >= 1);
    assert_true(fail_everywhere(decode_by_piece, &s) >= 2);
    assert_true(fail_everywhere(to_utf8, &s) >= 1);
    nib_model_free(s.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_in_memory),
        cmocka_unit_test(files),
        cmocka_unit_test(random_and_custom_models),
        cmocka_unit_test(sessions),
        cmocka_unit_test(generations),
        cmocka_unit_test(generations_of_custom_models),
        cmocka_unit_test(generations_of_batches),
        cmocka_unit_test(timings),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
