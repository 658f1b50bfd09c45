/* Sessions: keeping one timeline in step with what is asked for. */
#include "decode/session.h"

#include <string.h>

#include "base/cpu_count.h"
#include "base/fpenv.h"
#include "base/memory.h"
#include "base/options.h"

nib_status nib_session_pool(nib_pool **pool, const nib_session_options *options, nib_error *err) {
    int threads = options->threads == NIB_UNSET ? nib_cpu_count() : (int)options->threads;
    *pool = NULL;
    return threads == 1 ? NIB_OK : nib_pool_new(pool, threads, err);
}

nib_status nib_session_new(nib_session **out, nib_model *model, const nib_session_options *options, nib_error *err) {
    nib_session_options taken = NIB_SESSION_OPTIONS_INIT;
    *out = NULL;
    if (options != NULL) {
        nib_status status = nib_options_check(options, NIB_SCOPE_SESSION, err);
        if (status != NIB_OK) {
            return status;
        }
        taken = *options;
    }
    nib_session *session = nib_alloc_zero(1, sizeof *session);
    if (session == NULL) {
        return nib_fail_memory(err, sizeof *session, "a session");
    }
    session->model = model;
    session->options = taken;
    session->stats.size = sizeof session->stats;
    atomic_init(&session->cancel, 0);
    nib_kv_init(&session->kv, &model->config, nib_model_kv_type(model, taken.cache_type));
    /* A custom model's threads are the caller's. */
    nib_status status = nib_model_is_custom(model) ? NIB_OK : nib_session_pool(&session->pool, &taken, err);
    if (status != NIB_OK) {
        nib_free(session);
        return status;
    }
    nib_model_retain(model);
    *out = session;
    return NIB_OK;
}

void nib_session_free(nib_session *session) {
    if (session == NULL) {
        return;
    }
    nib_pool_free(session->pool);
    nib_kv_free(&session->kv);
    nib_work_free(&session->work);
    nib_free(session->rows);
    nib_free(session->tokens);
    nib_free(session->unwanted);
    nib_model_free(session->model);
    nib_free(session);
}

void nib_session_cancel(nib_session *session) {
    atomic_store(&session->cancel, 1);
}

bool nib_session_take_cancel(nib_session *session) {
    return atomic_load_explicit(&session->cancel, memory_order_relaxed) != 0 &&
           atomic_exchange(&session->cancel, 0) != 0;
}

static nib_status fail_cancelled(nib_session *session, nib_error *err) {
    (void)nib_session_take_cancel(session);
    return nib_fail(err, NIB_ECANCELLED, "cancelled after %zu tokens", session->n);
}

/* Room for a pass over `rows` rows that ends at position end - 1. */
static nib_status reserve(nib_session *session, size_t rows, size_t end, nib_error *err) {
    if (!nib_reserve(&session->tokens, &session->cap, end, sizeof session->tokens[0])) {
        return nib_fail_memory(err, end * sizeof session->tokens[0], "the timeline");
    }
    if (nib_model_is_custom(session->model)) {
        return NIB_OK;
    }
    if (!nib_reserve(&session->rows, &session->cap_rows, rows, sizeof session->rows[0])) {
        return nib_fail_memory(err, rows * sizeof session->rows[0], "the rows of a pass");
    }
    if (!nib_kv_reserve(&session->kv, (int64_t)end)) {
        size_t bytes = nib_config_kv_elements(&session->model->config) * nib_kv_type_bytes(session->kv.type);
        return nib_fail_memory(err, end * bytes, "the KV cache");
    }
    return NIB_OK;
}

/* Encode tokens n .. end-1 of `tokens` in one pass. */
static nib_status encode(float *logits, nib_session *session, const int32_t *tokens, size_t end, size_t first,
                         nib_error *err) {
    const nib_model *model = session->model;
    size_t n = end - session->n;
    nib_status status = reserve(session, n, end, err);
    if (status != NIB_OK) {
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        size_t pos = session->n + i;
        float *wanted = pos >= first ? logits + (pos - first) * (size_t)model->config.V : NULL;
        session->rows[i] = (nib_forward_row){tokens[pos], (int64_t)pos, &session->kv, wanted};
    }
    nib_forward_context context = {.config = &model->config,
                                   .weights = &model->weights,
                                   .kernels = model->kernels,
                                   .pool = session->pool,
                                   .work = &session->work,
                                   .cancel = &session->cancel};
    status = nib_forward(&context, session->rows, (int64_t)n, err);
    if (status != NIB_OK) {
        return status == NIB_ECANCELLED ? fail_cancelled(session, err) : status;
    }
    /* nib_session_step gives the timeline itself. */
    memmove(session->tokens + session->n, tokens + session->n, n * sizeof tokens[0]);
    session->n = end;
    session->stats.tokens_encoded += n;
    session->stats.forward_passes++;
    return NIB_OK;
}

