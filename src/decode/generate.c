/* nib_generate: the steps of the loop, gathered into a result. */
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

/* What is gathered of one row before it ends. */
typedef struct part {
    float *logprobs; /* [n] */
    size_t n, cap;
    nib_alternative *top; /* [n][stride] */
    size_t *n_top;        /* [n] */
    size_t stride, cap_top, cap_n_top;
    nib_buffer text;
} part;

/* One call. */
typedef struct call {
    nib_request *requests;    /* [n_requests] */
    const nib_request **each; /* [n_prompts] of a prompt */
    size_t *first;            /* [n_prompts] row of a prompt's candidate 0 */
    size_t n_requests, n_prompts, B;
    part *parts; /* [B] */
    nib_loop loop;
    gathered *g;
    nib_token_fn callback; /* NULL once it wanted no more */
    void *user;
} call;

void nib_result_free(nib_result *result) {
    if (result == NULL) {
        return;
    }
    gathered *g = (gathered *)(void *)result;
    for (size_t i = 0; g->rows != NULL && i < result->B; i++) {
        nib_free((void *)(uintptr_t)g->rows[i].ids);
        nib_free((void *)(uintptr_t)g->rows[i].logprobs);
        nib_free((void *)(uintptr_t)g->rows[i].top);
        nib_free((void *)(uintptr_t)g->rows[i].n_top);
        nib_free((void *)(uintptr_t)g->rows[i].text);
    }
    nib_free(g->rows);
    nib_free(g->table);
    nib_free(g->lengths);
    nib_free(g);
}

static nib_status new_result(gathered **out, size_t B, nib_error *err) {
    gathered *g = nib_alloc_zero(1, sizeof *g);
    if (g == NULL) {
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

/* The alternatives of token t. */
static nib_status take_top(part *p, const nib_token *token, size_t t, nib_error *err) {
    if (p->stride == 0) {
        return NIB_OK;
    }
    if (!nib_reserve(&p->top, &p->cap_top, (t + 1) * p->stride, sizeof p->top[0]) ||
        !nib_reserve(&p->n_top, &p->cap_n_top, t + 1, sizeof p->n_top[0])) {
        return nib_fail_memory(err, (t + 1) * p->stride * sizeof p->top[0], "alternatives");
    }
    memset(p->top + t * p->stride, 0, p->stride * sizeof p->top[0]);
    memcpy(p->top + t * p->stride, token->top, token->n_top * sizeof p->top[0]);
    p->n_top[t] = token->n_top;
    return NIB_OK;
}

static nib_status take_step(part *p, const nib_token *token, nib_error *err) {
    if (token->id >= 0) {
        if (!nib_reserve(&p->logprobs, &p->cap, p->n + 1, sizeof p->logprobs[0])) {
            return nib_fail_memory(err, (p->n + 1) * sizeof p->logprobs[0], "log-probabilities");
        }
        p->logprobs[p->n] = token->logprob;
        nib_status status = take_top(p, token, p->n, err);
        if (status != NIB_OK) {
            return status;
        }
        p->n++;
    }
    if (!nib_buffer_add(&p->text, token->text, token->text_len)) {
        return nib_fail_memory(err, token->text_len, "the text of a row");
    }
    return NIB_OK;
}

/* Move a finished row into the result. */
static nib_status keep_row(nib_row *kept, const nib_growing *row, part *p, nib_finish finish, nib_error *err) {
    bool has_text = row->model->tokenizer != NULL;
    int32_t *ids = nib_alloc(row->n, sizeof ids[0]);
    char *text = has_text ? nib_copy_text(p->text.bytes, p->text.len) : NULL;
    *kept = (nib_row){.row = row->row,
                      .index = row->index,
                      .n_prompt = row->n_prompt,
                      .n = p->n,
                      .ids = ids,
                      .logprobs = p->logprobs,
                      .top = p->top,
                      .n_top = p->n_top,
                      .stride_top = p->stride,
                      .text = text,
                      .text_len = p->text.len,
                      .finish = finish,
                      .seed = row->request->options.seed};
    p->logprobs = NULL;
    p->top = NULL;
    p->n_top = NULL;
    nib_buffer_free(&p->text);
    if (ids == NULL || (text == NULL && has_text)) {
        return nib_fail_memory(err, row->n * sizeof ids[0], "a finished row");
    }
    memcpy(ids, row->ids, row->n * sizeof ids[0]);
    return NIB_OK;
}

static nib_status run(call *c, nib_error *err) {
    const nib_token *token;
    nib_status status = nib_loop_next(&token, &c->loop, err);
    while (status == NIB_OK && token != NULL) {
        size_t at = c->first[token->row] + token->index;
        status = take_step(&c->parts[at], token, err);
        if (status == NIB_OK && c->callback != NULL && c->callback(token, c->user) != 0) {
            c->callback = NULL;
            nib_loop_cancel(&c->loop);
        }
        if (status == NIB_OK && token->finish != NIB_FINISH_NONE) {
            status = keep_row(&c->g->rows[at], c->loop.current, &c->parts[at], token->finish, err);
        }
        status = status != NIB_OK ? status : nib_loop_next(&token, &c->loop, err);
    }
    return status;
}

/* The table of ids with pad. */
static nib_status fill_table(call *c, nib_error *err) {
    gathered *g = c->g;
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
            row[t] = c->each[g->rows[i].row]->pad_id;
        }
    }
    result->ids = g->table;
    result->lengths = g->lengths;
    result->rows = g->rows;
    result->seed = c->each[0]->options.seed;
    return NIB_OK;
}

