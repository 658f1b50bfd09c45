/* The threads of sessions: how many there are and how long, that they change no bit, work beside those of other sessions
 * on the same model, stop when told to, survive a lack of memory, and take nothing over from the host. */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/cpu_count.h"
#include "base/memory.h"
#include "base/random.h"
#include "kernel/dtype.h"
#include "quant_model.h"
#include "table_model.h"

enum { TOKENS = 300, V = 777 };

static const quant_spec spec = {.name = "threads",
                                .arch = "gemma3",
                                .D = 96,
                                .L = 3,
                                .H = 6,
                                .K = 2,
                                .E = 16,
                                .F = 160,
                                .V = V,
                                .context = TOKENS,
                                .window = 193,
                                .n_types = 5,
                                .types = {NIB_Q4_0, NIB_Q8_0, NIB_Q5_1, NIB_F16, NIB_Q4_1},
                                .seed = 11};

/* The model, its text, and what one thread makes of it. */
typedef struct subject {
    unsigned char *file;
    nib_model *model;
    int32_t ids[TOKENS];
    float expected[V];  /* the logits of the last token */
    nib_result *result; /* of a generation */
    size_t n_threads;   /* of the program, without those of sessions */
} subject;

static subject the;

static size_t count_now(void) {
    size_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        n += entry->d_name[0] != '.';
    }
    (void)closedir(tasks);
    return n;
}

static void wait_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* The system lists a thread for a moment after it was joined. */
static void check_count(size_t expected) {
    for (int i = 0; i < 1000 && count_now() != expected; i++) {
        wait_ms(2);
    }
    assert_int_equal(count_now(), expected);
}

/* What is there when those that were joined have left the list. */
static size_t least_count(void) {
    size_t least = SIZE_MAX;
    for (int i = 0; i < 50; i++) {
        size_t n = count_now();
        least = n < least ? n : least;
        wait_ms(2);
    }
    return least;
}

static nib_status new_with(nib_session **session, nib_model *model, int64_t threads, nib_error *err) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    options.threads = threads;
    options.prefill_chunk = 50; /* several passes, the later ones with their attention cut */
    return nib_session_new(session, model, &options, err);
}

static nib_session *session_of(int64_t threads) {
    nib_session *session;
    nib_error err;
    must(new_with(&session, the.model, threads, &err), &err);
    return session;
}

static nib_result *generate(nib_session *session) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.has_seed = 1;
    options.max_new_tokens = 10;
    options.repetition_penalty = 1.2;
    return generate_one(session, the.ids, 100, &options);
}

static int set_up(void **state) {
    size_t len;
    nib_error err;
    (void)state;
    for (size_t i = 0; i < TOKENS; i++) {
        the.ids[i] = (int32_t)(nib_mix64(3, i) % V);
    }
    the.file = quant_file(&len, &spec);
    the.model = quant_open(the.file, len, NIB_COMPUTE_FAST, NIB_CPU_AUTO);
    nib_session_free(session_of(2)); /* with the first thread, a sanitizer starts its own */
    the.n_threads = least_count();
    nib_session *alone = session_of(1);
    must(nib_session_logits(the.expected, alone, the.ids, TOKENS, TOKENS - 1, &err), &err);
    the.result = generate(alone);
    nib_session_free(alone);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    nib_result_free(the.result);
    nib_model_free(the.model);
    free(the.file);
    return 0;
}

/* The whole text anew, whatever the session holds; true when the last logits are those of one thread. */
static bool same_logits(nib_session *session) {
    float logits[V], other[V];
    const int32_t turn[] = {(the.ids[0] + 1) % V};
    nib_error err;
    return nib_session_logits(other, session, turn, 1, 0, &err) == NIB_OK &&
           nib_session_logits(logits, session, the.ids, TOKENS, TOKENS - 1, &err) == NIB_OK &&
           memcmp(logits, the.expected, sizeof logits) == 0;
}

static void check_same(nib_session *session) {
    assert_true(same_logits(session));
    nib_result *result = generate(session);
    check_same_row(&result->rows[0], &the.result->rows[0]);
    nib_result_free(result);
}

/* ---- how many ---- */

