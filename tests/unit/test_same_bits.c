/* The promise as a matrix: a model's logits and generations are the same bits on every instruction set of the machine, by
 * 1, 2, 3 and 8 threads, in chunks of any size, on rows shorter and longer than a group of attention, for every type of
 * weight, in both modes of computing and with both caches. What all are compared with is the rung base, one thread, the
 * text in one pass. Not every combination runs, but every pair of values of two axes does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/model.h"
#include "model/pass.h"
#include "quant_model.h"
#include "table_model.h"

enum { ROW = 300, LONG_ROW = 700, PROMPT = 60, NEW = 8 };

/* Widths 64, 96, 288 and 256, and odd ones; 1, 3, 4 and 40 query heads of a kv head, the last cut in two; no vocabulary is
 * a multiple of 256. A row sees windows of 40 keys, or of 193: four groups or, moving on, the four behind. */
static const quant_spec specs[] = {
    {.name = "64 wide, seven types",
     .arch = "llama",
     .D = 64,
     .L = 2,
     .H = 4,
     .K = 4,
     .E = 16,
     .F = 96,
     .V = 777,
     .n_types = 7,
     .types = {NIB_Q8_0, NIB_Q4_0, NIB_F16, NIB_Q4_1, NIB_Q5_0, NIB_BF16, NIB_Q5_1}},
    {.name = "96 wide, three query heads",
     .arch = "llama",
     .D = 96,
     .L = 2,
     .H = 6,
     .K = 2,
     .E = 16,
     .F = 288,
     .V = 1000,
     .n_types = 5,
     .types = {NIB_Q4_1, NIB_Q5_1, NIB_Q8_0, NIB_Q5_0, NIB_Q4_0}},
    {.name = "288 wide, window of 40",
     .arch = "gemma3",
     .D = 288,
     .L = 2,
     .H = 4,
     .K = 1,
     .E = 32,
     .F = 64,
     .V = 301,
     .window = 40,
     .n_types = 4,
     .types = {NIB_Q5_0, NIB_Q8_0, NIB_Q4_0, NIB_Q8_0},
     .tied = 1},
    {.name = "256 wide, K types",
     .arch = "llama",
     .D = 256,
     .L = 1,
     .H = 8,
     .K = 2,
     .E = 32,
     .F = 256,
     .V = 333,
     .n_types = 5,
     .types = {NIB_Q4_K, NIB_Q6_K, NIB_Q5_K, NIB_Q8_0, NIB_Q6_K}},
    {.name = "75 wide, plain types",
     .arch = "llama",
     .D = 75,
     .L = 2,
     .H = 3,
     .K = 1,
     .E = 25,
     .F = 51,
     .V = 201,
     .n_types = 3,
     .types = {NIB_F32, NIB_BF16, NIB_F16}},
    {.name = "window of 193",
     .arch = "gemma3",
     .D = 64,
     .L = 6,
     .H = 6,
     .K = 2,
     .E = 16,
     .F = 64,
     .V = 150,
     .window = 193,
     .n_types = 3,
     .types = {NIB_Q8_0, NIB_Q5_1, NIB_Q4_1},
     .tied = 1},
    {.name = "forty query heads",
     .arch = "llama",
     .D = 64,
     .L = 1,
     .H = 40,
     .K = 1,
     .E = 8,
     .F = 64,
     .V = 150,
     .n_types = 2,
     .types = {NIB_Q8_0, NIB_Q4_0}},
};
enum { N_SPECS = sizeof specs / sizeof specs[0] };

typedef struct computing {
    const char *name;
    int compute, cache;
} computing;

static const computing modes[] = {{"fast, f16", NIB_COMPUTE_FAST, NIB_CACHE_TYPE_F16},
                                  {"exact, f32", NIB_COMPUTE_EXACT, NIB_CACHE_TYPE_F32},
                                  {"exact, f16", NIB_COMPUTE_EXACT, NIB_CACHE_TYPE_F16},
                                  {"fast, f32", NIB_COMPUTE_FAST, NIB_CACHE_TYPE_F32}};
enum { N_MODES = 3 /* of a model */ };

/* The last two by turns. */
static const computing *mode_of(size_t spec, size_t i) {
    return &modes[i == 2 && spec % 2 == 1 ? 3 : i];
}

