/* A real model file against transformers: test_oracle_models NAME, the golden file's name. The model lies where
 * script/fetch-models puts it; without it the test is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "oracle_run.h"

/* The oracle's own log-probabilities with and without its cache differ by up to 7e-5, over 30 layers and 900 tokens;
 * its rotations are computed in binary32 and nib's in binary64, which is 5e-5 rad at position 900. */
#define LOGPROB_BOUND 2e-3

enum { SKIPPED = 77, SHORT_PROMPT = 10 };

typedef struct subject {
    char path[1024];
    golden golden;
} subject;

static subject the;

/* ${NIB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nib}, as script/fetch-models has it. */
static void find_model(char *path, size_t cap, const char *file) {
    const char *cache = getenv("NIB_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] != '\0') {
        snprintf(path, cap, "%s/%s", cache, file);
    } else if (xdg != NULL && xdg[0] != '\0') {
        snprintf(path, cap, "%s/nib/%s", xdg, file);
    } else {
        snprintf(path, cap, "%s/.cache/nib/%s", home == NULL ? "" : home, file);
    }
}

static void prompts_become_the_oracles_ids(void **state) {
    (void)state;
    nib_model *model = oracle_open(the.path, NIB_CPU_AUTO);
    for (size_t i = 0; i < the.golden.n_cases; i++) {
        oracle_check_prompt(model, &the.golden.cases[i]);
    }
    nib_model_free(model);
}

