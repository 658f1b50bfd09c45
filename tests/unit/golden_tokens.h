/* Reading tests/golden/tokenizer: texts, small vocabularies and files of ids. Their form: tools/golden-tokenizer.py. */
#ifndef NIB_TESTS_GOLDEN_TOKENS_H
#define NIB_TESTS_GOLDEN_TOKENS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/vocab.h"

#define GOLDEN_TOKENS NIB_TEST_GOLDEN "/tokenizer/"

/* The lines of a file, terminated, their newlines gone. */
typedef struct golden_lines {
    char *bytes;
    char **lines; /* [n] */
    size_t n, cap;
} golden_lines;

static inline void golden_die(const char *what) {
    perror(what);
    exit(1);
}

static inline golden_lines golden_read(const char *name) {
    golden_lines out = {0};
    char path[4096];
    (void)snprintf(path, sizeof path, "%s%s", GOLDEN_TOKENS, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        golden_die(path);
    }
    nib_buffer bytes = {0};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) {
        (void)nib_buffer_add(&bytes, part, n);
    }
    (void)nib_buffer_add(&bytes, "", 1);
    (void)fclose(file);
    out.bytes = bytes.bytes;
    for (char *line = out.bytes; *line != '\0';) {
        char *end = strchr(line, '\n');
        (void)nib_reserve(&out.lines, &out.cap, out.n + 1, sizeof *out.lines);
        out.lines[out.n++] = line;
        *end = '\0';
        line = end + 1;
    }
    return out;
}

static inline void golden_free(golden_lines *lines) {
    nib_free(lines->bytes);
    nib_free(lines->lines);
}

/* Two hexadecimal digits a byte, in place. Returns the bytes. */
static inline size_t golden_unhex(char *text) {
    size_t n = 0;
    for (char *c = text; *c != '\0'; c += 2) {
        char pair[3] = {c[0], c[1], '\0'};
        text[n++] = (char)strtol(pair, NULL, 16);
    }
    return n;
}

typedef struct golden_texts {
    golden_lines lines;
    size_t *lens; /* [n] */
    char **texts; /* [n] */
    size_t n;
} golden_texts;

static inline golden_texts golden_read_texts(void) {
    golden_texts out = {.lines = golden_read("texts.txt")};
    out.n = out.lines.n - 1;
    out.texts = out.lines.lines + 1;
    out.lens = nib_alloc(out.n, sizeof *out.lens);
    for (size_t i = 0; i < out.n; i++) {
        out.lens[i] = golden_unhex(out.texts[i]);
    }
    return out;
}

/* The long text: texts picked by a counter, until there are len bytes. */
static inline nib_buffer golden_long_text(const golden_texts *texts, size_t len) {
    nib_buffer out = {0};
    for (uint64_t item = 0; out.len < len; item++) {
        size_t i = (size_t)(nib_mix64(7, item) % texts->n);
        (void)nib_buffer_add(&out, texts->texts[i], texts->lens[i]);
    }
    return out;
}

/* Appends code as UTF-8. */
static inline void golden_add_character(nib_buffer *text, unsigned long code) {
    char c[4];
    size_t width = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = width; i-- > 0; code >>= 6) {
        c[i] = (char)(i > 0 ? 0x80 | (code & 0x3f) : leads[width] | code);
    }
    (void)nib_buffer_add(text, c, width);
}

/* Each character of known.txt, in turn for the '*' of a frame. */
static inline nib_buffer golden_known_text(const char *frame) {
    nib_buffer out = {0};
    golden_lines known = golden_read("known.txt");
    for (size_t i = 1; i < known.n; i++) {
        char *rest;
        unsigned long first = strtoul(known.lines[i], &rest, 16);
        unsigned long last = strtoul(rest, NULL, 16);
        for (unsigned long code = first; code <= last; code++) {
            for (const char *c = frame; *c != '\0'; c++) {
                if (*c == '*') {
                    golden_add_character(&out, code);
                } else {
                    (void)nib_buffer_add(&out, c, 1);
                }
            }
        }
    }
    golden_free(&known);
    return out;
}

