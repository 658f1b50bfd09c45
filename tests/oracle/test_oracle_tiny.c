/* The tiny models of tests/golden/tiny against transformers, and against themselves: instruction sets, chunks, runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oracle_run.h"

/* Two implementations of binary32 differ by their order of additions: transformers' own answers with and without its
 * cache lie up to 3e-6 of the largest logit apart. The bound leaves room for that and none for a wrong formula: the
 * slightest of tools/oracle/planted_faults.py, a norm epsilon of 1e-4, moves logits by 4.5e-4 of the largest. */
#define LOGIT_BOUND 1e-4

static const char *const names[] = {
    "llama-tied-f32", "llama-untied-f16",   "llama-bf16",           "llama-quants",
    "llama-k-quants", "gemma3-window8-f16", "gemma3-window64-q8_0", "gemma3-window100-bf16",
    "qwen2-tied-f16", "qwen2-untied-q8_0",  "qwen3-tied-bf16",      "qwen3-untied-q4_0",
    "gpt2-f32",       "gpt2-quants",        "llama-linear-f16",     "llama-llama3-f16",
    "llama-yarn-f16", "qwen2-yarn-f16",     "gemma3-linear-f16",
};
enum { N_MODELS = sizeof names / sizeof names[0] };

/* One model while a test looks at it. */
typedef struct subject {
    char path[512];
    golden golden;
    float *logits; /* [text.n][V], the oracle's */
} subject;

static subject subject_of(void **state) {
    const char *name = *state;
    subject s;
    s.golden = golden_read(NIB_GOLDEN_DIR, name);
    s.logits = golden_logits(&s.golden, NIB_GOLDEN_DIR, name);
    snprintf(s.path, sizeof s.path, "%s/%s", NIB_GOLDEN_DIR, s.golden.file);
    return s;
}

static void subject_free(subject *s) {
    free(s->logits);
    golden_free(&s->golden);
}

/* The logits [n - first][V] of the text from position first on. */
static float *logits_of(nib_session *session, const golden *g, size_t n, size_t first) {
    float *logits = malloc((n - first) * g->V * sizeof *logits);
    assert_non_null(logits);
    nib_error err;
    if (nib_session_logits(logits, session, g->text.ids, n, first, &err) != NIB_OK) {
        fail_msg("logits: %s", err.message);
    }
    return logits;
}

static void logits_are_the_oracles(void **state) {
    subject s = subject_of(state);
    nib_model *model = oracle_open(s.path, NIB_CPU_AUTO);
    nib_session *session = oracle_session(model, 256);
    float *logits = logits_of(session, &s.golden, s.golden.text.n, 0);
    double largest = 0;
    size_t at = 0;
    for (size_t i = 0; i < s.golden.text.n * s.golden.V; i++) {
        double difference = fabs((double)logits[i] - (double)s.logits[i]);
        if (!(difference <= largest)) {
            largest = difference;
            at = i;
        }
    }
    print_message("           logits differ by %.2e of the largest (%.3g) at most: position %zu, id %zu\n",
                  largest / s.golden.max_logit, s.golden.max_logit, at / s.golden.V, at % s.golden.V);
    assert_true(largest <= LOGIT_BOUND * s.golden.max_logit);
    free(logits);
    nib_session_free(session);
    nib_model_free(model);
    subject_free(&s);
}