static void a_model_starts_no_thread(void **state) {
    (void)state;
    nib_model *model;
    nib_error err;
    must(nib_model_open(&model, "random:llama-tiny", NULL, &err), &err);
    check_count(the.n_threads);
    nib_model_free(model);
    check_count(the.n_threads);
}

static void a_session_has_the_threads_it_was_asked_for_and_leaves_none(void **state) {
    (void)state;
    const int64_t counts[] = {1, 2, 3, 8, 256};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        nib_session *session = session_of(counts[i]);
        check_count(the.n_threads + (size_t)counts[i] - 1);
        if (counts[i] < 256) {
            check_same(session);
        }
        check_count(the.n_threads + (size_t)counts[i] - 1);
        nib_session_free(session);
        check_count(the.n_threads);
    }
}

static void a_session_never_used_leaves_no_thread(void **state) {
    (void)state;
    for (int i = 0; i < 50; i++) {
        nib_session_free(session_of(3));
    }
    check_count(the.n_threads);
}

static void unset_is_a_thread_for_each_processor(void **state) {
    (void)state;
    nib_session *session = new_session(the.model), *asked = session_of(NIB_UNSET);
    check_count(the.n_threads + 2 * ((size_t)nib_cpu_count() - 1));
    check_same(session);
    nib_session_free(session);
    nib_session_free(asked);
    check_count(the.n_threads);
}

static void a_custom_model_has_its_callers_thread(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_session *session;
    nib_error err;
    must(new_with(&session, model, 3, &err), &err);
    check_count(the.n_threads);
    nib_session_free(session);
    nib_model_free(model);
}

/* ---- sessions side by side ---- */

/* A host's thread with a session of its own. Asserts would leave through the wrong stack: it counts what is right. */
typedef struct host {
    pthread_t thread;
    int64_t threads;
    int right;
} host;

enum { ROUNDS = 3, N_HOSTS = 2 };

static void *host_main(void *arg) {
    host *h = arg;
    for (int i = 0; i < ROUNDS; i++) {
        nib_session *session;
        if (new_with(&session, the.model, h->threads, NULL) != NIB_OK) {
            return NULL;
        }
        h->right += same_logits(session) && same_logits(session);
        nib_session_free(session);
    }
    return NULL;
}

static void sessions_of_two_hosts_at_once_do_not_disturb_each_other(void **state) {
    (void)state;
    const int64_t counts[][N_HOSTS] = {{2, 2}, {2, 3}, {3, 3}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        host hosts[N_HOSTS];
        for (size_t j = 0; j < N_HOSTS; j++) {
            hosts[j] = (host){.threads = counts[i][j]};
            assert_int_equal(pthread_create(&hosts[j].thread, NULL, host_main, &hosts[j]), 0);
        }
        for (size_t j = 0; j < N_HOSTS; j++) {
            assert_int_equal(pthread_join(hosts[j].thread, NULL), 0);
            assert_int_equal(hosts[j].right, ROUNDS);
        }
    }
}

/* Opens a file, computes and closes it, again and again: the hosts may share the model, or its last moment. */
static void *opener_main(void *arg) {
    host *h = arg;
    for (int i = 0; i < 20; i++) {
        const int32_t ids[] = {1, 2, 3};
        nib_model *model;
        nib_session *session;
        float logits[512];
        if (nib_model_open(&model, NIB_TEST_GOLDEN "/tiny/llama-k-quants.gguf", NULL, NULL) != NIB_OK) {
            return NULL;
        }
        if (new_with(&session, model, h->threads, NULL) == NIB_OK) {
            h->right += nib_session_logits(logits, session, ids, 3, 2, NULL) == NIB_OK;
            nib_session_free(session);
        }
        nib_model_free(model);
    }
    return NULL;
}

static void hosts_may_open_and_close_one_file_at_once(void **state) {
    (void)state;
    host hosts[3];
    for (size_t j = 0; j < 3; j++) {
        hosts[j] = (host){.threads = 1 + (int64_t)j};
        assert_int_equal(pthread_create(&hosts[j].thread, NULL, opener_main, &hosts[j]), 0);
    }
    for (size_t j = 0; j < 3; j++) {
        assert_int_equal(pthread_join(hosts[j].thread, NULL), 0);
        assert_int_equal(hosts[j].right, 20);
    }
}

static void *moved_main(void *session) {
    return same_logits(session) ? session : NULL;
}

