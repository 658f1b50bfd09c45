/* The machine's limits with a number of threads: reading from memory, multiply-adds in binary32, int8 products. Each is
 * the best of several tries, because a neighbour can only make it less. */
#include <time.h>

#include "base/fpenv.h"
#include "base/memory.h"
#include "base/options.h"
#include "decode/bench.h"
#include "decode/session.h"
#include "model/model.h"

enum {
    TRIES = 5,
    UNITS = 16,             /* of computing, for each thread: one that starts late has less to do */
    CHUNK_BYTES = 1 << 20,  /* of reading */
    LEAST_BYTES = 32 << 20, /* more than what a core keeps to itself */
    MOST_BYTES = 256 << 20
};

static const double least_seconds = 0.02; /* a try */

nib_status nib_bench_options(nib_session_options *taken, const nib_session_options *options, nib_error *err) {
    if (options == NULL) {
        *taken = (nib_session_options)NIB_SESSION_OPTIONS_INIT;
        return NIB_OK;
    }
    nib_status status = nib_options_check(options, NIB_SCOPE_SESSION, err);
    if (status == NIB_OK) {
        *taken = *options;
    }
    return status;
}

typedef enum limit_kind { LIMIT_READ, LIMIT_F32, LIMIT_INT8 } limit_kind;

/* One step of the pool: n_units of the same work. */
typedef struct limit {
    const nib_kernels *kernels;
    nib_pool *pool;
    limit_kind kind;
    const unsigned char *span; /* [n_chunks * CHUNK_BYTES] */
    int n_chunks;
    int64_t rounds;                    /* of computing in a unit; of reading, over the whole span */
    bool given;                        /* the step was handed out */
    double done[UNITS * NIB_POOL_MAX]; /* operations of each unit */
} limit;

static void run_unit(void *arg, int unit, int thread) {
    limit *l = arg;
    float sink = 0.5f;
    (void)thread;
    if (l->kind == LIMIT_READ) {
        l->kernels->limit_read(&sink, l->span + (size_t)(unit % l->n_chunks) * CHUNK_BYTES, CHUNK_BYTES);
    } else if (l->kind == LIMIT_F32) {
        l->done[unit] = l->kernels->limit_f32(&sink, l->rounds);
    } else {
        l->done[unit] = l->kernels->limit_int8(&sink, l->rounds);
    }
}

static int count_units(const limit *l) {
    return l->kind == LIMIT_READ ? l->n_chunks * (int)l->rounds : UNITS * nib_pool_n(l->pool);
}

static bool next_step(nib_step *step, void *arg) {
    limit *l = arg;
    if (l->given) {
        return false;
    }
    l->given = true;
    *step = (nib_step){.n_units = count_units(l), .run = run_unit};
    return true;
}

double nib_bench_now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one step, and the bytes or operations it did. */
static double time_step(double *amount, limit *l) {
    l->given = false;
    double begin = nib_bench_now();
    nib_pool_run(l->pool, next_step, l);
    double seconds = nib_bench_now() - begin;
    *amount = l->kind == LIMIT_READ ? (double)count_units(l) * CHUNK_BYTES : 0.0;
    for (int i = 0; l->kind != LIMIT_READ && i < count_units(l); i++) {
        *amount += l->done[i];
    }
    return seconds;
}

/* Bytes or operations a second. */
static double best(limit *l, limit_kind kind) {
    double amount, most = 0.0;
    l->kind = kind;
    l->rounds = kind == LIMIT_READ ? 1 : 64;
    while (time_step(&amount, l) < least_seconds && l->rounds < (kind == LIMIT_READ ? 64 : 1 << 24)) {
        l->rounds *= 2;
    }
    for (int i = 0; i < TRIES; i++) {
        double seconds = time_step(&amount, l);
        most = seconds > 0.0 && amount / seconds > most ? amount / seconds : most;
    }
    return most;
}

static int count_chunks(const nib_model *model) {
    size_t bytes = model->weights.bytes;
    bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : bytes;
    return (int)(bytes / CHUNK_BYTES);
}

static nib_status measure(nib_bench_limits *limits, limit *l, nib_error *err) {
    size_t size = (size_t)l->n_chunks * CHUNK_BYTES;
    float *span = nib_alloc_large(size);
    if (span == NULL) {
        return nib_fail_memory(err, size, "the bytes that are read");
    }
    for (size_t i = 0; i < size / sizeof *span; i++) {
        span[i] = 1.0f; /* the sums of what a page of zeros holds would be faster or, subnormal, slower */
    }
    l->span = (const unsigned char *)span;
    *limits = (nib_bench_limits){
        .size = sizeof *limits,
        .threads = nib_pool_n(l->pool),
        .span_bytes = size,
        .read_bytes_s = best(l, LIMIT_READ),
        .f32_operations_s = best(l, LIMIT_F32),
        .int8_operations_s = best(l, LIMIT_INT8),
    };
    nib_free(span);
    return NIB_OK;
}

nib_status nib_bench_measure_limits(nib_bench_limits *limits, const nib_model *model,
                                    const nib_session_options *options, nib_error *err) {
    nib_session_options taken = NIB_SESSION_OPTIONS_INIT;
    if (limits->size != sizeof *limits) {
        return nib_fail(err, NIB_EINVAL, "nib_bench_limits.size: %u, expected %zu", limits->size, sizeof *limits);
    }
    nib_status status = nib_bench_options(&taken, options, err);
    if (status != NIB_OK) {
        return status;
    }
    limit *l = nib_alloc_zero(1, sizeof *l);
    if (l == NULL) {
        return nib_fail_memory(err, sizeof *l, "a measurement");
    }
    l->kernels = model->kernels;
    l->n_chunks = count_chunks(model);
    uint64_t saved = nib_fp_enter();
    status = nib_session_pool(&l->pool, &taken, err);
    status = status != NIB_OK ? status : measure(limits, l, err);
    nib_fp_leave(saved);
    nib_pool_free(l->pool);
    nib_free(l);
    return status;
}
