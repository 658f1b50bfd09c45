/* Sessions: the logits of a text are the same bits however it is fed, in chunks, token by token, after rewinding, under
 * any floating-point environment of the host; what is reused is counted; what is refused leaves the session usable. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/random.h"
#include "plain_logsum.h"
#include "table_model.h"

enum { MOST_TOKENS = 160 };

/* Models of every kind of attention, norm and position; the gemma3 ones have windows of 8, 64 and 100 keys. */
static const char *const models[] = {
    "random:llama-tiny,seed=5,max_seq_len=160",
    "random:gpt-tiny,seed=6,max_seq_len=160",
    "random:gpt2-small,vocab_size=300,d_model=32,n_heads=2,n_layers=2,max_seq_len=160",
    "random:gpt,vocab_size=300,d_model=32,n_heads=2,n_layers=2,max_seq_len=160",
    NIB_TEST_GOLDEN "/tiny/gemma3-window8-f16.gguf",
    NIB_TEST_GOLDEN "/tiny/gemma3-window64-q8_0.gguf",
    NIB_TEST_GOLDEN "/tiny/gemma3-window100-bf16.gguf",
    NIB_TEST_GOLDEN "/tiny/llama-k-quants.gguf",
};
enum { N_MODELS = sizeof models / sizeof models[0] };

static nib_model *open_model(const char *path, int cpu) {
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    nib_model *model;
    nib_error err;
    options.cpu = cpu;
    must(nib_model_open(&model, path, &options, &err), &err);
    return model;
}

static nib_model_info info_of(const nib_model *model) {
    nib_model_info info = {.size = sizeof info};
    nib_error err;
    must(nib_model_get_info(&info, model, &err), &err);
    return info;
}

static nib_session_stats stats_of(const nib_session *session) {
    nib_session_stats stats = {.size = sizeof stats};
    nib_error err;
    must(nib_session_get_stats(&stats, session, &err), &err);
    return stats;
}

static nib_session *session_in_chunks(nib_model *model, int64_t chunk) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_session *session;
    nib_error err;
    options.prefill_chunk = chunk;
    must(nib_session_new(&session, model, &options, &err), &err);
    return session;
}

/* A text of n tokens, as many as the model's context allows. */
static size_t make_text(int32_t ids[MOST_TOKENS], const nib_model *model, uint64_t seed) {
    nib_model_info info = info_of(model);
    size_t n = info.context < MOST_TOKENS ? (size_t)info.context : MOST_TOKENS;
    for (size_t i = 0; i < n; i++) {
        ids[i] = (int32_t)(nib_mix64(seed, i) % (uint64_t)info.V);
    }
    return n;
}

/* Logits [n - first][V], to be freed. */
static float *logits_of(nib_session *session, const nib_model *model, const int32_t *ids, size_t n, size_t first) {
    size_t V = (size_t)info_of(model).V;
    nib_error err;
    float *logits = malloc((n - first) * V * sizeof(float));
    assert_non_null(logits);
    must(nib_session_logits(logits, session, ids, n, first, &err), &err);
    return logits;
}

static void check_bits(const float *a, const float *b, size_t n) {
    assert_memory_equal(a, b, n * sizeof(float));
}

/* ---- the same bits however a text is fed ---- */

static void chunks_change_no_bit(void **state) {
    (void)state;
    const int64_t chunks[] = {1, 7, 64, 256, 0};
    for (size_t m = 0; m < N_MODELS; m++) {
        int32_t ids[MOST_TOKENS];
        nib_model *model = open_model(models[m], NIB_CPU_AUTO);
        size_t n = make_text(ids, model, m), V = (size_t)info_of(model).V;
        float *whole = NULL;
        for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
            nib_session *session = session_in_chunks(model, chunks[i]);
            float *logits = logits_of(session, model, ids, n, 0);
            uint64_t size = chunks[i] == 0 ? n : (uint64_t)chunks[i];
            assert_true(stats_of(session).forward_passes == (n + size - 1) / size);
            whole = whole == NULL ? logits : whole;
            check_bits(logits, whole, n * V);
            if (logits != whole) {
                free(logits);
            }
            nib_session_free(session);
        }
        free(whole);
        nib_model_free(model);
    }
}