static void a_session_may_change_hosts_between_calls(void **state) {
    (void)state;
    nib_session *session = session_of(3);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *right;
        assert_int_equal(pthread_create(&thread, NULL, moved_main, session), 0);
        assert_int_equal(pthread_join(thread, &right), 0);
        assert_non_null(right);
        check_same(session);
    }
    nib_session_free(session);
}

/* ---- cancellation ---- */

typedef struct canceller {
    pthread_t thread;
    nib_session *session;
    long delay_us;
} canceller;

static void *cancel_main(void *arg) {
    canceller *c = arg;
    const struct timespec time = {c->delay_us / 1000000, c->delay_us % 1000000 * 1000};
    (void)nanosleep(&time, NULL);
    nib_session_cancel(c->session);
    return NULL;
}

/* Computes the text again and again until told to stop. */
static nib_status compute_until_cancelled(nib_session *session, nib_error *err) {
    nib_status status = NIB_OK;
    for (int32_t i = 0; status == NIB_OK; i++) {
        float logits[V];
        the.ids[0] = (the.ids[0] + 1) % V; /* nothing can be used again */
        status = nib_session_logits(logits, session, the.ids, TOKENS, TOKENS - 1, err);
    }
    return status;
}

static void a_working_pool_stops_when_cancelled(void **state) {
    (void)state;
    nib_session *session = session_of(3);
    int32_t first = the.ids[0];
    for (long i = 0; i < 20; i++) {
        nib_error err;
        canceller c = {.session = session, .delay_us = 300 * i};
        assert_int_equal(pthread_create(&c.thread, NULL, cancel_main, &c), 0);
        nib_status status = compute_until_cancelled(session, &err);
        assert_int_equal(pthread_join(c.thread, NULL), 0);
        the.ids[0] = first;
        must_fail(status, NIB_ECANCELLED, &err, "cancelled after");
    }
    check_same(session);
    nib_session_free(session);
}

static double cpu_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* The processors' time of one pass over the text, by 3 threads, cancelled after delay_us unless that is 0. */
static double time_of_pass(nib_model *model, long delay_us, nib_status expected) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    canceller c = {.delay_us = delay_us};
    float logits[V];
    nib_error err;
    options.threads = 3;
    options.prefill_chunk = 0;
    must(nib_session_new(&c.session, model, &options, &err), &err);
    if (delay_us > 0) {
        assert_int_equal(pthread_create(&c.thread, NULL, cancel_main, &c), 0);
    }
    double begin = cpu_ms();
    nib_status status = nib_session_logits(logits, c.session, the.ids, TOKENS, TOKENS - 1, &err);
    double took = cpu_ms() - begin;
    if (delay_us > 0) {
        assert_int_equal(pthread_join(c.thread, NULL), 0);
    }
    nib_session_free(c.session);
    return status == expected ? took : -1;
}

/* Of many tries on a machine that has other work, one is cancelled while it is under way: not before it began, nor at
 * its end. */
static void a_pass_ends_between_layers_when_cancelled(void **state) {
    quant_spec deep = spec;
    size_t len;
    bool seen = false;
    (void)state;
    deep.L = 60;
    unsigned char *file = quant_file(&len, &deep);
    nib_model *model = quant_open(file, len, NIB_COMPUTE_FAST, NIB_CPU_AUTO);
    double whole = time_of_pass(model, 0, NIB_OK);
    for (int i = 0; i < 200 && !seen; i++) {
        double took = time_of_pass(model, (long)(whole * 25) * (1 + i % 16), NIB_ECANCELLED);
        seen = took > whole / 30 && took < whole / 2;
    }
    assert_true(seen);
    nib_model_free(model);
    free(file);
}

static void a_generation_that_is_cancelled_ends_with_what_it_has(void **state) {
    (void)state;
    nib_session *session = session_of(3);
    canceller c = {.session = session, .delay_us = 20000};
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    nib_finish finish = NIB_FINISH_NONE;
    options.has_seed = 1;
    options.max_new_tokens = TOKENS - 10;
    assert_int_equal(pthread_create(&c.thread, NULL, cancel_main, &c), 0);
    while (finish != NIB_FINISH_CANCELLED) {
        nib_result *result = generate_one(session, the.ids, 10, &options);
        finish = result->rows[0].finish;
        assert_true(finish == NIB_FINISH_LENGTH || finish == NIB_FINISH_CANCELLED);
        nib_result_free(result);
    }
    assert_int_equal(pthread_join(c.thread, NULL), 0);
    check_same(session);
    nib_session_free(session);
}

