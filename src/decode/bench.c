/* Timing forward passes of fixed tokens, and what they must read and compute at least, counted from the shapes. The
 * machine's limits are measured in bench_limits.c. */
#include "decode/bench.h"
#include "base/fpenv.h"
#include "base/memory.h"
#include "decode/session.h"
#include "kernel/pack.h"
#include "model/model.h"

/* One measurement: `batch` timelines and what a pass over them needs. */
typedef struct bench {
    const nib_model *model;
    const nib_bench_work *work;
    size_t chunk; /* tokens of a prefill pass */
    nib_kv_type type;
    nib_kv_store store;
    nib_pool *pool;
    nib_work area;
    atomic_int cancel;     /* never set */
    nib_kv *kvs;           /* [batch] */
    nib_forward_row *rows; /* [of the largest pass] */
    float *logits;         /* [rows that want them in a pass][V] */
} bench;

/* No text, but the same ids everywhere and not the same row of the embedding again and again. */
static int32_t token_at(const bench *b, size_t sequence, size_t pos) {
    return (int32_t)((7919 * (sequence + pos) + 1) % (size_t)b->model->config.V);
}

static nib_status pass(bench *b, size_t n, nib_error *err) {
    const nib_model *model = b->model;
    const nib_forward_context context = {.config = &model->config,
                                         .weights = &model->weights,
                                         .kernels = model->kernels,
                                         .pool = b->pool,
                                         .work = &b->area,
                                         .cancel = &b->cancel};
    return nib_forward(&context, b->rows, (int64_t)n, err);
}

/* Tokens from .. end-1 of one sequence, in chunks; logits after the last one, or none. */
static nib_status feed(bench *b, size_t sequence, size_t from, size_t end, float *logits, nib_error *err) {
    nib_status status = NIB_OK;
    while (from < end && status == NIB_OK) {
        size_t n = end - from < b->chunk ? end - from : b->chunk;
        for (size_t i = 0; i < n; i++) {
            size_t pos = from + i;
            b->rows[i] = (nib_forward_row){token_at(b, sequence, pos), (int64_t)pos, &b->kvs[sequence],
                                           pos + 1 == end ? logits : NULL};
        }
        status = pass(b, n, err);
        from += n;
    }
    return status;
}

/* The timed part once. */
static nib_status run_once(bench *b, nib_error *err) {
    const nib_bench_work *work = b->work;
    size_t V = (size_t)b->model->config.V, end = work->depth + work->tokens;
    nib_status status = NIB_OK;
    if (work->what == NIB_BENCH_PREFILL) {
        for (size_t s = 0; s < work->batch && status == NIB_OK; s++) {
            status = feed(b, s, work->depth, end, b->logits, err);
        }
        return status;
    }
    for (size_t pos = work->depth; pos < end && status == NIB_OK; pos++) {
        for (size_t s = 0; s < work->batch; s++) {
            b->rows[s] = (nib_forward_row){token_at(b, s, pos), (int64_t)pos, &b->kvs[s], b->logits + s * V};
        }
        status = pass(b, work->batch, err);
    }
    return status;
}

static nib_status measure(double *seconds, bench *b, nib_error *err) {
    nib_status status = NIB_OK;
    for (size_t s = 0; s < b->work->batch && status == NIB_OK; s++) {
        status = feed(b, s, 0, b->work->depth, NULL, err);
    }
    for (size_t i = 0; i <= b->work->repeat && status == NIB_OK; i++) {
        double begin = nib_bench_now();
        status = run_once(b, err);
        if (i > 0) {
            seconds[i - 1] = nib_bench_now() - begin;
        }
    }
    return status;
}

/* ---- what it costs ---- */

/* A product of n rows with a matrix. */
static void add_product(nib_bench_cost *cost, const nib_matrix *w, double n) {
    double bytes = w->packed ? (double)nib_strips(w->rows) * (double)nib_strip_bytes(w->dtype, w->cols)
                             : (double)w->rows * (double)w->row_bytes;
    cost->read_bytes += bytes;
    *(w->packed ? &cost->int8_operations : &cost->f32_operations) += 2.0 * (double)w->rows * (double)w->cols * n;
}

