/* Builds GGUF files in memory for tests. */
#include "gguf_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf_meta.h"

typedef struct bytes {
    unsigned char *at; /* [cap], len used */
    size_t len, cap;
} bytes;

struct nib_test_gguf {
    uint32_t version, alignment;
    uint64_t n_entries, n_tensors;
    bytes entries, tensors, data;
};

static void die(const char *what) {
    (void)fprintf(stderr, "gguf_writer: %s\n", what);
    abort();
}

/* Appends n bytes; zeros when from is NULL. */
static void add(bytes *to, const void *from, size_t n) {
    if (to->len + n > to->cap) {
        to->cap = (to->len + n) * 2;
        to->at = realloc(to->at, to->cap);
        if (to->at == NULL) {
            die("out of memory");
        }
    }
    if (from != NULL && n > 0) {
        memcpy(to->at + to->len, from, n);
    } else if (n > 0) {
        memset(to->at + to->len, 0, n);
    }
    to->len += n;
}

static void add_number(bytes *to, uint64_t value, size_t n) {
    unsigned char little[8];
    nib_test_gguf_put(little, 0, value, n);
    add(to, little, n);
}

static void add_string(bytes *to, const char *text, size_t len) {
    add_number(to, len, 8);
    add(to, text, len);
}

static void pad(bytes *to, size_t alignment) {
    add(to, NULL, (alignment - to->len % alignment) % alignment);
}

nib_test_gguf *nib_test_gguf_new(uint32_t version) {
    nib_test_gguf *w = calloc(1, sizeof *w);
    if (w == NULL) {
        die("out of memory");
    }
    w->version = version;
    w->alignment = 32;
    return w;
}

static void begin_entry(nib_test_gguf *w, const char *key, uint32_t type) {
    w->n_entries++;
    add_string(&w->entries, key, strlen(key));
    add_number(&w->entries, type, 4);
}

void nib_test_gguf_scalar(nib_test_gguf *w, const char *key, uint32_t type, const void *value, size_t size_bytes) {
    begin_entry(w, key, type);
    add(&w->entries, value, size_bytes);
}

void nib_test_gguf_u32(nib_test_gguf *w, const char *key, uint32_t value) {
    nib_test_gguf_scalar(w, key, NIB_GGUF_U32, &value, sizeof value);
}

void nib_test_gguf_f32(nib_test_gguf *w, const char *key, float value) {
    nib_test_gguf_scalar(w, key, NIB_GGUF_F32, &value, sizeof value);
}

void nib_test_gguf_bool(nib_test_gguf *w, const char *key, bool value) {
    unsigned char byte = value;
    nib_test_gguf_scalar(w, key, NIB_GGUF_BOOL, &byte, 1);
}

void nib_test_gguf_string(nib_test_gguf *w, const char *key, const char *text) {
    nib_test_gguf_string_len(w, key, text, strlen(text));
}

void nib_test_gguf_string_len(nib_test_gguf *w, const char *key, const char *text, size_t len) {
    begin_entry(w, key, NIB_GGUF_STRING);
    add_string(&w->entries, text, len);
}

static void begin_array(nib_test_gguf *w, const char *key, uint32_t type, size_t n) {
    begin_entry(w, key, NIB_GGUF_ARRAY);
    add_number(&w->entries, type, 4);
    add_number(&w->entries, n, 8);
}

void nib_test_gguf_array(nib_test_gguf *w, const char *key, uint32_t type, size_t n, const void *values,
                         size_t size_bytes) {
    begin_array(w, key, type, n);
    add(&w->entries, values, n * size_bytes);
}

void nib_test_gguf_strings(nib_test_gguf *w, const char *key, size_t n, const char *const *texts) {
    begin_array(w, key, NIB_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) {
        add_string(&w->entries, texts[i], strlen(texts[i]));
    }
}

void nib_test_gguf_strings_len(nib_test_gguf *w, const char *key, size_t n, const char *const *texts,
                               const size_t *lens) {
    begin_array(w, key, NIB_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) {
        add_string(&w->entries, texts[i], lens[i]);
    }
}

void nib_test_gguf_alignment(nib_test_gguf *w, uint32_t alignment) {
    w->alignment = alignment;
    nib_test_gguf_u32(w, "general.alignment", alignment);
}

void nib_test_gguf_tensor(nib_test_gguf *w, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *dims,
                          const void *data, size_t size_bytes) {
    pad(&w->data, w->alignment);
    w->n_tensors++;
    add_string(&w->tensors, name, strlen(name));
    add_number(&w->tensors, n_dims, 4);
    for (uint32_t d = 0; d < n_dims; d++) {
        add_number(&w->tensors, dims[d], 8);
    }
    add_number(&w->tensors, type, 4);
    add_number(&w->tensors, w->data.len, 8);
    add(&w->data, data, size_bytes);
}

unsigned char *nib_test_gguf_finish(size_t *len, nib_test_gguf *w) {
    bytes file = {0};
    add(&file, "GGUF", 4);
    add_number(&file, w->version, 4);
    add_number(&file, w->n_tensors, 8);
    add_number(&file, w->n_entries, 8);
    add(&file, w->entries.at, w->entries.len);
    add(&file, w->tensors.at, w->tensors.len);
    if (w->n_tensors > 0) {
        pad(&file, w->alignment);
        add(&file, w->data.at, w->data.len);
    }
    free(w->entries.at);
    free(w->tensors.at);
    free(w->data.at);
    free(w);
    unsigned char *exact = realloc(file.at, file.len);
    if (exact == NULL) {
        die("out of memory");
    }
    *len = file.len;
    return exact;
}

void nib_test_gguf_save(const char *path, const unsigned char *from, size_t len) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(from, 1, len, file) != len || fclose(file) != 0) {
        die(path);
    }
}

size_t nib_test_gguf_find(const unsigned char *from, size_t len, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 8; i + n <= len; i++) {
        if (memcmp(from + i, name, n) == 0 && nib_gguf_load(from + i - 8, 8) == n) {
            return i + n;
        }
    }
    die("no such name");
    return 0;
}

void nib_test_gguf_put(unsigned char *to, size_t at, uint64_t value, size_t n) {
    for (size_t i = 0; i < n; i++) {
        to[at + i] = (unsigned char)(value >> (8 * i));
    }
}
