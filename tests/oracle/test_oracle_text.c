/* A tiny model with a vocabulary: text in, text out, ended by the end token that its file names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oracle_run.h"

/* As in test_oracle_tiny.c; the logits reach 10. */
#define LOGPROB_BOUND 2e-3

typedef struct subject {
    golden golden;
    nib_model *model;
    nib_session *session;
} subject;

static int set_up(void **state) {
    static subject s;
    char path[512];
    s.golden = golden_read(NIB_GOLDEN_DIR, "llama-text");
    snprintf(path, sizeof path, "%s/%s", NIB_GOLDEN_DIR, s.golden.file);
    s.model = oracle_open(path, NIB_CPU_AUTO);
    s.session = oracle_session(s.model, 256);
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    subject *s = *state;
    nib_session_free(s->session);
    nib_model_free(s->model);
    golden_free(&s->golden);
    return 0;
}

static void prompts_become_the_oracles_ids(void **state) {
    const subject *s = *state;
    for (size_t i = 0; i < s->golden.n_cases; i++) {
        oracle_check_prompt(s->model, &s->golden.cases[i]);
    }
}

static void texts_are_the_oracles_and_end_by_themselves(void **state) {
    const subject *s = *state;
    for (size_t i = 0; i < s->golden.n_cases; i++) {
        const golden_case *c = &s->golden.cases[i];
        nib_result *result = oracle_generate(s->session, c, ORACLE_END_OWN, NIB_LOGPROBS_RAW);
        oracle_check(result, c, c->logprobs, LOGPROB_BOUND);
        assert_int_equal(result->rows[0].text_len, c->wrote.len);
        assert_string_equal(result->rows[0].text, c->wrote.bytes);
        nib_result_free(result);
    }
}

static void the_end_id_is_the_files(void **state) {
    const subject *s = *state;
    nib_model_info info = {.size = sizeof info};
    nib_error err;
    assert_int_equal(nib_model_get_info(&info, s->model, &err), NIB_OK);
    assert_int_equal(info.n_end_ids, 1);
    assert_int_equal(info.end_ids[0], s->golden.cases[0].end.ids[0]);
    assert_int_equal(info.end_id, info.end_ids[0]);
    assert_true(nib_tokenizer_is_control(nib_model_tokenizer(s->model), info.end_id));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_become_the_oracles_ids),
        cmocka_unit_test(texts_are_the_oracles_and_end_by_themselves),
        cmocka_unit_test(the_end_id_is_the_files),
    };
    return cmocka_run_group_tests_name("text in, text out", tests, set_up, tear_down);
}
