/* The pool of threads: every unit once, steps in order, memory seen across steps, sleep, and ends of threads. What the
 * steps hand to each other is plain data, so that ThreadSanitizer sees an order that is missing; what only counts is
 * atomic and relaxed, so that it orders nothing itself. */
#include "base/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cpu_count.h"
#include "base/memory.h"

enum { MAX_UNITS = 1000 };

static const int thread_counts[] = {1, 2, 3, 8, 64, 256};
enum { N_COUNTS = sizeof thread_counts / sizeof *thread_counts };

static nib_pool *new_pool(int n) {
    nib_pool *pool = NULL;
    nib_error err = {0};
    assert_int_equal(nib_pool_new(&pool, n, &err), NIB_OK);
    assert_int_equal(nib_pool_n(pool), n);
    return pool;
}

static void wait_ms(int ms) {
    struct timespec left = {ms / 1000, (ms % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Steps of random size that check each other. */
typedef struct job {
    int n_threads, steps_left, step; /* step counts from 1 */
    uint64_t seed;
    nib_step now;
    int stamp[2][MAX_UNITS];    /* the step in which the unit last ran, and of those before it; plain on purpose */
    int ran_by[MAX_UNITS];      /* thread */
    atomic_int runs[MAX_UNITS]; /* of the step */
    atomic_int in_use[NIB_POOL_MAX];
    atomic_int in_next;
    atomic_int faults;
} job;

static void fault(job *j) {
    atomic_fetch_add_explicit(&j->faults, 1, memory_order_relaxed);
}

static int draw(job *j, int bound) {
    j->seed = j->seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((j->seed >> 33) % (uint64_t)bound);
}

/* Each unit looks at what another one of the step before wrote. */
static void run_unit(void *arg, int unit, int thread) {
    job *j = arg;
    if (thread < 0 || thread >= j->n_threads || unit < 0 || unit >= j->now.n_units) {
        fault(j);
        return;
    }
    if (atomic_exchange_explicit(&j->in_use[thread], 1, memory_order_relaxed) != 0) {
        fault(j);
    }
    if (j->stamp[(j->step + 1) % 2][(unit * 7 + 3) % MAX_UNITS] != j->step - 1) {
        fault(j);
    }
    j->stamp[j->step % 2][unit] = j->step;
    j->ran_by[unit] = thread;
    atomic_fetch_add_explicit(&j->runs[unit], 1, memory_order_relaxed);
    atomic_store_explicit(&j->in_use[thread], 0, memory_order_relaxed);
}

static void check_step(job *j) {
    for (int i = 0; i < MAX_UNITS; i++) {
        int runs = atomic_load_explicit(&j->runs[i], memory_order_relaxed);
        bool due = i < j->now.n_units;
        if (runs != due || (due && j->stamp[j->step % 2][i] != j->step)) {
            fault(j);
        }
        if (due && j->now.small && j->ran_by[i] != j->ran_by[0]) {
            fault(j);
        }
        atomic_store_explicit(&j->runs[i], 0, memory_order_relaxed);
        j->stamp[j->step % 2][i] = j->step;
    }
}

static bool next_step(nib_step *step, void *arg) {
    static const int sizes[] = {0, 1, 2, MAX_UNITS};
    job *j = arg;
    if (atomic_exchange_explicit(&j->in_next, 1, memory_order_relaxed) != 0) {
        fault(j);
    }
    check_step(j);
    bool more = j->steps_left > 0;
    if (more) {
        j->steps_left--;
        j->step++;
        int size = draw(j, 5);
        j->now = (nib_step){size < 4 ? sizes[size] : draw(j, MAX_UNITS), draw(j, 4) == 0, run_unit};
        *step = j->now;
    }
    atomic_store_explicit(&j->in_next, 0, memory_order_relaxed);
    return more;
}

/* The faults of a run of n steps. The job is gone as soon as the run returns: nobody may touch it then. */
static int run_job(nib_pool *pool, int n_steps, uint64_t seed) {
    job *j = calloc(1, sizeof *j);
    if (j == NULL) {
        return -1;
    }
    j->n_threads = nib_pool_n(pool);
    j->steps_left = n_steps;
    j->seed = seed;
    nib_pool_run(pool, next_step, j);
    int faults = j->faults + (j->steps_left != 0) + (j->step != n_steps);
    free(j);
    return faults;
}

static void every_unit_runs_once_and_sees_the_steps_before(void **state) {
    (void)state;
    for (int i = 0; i < N_COUNTS; i++) {
        nib_pool *pool = new_pool(thread_counts[i]);
        for (int run = 0; run < 5; run++) {
            assert_int_equal(run_job(pool, 100, (uint64_t)run), 0);
        }
        nib_pool_free(pool);
    }
    assert_int_equal(run_job(NULL, 100, 5), 0);
}

static void a_run_without_steps_returns(void **state) {
    (void)state;
    for (int i = 0; i < N_COUNTS; i++) {
        nib_pool *pool = new_pool(thread_counts[i]);
        assert_int_equal(run_job(pool, 0, 0), 0);
        assert_int_equal(run_job(pool, 0, 0), 0);
        nib_pool_free(pool);
    }
}

/* Many short runs: a sum that each step carries on, in cells that move from unit to unit. */
enum { SUM_CELLS = 5 };

typedef struct sums {
    int steps_left;
    uint64_t cells[2][SUM_CELLS];
} sums;

static void add_unit(void *arg, int unit, int thread) {
    (void)thread;
    sums *s = arg;
    int to = s->steps_left % 2;
    s->cells[to][unit] = s->cells[1 - to][(unit + 1) % SUM_CELLS] + (uint64_t)unit + 1;
}

static bool next_sum(nib_step *step, void *arg) {
    sums *s = arg;
    if (s->steps_left == 0) {
        return false;
    }
    s->steps_left--;
    *step = (nib_step){SUM_CELLS, s->steps_left == 1, add_unit};
    return true;
}

static uint64_t sum_of_run(nib_pool *pool, int n_steps) {
    sums *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->steps_left = n_steps;
    nib_pool_run(pool, next_sum, s);
    uint64_t sum = 0;
    for (int i = 0; i < SUM_CELLS; i++) {
        sum += s->cells[0][i] * (uint64_t)(i + 1);
    }
    free(s);
    return sum;
}

static void many_runs_give_the_same_sum(void **state) {
    (void)state;
    for (int i = 0; i < N_COUNTS; i++) {
        int n = thread_counts[i], n_runs = n <= 8 ? 10000 : 200;
        nib_pool *pool = new_pool(n);
        for (int run = 0; run < n_runs; run++) {
            int n_steps = run % 7;
            assert_int_equal(sum_of_run(pool, n_steps), sum_of_run(NULL, n_steps));
        }
        assert_int_equal(sum_of_run(pool, n_runs), sum_of_run(NULL, n_runs));
        nib_pool_free(pool);
    }
}

/* The largest step. */
typedef struct census {
    bool asked;
    uint64_t n[8], sum[8]; /* of the units of each thread */
} census;

static void count_unit(void *arg, int unit, int thread) {
    census *c = arg;
    c->n[thread]++;
    c->sum[thread] += (uint64_t)unit;
}

static bool next_census(nib_step *step, void *arg) {
    census *c = arg;
    bool more = !c->asked;
    c->asked = true;
    *step = (nib_step){1 << 20, false, count_unit};
    return more;
}

static void a_step_may_have_a_million_units(void **state) {
    (void)state;
    nib_pool *pool = new_pool(8);
    census c = {0};
    nib_pool_run(pool, next_census, &c);
    uint64_t n = 0, sum = 0;
    for (int i = 0; i < 8; i++) {
        n += c.n[i];
        sum += c.sum[i];
    }
    assert_int_equal(n, 1 << 20);
    assert_int_equal(sum, ((uint64_t)1 << 19) * (((uint64_t)1 << 20) - 1));
    nib_pool_free(pool);
}

/* A step of as many units as threads, in which each waits for all others: so each runs on a thread of its own. */
typedef struct meeting {
    int n, steps_left;
    int came; /* to all steps so far */
    atomic_int here;
    bool signals_blocked[NIB_POOL_MAX];
    size_t stack_bytes[NIB_POOL_MAX];
    unsigned fp_state[NIB_POOL_MAX];
} meeting;

static void look_around(meeting *m, int thread) {
    sigset_t mask;
    m->signals_blocked[thread] = pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGINT) == 1 &&
                                 sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGALRM) == 1;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, &m->stack_bytes[thread]);
        (void)pthread_attr_destroy(&attributes);
    }
