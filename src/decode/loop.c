/* The one decode loop. */
#include "decode/loop.h"

#include <string.h>

#include "base/fpenv.h"
#include "base/memory.h"

/* Tokens that a row must have in common with one that is encoded in the same pass to wait for it. */
enum { WORTH_WAITING = 32 };

/* ---- room ---- */

/* Rows of all prompts, max_rows at most. */
static size_t count_rows(const nib_request *const *requests, size_t n_prompts, size_t max_rows) {
    size_t n = 0;
    for (size_t i = 0; i < n_prompts && n < max_rows; i++) {
        n += (size_t)requests[i]->options.num_return;
    }
    return n < max_rows ? n : max_rows;
}

static size_t longest_row(const nib_loop *loop) {
    size_t longest = 0;
    for (size_t i = 0; i < loop->n_prompts; i++) {
        size_t n_prompt = loop->prompts[i].n > 0 ? loop->prompts[i].n : 1;
        size_t n = n_prompt + nib_request_limit(loop->requests[i], loop->session, n_prompt);
        longest = n > longest ? n : longest;
    }
    return longest;
}

static nib_status new_samplers(nib_loop *loop, nib_error *err) {
    const nib_model *model = loop->session->model;
    size_t threads = (size_t)nib_pool_n(loop->session->pool);
    size_t n = threads < loop->n_places ? threads : loop->n_places;
    loop->samplers = nib_alloc_zero(threads, sizeof(nib_sampler *));
    nib_status status =
        loop->samplers == NULL ? nib_fail_memory(err, threads * sizeof(nib_sampler *), "samplers") : NIB_OK;
    /* Any thread of the pool may choose, however few rows there are. */
    n = loop->n_places > 1 ? threads : n;
    while (loop->n_samplers < n && status == NIB_OK) {
        status = nib_sampler_new(&loop->samplers[loop->n_samplers], model->config.V, model->kernels, err);
        loop->n_samplers += status == NIB_OK;
    }
    return status;
}

static nib_status make_room(nib_loop *loop, nib_error *err) {
    size_t V = (size_t)loop->session->model->config.V, n = loop->n_places, n_logits;
    loop->rows = nib_alloc_zero(n, sizeof loop->rows[0]);
    loop->live = nib_alloc(n, sizeof(nib_growing *));
    loop->feeds = nib_alloc(n, sizeof loop->feeds[0]);
    if (loop->rows == NULL || loop->live == NULL || loop->feeds == NULL) {
        return nib_fail_memory(err, n * sizeof loop->rows[0], "the rows of a batch");
    }
    if (!nib_mul_size(&n_logits, n, V) || (loop->logits = nib_alloc(n_logits, sizeof(float))) == NULL) {
        return nib_fail_memory(err, n * V * sizeof(float), "logits");
    }
    for (size_t i = 0; i < n; i++) {
        loop->live[i] = &loop->rows[i];
    }
    nib_status status = new_samplers(loop, err);
    return status != NIB_OK ? status : nib_session_fix(loop->session, n, longest_row(loop), err);
}

nib_status nib_loop_init(nib_loop *loop, nib_session *session, const nib_request *const *requests,
                         const nib_prompt *prompts, size_t n_prompts, size_t max_rows, nib_error *err) {
    *loop = (nib_loop){.session = session, .requests = requests, .prompts = prompts, .n_prompts = n_prompts};
    loop->n_places = count_rows(requests, n_prompts, max_rows);
    nib_status status = make_room(loop, err);
    if (status != NIB_OK) {
        nib_loop_free(loop);
    }
    return status;
}

void nib_loop_free(nib_loop *loop) {
    for (size_t i = 0; loop->rows != NULL && i < loop->n_places; i++) {
        nib_timeline_give(loop->rows[i].line);
        nib_growing_free(&loop->rows[i]);
    }
    for (size_t i = 0; i < loop->n_samplers; i++) {
        nib_sampler_free(loop->samplers[i]);
    }
    if (loop->session != NULL) {
        nib_timeline_prune(loop->session, loop->n_places);
    }
    nib_free(loop->samplers);
    nib_free(loop->rows);
    nib_free(loop->live);
    nib_free(loop->feeds);
    nib_free(loop->logits);
    *loop = (nib_loop){0};
}

/* ---- rows come and go ---- */

