/* Timelines of a session. */
#include "decode/timeline.h"

#include <string.h>

#include "base/fpenv.h"
#include "base/memory.h"
#include "decode/session.h"
#include "model/forward.h"

static bool keeps_cache(const nib_session *session) {
    return session->options.cache != NIB_CACHE_NONE;
}

/* A custom model's step holds its own cache, which cannot be forked. */
static bool can_fork(const nib_session *session) {
    return session->model->custom.step == NULL;
}

/* ---- taking and giving ---- */

static void free_line(nib_timeline *line) {
    nib_kv_free(&line->kv);
    nib_free(line->tokens);
    nib_free(line);
}

static void drop_line(nib_session *session, size_t at) {
    free_line(session->lines[at]);
    session->lines[at] = session->lines[--session->n_lines];
}

/* The idle timeline that was taken longest ago; n_lines when there is none. */
static size_t oldest_idle(const nib_session *session) {
    size_t oldest = session->n_lines;
    for (size_t i = 0; i < session->n_lines; i++) {
        const nib_timeline *line = session->lines[i];
        if (!line->busy && (oldest == session->n_lines || line->used < session->lines[oldest]->used)) {
            oldest = i;
        }
    }
    return oldest;
}

void nib_timeline_prune(nib_session *session, size_t max_lines) {
    while (session->n_lines > max_lines) {
        size_t at = oldest_idle(session);
        if (at == session->n_lines) {
            return;
        }
        drop_line(session, at);
    }
}

/* The least number that no other timeline has. */
static size_t free_sequence(const nib_session *session) {
    for (size_t sequence = 0;; sequence++) {
        size_t i = 0;
        while (i < session->n_lines && session->lines[i]->sequence != sequence) {
            i++;
        }
        if (i == session->n_lines) {
            return sequence;
        }
    }
}

static nib_status new_line(nib_timeline **out, nib_session *session, nib_error *err) {
    nib_timeline *line = nib_alloc_zero(1, sizeof *line);
    if (line == NULL ||
        !nib_reserve(&session->lines, &session->cap_lines, session->n_lines + 1, sizeof(nib_timeline *))) {
        nib_free(line);
        return nib_fail_memory(err, sizeof *line, "a timeline");
    }
    nib_kv_init(&line->kv, &session->store);
    line->sequence = free_sequence(session);
    session->lines[session->n_lines++] = line;
    *out = line;
    return NIB_OK;
}

static size_t common(const nib_timeline *line, const int32_t *tokens, size_t most) {
    size_t n = line->n < most ? line->n : most, same = 0;
    while (same < n && line->tokens[same] == tokens[same]) {
        same++;
    }
    return same;
}

size_t nib_timeline_shared(const nib_session *session, const nib_timeline *line, const int32_t *tokens, size_t most) {
    if (!keeps_cache(session)) {
        return 0;
    }
    size_t same = common(line, tokens, most);
    return nib_model_is_custom(session->model) ? same : (size_t)nib_kv_usable(&line->kv, (int64_t)same);
}

/* The timeline that shares most with the text; of equal ones an idle one, and the one that loses least by it. */
static nib_timeline *best_line(size_t *shared, const nib_session *session, const int32_t *tokens, size_t most) {
    nib_timeline *best = NULL;
    *shared = 0;
    for (size_t i = 0; i < session->n_lines; i++) {
        nib_timeline *line = session->lines[i];
        if (line->busy && !can_fork(session)) {
            continue;
        }
        size_t n = nib_timeline_shared(session, line, tokens, most);
        bool better = n > *shared || (n == *shared && best != NULL && !line->busy && (best->busy || line->n < best->n));
        if (n > 0 && better) {
            best = line;
            *shared = n;
        }
    }
    return best;
}

static void rewind_line(nib_session *session, nib_timeline *line, size_t n) {
    line->n = n;
    if (!nib_model_is_custom(session->model)) {
        nib_kv_rewind(&line->kv, (int64_t)n);
    }
}

/* A new timeline with the first n tokens of another. */
static nib_status fork_line(nib_timeline **out, nib_session *session, const nib_timeline *from, size_t n,
                            nib_error *err) {
    nib_timeline *line = NULL;
    nib_status status = new_line(&line, session, err);
    if (line == NULL) {
        return status;
    }
    bool ok = nib_reserve(&line->tokens, &line->cap, n, sizeof line->tokens[0]) &&
              (nib_model_is_custom(session->model) || nib_kv_fork(&line->kv, &from->kv, (int64_t)n));
    if (!ok) {
        drop_line(session, session->n_lines - 1);
        return nib_fail_memory(err, n * sizeof line->tokens[0], "a timeline");
    }
    memcpy(line->tokens, from->tokens, n * sizeof line->tokens[0]);
    line->n = n;
    *out = line;
    return NIB_OK;
}

