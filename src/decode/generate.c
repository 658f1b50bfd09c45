/* nib_generate: rows one after another through the loop, gathered into a result. */
#include <string.h>

#include "base/memory.h"
#include "decode/loop.h"

/* A result with what its pointers lead to. */
typedef struct gathered {
    nib_result result; /* first: nib_result_free casts back */
    nib_row *rows;     /* [B] */
    int32_t *table;    /* [B][T] */
    size_t *lengths;   /* [B] */
} gathered;

/* One row while it grows. */
typedef struct growing {
    float *logprobs; /* [n] */
    size_t n, cap;
    nib_buffer text;
} growing;

void nib_result_free(nib_result *result) {
    if (result == NULL) {
        return;
    }
    gathered *g = (gathered *)(void *)result;
    for (size_t i = 0; g->rows != NULL && i < result->B; i++) {
        nib_free((void *)(uintptr_t)g->rows[i].ids);
        nib_free((void *)(uintptr_t)g->rows[i].logprobs);
        nib_free((void *)(uintptr_t)g->rows[i].text);
    }
    nib_free(g->rows);
    nib_free(g->table);
    nib_free(g->lengths);
    nib_free(g);
}

static nib_status new_result(gathered **out, size_t n_prompts, size_t num_return, nib_error *err) {
    size_t B;
    gathered *g = nib_alloc_zero(1, sizeof *g);
    if (g == NULL || !nib_mul_size(&B, n_prompts, num_return)) {
        nib_free(g);
        return nib_fail_memory(err, sizeof *g, "a result");
    }
    g->rows = nib_alloc_zero(B, sizeof g->rows[0]);
    g->lengths = nib_alloc_zero(B, sizeof g->lengths[0]);
    g->result.B = B;
    if (g->rows == NULL || g->lengths == NULL) {
        nib_result_free(&g->result);
        return nib_fail_memory(err, B * sizeof g->rows[0], "the rows of a result");
    }
    *out = g;
    return NIB_OK;
}

static nib_status take_step(growing *row, const nib_token *token, nib_error *err) {
    if (token->id >= 0) {
        if (!nib_reserve(&row->logprobs, &row->cap, row->n + 1, sizeof row->logprobs[0])) {
            return nib_fail_memory(err, (row->n + 1) * sizeof row->logprobs[0], "log-probabilities");
        }
        row->logprobs[row->n++] = token->logprob;
    }
    if (!nib_buffer_add(&row->text, token->text, token->text_len)) {
        return nib_fail_memory(err, token->text_len, "the text of a row");
    }
    return NIB_OK;
}

/* Move a finished row into the result. */
static nib_status keep_row(nib_row *kept, const nib_loop *loop, growing *row, nib_finish finish, nib_error *err) {
    int32_t *ids = nib_alloc(loop->n, sizeof ids[0]);
    char *text = NULL;
    if (loop->session->model->tokenizer != NULL) {
        text = nib_copy_text(row->text.bytes, row->text.len);
    }
    *kept = (nib_row){loop->row, loop->index, loop->n_prompt, row->n, ids, row->logprobs, text, row->text.len, finish};
    row->logprobs = NULL;
    if (ids == NULL || (text == NULL && loop->session->model->tokenizer != NULL)) {
        return nib_fail_memory(err, loop->n * sizeof ids[0], "a finished row");
    }
    memcpy(ids, loop->ids, loop->n * sizeof ids[0]);
    return NIB_OK;
}

/* Run the row that was begun to its end. *cancelled: nothing more may run. */
static nib_status run_row(nib_row *kept, bool *cancelled, nib_loop *loop, nib_token_fn callback, void *user,
                          nib_error *err) {
    growing row = {0};
    const nib_token *token = NULL;
    nib_finish finish = NIB_FINISH_NONE;
    nib_status status = NIB_OK;
    while (status == NIB_OK && finish == NIB_FINISH_NONE) {
        status = *cancelled ? nib_loop_cancel(&token, loop, err) : nib_loop_next(&token, loop, err);
        status = status != NIB_OK ? status : take_step(&row, token, err);
        if (status == NIB_OK) {
            finish = token->finish;
            if (callback != NULL && callback(token, user) != 0) {
                *cancelled = true;
            }
        }
    }
    *cancelled = *cancelled || finish == NIB_FINISH_CANCELLED;
    status = status != NIB_OK ? status : keep_row(kept, loop, &row, finish, err);
    nib_free(row.logprobs);
    nib_buffer_free(&row.text);
    return status;
}

static nib_status run_rows(gathered *g, nib_loop *loop, const nib_prompt *prompts, nib_token_fn callback, void *user,
                           nib_error *err) {
    size_t num_return = (size_t)loop->request->options.num_return;
    bool cancelled = false;
    nib_status status = NIB_OK;
    /* A failure to make g has ended the call. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    for (size_t i = 0; i < g->result.B && status == NIB_OK; i++) {
        status = nib_loop_begin(loop, prompts[i / num_return], i / num_return, i % num_return, err);
        status =
            status != NIB_OK ? status : run_row(&g->rows[i], &cancelled, loop, cancelled ? NULL : callback, user, err);
    }
    return status;
}

/* The table of ids with pad. */
static nib_status fill_table(gathered *g, const nib_request *request, nib_error *err) {
    nib_result *result = &g->result;
    size_t cells;
    for (size_t i = 0; i < result->B; i++) {
        g->lengths[i] = g->rows[i].n_prompt + g->rows[i].n;
        result->T = g->lengths[i] > result->T ? g->lengths[i] : result->T;
    }
    if (!nib_mul_size(&cells, result->B, result->T) || (g->table = nib_alloc(cells, sizeof g->table[0])) == NULL) {
        return nib_fail(err, NIB_ENOMEM, "out of memory: %zu x %zu ids of a result", result->B, result->T);
    }
    for (size_t i = 0; i < result->B; i++) {
        int32_t *row = g->table + i * result->T;
        memcpy(row, g->rows[i].ids, g->lengths[i] * sizeof row[0]);
        for (size_t t = g->lengths[i]; t < result->T; t++) {
            row[t] = request->pad_id;
        }
    }
    result->ids = g->table;
    result->lengths = g->lengths;
    result->rows = g->rows;
    result->seed = request->options.seed;
    return NIB_OK;
}

nib_status nib_generate(nib_result **out, nib_session *session, const nib_prompt *prompts, size_t n_prompts,
                        const nib_generate_options *options, nib_token_fn callback, void *user, nib_error *err) {
    nib_request request;
    nib_loop loop;
    gathered *g = NULL;
    *out = NULL;
    if (prompts == NULL || n_prompts == 0) {
        return nib_fail(err, NIB_EINVAL, "prompts: none, expected at least one");
    }
    nib_status status = nib_request_init(&request, session, options, err);
    for (size_t i = 0; i < n_prompts && status == NIB_OK; i++) {
        status = nib_request_check_prompt(session, &prompts[i], i, err);
    }
    status = status != NIB_OK ? status : nib_loop_init(&loop, session, &request, err);
    if (status != NIB_OK) {
        return status;
    }
    status = new_result(&g, n_prompts, (size_t)request.options.num_return, err);
    status = status != NIB_OK ? status : run_rows(g, &loop, prompts, callback, user, err);
    status = status != NIB_OK ? status : fill_table(g, &request, err);
    nib_loop_free(&loop);
    if (status != NIB_OK) {
        nib_result_free(g == NULL ? NULL : &g->result);
        return status;
    }
    *out = &g->result;
    return NIB_OK;
}
