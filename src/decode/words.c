/* Texts of the options as tokens. */
#include "decode/words.h"

#include <math.h> /* INFINITY */
#include <string.h>

#include "base/memory.h"

enum { MOST_TAIL = 20 }; /* tokens of a breaker's tail, as in llama.cpp */

void nib_words_free(nib_words *words) {
    for (size_t i = 0; i < words->n_ids; i++) {
        nib_free(words->ids[i]);
    }
    nib_free(words->bad);
    nib_free(words->breakers);
    nib_free(words->ids);
    *words = (nib_words){0};
}

/* Tokens of a text, owned by words. */
static nib_status encode(const int32_t **ids, size_t *n, nib_words *words, const nib_tokenizer *tokenizer,
                         const char *text, size_t len, nib_error *err) {
    if (!nib_reserve(&words->ids, &words->cap_ids, words->n_ids + 1, sizeof(int32_t *))) {
        return nib_fail_memory(err, sizeof(int32_t *), "the words of the options");
    }
    int32_t *own;
    nib_status status = nib_tokenizer_encode(&own, n, tokenizer, text, len, 0, err);
    if (status == NIB_OK) {
        words->ids[words->n_ids++] = own;
        *ids = own;
    }
    return status;
}

/* ---- bad words ---- */

static bool is_end(const int32_t *ends, size_t n_ends, const nib_bias *word) {
    for (size_t i = 0; i < n_ends; i++) {
        if (word->n == 1 && word->ids[0] == ends[i]) {
            return true;
        }
    }
    return false;
}

static bool is_known(const nib_words *words, const nib_bias *word) {
    for (size_t i = 0; i < words->n_bad; i++) {
        if (words->bad[i].n == word->n && memcmp(words->bad[i].ids, word->ids, word->n * sizeof word->ids[0]) == 0) {
            return true;
        }
    }
    return false;
}

static nib_status add_bad(nib_words *words, const nib_tokenizer *tokenizer, const char *text, size_t len,
                          const int32_t *ends, size_t n_ends, nib_error *err) {
    nib_bias word = {.bias = -INFINITY};
    nib_status status = encode(&word.ids, &word.n, words, tokenizer, text, len, err);
    if (status != NIB_OK || word.n == 0 || is_end(ends, n_ends, &word) || is_known(words, &word)) {
        return status;
    }
    if (!nib_reserve(&words->bad, &words->cap_bad, words->n_bad + 1, sizeof words->bad[0])) {
        return nib_fail_memory(err, sizeof word, "the words of the options");
    }
    words->bad[words->n_bad++] = word;
    return NIB_OK;
}

/* A text as it stands, and behind a space. */
static nib_status add_bad_text(nib_words *words, const nib_tokenizer *tokenizer, const nib_text *text,
                               const int32_t *ends, size_t n_ends, nib_error *err) {
    char *spaced = nib_alloc(text->len + 1, 1);
    if (spaced == NULL) {
        return nib_fail_memory(err, text->len + 1, "the words of the options");
    }
    spaced[0] = ' ';
    memcpy(spaced + 1, text->bytes, text->len);
    nib_status status = add_bad(words, tokenizer, text->bytes, text->len, ends, n_ends, err);
    status = status != NIB_OK ? status : add_bad(words, tokenizer, spaced, text->len + 1, ends, n_ends, err);
    nib_free(spaced);
    return status;
}

/* ---- breakers ---- */

/* A breaker's text, and the tokens of each of its ends: what must follow a token that holds only its beginning. */
typedef struct broken {
    const nib_text *text;
    const int32_t **tail; /* [text->len], that of index 0 empty */
    size_t *n_tail;       /* [text->len] */
} broken;

static bool contains(const char *piece, size_t len, const nib_text *text) {
    for (size_t i = 0; i + text->len <= len; i++) {
        if (memcmp(piece + i, text->bytes, text->len) == 0) {
            return true;
        }
    }
    return false;
}

static nib_status add_breaker(nib_words *words, nib_breaker breaker, nib_error *err) {
    if (!nib_reserve(&words->breakers, &words->cap_breakers, words->n_breakers + 1, sizeof breaker)) {
        return nib_fail_memory(err, sizeof breaker, "the breakers of DRY");
    }
    words->breakers[words->n_breakers++] = breaker;
    return NIB_OK;
}