/* Tokens of the text that were in a cache, but that no timeline can go on from any more: they count as encoded again. */
static size_t lost(const nib_session *session, const int32_t *tokens, size_t most, size_t shared) {
    size_t n = 0;
    for (size_t i = 0; i < session->n_lines && keeps_cache(session); i++) {
        size_t same = common(session->lines[i], tokens, most);
        n = same > n ? same : n;
    }
    return n - shared;
}

nib_status nib_timeline_take(nib_timeline **out, nib_session *session, const int32_t *tokens, size_t most,
                             size_t max_lines, nib_error *err) {
    size_t shared;
    nib_timeline *line = best_line(&shared, session, tokens, most);
    nib_status status = NIB_OK;
    session->stats.tokens_again += lost(session, tokens, most, shared);
    bool room = session->n_lines < max_lines;
    if (line == NULL) {
        size_t oldest = oldest_idle(session);
        if (room || oldest == session->n_lines) {
            status = new_line(&line, session, err);
        } else {
            line = session->lines[oldest];
        }
    } else if (line->busy) {
        nib_timeline_prune(session, max_lines - 1);
        status = fork_line(&line, session, line, shared, err);
    } else if (line->n > shared && room && can_fork(session)) {
        status = fork_line(&line, session, line, shared, err);
    }
    if (status != NIB_OK || line == NULL) {
        return status;
    }
    rewind_line(session, line, shared);
    session->stats.tokens_reused += shared;
    line->used = ++session->clock;
    line->busy = true;
    line->hold = false;
    *out = line;
    return NIB_OK;
}

void nib_timeline_give(nib_timeline *line) {
    if (line != NULL) {
        line->busy = line->hold = false;
    }
}

/* ---- encoding ---- */

static nib_status fail_cancelled(nib_session *session, const nib_feed *feed, nib_error *err) {
    (void)nib_session_take_cancel(session);
    return nib_fail(err, NIB_ECANCELLED, "cancelled after %zu tokens", feed->line->n);
}

/* Room for positions n .. end-1. A cache that nobody uses now makes place when there is no other. */
static nib_status reserve(nib_session *session, nib_timeline *line, size_t end, nib_error *err) {
    if (!nib_reserve(&line->tokens, &line->cap, end, sizeof line->tokens[0])) {
        return nib_fail_memory(err, end * sizeof line->tokens[0], "the timeline");
    }
    if (nib_model_is_custom(session->model)) {
        return NIB_OK;
    }
    while (!nib_kv_reserve(&line->kv, (int64_t)line->n, (int64_t)end)) {
        size_t idle = oldest_idle(session);
        if (idle == session->n_lines) {
            size_t bytes = nib_config_kv_elements(&session->model->config) * nib_kv_type_bytes(session->store.type);
            return nib_fail_memory(err, end * bytes, "the KV cache");
        }
        drop_line(session, idle);
    }
    size_t bytes = nib_kv_store_bytes(&session->store);
    session->stats.cache_peak_bytes = bytes > session->stats.cache_peak_bytes ? bytes : session->stats.cache_peak_bytes;
    return NIB_OK;
}

/* Takes up to `most` tokens of a feed into the list of the pass; *n counts the rows. */
static nib_status add_rows(size_t *n, nib_session *session, const nib_feed *feed, size_t most, nib_error *err) {
    nib_timeline *line = feed->line;
    size_t take = feed->n - line->n < most ? feed->n - line->n : most;
    nib_status status = reserve(session, line, line->n + take, err);
    if (status == NIB_OK && !nib_reserve(&session->rows, &session->cap_rows, *n + take, sizeof session->rows[0])) {
        status = nib_fail_memory(err, (*n + take) * sizeof session->rows[0], "the rows of a pass");
    }
    for (size_t i = 0; i < take && status == NIB_OK; i++) {
        size_t pos = line->n + i;
        float *wanted =
            pos >= feed->first ? feed->logits + (pos - feed->first) * (size_t)session->model->config.V : NULL;
        session->rows[(*n)++] = (nib_forward_row){feed->tokens[pos], (int64_t)pos, &line->kv, wanted};
    }
    return status;
}

