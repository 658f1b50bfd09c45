/* The promise for batches: a row's words and log-probabilities are the same bits whether it runs alone or among others, in
 * any order, with whatever cache, however many rows run at once, in chunks of any size, by any number of threads and on
 * every instruction set of the machine. Rows begin alike and part in the middle of a page; candidates go on from one
 * prompt. What all are compared with is each row alone on the rung base, by one thread, its prompt in one pass. */
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
#include "quant_model.h"
#include "sanitized.h"
#include "table_model.h"

static const quant_spec specs[] = {
    {.name = "64 wide, six types",
     .arch = "llama",
     .D = 64,
     .L = 2,
     .H = 4,
     .K = 2,
     .E = 16,
     .F = 96,
     .V = 777,
     .n_types = 6,
     .types = {NIB_Q8_0, NIB_Q4_0, NIB_F16, NIB_Q4_1, NIB_Q5_0, NIB_Q5_1}},
    {.name = "256 wide, K types, window of 70",
     .arch = "gemma3",
     .D = 256,
     .L = 2,
     .H = 8,
     .K = 1,
     .E = 32,
     .F = 256,
     .V = 301,
     .window = 70,
     .n_types = 4,
     .types = {NIB_Q4_K, NIB_Q6_K, NIB_Q5_K, NIB_Q8_0},
     .tied = 1},
    {.name = "75 wide, plain types",
     .arch = "llama",
     .D = 75,
     .L = 1,
     .H = 3,
     .K = 1,
     .E = 25,
     .F = 51,
     .V = 201,
     .n_types = 3,
     .types = {NIB_F32, NIB_BF16, NIB_F16}},
};
enum { N_SPECS = sizeof specs / sizeof specs[0] };

static const struct {
    const char *name;
    int compute, type;
} modes[] = {{"fast, f16", NIB_COMPUTE_FAST, NIB_CACHE_TYPE_F16},
             {"exact, f32", NIB_COMPUTE_EXACT, NIB_CACHE_TYPE_F32}};
enum { N_MODES = 2 };

/* The rows: tokens of the prompt, how many it has in common with the longest, new tokens, candidates. */
static const struct {
    size_t n, common;
    int64_t n_new, n_return;
} jobs[] = {{300, 300, 6, 1}, {1, 0, 70, 1},   {64, 64, 5, 1}, {63, 0, 3, 2},
            {65, 30, 9, 1},   {100, 90, 8, 3}, {64, 64, 2, 1}};
enum { N_JOBS = sizeof jobs / sizeof jobs[0], MOST_TOKENS = 300, MOST_RUNGS = 6 };

/* A model's file, its prompts, and the rows that must come of them. */
typedef struct subject {
    quant_spec spec;
    size_t mode;
    unsigned char *file;
    size_t len;
    int32_t ids[N_JOBS][MOST_TOKENS];
    nib_prompt prompts[N_JOBS];
    nib_generate_options options[N_JOBS];
    nib_result *expected[N_JOBS];
} subject;

/* One way to compute. */
typedef struct manner {
    int rung, threads, cache;
    int64_t chunk, max_rows;
    bool backwards;
} manner;

static nib_session *session_on(const subject *s, nib_model *model, const manner *way) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_session *session;
    nib_error err;
    options.threads = way->threads;
    options.prefill_chunk = way->chunk;
    options.cache = way->cache;
    options.cache_type = modes[s->mode].type;
    options.max_rows = way->max_rows;
    if (way->cache == NIB_CACHE_STATIC && way->max_rows > 3) {
        options.max_cache_len = 310;
    }
    must(nib_session_new(&session, model, &options, &err), &err);
    return session;
}

static void make_prompts(subject *s, int do_sample) {
    for (size_t j = 0; j < N_JOBS; j++) {
        for (size_t i = 0; i < jobs[j].n; i++) {
            uint64_t stream = i < jobs[j].common ? 0 : j + 1;
            s->ids[j][i] = (int32_t)(nib_mix64(stream, i) % s->spec.V);
        }
        s->prompts[j] = (nib_prompt){s->ids[j], jobs[j].n};
        s->options[j] = (nib_generate_options)NIB_GENERATE_OPTIONS_INIT;
        s->options[j].do_sample = do_sample;
        s->options[j].max_new_tokens = jobs[j].n_new;
        s->options[j].num_return = jobs[j].n_return;
        s->options[j].has_seed = 1;
        s->options[j].seed = 40 + j % 5;
    }
}

static void expect(subject *s) {
    const manner alone = {NIB_CPU_BASE, 1, NIB_CACHE_DYNAMIC, 0, 1, false};
    nib_model *model = quant_open(s->file, s->len, modes[s->mode].compute, NIB_CPU_BASE);
    for (size_t j = 0; j < N_JOBS; j++) {
        nib_session *session = session_on(s, model, &alone);
        s->expected[j] = generate_one(session, s->ids[j], jobs[j].n, &s->options[j]);
        nib_session_free(session);
    }
    nib_model_free(model);
}