static void greedy_texts_are_the_oracles(void **state) {
    (void)state;
    nib_model *model = oracle_open(the.path, NIB_CPU_AUTO);
    for (size_t i = 0; i < the.golden.n_cases; i++) {
        nib_session *session = oracle_session(model, 256);
        const golden_case *c = &the.golden.cases[i];
        nib_result *result = oracle_generate(session, c, ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
        oracle_check(result, c, c->logprobs, LOGPROB_BOUND);
        nib_result_free(result);
        nib_session_free(session);
    }
    nib_model_free(model);
}

static void every_chunk_and_run_gives_the_same_bits(void **state) {
    (void)state;
    static const int64_t chunks[] = {1, 7, 64, 0};
    const golden_case *c = golden_find(&the.golden, "story");
    nib_model *model = oracle_open(the.path, NIB_CPU_AUTO);
    nib_session *session = oracle_session(model, 0);
    nib_result *first = oracle_generate(session, c, ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
    nib_session_free(session);
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        char what[32];
        snprintf(what, sizeof what, "chunks of %d", (int)chunks[i]);
        session = oracle_session(model, chunks[i]);
        nib_result *again = oracle_generate(session, c, ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
        oracle_check_same(again, first, what);
        nib_result_free(again);
        nib_session_free(session);
    }
    nib_result_free(first);
    nib_model_free(model);
}

/* ---- instruction sets and threads, in both modes of computing ---- */

static const int modes[] = {NIB_COMPUTE_FAST, NIB_COMPUTE_EXACT};
enum { N_MODES = sizeof modes / sizeof modes[0], STEPS = 8 };

/* A case's prompt and a few steps. */
static nib_result *begin_case(nib_model *model, const golden_case *c, int64_t threads, int64_t chunk) {
    golden_case beginning = *c;
    beginning.limit = STEPS;
    nib_session *session = oracle_session_of_threads(model, threads, chunk);
    nib_result *result = oracle_generate(session, &beginning, ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
    nib_session_free(session);
    return result;
}

/* The next instruction set behind `rung` that this machine has, and the model on it; NULL when there is none. */
static nib_model *open_next(int *rung, int compute) {
    nib_model *model = NULL;
    while (model == NULL && *rung < NIB_CPU_NEONDOT) {
        ++*rung;
        model = oracle_open_in_mode(the.path, compute, *rung);
    }
    return model;
}

/* `first` is what the first instruction set above base gave by one thread. Exact takes the numbers of threads by turns. */
static void compare_threads(nib_model *model, const golden_case *c, int rung, int compute, const nib_result *first) {
    static const int64_t threads[] = {1, 2, 3, 8}, chunks[] = {64, 0, 33, 0};
    for (int i = 0; i < 4; i++) {
        if (compute == NIB_COMPUTE_EXACT && (rung + i) % 2 != 0) {
            continue;
        }
        char what[80];
        snprintf(what, sizeof what, "compute %d, instruction set %d, %d threads", compute, rung, (int)threads[i]);
        nib_result *again = begin_case(model, c, threads[i], chunks[i]);
        oracle_check_same(again, first, what);
        nib_result_free(again);
    }
}

static void every_rung_and_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    const golden_case *c = golden_find(&the.golden, "story");
    for (int mode = 0; mode < N_MODES; mode++) {
        nib_result *first = NULL;
        int rung = NIB_CPU_BASE;
        for (nib_model *model = open_next(&rung, modes[mode]); model != NULL; model = open_next(&rung, modes[mode])) {
            first = first == NULL ? begin_case(model, c, 1, 0) : first;
            compare_threads(model, c, rung, modes[mode], first);
            nib_model_free(model);
        }
        if (first == NULL) {
            print_message("           no instruction set but base on this machine\n");
            skip();
        }
        nib_result_free(first);
    }
}

/* 900 tokens and more: few of them at a time have their attention cut into runs, and Gemma's window of 512 moves on. */
static void a_long_prompt_gives_the_same_bits_by_many_threads(void **state) {
    (void)state;
    const golden_case *c = golden_find(&the.golden, "essay");
    nib_model *model = oracle_open_in_mode(the.path, NIB_COMPUTE_FAST, NIB_CPU_AUTO);
    nib_result *first = begin_case(model, c, 1, 0);
    static const struct { int64_t threads, chunk; } ways[] = {{3, 7}, {8, 64}, {2, 0}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char what[64];
        snprintf(what, sizeof what, "%d threads, chunks of %d", (int)ways[i].threads, (int)ways[i].chunk);
        nib_result *again = begin_case(model, c, ways[i].threads, ways[i].chunk);
        oracle_check_same(again, first, what);
        nib_result_free(again);
    }
    nib_result_free(first);
    nib_model_free(model);
}

/* On the shortest prompt only: base computes each fma in a dozen operations. */
static void base_gives_the_same_bits(void **state) {
    (void)state;
    const golden_case *c = golden_find(&the.golden, "capital");
    assert_true(c->prompt.n < SHORT_PROMPT);
    for (int mode = 0; mode < N_MODES; mode++) {
        int rung = NIB_CPU_BASE;
        nib_model *plain = oracle_open_in_mode(the.path, modes[mode], NIB_CPU_BASE),
                  *other = open_next(&rung, modes[mode]);
        if (other == NULL) {
            nib_model_free(plain);
            print_message("           no instruction set but base on this machine\n");
            skip();
        }
        nib_result *x = begin_case(plain, c, NIB_UNSET, 256), *y = begin_case(other, c, NIB_UNSET, 256);
        oracle_check_same(x, y, modes[mode] == NIB_COMPUTE_FAST ? "base, fast" : "base, exact");
        nib_result_free(x);
        nib_result_free(y);
        nib_model_free(plain);
        nib_model_free(other);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: test_oracle_models NAME\n");
        return 2;
    }
    the.golden = golden_read(NIB_GOLDEN_DIR, argv[1]);
    find_model(the.path, sizeof the.path, the.golden.file);
    if (access(the.path, R_OK) != 0) {
        printf("skipped: %s is not there; script/fetch-models gets it\n", the.path);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_become_the_oracles_ids),
        cmocka_unit_test(greedy_texts_are_the_oracles),
        cmocka_unit_test(every_chunk_and_run_gives_the_same_bits),
        cmocka_unit_test(every_rung_and_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_long_prompt_gives_the_same_bits_by_many_threads),
        cmocka_unit_test(base_gives_the_same_bits),
    };
    int failed = cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
    golden_free(&the.golden);
    return failed;
}
