/* Measuring how fast a model computes on this machine, beside what the machine can do at most. `nib bench` is made of
 * this. The tokens are no text but fixed ids, and nothing is sampled: what is timed is the forward pass. */
#ifndef NIB_BENCH_H
#define NIB_BENCH_H

#include "model.h"
#include "options.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NIB_BENCH_PREFILL = 0, /* the tokens of a sequence in passes of prefill_chunk, sequence after sequence; logits after
                              the last token of each */
    NIB_BENCH_DECODE = 1   /* one token of every sequence in each pass; logits of every row */
};

/** What is timed. */
typedef struct nib_bench_work {
    uint32_t size; /* sizeof(nib_bench_work), set by NIB_BENCH_WORK_INIT */
    int what;      /* NIB_BENCH_* */
    size_t batch;  /* sequences, 1 to 65536 */
    size_t depth;  /* tokens that each holds before the clock starts */
    size_t tokens; /* timed tokens of each, from 1 on */
    size_t repeat; /* times that the same tokens are timed, from 1 on */
} nib_bench_work;

#define NIB_BENCH_WORK_INIT                                                                                            \
    { (uint32_t)sizeof(nib_bench_work), NIB_BENCH_DECODE, 1, 0, 32, 3 }

/** What one timed run takes, counted from the shapes. */
typedef struct nib_bench_cost {
    uint32_t size;          /* sizeof(nib_bench_cost), set by the caller */
    size_t passes;          /* forward passes */
    double read_bytes;      /* the least that must be read: every weight matrix once a pass, every visible key and value
                               once a pass and sequence; the head only in passes that want logits */
    double f32_operations;  /* multiplications and additions in binary32: attention, and products that are not int8 */
    double int8_operations; /* of products with int8 activations */
    int threads;            /* that computed */
    int cache_type;         /* NIB_CACHE_TYPE_F32 or _F16: what auto became */
} nib_bench_cost;

/** What this machine does at most with the threads of a session, on the instruction set of a model. */
typedef struct nib_bench_limits {
    uint32_t size;            /* sizeof(nib_bench_limits), set by the caller */
    int threads;              /* that computed */
    size_t span_bytes;        /* read over and over: as much as the model's weights, within 32 to 256 MiB */
    double read_bytes_s;      /* bytes a second */
    double f32_operations_s;  /* fused multiply-adds in binary32, each two operations, in registers */
    double int8_operations_s; /* int8 products as compute=fast makes them, in registers */
} nib_bench_limits;

/** Time a model.
 *
 *  seconds [work->repeat]  of each run; one before them is not timed
 *  cost                    of one run; NULL when not wanted
 *  options                 threads, cache_type, prefill_chunk count; NULL for the defaults
 *
 *  Returns NIB_OK; NIB_EINVAL (a count of work, an option); NIB_EFULL (depth and tokens exceed the context);
 *          NIB_EUNSUPPORTED (a custom model, an option of a later version); NIB_ENOMEM. After a failure seconds and cost
 *          mean nothing.
 *  Cost    repeat + 1 runs and the passes that bring batch sequences to depth.
 */
NIB_API nib_status nib_bench_run(double *seconds, nib_bench_cost *cost, const nib_model *model,
                                 const nib_session_options *options, const nib_bench_work *work, nib_error *err);

/** Measure the limits: the best of several tries, under a second for all.
 *
 *  options  threads counts; NULL for the defaults
 *
 *  Returns NIB_OK; NIB_EINVAL (limits->size, an option); NIB_EUNSUPPORTED (an option of a later version); NIB_ENOMEM.
 */
NIB_API nib_status nib_bench_measure_limits(nib_bench_limits *limits, const nib_model *model,
                                            const nib_session_options *options, nib_error *err);

#ifdef __cplusplus
}
#endif
#endif