/* Attention of one layer: rows from .. end-1 of one sequence. */
static void add_attention(nib_bench_cost *cost, const bench *b, int64_t layer, size_t from, size_t end) {
    const nib_config *config = &b->model->config;
    size_t window = config->window > 0 && !nib_config_is_global(config, layer) ? (size_t)config->window : SIZE_MAX;
    size_t oldest = from < window ? 0 : from - window + 1;
    double keys = 0.0;
    for (size_t pos = from; pos < end; pos++) {
        keys += (double)(pos < window ? pos + 1 : window);
    }
    cost->read_bytes +=
        2.0 * (double)(end - oldest) * (double)(config->K * config->E) * (double)nib_kv_type_bytes(b->type);
    cost->f32_operations += 4.0 * keys * (double)(config->H * config->E);
}

/* A pass over rows from .. end-1 of each of n_sequences. */
static void add_pass(nib_bench_cost *cost, const bench *b, size_t n_sequences, size_t from, size_t end, double wanted) {
    const nib_weights *weights = &b->model->weights;
    double n = (double)n_sequences * (double)(end - from);
    cost->passes++;
    for (int64_t i = 0; i < b->model->config.L; i++) {
        const nib_layer *layer = &weights->layers[i];
        const nib_linear *products[] = {&layer->q,    &layer->k,  &layer->v,   &layer->o,
                                        &layer->gate, &layer->up, &layer->down};
        for (size_t p = 0; p < sizeof products / sizeof products[0]; p++) {
            add_product(cost, &products[p]->w, n);
        }
        for (size_t s = 0; s < n_sequences; s++) {
            add_attention(cost, b, i, from, end);
        }
    }
    if (wanted > 0) {
        add_product(cost, &weights->head.w, wanted);
    }
}

static void count(nib_bench_cost *cost, const bench *b) {
    const nib_bench_work *work = b->work;
    size_t end = work->depth + work->tokens;
    *cost = (nib_bench_cost){
        .size = sizeof *cost,
        .threads = nib_pool_n(b->pool),
        .cache_type = b->type == NIB_KV_F16 ? NIB_CACHE_TYPE_F16 : NIB_CACHE_TYPE_F32,
    };
    if (work->what == NIB_BENCH_DECODE) {
        for (size_t pos = work->depth; pos < end; pos++) {
            add_pass(cost, b, work->batch, pos, pos + 1, (double)work->batch);
        }
        return;
    }
    for (size_t s = 0; s < work->batch; s++) {
        for (size_t from = work->depth; from < end; from += b->chunk) {
            size_t to = end - from < b->chunk ? end : from + b->chunk;
            add_pass(cost, b, 1, from, to, to == end ? 1.0 : 0.0);
        }
    }
}

/* ---- checks and room ---- */

static nib_status check_work(const nib_model *model, const nib_bench_work *work, nib_error *err) {
    if (work->size != sizeof *work) {
        return nib_fail(err, NIB_EINVAL, "nib_bench_work.size: %u, expected %zu, as its INIT macro sets it", work->size,
                        sizeof *work);
    }
    if (nib_model_is_custom(model)) {
        return nib_fail(err, NIB_EUNSUPPORTED, "bench: a custom model, expected one whose weights nib computes with");
    }
    if (work->what != NIB_BENCH_PREFILL && work->what != NIB_BENCH_DECODE) {
        return nib_fail(err, NIB_EINVAL, "bench: what %d, expected NIB_BENCH_PREFILL or NIB_BENCH_DECODE", work->what);
    }
    const struct {
        const char *name;
        size_t value, most;
    } counts[] = {
        {"batch", work->batch, 65536}, {"tokens", work->tokens, SIZE_MAX}, {"repeat", work->repeat, SIZE_MAX}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].value < 1 || counts[i].value > counts[i].most) {
            return nib_fail(err, NIB_EINVAL, "bench: %s %zu, expected 1 to %zu", counts[i].name, counts[i].value,
                            counts[i].most);
        }
    }
    size_t context = (size_t)model->config.context;
    if (work->depth > context || work->tokens > context - work->depth) {
        return nib_fail(err, NIB_EFULL, "bench: depth %zu and %zu tokens, expected at most the context of %zu together",
                        work->depth, work->tokens, context);
    }
    return NIB_OK;
}