static void rungs_give_the_same_bits(void **state) {
    (void)state;
    nib_model *probe;
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    options.cpu = NIB_CPU_AVX2;
    if (nib_model_open(&probe, models[0], &options, NULL) != NIB_OK) {
        skip();
    }
    nib_model_free(probe);
    for (size_t m = 0; m < N_MODELS; m++) {
        int32_t ids[MOST_TOKENS];
        nib_model *base = open_model(models[m], NIB_CPU_BASE), *avx2 = open_model(models[m], NIB_CPU_AVX2);
        nib_session *on_base = new_session(base), *on_avx2 = new_session(avx2);
        size_t n = make_text(ids, base, 77);
        float *a = logits_of(on_base, base, ids, n, 0), *b = logits_of(on_avx2, avx2, ids, n, 0);
        check_bits(a, b, n * (size_t)info_of(base).V);
        free(a);
        free(b);
        nib_session_free(on_base);
        nib_session_free(on_avx2);
        nib_model_free(base);
        nib_model_free(avx2);
    }
}

static void rows_asked_for_alone_are_those_of_the_whole(void **state) {
    (void)state;
    int32_t ids[MOST_TOKENS];
    nib_model *model = open_model(models[4], NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    size_t n = make_text(ids, model, 3), V = (size_t)info_of(model).V;
    float *whole = logits_of(session, model, ids, n, 0);
    const size_t firsts[] = {n - 1, n / 2, 1, 0, n - 2};
    for (size_t i = 0; i < 5; i++) {
        float *rows = logits_of(session, model, ids, n, firsts[i]);
        check_bits(rows, whole + firsts[i] * V, (n - firsts[i]) * V);
        free(rows);
    }
    free(whole);
    nib_session_free(session);
    nib_model_free(model);
}

/* Greedy log-probabilities of a generation are the log-softmax of the finished text's logits. */
static void check_generation(const char *path) {
    int32_t ids[MOST_TOKENS];
    nib_model *model = open_model(path, NIB_CPU_AUTO);
    nib_session *session = new_session(model), *fresh = new_session(model);
    int64_t V = info_of(model).V;
    size_t n_prompt = make_text(ids, model, 4) / 4;
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.do_sample = NIB_DO_SAMPLE_NO;
    options.ignore_eos = NIB_IGNORE_EOS_YES;
    options.max_length = MOST_TOKENS;
    nib_result *result = generate_one(session, ids, n_prompt, &options);
    const nib_row *row = &result->rows[0];
    size_t n = n_prompt + row->n;
    float *logits = logits_of(fresh, model, row->ids, n - 1, n_prompt - 1);
    for (size_t i = 0; i < row->n; i++) {
        const float *l = logits + i * (size_t)V;
        int32_t id = row->ids[n_prompt + i];
        plain_sum sum = plain_logsum(l, V);
        float logprob = (float)((double)l[id] - sum.max - nib_log(sum.total));
        check_bits(&logprob, &row->logprobs[i], 1);
        for (int64_t other = 0; other < V; other++) {
            assert_true(l[other] < l[id] || (l[other] == l[id] && other >= id));
        }
    }
    free(logits);
    nib_result_free(result);
    nib_session_free(session);
    nib_session_free(fresh);
    nib_model_free(model);
}

static void a_generation_is_what_the_logits_of_its_text_say(void **state) {
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        check_generation(models[m]);
    }
}

/* ---- what is reused ---- */

static void only_what_differs_is_encoded(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny,max_seq_len=1024,n_layers=1", NIB_CPU_AUTO);
    nib_session *session = new_session(model), *fresh = new_session(model);
    int32_t ids[950];
    for (size_t i = 0; i < 950; i++) {
        ids[i] = (int32_t)(nib_mix64(9, i) % 256);
    }
    free(logits_of(session, model, ids, 940, 939));
    assert_true(stats_of(session).tokens_encoded == 940 && stats_of(session).tokens_reused == 0);
    ids[900] = (ids[900] + 1) % 256;
    float *rewound = logits_of(session, model, ids, 950, 949);
    assert_true(stats_of(session).tokens_encoded == 990 && stats_of(session).tokens_reused == 900);
    float *anew = logits_of(fresh, model, ids, 950, 949);
    check_bits(rewound, anew, 256);
    free(anew);
    anew = logits_of(session, model, ids, 10, 9); /* a beginning of the timeline: only the last token again */
    assert_true(stats_of(session).tokens_encoded == 991 && stats_of(session).tokens_reused == 909);
    free(anew);
    free(rewound);
    nib_session_free(session);
    nib_session_free(fresh);
    nib_model_free(model);
}