/* Take the rows of the pass that is over into their timelines; *next: the first feed that is not complete. */
static void keep_rows(size_t *next, nib_session *session, const nib_feed *feeds, size_t n_feeds, size_t n_rows) {
    size_t i = *next;
    for (size_t left = n_rows; left > 0; i++) {
        nib_timeline *line = feeds[i].line;
        size_t missing = feeds[i].n - line->n, n = missing < left ? missing : left;
        memcpy(line->tokens + line->n, feeds[i].tokens + line->n, n * sizeof line->tokens[0]);
        line->n += n;
        left -= n;
        if (!line->hold) {
            nib_kv_trim(&line->kv, (int64_t)line->n);
        }
    }
    while (*next < n_feeds && feeds[*next].line->n == feeds[*next].n) {
        ++*next;
    }
    session->stats.tokens_encoded += n_rows;
    session->stats.forward_passes++;
}

/* One pass of at most `most` tokens. */
static nib_status pass(size_t *next, nib_session *session, const nib_feed *feeds, size_t n_feeds, size_t most,
                       nib_error *err) {
    const nib_model *model = session->model;
    size_t n = 0;
    nib_status status = NIB_OK;
    for (size_t i = *next; i < n_feeds && n < most && status == NIB_OK; i++) {
        status = add_rows(&n, session, &feeds[i], most - n, err);
    }
    if (status != NIB_OK) {
        return status;
    }
    nib_forward_context context = {.config = &model->config,
                                   .weights = &model->weights,
                                   .kernels = model->kernels,
                                   .pool = session->pool,
                                   .work = &session->work,
                                   .cancel = &session->cancel,
                                   .kv_bytes = &session->stats.cache_read_bytes};
    status = nib_forward(&context, session->rows, (int64_t)n, err);
    if (status == NIB_ECANCELLED) {
        return fail_cancelled(session, &feeds[*next], err);
    }
    if (status == NIB_OK) {
        keep_rows(next, session, feeds, n_feeds, n);
    }
    return status;
}

/* The next token of a custom model's row. */
static nib_status step_custom(nib_session *session, const nib_feed *feed, nib_error *err) {
    const nib_custom_model *custom = &session->model->custom;
    nib_timeline *line = feed->line;
    size_t pos = line->n;
    nib_status status = reserve(session, line, pos + 1, err);
    if (status != NIB_OK) {
        return status;
    }
    float *wanted = pos >= feed->first ? feed->logits + (pos - feed->first) * (size_t)custom->V : NULL;
    if (session->unwanted == NULL && (session->unwanted = nib_alloc((size_t)custom->V, sizeof(float))) == NULL) {
        return nib_fail_memory(err, (size_t)custom->V * sizeof(float), "logits");
    }
    int answer = 0;
    if (custom->step != NULL) {
        float *logits = wanted != NULL ? wanted : session->unwanted;
        answer = custom->step(logits, feed->tokens[pos], line->sequence, pos, custom->user);
        session->stats.forward_passes++;
    } else if (wanted != NULL) {
        answer = custom->forward(wanted, feed->tokens, 1, pos + 1, custom->user);
        session->stats.forward_passes++;
    }
    if (answer != 0) {
        return nib_fail(err, NIB_ECALLBACK, "custom model: its function answered %d at position %zu, expected 0",
                        answer, pos);
    }
    line->tokens[pos] = feed->tokens[pos];
    line->n++;
    session->stats.tokens_encoded++;
    return NIB_OK;
}

/* All that is missing, in passes of at most `most` tokens. */
static nib_status encode(nib_session *session, const nib_feed *feeds, size_t n, size_t most, nib_error *err) {
    bool custom = nib_model_is_custom(session->model);
    nib_status status = NIB_OK;
    for (size_t next = 0; next < n && status == NIB_OK;) {
        if (feeds[next].line->n == feeds[next].n) {
            next++;
        } else if (atomic_load_explicit(&session->cancel, memory_order_relaxed) != 0) {
            status = fail_cancelled(session, &feeds[next], err);
        } else {
            status = custom ? step_custom(session, &feeds[next], err) : pass(&next, session, feeds, n, most, err);
        }
    }
    return status;
}

nib_status nib_timeline_feed(nib_session *session, const nib_feed *feeds, size_t n, nib_error *err) {
    size_t most = session->options.prefill_chunk > 0 ? (size_t)session->options.prefill_chunk : NIB_FORWARD_ROWS;
    most = most > n ? most : n; /* a step of decoding is one pass */
    most = most < NIB_FORWARD_ROWS ? most : NIB_FORWARD_ROWS;
    uint64_t saved = nib_fp_enter();
    nib_status status = NIB_OK;
    if (keeps_cache(session)) {
        status = encode(session, feeds, n, most, err);
    }
    for (size_t i = 0; i < n && !keeps_cache(session) && status == NIB_OK; i++) {
        rewind_line(session, feeds[i].line, 0);
        status = encode(session, &feeds[i], 1, most, err);
    }
    nib_fp_leave(saved);
    return status;
}