/* Rows that ended leave; the others keep their order. */
static void remove_ended(nib_loop *loop) {
    size_t n = 0;
    for (size_t i = 0; i < loop->n_live; i++) {
        nib_growing *row = loop->live[i];
        if (row->done) {
            nib_timeline_give(row->line);
            row->line = NULL;
        } else {
            loop->live[i] = loop->live[n];
            loop->live[n++] = row;
        }
    }
    loop->n_live = n;
    loop->next = 0;
}

/* Begin rows while there is place. */
static nib_status admit(nib_loop *loop, nib_error *err) {
    while (loop->n_live < loop->n_places && loop->prompt < loop->n_prompts) {
        const nib_request *request = loop->requests[loop->prompt];
        nib_prompt prompt = loop->prompts[loop->prompt];
        size_t limit = nib_request_limit(request, loop->session, prompt.n > 0 ? prompt.n : 1);
        nib_status status = nib_growing_begin(loop->live[loop->n_live], loop->session->model, request, prompt,
                                              loop->prompt, loop->index, limit, err);
        if (status != NIB_OK) {
            return status;
        }
        loop->n_live++;
        if (++loop->index == (size_t)request->options.num_return) {
            loop->index = 0;
            loop->prompt++;
        }
    }
    return NIB_OK;
}

/* ---- encoding ---- */

static size_t common(const nib_growing *a, const nib_growing *b) {
    size_t n = a->n < b->n ? a->n : b->n, same = 0;
    while (same < n && a->ids[same] == b->ids[same]) {
        same++;
    }
    return same;
}

/* Whether a new row does better to wait until one of the pass is encoded, and go on from its beginning. */
static bool should_wait(const nib_loop *loop, size_t at) {
    const nib_session *session = loop->session;
    const nib_growing *row = loop->live[at];
    size_t most = 0, shared = 0;
    if (session->options.cache == NIB_CACHE_NONE || session->model->custom.step != NULL) {
        return false;
    }
    for (size_t i = 0; i < at; i++) {
        const nib_growing *other = loop->live[i];
        if (other->line != NULL && !other->fed) {
            size_t n = common(row, other);
            most = n > most ? n : most;
        }
    }
    for (size_t i = 0; i < session->n_lines && most > WORTH_WAITING; i++) {
        size_t n = nib_timeline_shared(session, session->lines[i], row->ids, row->n - 1);
        shared = n > shared ? n : shared;
    }
    return most > shared + WORTH_WAITING || (most == row->n && most > shared);
}

/* A row that was encoded in this step and has the same tokens, so that its logits are the same too; n_live: none. */
static size_t twin_of(const nib_loop *loop, const nib_growing *row) {
    for (size_t i = 0; i < loop->n_live; i++) {
        const nib_growing *other = loop->live[i];
        if (other->fed && other->n == row->n && common(row, other) == row->n) {
            return i;
        }
    }
    return loop->n_live;
}

static nib_status take_line(nib_loop *loop, size_t at, nib_error *err) {
    nib_growing *row = loop->live[at];
    size_t V = (size_t)loop->session->model->config.V, twin = twin_of(loop, row);
    size_t most = twin < loop->n_live ? row->n : row->n - 1;
    nib_status status = nib_timeline_take(&row->line, loop->session, row->ids, most, loop->n_places, err);
    if (status == NIB_OK && row->line->n == row->n) {
        memcpy(loop->logits + at * V, loop->logits + twin * V, V * sizeof(float));
        row->fed = true;
    }
    return status;
}

/* Gathers the rows that can be encoded now; *waiting: others go on from their beginnings. */
static nib_status gather(size_t *n, bool *waiting, nib_loop *loop, nib_error *err) {
    size_t V = (size_t)loop->session->model->config.V;
    *n = 0;
    *waiting = false;
    for (size_t i = 0; i < loop->n_live; i++) {
        nib_growing *row = loop->live[i];
        if (row->fed || row->limit == 0) {
            continue;
        }
        if (row->line == NULL) {
            if (should_wait(loop, i)) {
                *waiting = true;
                continue;
            }
            nib_status status = take_line(loop, i, err);
            if (status != NIB_OK) {
                return status;
            }
        }
        if (!row->fed) {
            loop->feeds[(*n)++] = (nib_feed){row->line, row->ids, row->n, loop->logits + i * V, row->n - 1};
        }
    }
    return NIB_OK;
}

/* Logits after the last token of all live rows. Rows whose prompts begin alike are encoded one after the other, so that
 * the beginning is encoded once. */