#if defined(__x86_64__)
    m->fp_state[thread] = __builtin_ia32_stmxcsr();
#endif
}

static void meet(void *arg, int unit, int thread) {
    (void)unit;
    meeting *m = arg;
    look_around(m, thread);
    atomic_fetch_add_explicit(&m->here, 1, memory_order_relaxed);
    while (atomic_load_explicit(&m->here, memory_order_relaxed) < m->n) {
        (void)sched_yield();
    }
}

static bool next_meeting(nib_step *step, void *arg) {
    meeting *m = arg;
    m->came += atomic_exchange_explicit(&m->here, 0, memory_order_relaxed);
    *step = (nib_step){m->n, false, meet};
    return m->steps_left-- > 0;
}

static void all_threads_take_part_however_long_they_slept(void **state) {
    (void)state;
    for (int i = 1; i < N_COUNTS; i++) {
        nib_pool *pool = new_pool(thread_counts[i]);
        for (int wait = 0; wait < 3; wait++) {
            meeting m = {.n = thread_counts[i], .steps_left = 2};
            nib_pool_run(pool, next_meeting, &m);
            assert_int_equal(m.came, 2 * m.n);
            wait_ms(wait);
        }
        nib_pool_free(pool);
    }
}

/* A thread that sleeps through a step keeps the others waiting for ever. The threads of the first pool spin; those of
 * the others, being more than the processors, sleep between all steps. */
