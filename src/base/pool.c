/* A pool of threads that works through steps.
 *
 * One atomic word says which units are there, so that a thread learns from one operation what it took and of what:
 *
 *     bits  0-20  next   the first unit that nobody has taken; counts on past n
 *     bits 21-41  n      units of the step; 0: no call of nib_pool_run is under way
 *     bits 42-62  done   units that are done
 *     bit  63     quit   the threads are to end
 *
 * A thread takes a unit by adding 1 to next; what was there before is its unit, if less than n. When done with it, one
 * addition says so and takes another. Who adds the last `done` owns the pool until it stores a new word: it asks for
 * the next step. run and arg are read only by a thread with a unit in hand, which keeps its step from ending; so a late
 * one cannot touch a finished job. next stays below its 21 bits: a thread adds to it when it ends a unit (n times at
 * most) and when it has just seen one left (once for what it saw in this word, once for what it saw in another).
 *
 * Who finds nothing spins and then sleeps. No wake-up is lost: who goes to sleep sets `asleep`, then reads the word;
 * who stores a word reads `asleep` afterwards; both in the one order of all sequentially consistent operations, so one
 * of them sees the other. A mutex closes the gap between looking and sleeping. While nobody sleeps, a step costs no
 * system call. */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/cpu_count.h"
#include "base/fpenv.h"
#include "base/memory.h"

enum {
    FIELD_BITS = 21,
    STACK_SIZE_BYTES = 1 << 20, /* kernels take up to about 100 KB */
    CACHE_LINE = 64,
    SPIN_ROUND = 32 /* looks between two looks at the clock: about 1.5 us */
};

/* How long a thread looks for work before it sleeps, since it last saw the word change. Longer than most steps, and
 * than the few microseconds a wake-up costs; short against the milliseconds for which a foreign process keeps a
 * processor, as it is the sleeper's processor that the system can give to the thread which all wait for. Beside such a
 * process, anything from 5 to 200 us gave the same speed. */
static const int64_t spin_ns = 50000;

static const uint64_t one_next = 1;
static const uint64_t one_done = (uint64_t)1 << (2 * FIELD_BITS);
static const uint64_t quit_word = (uint64_t)1 << 63;

/* Where threads sleep: the caller by itself, as the end of a run concerns nobody else. */
typedef struct bed {
    atomic_bool asleep; /* somebody may be */
    pthread_cond_t wake;
} bed;

enum { BED_CALLER, BED_WORKERS, N_BEDS };

typedef struct worker {
    nib_pool *pool;
    pthread_t handle;
    int thread;
} worker;

/* What is written at each unit, at each step, and hardly ever lies on lines of its own. */
struct nib_pool {
    alignas(CACHE_LINE) _Atomic uint64_t word;
    alignas(CACHE_LINE) nib_next_step next;
    void *arg;
    void (*run)(void *arg, int unit, int thread);
    alignas(CACHE_LINE) int n;
    bool spins;
    pthread_mutex_t lock;
    bed beds[N_BEDS];
    worker workers[]; /* [n]; the first, the caller's, is not used */
};

static int field(uint64_t word, int i) {
    return (int)(word >> (i * FIELD_BITS) & (((uint64_t)1 << FIELD_BITS) - 1));
}

static int next_of(uint64_t word) {
    return field(word, 0);
}

static int n_of(uint64_t word) {
    return field(word, 1);
}

static int done_of(uint64_t word) {
    return field(word, 2);
}

static bool has_unit(uint64_t word) {
    return next_of(word) < n_of(word);
}

/* Whether there is something to do for a thread: a unit, or to leave. */
static bool concerns(uint64_t word, int thread) {
    return has_unit(word) || (thread == 0 ? n_of(word) == 0 : (word & quit_word) != 0);
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* "yield" takes no time on most processors */
#endif
}

static int64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Looks at the word until it concerns the thread; false when it did not change for spin_ns. Does not ask for the time
 * in the first round, in which most waits end. */
static bool spin(nib_pool *pool, int thread) {
    uint64_t seen = atomic_load_explicit(&pool->word, memory_order_acquire);
    int64_t end_ns = 0;
    for (;;) {
        for (int i = 0; i < SPIN_ROUND; i++) {
            uint64_t word = atomic_load_explicit(&pool->word, memory_order_acquire);
            if (concerns(word, thread)) {
                return true;
            }
            if (word != seen) {
                seen = word;
                end_ns = 0;
            }
            relax();
        }
        int64_t now = now_ns();
        if (end_ns == 0) {
            end_ns = now + spin_ns;
        } else if (now >= end_ns) {
            return false;
        }
    }
}