static const int thread_counts[] = {1, 2, 3, 8};
static const int64_t chunks[] = {0, 7, 64, 1};
static const size_t lengths[] = {ROW, 65, 63, 1, 64};
enum { N_THREADS = 4, N_CHUNKS = 4, N_LENGTHS = 5, MOST_RUNGS = 6 };

/* The machine's rungs as NIB_CPU_*, base first. */
static size_t rungs_here(int rungs[MOST_RUNGS]) {
    size_t n = 0;
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        if (nib_kernels_find(nib_kernels_name(i)) != NULL) {
            rungs[n++] = (int)i + NIB_CPU_BASE;
        }
    }
    return n;
}

/* A model and what it must give. */
typedef struct subject {
    const quant_spec *spec;
    const computing *mode;
    unsigned char *file; /* [len] */
    size_t len;
    size_t n;        /* tokens of the text */
    int32_t *ids;    /* [n] */
    float *expected; /* [n][V] */
} subject;

/* One way to compute. */
typedef struct manner {
    int rung, threads;
    int64_t chunk;
} manner;

static nib_model *open_on(const subject *s, int rung) {
    return quant_open(s->file, s->len, s->mode->compute, rung);
}

static nib_session *session_on(const subject *s, nib_model *model, const manner *way) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_session *session;
    nib_error err;
    options.threads = way->threads;
    options.prefill_chunk = way->chunk;
    options.cache_type = s->mode->cache;
    must(nib_session_new(&session, model, &options, &err), &err);
    return session;
}

/* Fails with what differs. */
static void differs(const subject *s, const manner *way, size_t n, size_t pos, const char *what, double got,
                    double expected) {
    fail_msg("%s, %s, %s, %d threads, chunks of %d, %zu tokens: %s of position %zu is %.9g, expected %.9g",
             s->spec->name, s->mode->name, nib_kernels_name((size_t)(way->rung - NIB_CPU_BASE)), way->threads,
             (int)way->chunk, n, what, pos, got, expected);
}

static void check_logits(const subject *s, const manner *way, size_t n, size_t first, const float *logits) {
    size_t V = s->spec->V;
    const float *expected = s->expected + first * V;
    for (size_t i = 0; i < (n - first) * V; i++) {
        if (memcmp(&logits[i], &expected[i], sizeof logits[i]) != 0) {
            char what[32];
            (void)snprintf(what, sizeof what, "logit %zu", i % V);
            differs(s, way, n, first + i / V, what, (double)logits[i], (double)expected[i]);
        }
    }
}

/* The logits of positions first .. n-1, to be freed. */
static float *logits_of(const subject *s, nib_session *session, size_t n, size_t first) {
    nib_error err;
    float *logits = malloc((n - first) * s->spec->V * sizeof *logits);
    assert_non_null(logits);
    memset(logits, 0xff, (n - first) * s->spec->V * sizeof *logits); /* NaN: what is left out is not taken for equal */
    must(nib_session_logits(logits, session, s->ids, n, first, &err), &err);
    return logits;
}

static void check_way(const subject *s, nib_model *model, const manner *way, size_t n) {
    nib_session *session = session_on(s, model, way);
    float *logits = logits_of(s, session, n, 0);
    check_logits(s, way, n, 0, logits);
    free(logits);
    nib_session_free(session);
}

static subject new_subject(quant_spec *spec, const computing *mode, size_t n) {
    const manner reference = {NIB_CPU_BASE, 1, 0};
    spec->seed = spec->D + spec->window;
    spec->context = (uint32_t)n + NEW;
    subject s = {.spec = spec, .mode = mode, .n = n};
    s.file = quant_file(&s.len, spec);
    s.ids = malloc(n * sizeof s.ids[0]);
    assert_non_null(s.ids);
    for (size_t i = 0; i < n; i++) {
        s.ids[i] = (int32_t)(nib_mix64(spec->seed, i) % spec->V);
    }
    nib_model *model = open_on(&s, NIB_CPU_BASE);
    nib_session *session = session_on(&s, model, &reference);
    s.expected = logits_of(&s, session, n, 0);
    nib_session_free(session);
    nib_model_free(model);
    return s;
}

static void free_subject(subject *s) {
    free(s->file);
    free(s->ids);
    free(s->expected);
}

/* ---- logits ---- */

/* All rows of the text on half the numbers of threads, the other half with the next mode of computing; base, which
 * computes each fma in a dozen operations, takes short ones only, as the whole text is what all are compared with. */
