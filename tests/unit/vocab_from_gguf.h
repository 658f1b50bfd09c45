/* The vocabulary of a GGUF file as the tokenizer takes it, for tests. */
#ifndef NIB_TESTS_VOCAB_FROM_GGUF_H
#define NIB_TESTS_VOCAB_FROM_GGUF_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/gguf.h"
#include "text/vocab.h"

/* A vocabulary and what it points to. */
typedef struct vocab_file {
    nib_gguf *gguf;
    nib_vocab vocab;
    nib_vocab_text *tokens;
    nib_vocab_text *merges;
    int32_t *types;
    float *scores;
    char pre[64];
} vocab_file;

/* The path of a file in the cache of models; static storage. */
static inline const char *cache_path(const char *name) {
    static char path[4096];
    const char *cache = getenv("NIB_CACHE");
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (cache != NULL) {
        snprintf(path, sizeof path, "%s/%s", cache, name);
    } else if (xdg != NULL) {
        snprintf(path, sizeof path, "%s/nib/%s", xdg, name);
    } else {
        snprintf(path, sizeof path, "%s/.cache/nib/%s", home == NULL ? "" : home, name);
    }
    return path;
}

static inline nib_vocab_text *vocab_texts(size_t *n, const nib_gguf *gguf, const char *key) {
    int64_t entry;
    *n = 0;
    if (nib_gguf_get_array(&entry, n, gguf, key, NIB_VALUE_STRING, NULL) != NIB_OK || entry < 0) {
        return NULL;
    }
    nib_vocab_text *texts = nib_alloc(*n, sizeof *texts);
    for (size_t i = 0; i < *n; i++) {
        nib_value value;
        nib_gguf_value(&value, gguf, (size_t)entry, i);
        texts[i] = (nib_vocab_text){value.text, value.len};
    }
    return texts;
}

static inline int32_t vocab_id(const nib_gguf *gguf, const char *key) {
    uint64_t id = UINT64_MAX;
    (void)nib_gguf_get_uint(&id, gguf, key, NULL);
    return id > INT32_MAX ? -1 : (int32_t)id;
}

static inline void vocab_numbers(vocab_file *file) {
    int64_t entry;
    size_t n;
    nib_value value;
    if (nib_gguf_get_array(&entry, &n, file->gguf, "tokenizer.ggml.token_type", NIB_VALUE_INT, NULL) == NIB_OK &&
        entry >= 0) {
        file->types = nib_alloc(n, sizeof *file->types);
        for (size_t i = 0; i < n; i++) {
            nib_gguf_value(&value, file->gguf, (size_t)entry, i);
            file->types[i] = (int32_t)(value.kind == NIB_VALUE_UINT ? (int64_t)value.u : value.i);
        }
    }
    if (nib_gguf_get_array(&entry, &n, file->gguf, "tokenizer.ggml.scores", NIB_VALUE_REAL, NULL) == NIB_OK &&
        entry >= 0) {
        file->scores = nib_alloc(n, sizeof *file->scores);
        for (size_t i = 0; i < n; i++) {
            nib_gguf_value(&value, file->gguf, (size_t)entry, i);
            file->scores[i] = (float)value.r;
        }
    }
}

/* False when there is no such file. */
static inline bool vocab_open(vocab_file *file, const char *path) {
    *file = (vocab_file){0};
    nib_error err;
    if (nib_gguf_open(&file->gguf, path, &err) != NIB_OK) {
        fprintf(stderr, "%s\n", err.message);
        return false;
    }
    nib_vocab *vocab = &file->vocab;
    const char *text = "";
    size_t len = 0;
    (void)nib_gguf_get_string(&text, &len, file->gguf, "tokenizer.ggml.model", NULL);
    vocab->kind = len == 5 && memcmp(text, "llama", 5) == 0 ? NIB_VOCAB_SPM : NIB_VOCAB_BPE;
    vocab->add_space_prefix = vocab->add_bos = vocab->kind == NIB_VOCAB_SPM;
    len = 0;
    (void)nib_gguf_get_string(&text, &len, file->gguf, "tokenizer.ggml.pre", NULL);
    snprintf(file->pre, sizeof file->pre, "%.*s", (int)len, text);
    vocab->pre = file->pre;
    file->tokens = vocab_texts(&vocab->n_tokens, file->gguf, "tokenizer.ggml.tokens");
    file->merges = vocab_texts(&vocab->n_merges, file->gguf, "tokenizer.ggml.merges");
    vocab_numbers(file);
    vocab->tokens = file->tokens;
    vocab->merges = file->merges;
    vocab->types = file->types;
    vocab->scores = file->scores;
    vocab->bos = vocab_id(file->gguf, "tokenizer.ggml.bos_token_id");
    vocab->eos = vocab_id(file->gguf, "tokenizer.ggml.eos_token_id");
    vocab->unk = vocab_id(file->gguf, "tokenizer.ggml.unknown_token_id");
    (void)nib_gguf_get_bool(&vocab->add_bos, file->gguf, "tokenizer.ggml.add_bos_token", NULL);
    (void)nib_gguf_get_bool(&vocab->add_eos, file->gguf, "tokenizer.ggml.add_eos_token", NULL);
    (void)nib_gguf_get_bool(&vocab->add_space_prefix, file->gguf, "tokenizer.ggml.add_space_prefix", NULL);
    return true;
}

static inline void vocab_close(vocab_file *file) {
    nib_gguf_free(file->gguf);
    nib_free(file->tokens);
    nib_free(file->merges);
    nib_free(file->types);
    nib_free(file->scores);
    *file = (vocab_file){0};
}

#endif
