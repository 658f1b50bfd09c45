/* Builds GGUF files in memory for tests. */
#include "gguf_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf_meta.h"
#include "kernel/dtype.h"

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

static void add_sample_scalars(nib_test_gguf *w) {
    nib_test_gguf_string(w, "general.architecture", "llama");
    nib_test_gguf_scalar(w, "test.u8", NIB_GGUF_U8, &(uint8_t){UINT8_MAX}, 1);
    nib_test_gguf_scalar(w, "test.i8", NIB_GGUF_I8, &(int8_t){INT8_MIN}, 1);
    nib_test_gguf_scalar(w, "test.u16", NIB_GGUF_U16, &(uint16_t){UINT16_MAX}, 2);
    nib_test_gguf_scalar(w, "test.i16", NIB_GGUF_I16, &(int16_t){INT16_MIN}, 2);
    nib_test_gguf_u32(w, "test.u32", UINT32_MAX);
    nib_test_gguf_scalar(w, "test.i32", NIB_GGUF_I32, &(int32_t){INT32_MIN}, 4);
    nib_test_gguf_scalar(w, "test.u64", NIB_GGUF_U64, &(uint64_t){UINT64_MAX}, 8);
    nib_test_gguf_scalar(w, "test.i64", NIB_GGUF_I64, &(int64_t){INT64_MIN}, 8);
    nib_test_gguf_f32(w, "test.f32", 1.5f);
    nib_test_gguf_scalar(w, "test.f64", NIB_GGUF_F64, &(double){-0.1}, 8);
    nib_test_gguf_bool(w, "test.bool", true);
    nib_test_gguf_string(w, "test.string", "text");
}

static void add_sample_arrays(nib_test_gguf *w) {
    nib_test_gguf_array(w, "test.array.u8", NIB_GGUF_U8, 3, (const uint8_t[]){1, 2, UINT8_MAX}, 1);
    nib_test_gguf_array(w, "test.array.i8", NIB_GGUF_I8, 2, (const int8_t[]){-1, 2}, 1);
    nib_test_gguf_array(w, "test.array.u16", NIB_GGUF_U16, 2, (const uint16_t[]){1, UINT16_MAX}, 2);
    nib_test_gguf_array(w, "test.array.i16", NIB_GGUF_I16, 2, (const int16_t[]){-1, 2}, 2);
    nib_test_gguf_array(w, "test.array.u32", NIB_GGUF_U32, 2, (const uint32_t[]){1, UINT32_MAX}, 4);
    nib_test_gguf_array(w, "test.array.i32", NIB_GGUF_I32, 2, (const int32_t[]){-1, 2}, 4);
    nib_test_gguf_array(w, "test.array.u64", NIB_GGUF_U64, 2, (const uint64_t[]){1, UINT64_MAX}, 8);
    nib_test_gguf_array(w, "test.array.i64", NIB_GGUF_I64, 2, (const int64_t[]){-1, 2}, 8);
    nib_test_gguf_array(w, "test.array.f32", NIB_GGUF_F32, 2, (const float[]){0.5f, -2.0f}, 4);
    nib_test_gguf_array(w, "test.array.f64", NIB_GGUF_F64, 2, (const double[]){0.1, -2.0}, 8);
    nib_test_gguf_array(w, "test.array.bool", NIB_GGUF_BOOL, 2, (const uint8_t[]){0, 1}, 1);
    nib_test_gguf_strings_len(w, "test.array.string", 3, (const char *const[]){"one", "", "a\0b"},
                              (const size_t[]){3, 0, 3});
    nib_test_gguf_array(w, "test.array.empty", NIB_GGUF_U32, 0, NULL, 4);
}

unsigned char *nib_test_gguf_sample(size_t *len, uint32_t version) {
    static const float values[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    nib_test_gguf *w = nib_test_gguf_new(version);
    add_sample_scalars(w);
    add_sample_arrays(w);
    nib_test_gguf_alignment(w, 64);
    nib_test_gguf_tensor(w, "blk.0.attn_q.weight", NIB_F32, 2, (const uint64_t[]){4, 3}, values, sizeof values);
    nib_test_gguf_tensor(w, "token_embd.weight", NIB_Q8_0, 2, (const uint64_t[]){64, 5}, NULL, 2 * 5 * 34);
    nib_test_gguf_tensor(w, "output_norm.weight", NIB_F32, 1, (const uint64_t[]){8}, values, 8 * sizeof(float));
    return nib_test_gguf_finish(len, w);
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