static nib_status fail_room(nib_error *err, size_t n, size_t size_bytes, const char *what) {
    size_t bytes = 0;
    (void)nib_mul_size(&bytes, n, size_bytes);
    return nib_fail_memory(err, bytes, what);
}

static nib_status make_room(bench *b, nib_error *err) {
    const nib_bench_work *work = b->work;
    const nib_config *config = &b->model->config;
    size_t end = work->depth + work->tokens, longest = end < b->chunk ? end : b->chunk;
    size_t n_rows = longest > work->batch ? longest : work->batch;
    size_t wanted = work->what == NIB_BENCH_DECODE ? work->batch : 1, n_logits;
    b->kvs = nib_alloc_zero(work->batch, sizeof b->kvs[0]);
    b->rows = nib_alloc(n_rows, sizeof b->rows[0]);
    if (b->kvs == NULL || b->rows == NULL) {
        return fail_room(err, work->batch + n_rows, sizeof b->rows[0], "the rows of a pass");
    }
    if (!nib_mul_size(&n_logits, wanted, (size_t)config->V) ||
        (b->logits = nib_alloc(n_logits, sizeof(float))) == NULL) {
        return fail_room(err, wanted, (size_t)config->V * sizeof(float), "logits");
    }
    for (size_t s = 0; s < work->batch; s++) {
        nib_kv_init(&b->kvs[s], &b->store);
        if (!nib_kv_reserve(&b->kvs[s], 0, (int64_t)end)) {
            return fail_room(err, end, nib_config_kv_elements(config) * nib_kv_type_bytes(b->type), "the KV cache");
        }
    }
    return NIB_OK;
}

static void free_bench(bench *b) {
    for (size_t s = 0; b->kvs != NULL && s < b->work->batch; s++) {
        nib_kv_free(&b->kvs[s]);
    }
    nib_free(b->kvs);
    nib_kv_store_free(&b->store);
    nib_free(b->rows);
    nib_free(b->logits);
    nib_work_free(&b->area);
    nib_pool_free(b->pool);
}

nib_status nib_bench_run(double *seconds, nib_bench_cost *cost, const nib_model *model,
                         const nib_session_options *options, const nib_bench_work *work, nib_error *err) {
    nib_session_options taken = NIB_SESSION_OPTIONS_INIT;
    bench b = {.model = model, .work = work};
    nib_status status = nib_bench_options(&taken, options, err);
    status = status != NIB_OK ? status : check_work(model, work, err);
    if (status == NIB_OK && cost != NULL && cost->size != sizeof *cost) {
        status = nib_fail(err, NIB_EINVAL, "nib_bench_cost.size: %u, expected %zu", cost->size, sizeof *cost);
    }
    if (status != NIB_OK) {
        return status;
    }
    b.chunk = taken.prefill_chunk > 0 ? (size_t)taken.prefill_chunk : (size_t)model->config.context;
    b.chunk = b.chunk < NIB_FORWARD_ROWS ? b.chunk : NIB_FORWARD_ROWS;
    b.type = nib_model_kv_type(model, taken.cache_type);
    nib_kv_store_init(&b.store, &model->config, b.type);
    atomic_init(&b.cancel, 0);
    uint64_t saved = nib_fp_enter();
    status = nib_session_pool(&b.pool, &taken, err);
    status = status != NIB_OK ? status : make_room(&b, err);
    status = status != NIB_OK ? status : measure(seconds, &b, err);
    nib_fp_leave(saved);
    if (status == NIB_OK && cost != NULL) {
        count(cost, &b);
    }
    free_bench(&b);
    return status;
}
