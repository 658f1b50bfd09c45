/* Long texts: work in proportion to the length, and no stack that grows with it. */
#include "token_check.h"

#include <pthread.h>

#include "base/memory.h"
#include "golden_tokens.h"
#include "text/tokenizer_parts.h"

enum { LONG = 2000000, SHORTER = 200000, STACK_BYTES = 256 * 1024 };

typedef struct run_task {
    const nib_tokenizer *tokenizer;
    size_t len; /* bytes of the longest run */
    int n_wrong;
} run_task;

/* Steps to encode n bytes, unit over and over; 0 when the ids do not decode to them. No assertion: this runs in a thread of
 * its own, from which cmocka cannot jump back. */
static size_t count_steps(const nib_tokenizer *tokenizer, const char *unit, size_t n) {
    size_t unit_len = strlen(unit);
    char *text = nib_alloc(n, 1);
    for (size_t i = 0; i < n; i++) {
        text[i] = unit[i % unit_len];
    }
    nib_encoding encoding;
    nib_status status = nib_encoding_run(&encoding, tokenizer, text, n, NIB_TOKENIZE_SPECIAL, NULL);
    char *back = NULL;
    size_t len = 0;
    if (status == NIB_OK) {
        status = nib_tokenizer_decode(&back, &len, tokenizer, encoding.ids.ids, encoding.ids.n, NIB_DETOKENIZE_SPECIAL,
                                      NULL);
    }
    bool same = status == NIB_OK && len == n && memcmp(back, text, n) == 0;
    size_t steps = same ? encoding.steps + encoding.merger.steps : 0;
    nib_encoding_clear(&encoding);
    nib_free(back);
    nib_free(text);
    return steps;
}

static const char *const units[] = {"A", " ", "\n", "1", "a ", "ab", "<|endoftext|", "\xe4\xb8\xad", "'", "\r\n"};
enum { N_UNITS = sizeof units / sizeof *units };

/* Encodes runs of every unit, half as long as the task says and as long. */
static void *encode_runs(void *user) {
    run_task *task = user;
    for (size_t i = 0; i < N_UNITS; i++) {
        size_t unit_len = strlen(units[i]);
        size_t n = task->len / 2 / unit_len * unit_len;
        size_t once = count_steps(task->tokenizer, units[i], n);
        size_t twice = count_steps(task->tokenizer, units[i], 2 * n);
        /* n log n: each byte is joined once, at 2 log2(n) comparisons for the heap. */
        if (once == 0 || twice == 0 || 10 * twice >= 26 * once || twice >= task->len * 50) {
            printf("'%s' x %zu: %zu steps, twice that: %zu\n", units[i], n / unit_len, once, twice);
            task->n_wrong++;
        }
    }
    return NULL;
}

static void run_on_a_small_stack(run_task *task) {
    pthread_t thread;
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, encode_runs, task), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    assert_int_equal(task->n_wrong, 0);
}

static void check_vocab(const char *file, const char *pre, bool interpret, size_t n) {
    golden_vocab vocab;
    golden_read_vocab(&vocab, file, pre);
    nib_tokenizer *tokenizer;
    assert_int_equal(nib_tokenizer_new(&tokenizer, &vocab.vocab, NULL), NIB_OK);
    if (interpret) {
        nib_pretokenizer_interpret(tokenizer->bpe.pretokenizer);
    }
    run_on_a_small_stack(&(run_task){.tokenizer = tokenizer, .len = n});
    nib_tokenizer_free(tokenizer);
    golden_free_vocab(&vocab);
}

static void take_linear_steps_on_runs_by_merges(void **state) {
    (void)state;
    check_vocab("tiny-bpe.txt", "gpt-2", false, LONG);
    check_vocab("tiny-bpe.txt", "tekken", false, SHORTER);
    check_vocab("tiny-bpe.txt", "deepseek-llm", false, SHORTER);
}

static void take_linear_steps_on_runs_interpreted(void **state) {
    (void)state;
    check_vocab("tiny-bpe.txt", "llama-bpe", true, SHORTER);
}

static void take_linear_steps_on_runs_by_scores(void **state) {
    (void)state;
    check_vocab("tiny-spm.txt", "prefix", false, LONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_linear_steps_on_runs_by_merges),
        cmocka_unit_test(take_linear_steps_on_runs_interpreted),
        cmocka_unit_test(take_linear_steps_on_runs_by_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
