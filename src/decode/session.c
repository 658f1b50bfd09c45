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
    nib_kv_store_init(&session->store, &model->config, nib_model_kv_type(model, taken.cache_type));
    /* A custom model's threads are the caller's. */
    nib_status status = nib_model_is_custom(model) ? NIB_OK : nib_session_pool(&session->pool, &taken, err);
    bool at_once = taken.max_cache_len != NIB_UNSET;
    status = status != NIB_OK || !at_once ? status : nib_session_fix(session, 1, 0, err);
    if (status != NIB_OK) {
        nib_pool_free(session->pool);
        nib_kv_store_free(&session->store);
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
    nib_timeline_prune(session, 0);
    nib_free(session->lines);
    nib_kv_store_free(&session->store);
    nib_work_free(&session->work);
    nib_free(session->rows);
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

size_t nib_session_room(const nib_session *session) {
    size_t context = (size_t)session->model->config.context;
    if (session->options.cache != NIB_CACHE_STATIC || session->options.max_cache_len == NIB_UNSET) {
        return context;
    }
    size_t room = (size_t)session->options.max_cache_len;
    return room < context ? room : context;
}

nib_status nib_session_fix(nib_session *session, size_t n_lines, size_t n, nib_error *err) {
    if (session->options.cache != NIB_CACHE_STATIC || nib_model_is_custom(session->model)) {
        return NIB_OK;
    }
    bool given = session->options.max_cache_len != NIB_UNSET;
    size_t len = given ? nib_session_room(session) : n, pages = nib_kv_store_pages(&session->store, (int64_t)len), all;
    if (!nib_mul_size(&all, pages, n_lines) || !nib_kv_pages_fix(&session->store.pages, all)) {
        return nib_fail(err, NIB_ENOMEM, "out of memory: a static cache of %zu x %zu tokens", n_lines, len);
    }
    return NIB_OK;
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
    if (n > nib_session_room(session)) {
        return nib_fail(err, NIB_EFULL, "logits: %zu tokens, expected at most max_cache_len %zu", n,
                        nib_session_room(session));
    }
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= config->V) {
            return nib_fail(err, NIB_EINVAL, "logits: token %d at index %zu, expected 0 to %lld", tokens[i], i,
                            (long long)(config->V - 1));
        }
    }
    return NIB_OK;
}

static nib_status encode(float *logits, nib_session *session, const int32_t *tokens, size_t n, size_t first,
                         nib_error *err) {
    nib_timeline *line = NULL;
    nib_status status = nib_session_fix(session, 1, n, err);
    status = status != NIB_OK ? status : nib_timeline_take(&line, session, tokens, first, 1, err);
    if (status != NIB_OK) {
        return status;
    }
    const nib_feed feed = {line, tokens, n, logits, first};
    status = nib_timeline_feed(session, &feed, 1, err);
    nib_timeline_give(line);
    nib_timeline_prune(session, 1);
    return status;
}

nib_status nib_session_logits(float *logits, nib_session *session, const int32_t *tokens, size_t n, size_t first,
                              nib_error *err) {
    nib_status status = check_tokens(session, tokens, n, first, err);
    status = status != NIB_OK ? status : encode(logits, session, tokens, n, first, err);
    uint64_t saved = nib_fp_enter();
    for (size_t i = first; i < n && status == NIB_OK; i++) {
        status = check_logits(session, logits + (i - first) * (size_t)session->model->config.V, i, err);
    }
    nib_fp_leave(saved);
    return status;
}

void nib_session_clear(nib_session *session) {
    bool fixed = session->store.pages.fixed;
    nib_timeline_prune(session, 0);
    if (!fixed) {
        nib_kv_store_free(&session->store);
    }
}

nib_status nib_session_get_stats(nib_session_stats *stats, const nib_session *session, nib_error *err) {
    if (stats->size != sizeof *stats) {
        return nib_fail(err, NIB_EINVAL, "nib_session_stats.size: %u, expected %zu", stats->size, sizeof *stats);
    }
    *stats = session->stats;
    stats->cache_bytes = nib_kv_store_bytes(&session->store);
    return NIB_OK;
}
