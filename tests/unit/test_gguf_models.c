/* Real files, as script/fetch-models puts them: counts and sizes as gguf-py 0.19 of the ggml project reads them. Skipped
 * (exit code 77) when a file is not there. */
#include "format/gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct model {
    const char *file, *architecture;
    uint32_t version;
    size_t n_entries, n_tensors;
    uint64_t n_params;
    size_t tensor_bytes, n_tokens;
    size_t token; /* the index of a token, and what it is */
    const char *text;
} model;

static const model models[] = {
    {"SmolLM2-135M-Instruct.Q4_1.gguf", "llama", 3, 33, 272, 134515008, 96576768, 49152, 49151, "ectable"},
    {"gemma-3-270m-q4_k_m.gguf", "gemma3", 3, 33, 236, 268098176, 246587904, 262144, 200000, "▁Piv"},
    {"llama-cpp/models/ggml-vocab-aquila.gguf", "llama", 2, 18, 0, 0, 0, 100008, 100007, "</s>"},
    {"llama-cpp/models/ggml-vocab-llama-spm.gguf", "llama", 3, 22, 0, 0, 0, 32000, 31999, "给"},
    {"llama-cpp/models/ggml-vocab-qwen2.gguf", "qwen2", 3, 20, 0, 0, 0, 151936, 151643, "<|endoftext|>"},
};

static size_t n_missing;

static void make_path(char *path, size_t cap, const char *file) {
    const char *cache = getenv("NIB_CACHE");
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (cache != NULL && cache[0] != '\0') {
        (void)snprintf(path, cap, "%s/%s", cache, file);
    } else if (xdg != NULL && xdg[0] != '\0') {
        (void)snprintf(path, cap, "%s/nib/%s", xdg, file);
    } else {
        (void)snprintf(path, cap, "%s/.cache/nib/%s", home != NULL ? home : "", file);
    }
}

static void check_tokens(const nib_gguf *gguf, const model *m) {
    int64_t entry;
    size_t n;
    nib_value value;
    assert_int_equal(nib_gguf_get_array(&entry, &n, gguf, "tokenizer.ggml.tokens", NIB_VALUE_STRING, NULL), NIB_OK);
    assert_int_equal(n, m->n_tokens);
    nib_gguf_value(&value, gguf, (size_t)entry, m->token);
    assert_int_equal(value.len, strlen(m->text));
    assert_memory_equal(value.text, m->text, value.len);
}

static void check_model(const model *m, const char *path) {
    nib_gguf *gguf;
    nib_error err;
    const char *architecture = "";
    size_t len = 0;
    if (nib_gguf_open(&gguf, path, &err) != NIB_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(nib_gguf_version(gguf), m->version);
    assert_int_equal(nib_gguf_n_entries(gguf), m->n_entries);
    assert_int_equal(nib_gguf_n_tensors(gguf), m->n_tensors);
    assert_int_equal(nib_gguf_get_string(&architecture, &len, gguf, "general.architecture", NULL), NIB_OK);
    assert_int_equal(len, strlen(m->architecture));
    assert_memory_equal(architecture, m->architecture, len);
    uint64_t n_params = 0;
    size_t tensor_bytes = 0;
    for (size_t i = 0; i < m->n_tensors; i++) {
        const nib_tensor *tensor = nib_gguf_tensor(gguf, i);
        n_params += tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
        tensor_bytes += tensor->size_bytes;
    }
    assert_true(n_params == m->n_params && tensor_bytes == m->tensor_bytes);
    check_tokens(gguf, m);
    nib_gguf_free(gguf);
}

static void real_files_read_as_gguf_py_reads_them(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char path[1024];
        make_path(path, sizeof path, models[i].file);
        if (access(path, R_OK) != 0) {
            printf("skipped: %s is not there; script/fetch-models --all gets it\n", path);
            n_missing++;
            continue;
        }
        check_model(&models[i], path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(real_files_read_as_gguf_py_reads_them)};
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return n_failed != 0 ? 1 : n_missing != 0 ? 77 : 0;
}