/* One token of a custom model. */
static nib_status encode_custom(float *logits, nib_session *session, const int32_t *tokens, size_t first,
                                nib_error *err) {
    const nib_custom_model *custom = &session->model->custom;
    size_t pos = session->n;
    nib_status status = reserve(session, 1, pos + 1, err);
    if (status != NIB_OK) {
        return status;
    }
    float *wanted = pos >= first ? logits + (pos - first) * (size_t)custom->V : NULL;
    if (session->unwanted == NULL) {
        session->unwanted = nib_alloc((size_t)custom->V, sizeof(float));
        if (session->unwanted == NULL) {
            return nib_fail_memory(err, (size_t)custom->V * sizeof(float), "logits");
        }
    }
    int answer = 0;
    if (custom->step != NULL) {
        answer = custom->step(wanted != NULL ? wanted : session->unwanted, tokens[pos], 0, pos, custom->user);
        session->stats.forward_passes++;
    } else if (wanted != NULL) {
        answer = custom->forward(wanted, tokens, 1, pos + 1, custom->user);
        session->stats.forward_passes++;
    }
    if (answer != 0) {
        return nib_fail(err, NIB_ECALLBACK, "custom model: its function answered %d at position %zu, expected 0",
                        answer, pos);
    }
    session->tokens[pos] = tokens[pos];
    session->n++;
    session->stats.tokens_encoded++;
    return NIB_OK;
}

/* Bring the timeline from its n tokens to all of tokens [n]. */
static nib_status extend(float *logits, nib_session *session, const int32_t *tokens, size_t n, size_t first,
                         nib_error *err) {
    bool custom = nib_model_is_custom(session->model);
    size_t chunk = session->options.prefill_chunk > 0 ? (size_t)session->options.prefill_chunk : n;
    chunk = chunk < NIB_FORWARD_ROWS ? chunk : NIB_FORWARD_ROWS;
    uint64_t saved = nib_fp_enter();
    nib_status status = NIB_OK;
    while (session->n < n && status == NIB_OK) {
        size_t end = n - session->n > chunk ? session->n + chunk : n;
        if (atomic_load_explicit(&session->cancel, memory_order_relaxed) != 0) {
            status = fail_cancelled(session, err);
        } else {
            status = custom ? encode_custom(logits, session, tokens, first, err)
                            : encode(logits, session, tokens, end, first, err);
        }
    }
    nib_fp_leave(saved);
    return status;
}

nib_status nib_session_sync(float *logits, nib_session *session, const int32_t *tokens, size_t n, size_t first,
                            nib_error *err) {
    size_t limit = first < session->n ? first : session->n;
    size_t shared = 0;
    while (shared < limit && session->tokens[shared] == tokens[shared]) {
        shared++;
    }
    session->n = shared;
    session->stats.tokens_reused += shared;
    return extend(logits, session, tokens, n, first, err);
}

nib_status nib_session_step(float *logits, nib_session *session, int32_t token, nib_error *err) {
    size_t n = session->n;
    if (!nib_reserve(&session->tokens, &session->cap, n + 1, sizeof session->tokens[0])) {
        return nib_fail_memory(err, (n + 1) * sizeof session->tokens[0], "the timeline");
    }
    session->tokens[n] = token;
    return extend(logits, session, session->tokens, n + 1, n, err);
}

/* A row of wanted logits is usable: no NaN, no +infinity, one finite. */
static nib_status check_logits(const nib_session *session, const float *logits, size_t pos, nib_error *err) {
    int64_t V = session->model->config.V;
    bool finite = false;
    for (int64_t at = 0; at < V; at += 256) {
        float m, s;
        if (!session->model->kernels->lse_block(&m, &s, logits + at, V - at < 256 ? V - at : 256)) {
            return nib_fail(err, NIB_ENUMERIC, "logits of row 0, position %zu: NaN or +infinity", pos);
        }
        finite = finite || s > 0;
    }
    if (!finite) {
        return nib_fail(err, NIB_ENUMERIC, "logits of row 0, position %zu: none is finite", pos);
    }
    return NIB_OK;
}

static nib_status check_tokens(const nib_session *session, const int32_t *tokens, size_t n, size_t first,
                               nib_error *err) {
    const nib_config *config = &session->model->config;
    if (tokens == NULL || n == 0 || first >= n) {
        return nib_fail(err, NIB_EINVAL, "logits: %zu tokens from %zu on, expected at least one", n, first);
    }
    if (n > (size_t)config->context) {
        return nib_fail(err, NIB_EFULL, "logits: %zu tokens, expected at most the context of %lld", n,
                        (long long)config->context);
    }
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= config->V) {
            return nib_fail(err, NIB_EINVAL, "logits: token %d at index %zu, expected 0 to %lld", tokens[i], i,
                            (long long)(config->V - 1));
        }
    }
    return NIB_OK;
}

nib_status nib_session_logits(float *logits, nib_session *session, const int32_t *tokens, size_t n, size_t first,
                              nib_error *err) {
    nib_status status = check_tokens(session, tokens, n, first, err);
    status = status != NIB_OK ? status : nib_session_sync(logits, session, tokens, n, first, err);
    uint64_t saved = nib_fp_enter();
    for (size_t i = first; i < n && status == NIB_OK; i++) {
        status = check_logits(session, logits + (i - first) * (size_t)session->model->config.V, i, err);
    }
    nib_fp_leave(saved);
    return status;
}

nib_status nib_session_get_stats(nib_session_stats *stats, const nib_session *session, nib_error *err) {
    if (stats->size != sizeof *stats) {
        return nib_fail(err, NIB_EINVAL, "nib_session_stats.size: %u, expected %zu", stats->size, sizeof *stats);
    }
    *stats = session->stats;
    stats->cache_bytes = nib_kv_bytes(&session->kv);
    return NIB_OK;
}