static inline uint64_t golden_hash(uint64_t hash, const void *data, size_t len) {
    const unsigned char *bytes = data;
    hash = hash == 0 ? 0xcbf29ce484222325u : hash;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

/* A small vocabulary with what it points to. */
typedef struct golden_vocab {
    nib_vocab vocab;
    golden_lines lines;
    nib_vocab_text *tokens, *merges;
    int32_t *types;
    float *scores;
} golden_vocab;

static inline void golden_read_bpe(golden_vocab *out) {
    nib_vocab *vocab = &out->vocab;
    char **lines = out->lines.lines;
    vocab->n_tokens = (size_t)atoi(lines[1] + strlen("tokens "));
    vocab->n_merges = (size_t)atoi(lines[vocab->n_tokens + 2] + strlen("merges "));
    out->tokens = nib_alloc(vocab->n_tokens, sizeof *out->tokens);
    out->types = nib_alloc(vocab->n_tokens, sizeof *out->types);
    out->merges = nib_alloc(vocab->n_merges, sizeof *out->merges);
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        const char *line = lines[2 + i];
        out->tokens[i] = (nib_vocab_text){line, strlen(line)};
        out->types[i] = strcmp(line, "<|endoftext|>") == 0 ? NIB_TOKEN_CONTROL : NIB_TOKEN_NORMAL;
    }
    for (size_t i = 0; i < vocab->n_merges; i++) {
        const char *line = lines[3 + vocab->n_tokens + i];
        out->merges[i] = (nib_vocab_text){line, strlen(line)};
    }
}

static inline void golden_read_spm(golden_vocab *out) {
    nib_vocab *vocab = &out->vocab;
    vocab->n_tokens = (size_t)atoi(out->lines.lines[1] + strlen("pieces "));
    out->tokens = nib_alloc(vocab->n_tokens, sizeof *out->tokens);
    out->types = nib_alloc(vocab->n_tokens, sizeof *out->types);
    out->scores = nib_alloc(vocab->n_tokens, sizeof *out->scores);
    for (size_t i = 0; i < vocab->n_tokens; i++) {
        char *text = out->lines.lines[2 + i];
        char *space = strchr(text, ' ');
        out->scores[i] = strtof(space + 1, &space);
        out->types[i] = atoi(space);
        *strchr(text, ' ') = '\0';
        out->tokens[i] = (nib_vocab_text){text, golden_unhex(text)};
    }
}

/* pre: a pre-tokenizer, or "plain" or "prefix" for tiny-spm.txt. */
static inline void golden_read_vocab(golden_vocab *out, const char *name, const char *pre) {
    bool spm = strcmp(name, "tiny-spm.txt") == 0;
    *out = (golden_vocab){.lines = golden_read(name)};
    if (spm) {
        golden_read_spm(out);
    } else {
        golden_read_bpe(out);
    }
    nib_vocab *vocab = &out->vocab;
    vocab->kind = spm ? NIB_VOCAB_SPM : NIB_VOCAB_BPE;
    vocab->pre = pre;
    vocab->tokens = out->tokens;
    vocab->merges = out->merges;
    vocab->types = out->types;
    vocab->scores = out->scores;
    vocab->bos = vocab->eos = -1;
    vocab->unk = spm ? 0 : -1;
    vocab->add_space_prefix = spm && strcmp(pre, "prefix") == 0;
    for (size_t i = 0; i < vocab->n_tokens && vocab->add_space_prefix; i++) {
        if (out->types[i] == NIB_TOKEN_USER_DEFINED) {
            out->types[i] = NIB_TOKEN_NORMAL;
        }
    }
}

static inline void golden_free_vocab(golden_vocab *vocab) {
    golden_free(&vocab->lines);
    nib_free(vocab->tokens);
    nib_free(vocab->merges);
    nib_free(vocab->types);
    nib_free(vocab->scores);
}

#endif