static void sleep_until_concerned(nib_pool *pool, int thread) {
    bed *own = &pool->beds[thread == 0 ? BED_CALLER : BED_WORKERS];
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        atomic_store(&own->asleep, true);
        if (concerns(atomic_load(&pool->word), thread)) {
            break;
        }
        (void)pthread_cond_wait(&own->wake, &pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
}

/* After a new word is stored. Wakes outside the lock, which the woken need; whoever set `asleep` before it was cleared
 * here waits already, as he held the lock from the one to the other. */
static void wake(nib_pool *pool, bed *sleepers) {
    if (!atomic_load(&sleepers->asleep)) {
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    atomic_store(&sleepers->asleep, false);
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_cond_broadcast(&sleepers->wake);
}

/* Asks for steps, does those that are not worth sharing, and publishes the first that is, or the end. The calling
 * thread owns the pool: no unit is left or in work. It keeps no unit of the new step for itself: the system may well
 * put it aside while it wakes others, and they can do without it. */
static void advance(nib_pool *pool, int thread) {
    nib_step step;
    while (pool->next(&step, pool->arg)) {
        assert(step.n_units >= 0 && step.n_units <= NIB_STEP_UNITS);
        if (!step.small && step.n_units > 1) {
            pool->run = step.run;
            atomic_store(&pool->word, (uint64_t)step.n_units << FIELD_BITS);
            wake(pool, &pool->beds[BED_WORKERS]);
            wake(pool, &pool->beds[BED_CALLER]);
            return;
        }
        for (int unit = 0; unit < step.n_units; unit++) {
            step.run(pool->arg, unit, thread);
        }
    }
    atomic_store(&pool->word, 0);
    wake(pool, &pool->beds[BED_CALLER]);
}

/* Does units, beginning with the one that was taken from word, while there are any. */
static void do_units(nib_pool *pool, uint64_t word, int thread) {
    void (*run)(void *, int, int) = pool->run;
    void *arg = pool->arg;
    while (has_unit(word)) {
        run(arg, next_of(word), thread);
        word = atomic_fetch_add_explicit(&pool->word, one_done + one_next, memory_order_acq_rel);
        if (done_of(word) + 1 == n_of(word)) {
            advance(pool, thread);
            return;
        }
    }
}

/* Takes part until the word tells this thread to leave. */
static void work(nib_pool *pool, int thread) {
    for (;;) {
        uint64_t word = atomic_load_explicit(&pool->word, memory_order_acquire);
        if (has_unit(word)) {
            word = atomic_fetch_add_explicit(&pool->word, one_next, memory_order_acquire);
            if (has_unit(word)) {
                do_units(pool, word, thread);
            }
        } else if (concerns(word, thread)) {
            return;
        } else if (!pool->spins || !spin(pool, thread)) {
            sleep_until_concerned(pool, thread);
        }
    }
}

static void *worker_main(void *arg) {
    worker *self = arg;
    (void)nib_fp_enter();
    work(self->pool, self->thread);
    return NULL;
}

/* Starts the workers with all signals blocked, so that a host's handlers run on the host's threads; returns how many
 * threads there are then, the caller's included. */
static int start(nib_pool *pool, int n) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return 1;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE_BYTES);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = 1;
    for (; started < n; started++) {
        worker *w = &pool->workers[started];
        w->pool = pool;
        w->thread = started;
        if (pthread_create(&w->handle, &attributes, worker_main, w) != 0) {
            break;
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return started;
}

nib_status nib_pool_new(nib_pool **out, int n, nib_error *err) {
    assert(n >= 1 && n <= NIB_POOL_MAX);
    *out = NULL;
    size_t size_bytes = sizeof(nib_pool) + (size_t)n * sizeof(worker);
    nib_pool *pool = nib_alloc_aligned(1, size_bytes);
    if (pool == NULL) {
        return nib_fail_memory(err, size_bytes, "the pool of threads");
    }
    /* With more threads than can run at once, who spins keeps from its processor the one that has work. */
    pool->spins = n > 1 && n <= nib_cpu_slots();
    (void)pthread_mutex_init(&pool->lock, NULL);
    for (int i = 0; i < N_BEDS; i++) {
        (void)pthread_cond_init(&pool->beds[i].wake, NULL);
    }
    pool->n = start(pool, n);
    if (pool->n < n) {
        int started = pool->n - 1;
        nib_pool_free(pool);
        return nib_fail(err, NIB_ENOMEM, "threads: the system started %d, expected %d", started, n - 1);
    }
    *out = pool;
    return NIB_OK;
}

static void run_alone(nib_next_step next, void *arg) {
    nib_step step;
    while (next(&step, arg)) {
        for (int unit = 0; unit < step.n_units; unit++) {
            step.run(arg, unit, 0);
        }
    }
}

void nib_pool_run(nib_pool *pool, nib_next_step next, void *arg) {
    if (nib_pool_n(pool) == 1) {
        run_alone(next, arg);
        return;
    }
    pool->next = next;
    pool->arg = arg;
    advance(pool, 0);
    work(pool, 0);
}

int nib_pool_n(const nib_pool *pool) {
    return pool == NULL ? 1 : pool->n;
}

void nib_pool_free(nib_pool *pool) {
    if (pool == NULL) {
        return;
    }
    atomic_store(&pool->word, quit_word);
    wake(pool, &pool->beds[BED_WORKERS]);
    for (int i = 1; i < pool->n; i++) {
        (void)pthread_join(pool->workers[i].handle, NULL);
    }
    for (int i = 0; i < N_BEDS; i++) {
        (void)pthread_cond_destroy(&pool->beds[i].wake);
    }
    (void)pthread_mutex_destroy(&pool->lock);
    nib_free(pool);
}
