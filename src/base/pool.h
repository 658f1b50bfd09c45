/* A pool of threads that works through steps. A step is n units, done by whoever is free, in any order; when the last
 * one is done, the thread that did it asks for the next step. Nobody waits for a thread that has no unit in hand, so
 * one that the system has put aside holds up nothing. Who finds no unit spins briefly and then sleeps. A child of fork
 * has the pool's memory but none of its threads: it must neither run nor free it, but may make one of its own. */
#ifndef NIB_BASE_POOL_H
#define NIB_BASE_POOL_H

#include <stdbool.h>

#include "base/error.h"

typedef struct nib_pool nib_pool;

enum { NIB_POOL_MAX = 256, NIB_STEP_UNITS = 1 << 20 };

/* run(arg, unit, thread) for 0 <= unit < n_units; thread is 0 .. n-1. Units of one step run at once, on any thread. */
typedef struct nib_step {
    int n_units; /* 0: nothing to do; at most NIB_STEP_UNITS */
    bool small;  /* not worth sharing: the thread that asked for the step does all units itself */
    void (*run)(void *arg, int unit, int thread);
} nib_step;

/* Sets *step; false when there is none left. Called by one thread at a time, each time after all units of the step
 * before are done and seen. */
typedef bool (*nib_next_step)(nib_step *step, void *arg);

/* A pool of n threads, the caller's own included: n - 1 are started, with the default floating-point state, all signals
 * blocked, the caller's affinity and 1 MiB of stack. n is 1 .. NIB_POOL_MAX. Returns NIB_OK; NIB_ENOMEM (also when the
 * system gives no more threads). */
nib_status nib_pool_new(nib_pool **out, int n, nib_error *err);

/* Works through all steps; returns when the last is done and seen, after which no thread touches arg. One call at a
 * time, and none from within run or next. pool may be NULL: one thread. */
void nib_pool_run(nib_pool *pool, nib_next_step next, void *arg);

/* Threads of a pool; 1 for NULL. */
int nib_pool_n(const nib_pool *pool);

/* Ends and joins the threads. NULL is accepted. */
void nib_pool_free(nib_pool *pool);

#endif