/* Requests: one for all prompts, or one for each. */
static nib_status make_requests(call *c, const nib_session *session, const nib_generate_options *const *options,
                                bool for_each, nib_error *err) {
    c->n_requests = for_each ? c->n_prompts : 1;
    c->requests = nib_alloc_zero(c->n_requests, sizeof c->requests[0]);
    c->each = nib_alloc(c->n_prompts, sizeof(const nib_request *));
    c->first = nib_alloc(c->n_prompts, sizeof c->first[0]);
    if (c->requests == NULL || c->each == NULL || c->first == NULL) {
        return nib_fail_memory(err, c->n_prompts * sizeof(nib_request), "the options of the rows");
    }
    nib_status status = NIB_OK;
    for (size_t i = 0; i < c->n_requests && status == NIB_OK; i++) {
        status = nib_request_init(&c->requests[i], session, options == NULL ? NULL : options[i], err);
    }
    return status;
}

static nib_status check_prompts(call *c, const nib_session *session, const nib_prompt *prompts, nib_error *err) {
    nib_status status = NIB_OK;
    for (size_t i = 0; i < c->n_prompts && status == NIB_OK; i++) {
        c->each[i] = &c->requests[c->n_requests == 1 ? 0 : i];
        c->first[i] = c->B;
        if (!nib_add_size(&c->B, c->B, (size_t)c->each[i]->options.num_return)) {
            return nib_fail_memory(err, SIZE_MAX, "the rows of a result");
        }
        status = nib_request_check_prompt(c->each[i], session, &prompts[i], i, err);
    }
    return status;
}

static nib_status make_room(call *c, nib_session *session, const nib_prompt *prompts, nib_error *err) {
    c->parts = nib_alloc_zero(c->B, sizeof c->parts[0]);
    if (c->parts == NULL) {
        return nib_fail_memory(err, c->B * sizeof c->parts[0], "the rows of a result");
    }
    for (size_t i = 0; i < c->n_prompts; i++) {
        for (size_t j = 0; j < (size_t)c->each[i]->options.num_return; j++) {
            c->parts[c->first[i] + j].stride = nib_request_top(c->each[i], session->model);
        }
    }
    nib_status status = new_result(&c->g, c->B, err);
    size_t max_rows = (size_t)session->options.max_rows;
    return status != NIB_OK ? status : nib_loop_init(&c->loop, session, c->each, prompts, c->n_prompts, max_rows, err);
}

static void free_call(call *c) {
    nib_loop_free(&c->loop);
    for (size_t i = 0; c->parts != NULL && i < c->B; i++) {
        nib_free(c->parts[i].logprobs);
        nib_free(c->parts[i].top);
        nib_free(c->parts[i].n_top);
        nib_buffer_free(&c->parts[i].text);
    }
    for (size_t i = 0; c->requests != NULL && i < c->n_requests; i++) {
        nib_request_free(&c->requests[i]);
    }
    nib_free(c->parts);
    nib_free(c->requests);
    nib_free((void *)c->each);
    nib_free(c->first);
}

static nib_status generate(nib_result **out, nib_session *session, const nib_prompt *prompts,
                           const nib_generate_options *const *options, bool for_each, call *c, nib_error *err) {
    *out = NULL;
    if (prompts == NULL || c->n_prompts == 0) {
        return nib_fail(err, NIB_EINVAL, "prompts: none, expected at least one");
    }
    nib_status status = make_requests(c, session, options, for_each, err);
    status = status != NIB_OK ? status : check_prompts(c, session, prompts, err);
    status = status != NIB_OK ? status : make_room(c, session, prompts, err);
    status = status != NIB_OK ? status : run(c, err);
    status = status != NIB_OK ? status : fill_table(c, err);
    free_call(c);
    if (status != NIB_OK) {
        nib_result_free(c->g == NULL ? NULL : &c->g->result);
        return status;
    }
    *out = &c->g->result;
    return NIB_OK;
}

nib_status nib_generate(nib_result **out, nib_session *session, const nib_prompt *prompts, size_t n_prompts,
                        const nib_generate_options *options, nib_token_fn callback, void *user, nib_error *err) {
    call c = {.n_prompts = n_prompts, .callback = callback, .user = user};
    return generate(out, session, prompts, &options, false, &c, err);
}

nib_status nib_generate_each(nib_result **out, nib_session *session, const nib_prompt *prompts, size_t n_prompts,
                             const nib_generate_options *const *options, nib_token_fn callback, void *user,
                             nib_error *err) {
    call c = {.n_prompts = n_prompts, .callback = callback, .user = user};
    return generate(out, session, prompts, options, true, &c, err);
}
