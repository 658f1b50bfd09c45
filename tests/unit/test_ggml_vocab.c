/* Ids equal to those that llama.cpp's test data lists: models/ggml-vocab-NAME.gguf with .inp and .out, from the sources
 * of llama-cpp-python. Exit code 77 when there are none. */
#include "golden_tokens.h"
#include "text/tokenizer_parts.h"
#include "vocab_from_gguf.h"

static const char separator[] = "\n__ggml_vocab_test__\n";

/* A whole file, terminated; NULL: none. */
static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    nib_buffer out = {0};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) {
        (void)nib_buffer_add(&out, part, n);
    }
    (void)fclose(file);
    (void)nib_buffer_add(&out, "", 1);
    return out.bytes;
}

/* Whether text gets the ids that line lists. */
static bool check_line(const nib_tokenizer *tokenizer, const char *text, size_t len, const char *line) {
    nib_encoding encoding;
    bool same = nib_encoding_run(&encoding, tokenizer, text, len, 0, NULL) == NIB_OK;
    char *rest = (char *)line;
    size_t line_len = strcspn(line, "\n");
    for (size_t i = 0; i < encoding.ids.n && same; i++) {
        same = strtol(rest, &rest, 10) == encoding.ids.ids[i];
    }
    same = same && rest <= line + line_len && strspn(rest, " ") == (size_t)(line + line_len - rest);
    if (!same) {
        printf("'%.*s' should be%.*s\n", (int)len, text, (int)line_len, line);
    }
    nib_encoding_clear(&encoding);
    return same;
}

/* The number of texts that differ; *n_texts grows. */
static int check_texts(int *n_texts, const nib_tokenizer *tokenizer, const char *in, const char *out) {
    int n_wrong = 0;
    for (const char *end; *in != '\0' && *out != '\0'; in = end) {
        const char *next = strstr(in, separator);
        size_t len = next == NULL ? strlen(in) : (size_t)(next - in);
        n_wrong += !check_line(tokenizer, in, len, out);
        ++*n_texts;
        end = next == NULL ? in + len : next + strlen(separator);
        out += strcspn(out, "\n");
        out += *out == '\n';
    }
    return n_wrong;
}

static int check_vocab(int *n_texts, const char *name) {
    char path[256];
    (void)snprintf(path, sizeof path, "llama-cpp/models/ggml-vocab-%s.gguf.inp", name);
    char *in = read_file(cache_path(path));
    (void)snprintf(path, sizeof path, "llama-cpp/models/ggml-vocab-%s.gguf.out", name);
    char *out = read_file(cache_path(path));
    (void)snprintf(path, sizeof path, "llama-cpp/models/ggml-vocab-%s.gguf", name);
    vocab_file vocab = {0};
    int n_wrong = 0;
    if (in != NULL && out != NULL && vocab_open(&vocab, cache_path(path))) {
        nib_tokenizer *tokenizer = NULL;
        nib_error err = {0};
        if (nib_tokenizer_new(&tokenizer, &vocab.vocab, &err) == NIB_OK) {
            n_wrong = check_texts(n_texts, tokenizer, in, out);
        } else {
            n_wrong = 1;
        }
        printf("%s: %d differ %s\n", name, n_wrong, err.message);
        nib_tokenizer_free(tokenizer);
    } else {
        printf("%s: skipped, %s is not in the cache (script/fetch-models)\n", name, path);
    }
    vocab_close(&vocab);
    nib_free(in);
    nib_free(out);
    return n_wrong;
}

int main(void) {
    static const char *const names[] = {"gpt-2",  "llama-bpe", "qwen2",     "deepseek-llm", "deepseek-coder",
                                        "refact", "starcoder", "llama-spm", "phi-3"};
    int n_wrong = 0;
    int n_texts = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        n_wrong += check_vocab(&n_texts, names[i]);
    }
    printf("%d texts, %d differ\n", n_texts, n_wrong);
    return n_texts == 0 ? 77 : n_wrong > 0;
}