static bool is_due(const subject *s, int rung, size_t t, size_t i) {
    if (rung == NIB_CPU_BASE) {
        return i == t + 1;
    }
    return lengths[i] < ROW || (t + (size_t)(s->mode - modes) + s->spec->L) % 2 == 0;
}

static void check_logits_on(const subject *s, int rung) {
    nib_model *model = open_on(s, rung);
    for (size_t t = 0; t < N_THREADS; t++) {
        for (size_t i = 0; i < N_LENGTHS; i++) {
            size_t chunk = rung == NIB_CPU_BASE ? t : ((size_t)rung + t + i) % N_CHUNKS;
            manner way = {rung, thread_counts[t], chunks[chunk]};
            if (is_due(s, rung, t, i)) {
                check_way(s, model, &way, lengths[i]);
            }
        }
    }
    nib_model_free(model);
}

/* ---- generations ---- */

static nib_result *generate(const subject *s, nib_model *model, const manner *way, int do_sample, size_t prompt,
                            size_t n_new) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.do_sample = do_sample;
    options.max_new_tokens = (int64_t)n_new;
    options.has_seed = 1;
    options.seed = 42;
    nib_session *session = session_on(s, model, way);
    nib_result *result = generate_one(session, s->ids, prompt, &options);
    nib_session_free(session);
    return result;
}

static void check_generation(const subject *s, const manner *way, const nib_result *got, const nib_result *expected) {
    const nib_row *a = &got->rows[0], *b = &expected->rows[0];
    size_t n = b->n_prompt + b->n;
    assert_true(a->n_prompt == b->n_prompt && a->n == b->n && b->n > 0);
    for (size_t i = 0; i < b->n; i++) {
        size_t at = b->n_prompt + i;
        if (a->ids[at] != b->ids[at]) {
            differs(s, way, n, at, "token", a->ids[at], b->ids[at]);
        }
        if (memcmp(&a->logprobs[i], &b->logprobs[i], sizeof a->logprobs[i]) != 0) {
            differs(s, way, n, at, "log-probability", (double)a->logprobs[i], (double)b->logprobs[i]);
        }
    }
}

static void check_generations(const subject *s, const int *rungs, size_t n_rungs, int do_sample) {
    const manner reference = {NIB_CPU_BASE, 1, 0};
    nib_model *model = open_on(s, NIB_CPU_BASE);
    nib_result *expected = generate(s, model, &reference, do_sample, PROMPT, NEW);
    nib_model_free(model);
    for (size_t r = 1; r < n_rungs; r++) {
        model = open_on(s, rungs[r]);
        for (size_t t = 0; t < N_THREADS; t++) {
            manner way = {rungs[r], thread_counts[t], chunks[(r + t) % N_CHUNKS]};
            nib_result *got = generate(s, model, &way, do_sample, PROMPT, NEW);
            check_generation(s, &way, got, expected);
            nib_result_free(got);
        }
        nib_model_free(model);
    }
    nib_result_free(expected);
}

static void check_model(void **state) {
    size_t at = *(const size_t *)*state;
    int rungs[MOST_RUNGS];
    size_t n_rungs = rungs_here(rungs);
    quant_spec spec = specs[at / N_MODES];
    subject s = new_subject(&spec, mode_of(at / N_MODES, at % N_MODES), ROW);
    for (size_t r = 0; r < n_rungs; r++) {
        check_logits_on(&s, rungs[r]);
    }
    check_generations(&s, rungs, n_rungs, NIB_DO_SAMPLE_NO);
    check_generations(&s, rungs, n_rungs, NIB_DO_SAMPLE_YES);
    free_subject(&s);
}

/* ---- long rows of few tokens, whose attention is cut into runs of groups ---- */

/* A window of 321 keys is six groups of some rows, and of others five and two parts. */
static const quant_spec long_specs[] = {
    {.name = "long, four query heads",
     .arch = "llama",
     .D = 64,
     .L = 2,
     .H = 4,
     .K = 1,
     .E = 16,
     .F = 64,
     .V = 90,
     .n_types = 3,
     .types = {NIB_Q8_0, NIB_Q4_0, NIB_Q5_1}},
    {.name = "long, window of 321",
     .arch = "gemma3",
     .D = 64,
     .L = 6,
     .H = 3,
     .K = 1,
     .E = 16,
     .F = 32,
     .V = 90,
     .window = 321,
     .n_types = 2,
     .types = {NIB_Q8_0, NIB_Q4_1}},
    {.name = "long, forty query heads",
     .arch = "llama",
     .D = 32,
     .L = 1,
     .H = 40,
     .K = 1,
     .E = 8,
     .F = 32,
     .V = 90,
     .n_types = 2,
     .types = {NIB_F16, NIB_Q8_0}},
};