static void a_generation_reuses_its_prompt(void **state) {
    (void)state;
    int32_t ids[MOST_TOKENS];
    nib_model *model = open_model(models[0], NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    (void)make_text(ids, model, 5);
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.max_new_tokens = 10;
    options.num_return = 3;
    nib_result_free(generate_one(session, ids, 100, &options));
    /* The first candidate encodes 100 + 9, the others go on from the prompt's logits with their own 9. */
    assert_true(stats_of(session).tokens_encoded == 109 + 9 + 9);
    assert_true(stats_of(session).tokens_reused == 100 + 100);
    nib_session_free(session);
    nib_model_free(model);
}

static void the_cache_grows_by_pages_of_64_tokens(void **state) {
    (void)state;
    int32_t ids[MOST_TOKENS];
    nib_model *model = open_model(models[0], NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    (void)make_text(ids, model, 6);
    const size_t page = 2 * 2 * 2 * 16 * 64 * sizeof(uint16_t); /* layers, k and v, kv heads, width */
    assert_int_equal(stats_of(session).cache_bytes, 0);
    const size_t n[] = {1, 64, 65, 128, 129}, pages[] = {1, 1, 2, 2, 3};
    for (size_t i = 0; i < 5; i++) {
        free(logits_of(session, model, ids, n[i], n[i] - 1));
        assert_int_equal(stats_of(session).cache_bytes, pages[i] * page);
    }
    nib_session_free(session);
    nib_model_free(model);
}

/* ---- the host's floating-point environment ---- */

enum { FLUSH = 0x8040 }; /* MXCSR: results flushed to zero, subnormal operands taken as zero */

/* Bits of a generation and of a text's logits, opened and run under the host's environment. */
static void compute(float *logits, int32_t *ids, float *logprobs, const char *path) {
    nib_model *model = open_model(path, NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    const int32_t prompt[] = {1, 2, 3};
    nib_error err;
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.has_seed = 1;
    options.max_new_tokens = 20;
    options.top_p = 0.9;
    options.temperature = 0.7;
    options.repetition_penalty = 1.3;
    options.logprobs = NIB_LOGPROBS_PROCESSED;
    options.ignore_eos = NIB_IGNORE_EOS_YES;
    nib_result *result = generate_one(session, prompt, 3, &options);
    memcpy(ids, result->rows[0].ids, 23 * sizeof(int32_t));
    memcpy(logprobs, result->rows[0].logprobs, 20 * sizeof(float));
    must(nib_session_logits(logits, session, ids, 23, 22, &err), &err);
    nib_result_free(result);
    nib_session_free(session);
    nib_model_free(model);
}

typedef struct outcome {
    float logits[512], logprobs[20];
    int32_t ids[23];
} outcome;

static void check_environment(const outcome expected[], int rounding, unsigned flush) {
    for (size_t m = 0; m < N_MODELS; m++) {
        static outcome got;
        memset(&got, 0, sizeof got);
        assert_int_equal(fesetround(rounding), 0);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | flush);
        unsigned before = _mm_getcsr();
#endif
        compute(got.logits, got.ids, got.logprobs, models[m]);
#if defined(__x86_64__)
        unsigned after = _mm_getcsr();
        _mm_setcsr(_mm_getcsr() & ~flush);
        assert_int_equal(before & 0xffc0u, after & 0xffc0u); /* all but the flags that tell what happened */
#endif
        assert_int_equal(fegetround(), rounding);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        assert_memory_equal(got.ids, expected[m].ids, sizeof got.ids);
        check_bits(got.logprobs, expected[m].logprobs, 20);
        check_bits(got.logits, expected[m].logits, 512);
    }
}

static void the_hosts_rounding_and_flushing_change_no_bit(void **state) {
    (void)state;
    static outcome expected[N_MODELS];
    const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t m = 0; m < N_MODELS; m++) {
        compute(expected[m].logits, expected[m].ids, expected[m].logprobs, models[m]);
    }
    for (size_t i = 0; i < 4; i++) {
        check_environment(expected, roundings[i], 0);
        check_environment(expected, roundings[i], FLUSH);
    }
}

/* On equal logits of 0 the smallest temperature there is draws, and 0 takes the lowest id. */
static void a_host_that_flushes_subnormals_does_not_make_a_temperature_0(void **state) {
    (void)state;
    const float zeros[50] = {0};
    table_model table = TABLE_MODEL_INIT;
    table.table = zeros;
    table.n_rows = 1;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_session *session = new_session(model);
    const int32_t prompt[] = {1};
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.has_seed = 1;
    options.temperature = 0x1p-1060;
    nib_result *plain = generate_one(session, prompt, 1, &options);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | FLUSH);
#endif
    nib_result *flushed = generate_one(session, prompt, 1, &options);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() & ~(unsigned)FLUSH);