static nib_status encode(nib_loop *loop, nib_error *err) {
    bool waiting = true;
    nib_status status = NIB_OK;
    for (size_t i = 0; i < loop->n_live; i++) {
        loop->live[i]->fed = false;
    }
    while (waiting && status == NIB_OK) {
        size_t n;
        status = gather(&n, &waiting, loop, err);
        for (size_t i = 0; i < n && status == NIB_OK; i++) {
            loop->feeds[i].line->hold = waiting;
        }
        status = status != NIB_OK ? status : nib_timeline_feed(loop->session, loop->feeds, n, err);
        for (size_t i = 0; i < loop->n_live && status == NIB_OK; i++) {
            loop->live[i]->fed = loop->live[i]->line != NULL;
        }
    }
    for (size_t i = 0; i < loop->n_live; i++) {
        if (loop->live[i]->line != NULL) {
            loop->live[i]->line->hold = false;
        }
    }
    return status;
}

/* ---- choosing ---- */

static void choose_row(void *arg, int at, int thread) {
    nib_loop *loop = arg;
    nib_growing *row = loop->live[at];
    size_t V = (size_t)loop->session->model->config.V;
    if (row->limit == 0) {
        return;
    }
    nib_sample_place place = {.history = row->ids,
                              .n_history = row->n,
                              .n_prompt = row->n_prompt,
                              .position = (uint32_t)row->n,
                              .stream = (uint32_t)row->index,
                              .row = row->row};
    row->status = nib_sampler_choose(&row->choice, loop->samplers[thread], &row->request->params, &place,
                                     loop->logits + (size_t)at * V, &row->error);
}

typedef struct choosing {
    nib_loop *loop;
    bool begun;
} choosing;

static void choose_unit(void *arg, int unit, int thread) {
    choose_row(((choosing *)arg)->loop, unit, thread);
}

static bool next_choice(nib_step *step, void *arg) {
    choosing *c = arg;
    bool first = !c->begun;
    c->begun = true;
    *step = (nib_step){(int)c->loop->n_live, c->loop->n_live == 1, choose_unit};
    return first;
}

/* The caller's function is called on the caller's thread, row after row. */
static bool has_hook(const nib_loop *loop) {
    for (size_t i = 0; i < loop->n_live; i++) {
        if (loop->live[i]->request->params.hook != NULL) {
            return true;
        }
    }
    return false;
}

static void choose(nib_loop *loop) {
    uint64_t saved = nib_fp_enter();
    if (loop->n_live == 1 || has_hook(loop)) {
        for (size_t i = 0; i < loop->n_live; i++) {
            choose_row(loop, (int)i, 0);
        }
    } else {
        choosing c = {loop, false};
        nib_pool_run(loop->session->pool, next_choice, &c);
    }
    nib_fp_leave(saved);
}

/* ---- the loop ---- */

void nib_loop_cancel(nib_loop *loop) {
    loop->cancelled = true;
    loop->next = 0;
}

/* One token for every live row, to be handed out. */
static nib_status step(nib_loop *loop, nib_error *err) {
    remove_ended(loop);
    nib_status status = admit(loop, err);
    if (status != NIB_OK || loop->n_live == 0) {
        return status;
    }
    if (!loop->cancelled && nib_session_take_cancel(loop->session)) {
        nib_loop_cancel(loop);
    }
    if (loop->cancelled) {
        return NIB_OK;
    }
    status = encode(loop, err);
    if (status == NIB_ECANCELLED) {
        nib_loop_cancel(loop);
        return NIB_OK;
    }
    if (status == NIB_OK) {
        choose(loop);
    }
    return status;
}

/* Hands out the step of one row. */
static nib_status hand_out(const nib_token **token, nib_loop *loop, nib_growing *row, nib_error *err) {
    loop->current = row;
    if (row->limit == 0) {
        return nib_growing_end(token, row, NIB_FINISH_LENGTH, err);
    }
    if (loop->cancelled) {
        return nib_growing_end(token, row, NIB_FINISH_CANCELLED, err);
    }
    if (row->status != NIB_OK) {
        if (err != NULL) {
            *err = row->error;
        }
        return row->status;
    }
    return nib_growing_take(token, row, err);
}

nib_status nib_loop_next(const nib_token **token, nib_loop *loop, nib_error *err) {
    *token = NULL;
    for (;;) {
        while (loop->next < loop->n_live) {
            nib_growing *row = loop->live[loop->next++];
            if (!row->done) {
                return hand_out(token, loop, row, err);
            }
        }
        nib_status status = step(loop, err);
        if (status != NIB_OK || loop->n_live == 0) {
            return status;
        }
    }
}
