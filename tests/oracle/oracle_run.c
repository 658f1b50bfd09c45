/* What the oracle tests share. */
#include "oracle_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

nib_model *oracle_open(const char *path, int cpu) {
    return oracle_open_in_mode(path, NIB_COMPUTE_EXACT, cpu);
}

nib_model *oracle_open_in_mode(const char *path, int compute, int cpu) {
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    options.compute = compute;
    options.cpu = cpu;
    nib_error err;
    nib_model *model;
    nib_status status = nib_model_open(&model, path, &options, &err);
    if (status == NIB_EINVAL && strncmp(err.message, "cpu: ", 5) == 0) {
        return NULL;
    }
    if (status != NIB_OK) {
        fail_msg("%s: %s", path, err.message);
    }
    return model;
}

nib_session *oracle_session(nib_model *model, int64_t prefill_chunk) {
    return oracle_session_of_threads(model, NIB_UNSET, prefill_chunk);
}

nib_session *oracle_session_of_threads(nib_model *model, int64_t threads, int64_t prefill_chunk) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    options.threads = threads;
    options.prefill_chunk = prefill_chunk;
    nib_error err;
    nib_session *session;
    if (nib_session_new(&session, model, &options, &err) != NIB_OK) {
        fail_msg("session: %s", err.message);
    }
    return session;
}

nib_result *oracle_generate(nib_session *session, const golden_case *c, oracle_end end, int logprobs) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.max_new_tokens = (int64_t)c->limit;
    options.do_sample = NIB_DO_SAMPLE_NO;
    options.repetition_penalty = c->penalty;
    options.logprobs = logprobs;
    if (end == ORACLE_END_GIVEN) {
        options.eos_id = c->end.ids;
        options.n_eos_id = c->end.n;
        options.ignore_eos = c->end.n == 0 ? NIB_IGNORE_EOS_YES : NIB_IGNORE_EOS_NO;
    }
    nib_prompt prompt = {c->prompt.ids, c->prompt.n};
    nib_error err;
    nib_result *result;
    if (nib_generate(&result, session, &prompt, 1, &options, NULL, NULL, &err) != NIB_OK) {
        fail_msg("%s: %s", c->name, err.message);
    }
    return result;
}

/* An end id ends the row; else only the limit does. */
static nib_finish finish_of(const golden_case *c) {
    int32_t last = c->ids.ids[c->ids.n - 1];
    for (size_t i = 0; i < c->end.n; i++) {
        if (c->end.ids[i] == last) {
            return NIB_FINISH_STOP;
        }
    }
    return NIB_FINISH_LENGTH;
}

void oracle_check(const nib_result *result, const golden_case *c, const double *logprobs, double bound) {
    const nib_row *row = &result->rows[0];
    assert_int_equal(row->n_prompt, c->prompt.n);
    double largest = 0;
    for (size_t i = 0; i < row->n && i < c->ids.n; i++) {
        int32_t id = row->ids[row->n_prompt + i];
        if (id != c->ids.ids[i]) {
            fail_msg(
                "%s: token %zu is %d, expected %d (which won by %.3g); log-probability %.6f, expected %.6f; before "
                "it they differed by %.3g at most",
                c->name, i, (int)id, (int)c->ids.ids[i], c->margins[i], (double)row->logprobs[i], logprobs[i], largest);
        }
        largest = fmax(largest, fabs((double)row->logprobs[i] - logprobs[i]));
    }
    print_message("           %s: %zu + %zu tokens, log-probabilities differ by %.2e at most (bound %.0e)\n", c->name,
                  c->prompt.n, row->n, largest, bound);
    assert_int_equal(row->n, c->ids.n);
    assert_int_equal(row->finish, finish_of(c));
    assert_true(largest <= bound);
}

void oracle_check_prompt(const nib_model *model, const golden_case *c) {
    int32_t *ids;
    size_t n;
    nib_error err;
    if (nib_tokenizer_encode(&ids, &n, nib_model_tokenizer(model), c->said.bytes, c->said.len,
                             NIB_TOKENIZE_ADD_BOS | NIB_TOKENIZE_SPECIAL, &err) != NIB_OK) {
        fail_msg("%s: %s", c->name, err.message);
    }
    for (size_t i = 0; i < n && i < c->prompt.n; i++) {
        if (ids[i] != c->prompt.ids[i]) {
            fail_msg("%s: id %zu is %d, expected %d", c->name, i, (int)ids[i], (int)c->prompt.ids[i]);
        }
    }
    assert_int_equal(n, c->prompt.n);
    nib_free(ids);
}

void oracle_check_same(const nib_result *a, const nib_result *b, const char *what) {
    const nib_row *x = &a->rows[0], *y = &b->rows[0];
    if (x->n != y->n || x->n_prompt != y->n_prompt) {
        fail_msg("%s: %zu tokens against %zu", what, x->n, y->n);
    }
    for (size_t i = 0; i < x->n; i++) {
        if (x->ids[x->n_prompt + i] != y->ids[y->n_prompt + i] ||
            memcmp(&x->logprobs[i], &y->logprobs[i], sizeof x->logprobs[i]) != 0) {
            fail_msg("%s: token %zu is %d of %.9g against %d of %.9g", what, i, (int)x->ids[x->n_prompt + i],
                     (double)x->logprobs[i], (int)y->ids[y->n_prompt + i], (double)y->logprobs[i]);
        }
    }
}
