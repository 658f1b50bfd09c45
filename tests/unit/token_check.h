/* Comparing what a tokenizer gives with what a test expects. */
#ifndef NIB_TESTS_TOKEN_CHECK_H
#define NIB_TESTS_TOKEN_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "small_vocab.h"

#define CHECK_IDS(tokenizer, text, flags, ...)                                                                         \
    check_ids(tokenizer, text, sizeof(text) - 1, flags, (const int32_t[]){__VA_ARGS__},                                \
              sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static inline void check_ids(const nib_tokenizer *tokenizer, const char *text, size_t len, uint32_t flags,
                             const int32_t *want, size_t n_want) {
    int32_t *ids;
    size_t n;
    assert_int_equal(nib_tokenizer_encode(&ids, &n, tokenizer, text, len, flags, NULL), NIB_OK);
    assert_int_equal(n, n_want);
    assert_memory_equal(ids, want, n * sizeof *ids);
    nib_free(ids);
}

/* decode(encode(text)) is text, byte for byte. */
static inline void check_round_trip(const nib_tokenizer *tokenizer, const char *text, size_t len) {
    int32_t *ids;
    size_t n, back_len;
    char *back;
    assert_int_equal(nib_tokenizer_encode(&ids, &n, tokenizer, text, len, NIB_TOKENIZE_SPECIAL, NULL), NIB_OK);
    assert_int_equal(nib_tokenizer_decode(&back, &back_len, tokenizer, ids, n, NIB_DETOKENIZE_SPECIAL, NULL), NIB_OK);
    assert_int_equal(back_len, len);
    assert_memory_equal(back, text, len);
    nib_free(ids);
    nib_free(back);
}

static inline nib_tokenizer *make_tokenizer(const small_vocab *small) {
    nib_tokenizer *tokenizer;
    nib_error err = {0};
    if (nib_tokenizer_new(&tokenizer, &small->vocab, &err) != NIB_OK) {
        fail_msg("%s", err.message);
    }
    return tokenizer;
}

/* The vocabulary is refused with this code and a message that holds these words. */
static inline void check_refused(const small_vocab *small, nib_status status, const char *words) {
    nib_tokenizer *tokenizer = (nib_tokenizer *)1;
    nib_error err = {0};
    assert_int_equal(nib_tokenizer_new(&tokenizer, &small->vocab, &err), status);
    assert_null(tokenizer);
    assert_int_equal(err.code, status);
    if (strstr(err.message, words) == NULL) {
        fail_msg("'%s' does not say '%s'", err.message, words);
    }
}

#endif
