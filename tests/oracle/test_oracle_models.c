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

/* On the shortest prompt only: base computes each fma in a dozen operations. */
static void every_rung_gives_the_same_bits(void **state) {
    (void)state;
    const golden_case *c = golden_find(&the.golden, "capital");
    assert_true(c->prompt.n < SHORT_PROMPT);
    nib_model *plain = oracle_open(the.path, NIB_CPU_BASE), *avx2 = oracle_open(the.path, NIB_CPU_AVX2);
    if (avx2 == NULL) {
        nib_model_free(plain);
        print_message("           no avx2 on this machine\n");
        skip();
    }
    nib_session *a = oracle_session(plain, 256), *b = oracle_session(avx2, 256);
    nib_result *x = oracle_generate(a, c, ORACLE_END_GIVEN, NIB_LOGPROBS_RAW),
               *y = oracle_generate(b, c, ORACLE_END_GIVEN, NIB_LOGPROBS_RAW);
    oracle_check_same(x, y, "base against avx2");
    nib_result_free(x);
    nib_result_free(y);
    nib_session_free(a);
    nib_session_free(b);
    nib_model_free(plain);
    nib_model_free(avx2);
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
        cmocka_unit_test(every_rung_gives_the_same_bits),
    };
    int failed = cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
    golden_free(&the.golden);
    return failed;
}