/* The token as a head: it holds the text, or ends with a beginning of it. */
static nib_status add_head(nib_words *words, const nib_tokenizer *tokenizer, int32_t id, const broken *b,
                           nib_error *err) {
    size_t len;
    const char *piece = nib_tokenizer_piece(&len, tokenizer, id);
    if (contains(piece, len, b->text)) {
        return add_breaker(words, (nib_breaker){id, NULL, 0}, err);
    }
    nib_status status = NIB_OK;
    for (size_t n = 1; n < b->text->len && n <= len && status == NIB_OK; n++) {
        if (memcmp(piece + (len - n), b->text->bytes, n) == 0) {
            status = add_breaker(words, (nib_breaker){id, b->tail[n], b->n_tail[n]}, err);
        }
    }
    return status;
}

static void free_broken(broken *texts, size_t n) {
    for (size_t i = 0; texts != NULL && i < n; i++) {
        nib_free((void *)texts[i].tail);
        nib_free(texts[i].n_tail);
    }
    nib_free(texts);
}

static nib_status make_tails(broken *b, nib_words *words, const nib_tokenizer *tokenizer, const nib_text *text,
                             nib_error *err) {
    b->text = text;
    b->tail = nib_alloc_zero(text->len, sizeof(const int32_t *));
    b->n_tail = nib_alloc_zero(text->len, sizeof b->n_tail[0]);
    if (b->tail == NULL || b->n_tail == NULL) {
        return nib_fail_memory(err, text->len * sizeof(const int32_t *), "the breakers of DRY");
    }
    nib_status status = NIB_OK;
    for (size_t n = 1; n < text->len && status == NIB_OK; n++) {
        status = encode(&b->tail[n], &b->n_tail[n], words, tokenizer, text->bytes + n, text->len - n, err);
        b->n_tail[n] = b->n_tail[n] < MOST_TAIL ? b->n_tail[n] : MOST_TAIL;
    }
    return status;
}

static nib_status add_breakers(nib_words *words, const nib_tokenizer *tokenizer, const nib_text *texts, size_t n,
                               nib_error *err) {
    broken *b = nib_alloc_zero(n, sizeof *b);
    if (b == NULL) {
        return nib_fail_memory(err, n * sizeof *b, "the breakers of DRY");
    }
    nib_status status = NIB_OK;
    for (size_t i = 0; i < n && status == NIB_OK; i++) {
        status = make_tails(&b[i], words, tokenizer, &texts[i], err);
    }
    int64_t V = nib_tokenizer_size(tokenizer);
    for (int32_t id = 0; id < V && status == NIB_OK; id++) {
        for (size_t i = 0; i < n && status == NIB_OK; i++) {
            status = add_head(words, tokenizer, id, &b[i], err);
        }
    }
    free_broken(b, n);
    return status;
}

/* ---- both ---- */

static nib_status fail_texts(const char *name, size_t n, nib_error *err) {
    return nib_fail(err, NIB_EUNSUPPORTED, "%s: %zu texts given, expected none: the model has no tokenizer", name, n);
}

/* The breakers of the options; without any llama.cpp's own, and none for the word "none". */
static const nib_text *breaker_texts(size_t *n, const nib_generate_options *options) {
    static const nib_text usual[] = {{"\n", 1}, {":", 1}, {"\"", 1}, {"*", 1}};
    *n = options->n_dry_breaker;
    if (*n == 0) {
        *n = sizeof usual / sizeof usual[0];
        return usual;
    }
    if (*n == 1 && options->dry_breaker[0].len == 4 && memcmp(options->dry_breaker[0].bytes, "none", 4) == 0) {
        *n = 0;
    }
    return options->dry_breaker;
}

nib_status nib_words_init(nib_words *words, const nib_model *model, const nib_generate_options *options,
                          const int32_t *ends, size_t n_ends, nib_error *err) {
    const nib_tokenizer *tokenizer = model->tokenizer;
    *words = (nib_words){0};
    if (tokenizer == NULL && options->n_bad_words > 0) {
        return fail_texts("bad_words", options->n_bad_words, err);
    }
    if (tokenizer == NULL && options->n_dry_breaker > 0) {
        return fail_texts("dry_breaker", options->n_dry_breaker, err);
    }
    nib_status status = NIB_OK;
    for (size_t i = 0; i < options->n_bad_words && status == NIB_OK; i++) {
        status = add_bad_text(words, tokenizer, &options->bad_words[i], ends, n_ends, err);
    }
    size_t n;
    const nib_text *texts = breaker_texts(&n, options);
    if (status == NIB_OK && tokenizer != NULL && options->dry_multiplier != 0 && n > 0) {
        status = add_breakers(words, tokenizer, texts, n, err);
    }
    return status;
}