#endif
    check_same_row(&plain->rows[0], &flushed->rows[0]);
    nib_result_free(plain);
    nib_result_free(flushed);
    nib_session_free(session);
    nib_model_free(model);
}

/* ---- what is refused ---- */

static void logits_refused(nib_session *session, const int32_t *ids, size_t n, size_t first, nib_status expected,
                           const char *texts) {
    static float logits[256];
    nib_error err;
    logits[0] = 42;
    must_fail(nib_session_logits(logits, session, ids, n, first, &err), expected, &err, texts);
    assert_true(logits[0] == 42.0f);
}

static void impossible_texts_are_refused(void **state) {
    (void)state;
    int32_t ids[200] = {0};
    nib_model *model = open_model("random:llama-tiny", NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    logits_refused(session, ids, 0, 0, NIB_EINVAL, "0 tokens");
    logits_refused(session, NULL, 3, 0, NIB_EINVAL, "3 tokens");
    logits_refused(session, ids, 3, 3, NIB_EINVAL, "3 tokens from 3 on");
    logits_refused(session, ids, 129, 128, NIB_EFULL, "129 tokens|context of 128");
    ids[2] = 256;
    logits_refused(session, ids, 4, 3, NIB_EINVAL, "token 256 at index 2|0 to 255");
    ids[2] = -1;
    logits_refused(session, ids, 4, 3, NIB_EINVAL, "token -1 at index 2");
    ids[2] = 0;
    free(logits_of(session, model, ids, 128, 127));
    nib_session_free(session);
    nib_model_free(model);
}

static void a_cancelled_session_answers_so_once(void **state) {
    (void)state;
    int32_t ids[MOST_TOKENS];
    nib_model *model = open_model(models[0], NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    size_t n = make_text(ids, model, 10);
    float *first = logits_of(session, model, ids, n, n - 1);
    nib_session_cancel(session);
    logits_refused(session, ids, n, n - 1, NIB_ECANCELLED, "cancelled");
    float *second = logits_of(session, model, ids, n, n - 1);
    check_bits(first, second, 256);
    free(first);
    free(second);
    nib_session_free(session);
    nib_model_free(model);
}

static void options_of_sessions_are_checked(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny", NIB_CPU_AUTO);
    nib_session *session;
    nib_error err;
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    options.prefill_chunk = -1;
    must_fail(nib_session_new(&session, model, &options, &err), NIB_EINVAL, &err, "prefill_chunk|-1");
    assert_null(session);
    options = (nib_session_options)NIB_SESSION_OPTIONS_INIT;
    options.max_cache_len = 64;
    must_fail(nib_session_new(&session, model, &options, &err), NIB_EINVAL, &err, "max_cache_len|64|static");
    assert_null(session);
    options.size = 0;
    must_fail(nib_session_new(&session, model, &options, &err), NIB_EINVAL, &err, "nib_session_options.size");
    nib_session_free(NULL);
    nib_model_free(model);
}

static void stats_need_their_size(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny", NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    nib_session_stats stats = {.size = 1};
    nib_error err;
    must_fail(nib_session_get_stats(&stats, session, &err), NIB_EINVAL, &err, "nib_session_stats.size: 1");
    nib_session_free(session);
    nib_model_free(model);
}

static void a_session_keeps_its_model(void **state) {
    (void)state;
    int32_t ids[MOST_TOKENS];
    nib_model *model = open_model(models[0], NIB_CPU_AUTO);
    nib_session *session = new_session(model);
    (void)make_text(ids, model, 1);
    nib_model_free(model);
    nib_result_free(generate_one(session, ids, 3, NULL));
    nib_session_free(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_change_no_bit),
        cmocka_unit_test(rungs_give_the_same_bits),
        cmocka_unit_test(rows_asked_for_alone_are_those_of_the_whole),
        cmocka_unit_test(a_generation_is_what_the_logits_of_its_text_say),
        cmocka_unit_test(only_what_differs_is_encoded),
        cmocka_unit_test(a_generation_reuses_its_prompt),
        cmocka_unit_test(the_cache_grows_by_pages_of_64_tokens),
        cmocka_unit_test(the_hosts_rounding_and_flushing_change_no_bit),
        cmocka_unit_test(a_host_that_flushes_subnormals_does_not_make_a_temperature_0),
        cmocka_unit_test(impossible_texts_are_refused),
        cmocka_unit_test(a_cancelled_session_answers_so_once),
        cmocka_unit_test(options_of_sessions_are_checked),
        cmocka_unit_test(stats_need_their_size),
        cmocka_unit_test(a_session_keeps_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