static void check_row(const subject *s, const manner *way, size_t job, const nib_row *got, const nib_row *expected) {
    bool same = got->n == expected->n && got->n_prompt == expected->n_prompt && got->finish == expected->finish &&
                memcmp(got->ids, expected->ids, (got->n_prompt + got->n) * sizeof got->ids[0]) == 0 &&
                memcmp(got->logprobs, expected->logprobs, got->n * sizeof got->logprobs[0]) == 0;
    if (!same) {
        fail_msg("%s, %s, %s, %d threads, cache %d, chunks of %d, %d rows at once, %s: row %zu, candidate %zu",
                 s->spec.name, modes[s->mode].name, nib_kernels_name((size_t)(way->rung - NIB_CPU_BASE)), way->threads,
                 way->cache, (int)way->chunk, (int)way->max_rows, way->backwards ? "backwards" : "forwards", job,
                 expected->index);
    }
}

/* All rows in one call. */
static void check_batch(const subject *s, nib_model *model, const manner *way) {
    nib_prompt prompts[N_JOBS];
    const nib_generate_options *options[N_JOBS];
    nib_result *result;
    nib_error err;
    for (size_t i = 0; i < N_JOBS; i++) {
        size_t j = way->backwards ? N_JOBS - 1 - i : i;
        prompts[i] = s->prompts[j];
        options[i] = &s->options[j];
    }
    nib_session *session = session_on(s, model, way);
    must(nib_generate_each(&result, session, prompts, N_JOBS, options, NULL, NULL, &err), &err);
    for (size_t i = 0, at = 0; i < N_JOBS; i++) {
        size_t j = way->backwards ? N_JOBS - 1 - i : i;
        for (size_t c = 0; c < (size_t)jobs[j].n_return; c++) {
            check_row(s, way, j, &result->rows[at++], &s->expected[j]->rows[c]);
        }
    }
    nib_result_free(result);
    nib_session_free(session);
}

/* Every row alone, one after the other in one session, which goes on from what the earlier ones left. */
static void check_alone(const subject *s, nib_model *model, const manner *way) {
    nib_session *session = session_on(s, model, way);
    for (size_t j = 0; j < N_JOBS; j++) {
        nib_result *result = generate_one(session, s->ids[j], jobs[j].n, &s->options[j]);
        for (size_t c = 0; c < (size_t)jobs[j].n_return; c++) {
            check_row(s, way, j, &result->rows[c], &s->expected[j]->rows[c]);
        }
        nib_result_free(result);
    }
    nib_session_free(session);
}

/* On a rung: the first n_threads numbers of threads with every cache; chunks, order and rows at once by turns. */
static void check_rung(const subject *s, int rung, size_t n_threads) {
    static const int threads[] = {2, 1, 3, 8}, caches[] = {NIB_CACHE_DYNAMIC, NIB_CACHE_STATIC, NIB_CACHE_NONE};
    static const int64_t chunks[] = {0, 7, 64, 1}, at_once[] = {32, 3, 1};
    nib_model *model = quant_open(s->file, s->len, modes[s->mode].compute, rung);
    for (size_t t = 0; t < n_threads; t++) {
        for (size_t c = 0; c < (rung == NIB_CPU_BASE ? 1 : 3); c++) {
            size_t turn = (size_t)rung + t + c;
            manner way = {rung, threads[t], caches[c], chunks[turn % 4], at_once[(turn / 2) % 3], (t + c) % 2 == 1};
            check_batch(s, model, &way);
            if (c == t % 3) {
                check_alone(s, model, &way);
            }
        }
    }
    nib_model_free(model);
}

static void check_all(size_t spec, size_t mode, int do_sample) {
    subject s = {.spec = specs[spec], .mode = mode};
    s.spec.seed = s.spec.D + 1;
    s.spec.context = 400;
    s.file = quant_file(&s.len, &s.spec);
    make_prompts(&s, do_sample);
    expect(&s);
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        if (nib_kernels_find(nib_kernels_name(i)) != NULL) {
            check_rung(&s, (int)i + NIB_CPU_BASE, i == 0 || NIB_SANITIZED ? 1 : 4);
        }
    }
    for (size_t j = 0; j < N_JOBS; j++) {
        nib_result_free(s.expected[j]);
    }
    free(s.file);
}

static void rows_do_not_depend_on_their_company(void **state) {
    size_t at = *(const size_t *)*state;
    check_all(at / N_MODES, at % N_MODES, NIB_DO_SAMPLE_NO);
    check_all(at / N_MODES, at % N_MODES, NIB_DO_SAMPLE_YES);
}

int main(void) {
    static char titles[N_SPECS * N_MODES][96];
    static size_t at[N_SPECS * N_MODES];
    struct CMUnitTest tests[N_SPECS * N_MODES] = {{0}};
    for (size_t i = 0; i < N_SPECS * N_MODES; i++) {
        at[i] = i;
        (void)snprintf(titles[i], sizeof titles[i], "%s: %s", specs[i / N_MODES].name, modes[i % N_MODES].name);
        tests[i].name = titles[i];
        tests[i].test_func = rows_do_not_depend_on_their_company;
        tests[i].initial_state = &at[i];
    }
    return cmocka_run_group_tests_name("batches", tests, NULL, NULL);
}