static void no_wake_up_is_lost(void **state) {
    (void)state;
    int slots = nib_cpu_slots();
    int counts[] = {slots < 2 ? 2 : slots, slots + 1, slots + 6};
    for (int i = 0; i < 3 && counts[i] <= NIB_POOL_MAX; i++) {
        nib_pool *pool = new_pool(counts[i]);
        for (int run = 0; run < 2000; run++) {
            meeting m = {.n = counts[i], .steps_left = run % 5};
            nib_pool_run(pool, next_meeting, &m);
            assert_int_equal(m.came, counts[i] * (run % 5));
        }
        nib_pool_free(pool);
    }
}

static void workers_block_signals_and_have_a_stack_of_a_mebibyte(void **state) {
    (void)state;
    sigset_t before, after;
    assert_int_equal(sigemptyset(&before), 0);
    assert_int_equal(sigaddset(&before, SIGUSR2), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    nib_pool *pool = new_pool(4);
    meeting m = {.n = 4, .steps_left = 1};
    nib_pool_run(pool, next_meeting, &m);
    nib_pool_free(pool);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int i = 1; i < 32; i++) {
        assert_int_equal(sigismember(&before, i), sigismember(&after, i));
    }
    for (int i = 1; i < 4; i++) {
        assert_true(m.signals_blocked[i]);
        assert_true(m.stack_bytes[i] >= 1 << 20);
    }
}

static void workers_compute_in_the_default_floating_point_state(void **state) {
    (void)state;
#if defined(__x86_64__)
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80 | 0x8040); /* flush to zero, subnormals are zeros */
    nib_pool *pool = new_pool(4);
    meeting m = {.n = 4, .steps_left = 1};
    nib_pool_run(pool, next_meeting, &m);
    nib_pool_free(pool);
    unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    assert_int_equal(after & ~0x3fu, 0x1f80 | 0x8040);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(m.fp_state[i] & ~0x3fu, 0x1f80); /* less the flags of what was computed */
    }
#else
    skip();
#endif
}

static int64_t cpu_time_us(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
}

static void threads_sleep_when_nothing_runs(void **state) {
    (void)state;
    int slots = nib_cpu_slots();
    int counts[] = {slots < 2 ? 2 : slots, 64};
    for (int i = 0; i < 2; i++) {
        nib_pool *pool = new_pool(counts[i]);
        assert_int_equal(run_job(pool, 20, 3), 0);
        wait_ms(50);
        int64_t before = cpu_time_us();
        wait_ms(300);
        assert_true(cpu_time_us() - before < 60000); /* one thread that spins on: 300000 */
        assert_int_equal(run_job(pool, 20, 4), 0);
        nib_pool_free(pool);
    }
}

/* Calls visit for each thread of the process, or only counts them. */
static int each_task(void (*visit)(pid_t task, const void *arg), const void *arg) {
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        n++;
        if (visit != NULL) {
            visit((pid_t)strtol(entry->d_name, NULL, 10), arg);
        }
    }
    (void)closedir(dir);
    return n;
}

static void set_cpus(pid_t task, const void *set) {
    (void)sched_setaffinity(task, sizeof(cpu_set_t), set);
}

/* The first of the processors that this process may use; *all is all of them. */
static cpu_set_t one_cpu(cpu_set_t *all) {
    cpu_set_t one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof *all, all) != 0) {
        skip();
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, all)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    return one;
}

