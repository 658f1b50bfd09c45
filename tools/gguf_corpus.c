/* Writes the seeds of the GGUF fuzz target: small right files and a few that are wrong in one field.
 *
 *     gguf_corpus DIRECTORY */
#include <stdio.h>
#include <stdlib.h>

#include "format/gguf_meta.h"
#include "gguf_writer.h"
#include "kernel/dtype.h"

static const char *directory;

static void save(const char *name, unsigned char *data, size_t len) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    nib_test_gguf_save(path, data, len);
    free(data);
}

static void save_samples(void) {
    size_t len;
    unsigned char *data = nib_test_gguf_sample(&len, 2);
    save("all-types-v2", data, len);
    data = nib_test_gguf_sample(&len, 3);
    save("all-types-v3", data, len);
    data = nib_test_gguf_finish(&len, nib_test_gguf_new(3));
    save("nothing", data, len);
}

static void save_vocabulary(void) {
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "a", "b", "ab"};
    static const float scores[] = {0, 0, 0, -1, -2, -3};
    static const int32_t types[] = {2, 3, 3, 1, 1, 1};
    size_t len;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_string(w, "tokenizer.ggml.model", "llama");
    nib_test_gguf_strings(w, "tokenizer.ggml.tokens", 6, tokens);
    nib_test_gguf_array(w, "tokenizer.ggml.scores", NIB_GGUF_F32, 6, scores, sizeof scores[0]);
    nib_test_gguf_array(w, "tokenizer.ggml.token_type", NIB_GGUF_I32, 6, types, sizeof types[0]);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    save("vocabulary", data, len);
}

/* One tensor of each block size, with 1 to 4 dimensions. */
static void save_tensors(void) {
    size_t len;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_alignment(w, 8);
    nib_test_gguf_tensor(w, "f32", NIB_F32, 1, (const uint64_t[]){3}, NULL, 3 * 4);
    nib_test_gguf_tensor(w, "f16", NIB_F16, 2, (const uint64_t[]){3, 2}, NULL, 6 * 2);
    nib_test_gguf_tensor(w, "q4_1", NIB_Q4_1, 3, (const uint64_t[]){32, 2, 1}, NULL, 2 * 20);
    nib_test_gguf_tensor(w, "q6_k", NIB_Q6_K, 4, (const uint64_t[]){256, 1, 1, 1}, NULL, 210);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    save("tensors", data, len);
}

static void save_part(void) {
    size_t len;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_scalar(w, "split.no", NIB_GGUF_U16, &(uint16_t){0}, 2);
    nib_test_gguf_scalar(w, "split.count", NIB_GGUF_U16, &(uint16_t){2}, 2);
    nib_test_gguf_scalar(w, "split.tensors.count", NIB_GGUF_I32, &(int32_t){0}, 4);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    save("part-of-two", data, len);
}

/* The sample with one field spoilt; at counts from the end of name, or of the file's beginning when that is NULL. */
static void save_spoilt(const char *file, const char *name, size_t at, uint64_t value, size_t n) {
    size_t len;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    size_t base = name == NULL ? 0 : nib_test_gguf_find(data, len, name);
    nib_test_gguf_put(data, base + at, value, n);
    save(file, data, len);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        (void)fprintf(stderr, "usage: gguf_corpus DIRECTORY\n");
        return 2;
    }
    directory = argv[1];
    save_samples();
    save_vocabulary();
    save_tensors();
    save_part();
    save_spoilt("version-1", NULL, 4, 1, 4);
    save_spoilt("foreign-order", NULL, 4, 0x03000000, 4);
    save_spoilt("tensor-count", NULL, 8, UINT64_C(1) << 63, 8);
    save_spoilt("array-in-array", "test.array.u8", 4, NIB_GGUF_ARRAY, 4);
    save_spoilt("alignment-0", "general.alignment", 4, 0, 4);
    save_spoilt("dims-overflow", "token_embd.weight", 12, (UINT64_C(1) << 42) + 1, 8);
    save_spoilt("offset-beyond", "token_embd.weight", 24, UINT64_C(1) << 40, 8);
    return 0;
}