/* ---- lack of memory ---- */

static void a_session_without_memory_leaves_no_thread(void **state) {
    (void)state;
    size_t n = 1;
    for (nib_status status = NIB_ENOMEM; status != NIB_OK; n++) {
        nib_session *session = (nib_session *)(uintptr_t)1;
        nib_error err;
        nib_alloc_fail_at(n);
        status = new_with(&session, the.model, 3, &err);
        nib_alloc_fail_at(0);
        assert_int_equal(session == NULL, status != NIB_OK);
        if (status != NIB_OK) {
            must_fail(status, NIB_ENOMEM, &err, "memory");
            check_count(the.n_threads);
        }
        nib_session_free(session);
    }
    assert_true(n > 2);
    check_count(the.n_threads);
}

static void logits_without_memory_leave_the_session_usable(void **state) {
    (void)state;
    size_t n = 1;
    for (nib_status status = NIB_ENOMEM; status != NIB_OK; n++) {
        float logits[V];
        nib_error err;
        nib_session *session = session_of(3);
        nib_alloc_fail_at(n);
        status = nib_session_logits(logits, session, the.ids, TOKENS, TOKENS - 1, &err);
        nib_alloc_fail_at(0);
        if (status != NIB_OK) {
            must_fail(status, NIB_ENOMEM, &err, "memory");
            must(nib_session_logits(logits, session, the.ids, TOKENS, TOKENS - 1, &err), &err);
        }
        assert_memory_equal(logits, the.expected, sizeof logits);
        nib_session_free(session);
    }
    assert_true(n > 10);
}

/* ---- the host's floating-point environment ---- */

enum { FLUSH = 0x8040 }; /* MXCSR: results flushed to zero, subnormal operands taken as zero */

static void set_flush(unsigned flush) {
#if defined(__x86_64__)
    _mm_setcsr((_mm_getcsr() & ~(unsigned)FLUSH) | flush);
#else
    (void)flush;
#endif
}

static void the_hosts_rounding_and_flushing_reach_no_thread(void **state) {
    (void)state;
    const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const unsigned flushes[] = {0, FLUSH};
    for (size_t i = 0; i < 8; i++) {
        nib_session *early = session_of(3);
        assert_int_equal(fesetround(roundings[i / 2]), 0);
        set_flush(flushes[i % 2]);
        nib_session *late = session_of(3); /* its threads are started in this state */
        bool right = same_logits(early) && same_logits(late);
        nib_result *result = generate(late);
        assert_int_equal(fegetround(), roundings[i / 2]);
        set_flush(0);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
        assert_true(right);
        check_same_row(&result->rows[0], &the.result->rows[0]);
        nib_result_free(result);
        check_same(late); /* nor do they keep it */
        nib_session_free(early);
        nib_session_free(late);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_starts_no_thread),
        cmocka_unit_test(a_session_has_the_threads_it_was_asked_for_and_leaves_none),
        cmocka_unit_test(a_session_never_used_leaves_no_thread),
        cmocka_unit_test(unset_is_a_thread_for_each_processor),
        cmocka_unit_test(a_custom_model_has_its_callers_thread),
        cmocka_unit_test(sessions_of_two_hosts_at_once_do_not_disturb_each_other),
        cmocka_unit_test(hosts_may_open_and_close_one_file_at_once),
        cmocka_unit_test(a_session_may_change_hosts_between_calls),
        cmocka_unit_test(a_working_pool_stops_when_cancelled),
        cmocka_unit_test(a_pass_ends_between_layers_when_cancelled),
        cmocka_unit_test(a_generation_that_is_cancelled_ends_with_what_it_has),
        cmocka_unit_test(a_session_without_memory_leaves_no_thread),
        cmocka_unit_test(logits_without_memory_leave_the_session_usable),
        cmocka_unit_test(the_hosts_rounding_and_flushing_reach_no_thread),
    };
    return cmocka_run_group_tests_name("threads of sessions", tests, set_up, tear_down);
}