static void generations_are_the_oracles(void **state) {
    subject s = subject_of(state);
    nib_model *model = oracle_open(s.path, NIB_CPU_AUTO);
    nib_session *session = oracle_session(model, 256);
    double bound = 2 * LOGIT_BOUND * s.golden.max_logit; /* a log-probability is a logit less a mean of logits */
    for (size_t i = 0; i < s.golden.n_cases; i++) {
        const golden_case *c = &s.golden.cases[i];
        nib_result *result = oracle_generate(session, c, ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
        oracle_check(result, c, c->logprobs, bound);
        nib_result_free(result);
        if (c->processed != NULL) {
            result = oracle_generate(session, c, ORACLE_END_GIVEN, NIB_LOGPROBS_PROCESSED);
            oracle_check(result, c, c->processed, bound);
            nib_result_free(result);
        }
    }
    nib_session_free(session);
    nib_model_free(model);
    subject_free(&s);
}

/* All logits of the text, and the first case, on one instruction set and with one size of chunk; false when this machine
 * does not have it. */
static bool compare_with(const subject *s, const float *logits, const nib_result *result, int cpu, int64_t chunk) {
    nib_model *model = oracle_open(s->path, cpu);
    if (model == NULL) {
        return false;
    }
    char what[64];
    snprintf(what, sizeof what, "instruction set %d, chunks of %d", cpu, (int)chunk);
    const golden *g = &s->golden;
    nib_session *session = oracle_session(model, chunk);
    float *again = logits_of(session, g, g->text.n, 0);
    for (size_t i = 0; i < g->text.n * g->V; i++) {
        if (memcmp(&logits[i], &again[i], sizeof logits[i]) != 0) {
            fail_msg("%s: logit of position %zu, id %zu is %.9g, first it was %.9g", what, i / g->V, i % g->V,
                     (double)again[i], (double)logits[i]);
        }
    }
    nib_result *other = oracle_generate(session, &g->cases[0], ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
    oracle_check_same(other, result, what);
    nib_result_free(other);
    free(again);
    nib_session_free(session);
    nib_model_free(model);
    return true;
}

static void every_rung_chunk_and_run_gives_the_same_bits(void **state) {
    static const int64_t chunks[] = {1, 7, 64, 0};
    subject s = subject_of(state);
    nib_model *model = oracle_open(s.path, NIB_CPU_BASE);
    nib_session *session = oracle_session(model, 0);
    float *logits = logits_of(session, &s.golden, s.golden.text.n, 0);
    nib_result *result = oracle_generate(session, &s.golden.cases[0], ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
    for (int rung = NIB_CPU_BASE; rung <= NIB_CPU_NEONDOT; rung++) {
        bool there = true;
        for (size_t i = 0; i < sizeof chunks / sizeof chunks[0] && there; i++) {
            there = compare_with(&s, logits, result, rung, chunks[i]);
        }
        print_message("           instruction set %d: %s\n", rung, there ? "compared" : "not on this machine");
    }
    nib_result_free(result);
    free(logits);
    nib_session_free(session);
    nib_model_free(model);
    subject_free(&s);
}

/* The last logits of the first n tokens are those of a session that has seen nothing else. */
static void check_last(nib_session *session, const golden *g, size_t n, const float *whole) {
    float *last = logits_of(session, g, n, n - 1);
    assert_memory_equal(last, whole + (n - 1) * g->V, g->V * sizeof *last);
    free(last);
}

/* What a session still holds is not encoded again, and that must not show: texts that go on, go back, and part. */
static void what_a_session_holds_does_not_show(void **state) {
    subject s = subject_of(state);
    nib_model *model = oracle_open(s.path, NIB_CPU_AUTO);
    nib_session *fresh = oracle_session(model, 256), *used = oracle_session(model, 256);
    golden *g = &s.golden;
    size_t n = g->text.n;
    float *whole = logits_of(fresh, g, n, 0);
    for (size_t cut = 1; cut <= n; cut += cut < 12 ? 1 : 23) {
        check_last(used, g, cut, whole);
    }
    check_last(used, g, n / 2, whole);
    check_last(used, g, n, whole);
    int32_t *turn = &g->text.ids[n / 3];
    *turn = (*turn + 1) % (int32_t)g->V;
    free(whole);
    whole = logits_of(fresh, g, n, 0);
    check_last(used, g, n, whole);
    free(whole);
    nib_session_free(fresh);
    nib_session_free(used);
    nib_model_free(model);
    subject_free(&s);
}

static const struct {
    const char *says;
    CMUnitTestFunction run;
} checks[] = {
    {"logits are transformers'", logits_are_the_oracles},
    {"greedy, penalised and ended texts are transformers'", generations_are_the_oracles},
    {"every rung, chunk and run gives the same bits", every_rung_chunk_and_run_gives_the_same_bits},
    {"what a session holds does not show", what_a_session_holds_does_not_show},
};
enum { N_CHECKS = sizeof checks / sizeof checks[0] };

int main(void) {
    static char titles[N_MODELS * N_CHECKS][96];
    struct CMUnitTest tests[N_MODELS * N_CHECKS] = {{.name = NULL}};
    for (size_t i = 0; i < N_MODELS * N_CHECKS; i++) {
        const char *name = names[i / N_CHECKS];
        snprintf(titles[i], sizeof titles[i], "%s: %s", name, checks[i % N_CHECKS].says);
        tests[i].name = titles[i];
        tests[i].test_func = checks[i % N_CHECKS].run;
        tests[i].initial_state = (void *)(uintptr_t)name;
    }
    return cmocka_run_group_tests_name("tiny models", tests, NULL, NULL);
}