static void eight_threads_on_one_processor_get_on(void **state) {
    (void)state;
    cpu_set_t all, one = one_cpu(&all);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    nib_pool *pool = new_pool(8);
    assert_int_equal(run_job(pool, 1000, 5), 0);
    nib_pool_free(pool);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* Restricted after they were started: these still spin. */
static void spinning_threads_on_one_processor_get_on(void **state) {
    (void)state;
    cpu_set_t all, one = one_cpu(&all);
    int slots = nib_cpu_slots();
    nib_pool *pool = new_pool(slots < 2 ? 2 : slots);
    (void)each_task(set_cpus, &one);
    assert_int_equal(run_job(pool, 1000, 6), 0);
    nib_pool_free(pool);
    (void)each_task(set_cpus, &all);
}

/* A joined thread is in the list for a moment yet. */
static int settled_tasks(int expected) {
    int n = each_task(NULL, NULL);
    for (int i = 0; i < 2000 && n != expected; i++) {
        wait_ms(1);
        n = each_task(NULL, NULL);
    }
    return n;
}

static void threads_live_from_new_to_free(void **state) {
    (void)state;
    nib_pool_free(new_pool(2)); /* a sanitizer may start a thread of its own with the first */
    wait_ms(20);
    int before = each_task(NULL, NULL);
    for (int i = 0; i < N_COUNTS; i++) {
        nib_pool *pool = new_pool(thread_counts[i]);
        assert_int_equal(each_task(NULL, NULL), before + thread_counts[i] - 1);
        if (i % 2 == 0) {
            assert_int_equal(run_job(pool, 10, 7), 0);
        }
        assert_int_equal(each_task(NULL, NULL), before + thread_counts[i] - 1);
        nib_pool_free(pool);
        assert_int_equal(settled_tasks(before), before);
    }
    nib_pool_free(NULL);
    assert_int_equal(nib_pool_n(NULL), 1);
}

static void *use_a_pool(void *faults) {
    nib_pool *pool = NULL;
    if (nib_pool_new(&pool, 3, NULL) != NIB_OK) {
        *(int *)faults = -1;
        return NULL;
    }
    for (int run = 0; run < 20; run++) {
        *(int *)faults += run_job(pool, 30, (uint64_t)run);
    }
    nib_pool_free(pool);
    return NULL;
}

static void two_pools_work_at_once(void **state) {
    (void)state;
    int faults[2] = {0};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, use_a_pool, &faults[0]), 0);
    (void)use_a_pool(&faults[1]);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(faults[0], 0);
    assert_int_equal(faults[1], 0);
}

static void a_failed_allocation_is_answered(void **state) {
    (void)state;
    nib_status status = NIB_ENOMEM;
    size_t n = 1;
    for (; status != NIB_OK && n < 100; n++) {
        nib_pool *pool = (nib_pool *)state;
        nib_error err = {0};
        nib_alloc_fail_at(n);
        status = nib_pool_new(&pool, 3, &err);
        nib_alloc_fail_at(0);
        if (status != NIB_OK) {
            assert_int_equal(status, NIB_ENOMEM);
            assert_int_equal(err.code, NIB_ENOMEM);
            assert_non_null(strstr(err.message, "threads"));
            assert_null(pool);
        }
        nib_pool_free(pool);
    }
    assert_true(n > 2 && n < 100);
}

/* The linker leads pthread_create here: the system may refuse a thread. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg);

static atomic_int creations_left = INT32_MAX;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg) {
    if (atomic_fetch_sub_explicit(&creations_left, 1, memory_order_relaxed) <= 0) {
        return EAGAIN;
    }
    return __real_pthread_create(thread, attributes, start, arg);
}

static void threads_that_the_system_refuses_are_answered_and_the_others_joined(void **state) {
    (void)state;
    static const char *const messages[] = {"threads: the system started 0, expected 3",
                                           "threads: the system started 1, expected 3",
                                           "threads: the system started 2, expected 3"};
    nib_pool_free(new_pool(2));
    wait_ms(20);
    int before = each_task(NULL, NULL);
    for (int i = 0; i < 3; i++) {
        nib_pool *pool = (nib_pool *)state;
        nib_error err = {0};
        creations_left = i;
        nib_status status = nib_pool_new(&pool, 4, &err);
        nib_status without_error = nib_pool_new(&pool, 4, NULL);
        creations_left = INT32_MAX;
        assert_int_equal(status, NIB_ENOMEM);
        assert_int_equal(without_error, NIB_ENOMEM);
        assert_null(pool);
        assert_int_equal(err.code, NIB_ENOMEM);
        assert_string_equal(err.message, messages[i]);
        assert_int_equal(settled_tasks(before), before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_runs_once_and_sees_the_steps_before),
        cmocka_unit_test(a_run_without_steps_returns),
        cmocka_unit_test(many_runs_give_the_same_sum),
        cmocka_unit_test(a_step_may_have_a_million_units),
        cmocka_unit_test(all_threads_take_part_however_long_they_slept),
        cmocka_unit_test(no_wake_up_is_lost),
        cmocka_unit_test(workers_block_signals_and_have_a_stack_of_a_mebibyte),
        cmocka_unit_test(workers_compute_in_the_default_floating_point_state),
        cmocka_unit_test(threads_sleep_when_nothing_runs),
        cmocka_unit_test(eight_threads_on_one_processor_get_on),
        cmocka_unit_test(spinning_threads_on_one_processor_get_on),
        cmocka_unit_test(threads_live_from_new_to_free),
        cmocka_unit_test(two_pools_work_at_once),
        cmocka_unit_test(a_failed_allocation_is_answered),
        cmocka_unit_test(threads_that_the_system_refuses_are_answered_and_the_others_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