/* Runs of groups into which the first layer's attention is cut for the rows first .. first + n - 1. */
static int64_t runs_of(const nib_model *model, int64_t first, int64_t n, int threads) {
    nib_forward_row rows[64] = {{0}};
    nib_kv kv = {0};
    nib_work work = {0};
    nib_error err;
    assert_true(n <= 64);
    for (int64_t i = 0; i < n; i++) {
        rows[i].pos = first + i;
        rows[i].kv = &kv;
    }
    must(nib_work_reserve(&work, &model->config, n, threads, &err), &err);
    nib_pass pass = {.c = &model->config, .w = &work, .rows = rows, .n = n};
    pass.n_tiles = nib_attend_tiles(&work, &model->config, rows, n);
    (void)nib_attend_plan_layer(&pass, threads);
    nib_work_free(&work);
    return pass.plan.runs;
}

/* From what a prompt of ROW tokens left, token by token. */
static void check_steps(const subject *s, const manner *way) {
    nib_model *model = open_on(s, way->rung);
    nib_session *session = session_on(s, model, way);
    free(logits_of(s, session, ROW, ROW - 1));
    for (size_t n = ROW + 1; n <= LONG_ROW; n++) {
        float *logits = logits_of(s, session, n, n - 1);
        check_logits(s, way, n, n - 1, logits);
        free(logits);
    }
    nib_session_free(session);
    nib_model_free(model);
}

static void check_long_generation(const subject *s, const manner *way) {
    const manner alone = {way->rung, 1, 0};
    nib_model *model = open_on(s, way->rung);
    nib_result *expected = generate(s, model, &alone, NIB_DO_SAMPLE_YES, ROW, LONG_ROW - ROW);
    nib_result *got = generate(s, model, way, NIB_DO_SAMPLE_YES, ROW, LONG_ROW - ROW);
    check_generation(s, way, got, expected);
    nib_result_free(got);
    nib_result_free(expected);
    nib_model_free(model);
}

static void long_rows_by_many_threads_give_the_same_bits(void **state) {
    static const manner ways[] = {{0, 2, 10}, {0, 3, 33}, {0, 8, 7}, {0, 8, 50}, {0, 2, 1}};
    int rungs[MOST_RUNGS];
    size_t n_rungs = rungs_here(rungs);
    (void)state;
    for (size_t i = 0; i < sizeof long_specs / sizeof long_specs[0]; i++) {
        quant_spec spec = long_specs[i];
        subject s = new_subject(&spec, &modes[i % 2], LONG_ROW);
        for (size_t j = 0; j < sizeof ways / sizeof ways[0]; j++) {
            manner way = ways[j];
            way.rung = rungs[n_rungs - 1 - j % (n_rungs > 1 ? n_rungs - 1 : 1)];
            nib_model *model = open_on(&s, way.rung);
            assert_true(runs_of(model, LONG_ROW - 2, way.chunk < 2 ? 1 : 2, way.threads) > 1);
            check_way(&s, model, &way, LONG_ROW);
            nib_model_free(model);
        }
        manner many = {rungs[n_rungs - 1], 8, 64};
        check_steps(&s, &many);
        check_long_generation(&s, &many);
        free_subject(&s);
    }
}

int main(void) {
    static char titles[N_SPECS * N_MODES][96];
    static size_t at[N_SPECS * N_MODES];
    struct CMUnitTest tests[N_SPECS * N_MODES + 1] = {
        [N_SPECS * N_MODES] = cmocka_unit_test(long_rows_by_many_threads_give_the_same_bits)};
    for (size_t i = 0; i < N_SPECS * N_MODES; i++) {
        at[i] = i;
        (void)snprintf(titles[i], sizeof titles[i], "%s: %s", specs[i / N_MODES].name,
                       mode_of(i / N_MODES, i % N_MODES)->name);
        tests[i].name = titles[i];
        tests[i].test_func = check_model;
        tests[i].initial_state = &at[i];
    }
    return cmocka_run_group_tests_name("the same bits", tests, NULL, NULL);
}
