/* Ids equal to those of `tokenizers` and `sentencepiece`: on small vocabularies for every pre-tokenizer, and for the files
 * of ids named on the command line on vocabularies of GGUF files, which may be missing: exit code 77. */
#include <inttypes.h>

#include "golden_tokens.h"
#include "text/tokenizer_parts.h"
#include "vocab_from_gguf.h"

static uint64_t hash_ids(const nib_ids *ids) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < ids->n; i++) {
        for (int shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ ((uint32_t)ids->ids[i] >> shift & 0xff)) * 0x100000001b3u;
        }
    }
    return hash;
}

/* Whether text gets the number of ids and the hash that line begins with; says so if not. */
static bool check_text(const nib_tokenizer *tokenizer, const char *text, size_t len, uint32_t flags, const char *line,
                       const char *name) {
    nib_encoding encoding;
    nib_status status = nib_encoding_run(&encoding, tokenizer, text, len, flags, NULL);
    char got[64];
    (void)snprintf(got, sizeof got, "%zu %016" PRIx64, encoding.ids.n, hash_ids(&encoding.ids));
    bool same = status == NIB_OK && strncmp(got, line, strlen(got)) == 0;
    if (!same) {
        printf("%s, text of %zu bytes '%.60s': %.200s expected, got %s:", name, len, text, line, got);
        for (size_t i = 0; i < encoding.ids.n && i < 30; i++) {
            printf(" %d", (int)encoding.ids.ids[i]);
        }
        printf("\n");
    }
    nib_encoding_clear(&encoding);
    return same;
}

/* The number of texts that differ. */
static int check_texts(const nib_tokenizer *tokenizer, const golden_lines *want, uint32_t flags, const char *name) {
    golden_texts texts = golden_read_texts();
    nib_buffer text = golden_long_text(&texts, strtoul(want->lines[2], NULL, 10));
    const char *rest = strchr(want->lines[2], ' ') + 1;
    int n_wrong = !check_text(tokenizer, text.bytes, text.len, flags, rest, name);
    for (size_t i = 0; i < texts.n; i++) {
        n_wrong += !check_text(tokenizer, texts.texts[i], texts.lens[i], flags, want->lines[3 + i], name);
    }
    printf("%s: %zu texts, %d differ\n", name, texts.n + 1, n_wrong);
    nib_buffer_free(&text);
    nib_free(texts.lens);
    golden_free(&texts.lines);
    return n_wrong;
}

static int check_vocab(const nib_vocab *vocab, const golden_lines *want, uint32_t flags, const char *name) {
    nib_tokenizer *tokenizer;
    nib_error err;
    if (nib_tokenizer_new(&tokenizer, vocab, &err) != NIB_OK) {
        printf("%s: %s\n", name, err.message);
        return 1;
    }
    int n_wrong = check_texts(tokenizer, want, flags, name);
    nib_tokenizer_free(tokenizer);
    return n_wrong;
}

/* Exit code: 0, 1 wrong, 77 the vocabulary is missing. */
static int check_file(const char *name) {
    golden_lines want = golden_read(name);
    char vocab_name[256] = "";
    char pre[64] = "";
    unsigned flags = 0;
    int code = 1;
    if (sscanf(want.lines[1], "%255s %63s %u", vocab_name, pre, &flags) != 3) {
        printf("%s: line 2 is '%s'\n", name, want.lines[1]);
    } else if (strncmp(vocab_name, "tiny-", 5) == 0) {
        golden_vocab vocab;
        golden_read_vocab(&vocab, vocab_name, pre);
        code = check_vocab(&vocab.vocab, &want, flags, name) != 0;
        golden_free_vocab(&vocab);
    } else {
        vocab_file vocab;
        if (vocab_open(&vocab, cache_path(vocab_name))) {
            code = check_vocab(&vocab.vocab, &want, flags, name) != 0;
        } else {
            printf("%s: skipped, %s is not in the cache (script/fetch-models)\n", name, vocab_name);
            code = 77;
        }
        vocab_close(&vocab);
    }
    golden_free(&want);
    return code;
}

int main(int argc, char **argv) {
    static const char *const tiny[] = {"gpt-2",        "smollm",         "llama-bpe",   "qwen2",     "tekken",
                                       "deepseek-llm", "deepseek-coder", "deepseek-v3", "spm-plain", "spm-prefix"};
    if (argc == 2) {
        return check_file(argv[1]);
    }
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "ids-tiny-%s.txt", tiny[i]);
        n_wrong += check_file(name);
    }
    return n_wrong > 0;
}
