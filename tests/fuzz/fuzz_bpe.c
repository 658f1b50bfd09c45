/* Byte-level BPE: any merges, special tokens and text. A byte of options, then a vocabulary, then the text. Where the
 * vocabulary holds all bytes, decode is the inverse of encode, but for texts that are normalised first; compiled and interpreted patterns give the same ids. */
#include "text/nfc.h"
#include "token_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { MAX_MERGES = 64, MAX_TOKEN_LEN = 64 };

static const char *const pres[] = {"gpt-2",  "llama-bpe",    "smollm",         "qwen2",
                                   "tekken", "deepseek-llm", "deepseek-coder", "deepseek-v3"};

/* Tokens and merges made of tokens before them. */
static void make_vocab(small_vocab *small, char *room, fuzz_input *in) {
    small_add_bytes(small);
    for (unsigned n = fuzz_byte(in) % MAX_MERGES; n > 0; n--) {
        size_t left = (fuzz_byte(in) | (fuzz_byte(in) & 1) << 8) % small->vocab.n_tokens;
        size_t right = (fuzz_byte(in) | (fuzz_byte(in) & 1) << 8) % small->vocab.n_tokens;
        const nib_vocab_text *a = &small->tokens[left];
        const nib_vocab_text *b = &small->tokens[right];
        if (a->len + b->len > MAX_TOKEN_LEN) {
            continue;
        }
        memcpy(room, a->bytes, a->len);
        room[a->len] = ' ';
        memcpy(room + a->len + 1, b->bytes, b->len);
        small->merges[small->vocab.n_merges++] = (nib_vocab_text){room, a->len + 1 + b->len};
        room += a->len + 1 + b->len;
        memcpy(room, a->bytes, a->len);
        memcpy(room + a->len, b->bytes, b->len);
        fuzz_add(small, (nib_vocab_text){room, a->len + b->len}, NIB_TOKEN_NORMAL, 0);
        room += a->len + b->len;
    }
    fuzz_add_specials(small, in);
}

static void check_interpreted(nib_tokenizer *tokenizer, const char *text, size_t len) {
    nib_encoding compiled, interpreted;
    (void)nib_encoding_run(&compiled, tokenizer, text, len, NIB_TOKENIZE_SPECIAL, NULL);
    nib_pretokenizer_interpret(tokenizer->bpe.pretokenizer);
    (void)nib_encoding_run(&interpreted, tokenizer, text, len, NIB_TOKENIZE_SPECIAL, NULL);
    size_t n = compiled.ids.n;
    if (n != interpreted.ids.n || (n > 0 && memcmp(compiled.ids.ids, interpreted.ids.ids, n * sizeof(int32_t)) != 0)) {
        fuzz_die("interpreted patterns cut otherwise");
    }
    nib_encoding_clear(&compiled);
    nib_encoding_clear(&interpreted);
}

/* A normal form is its own normal form. */
static void check_normal_form(const char *text, size_t len) {
    size_t once_len, twice_len;
    char *once = nib_nfc(&once_len, text, len);
    char *twice = nib_nfc(&twice_len, once, once_len);
    if (once_len != twice_len || memcmp(once, twice, once_len) != 0) {
        fuzz_die("a normal form is not normal");
    }
    nib_free(once);
    nib_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static small_vocab small;
    static char room[MAX_MERGES * 2 * (MAX_TOKEN_LEN + 1)];
    fuzz_input in = {data, len};
    unsigned options = fuzz_byte(&in);
    bool wild = (options & 8) != 0;
    small_begin(&small, NIB_VOCAB_BPE);
    small.vocab.pre = pres[options & 7];
    if (wild) {
        fuzz_wild_vocab(&small, &in);
    } else {
        make_vocab(&small, room, &in);
    }
    small.vocab.add_bos = (options & 16) != 0;
    small.vocab.add_eos = (options & 32) != 0;
    nib_tokenizer *tokenizer = fuzz_make(&small);
    if (tokenizer == NULL) {
        return wild ? 0 : (fuzz_die("a right vocabulary is refused"), 0);
    }
    const char *text = (const char *)in.data;
    bool nfc = nib_pretokenizer_get_kind(tokenizer->bpe.pretokenizer)->nfc && nib_nfc_needed(text, in.len);
    fuzz_check_text(tokenizer, text, in.len, 0, !wild && !nfc);
    fuzz_check_text(tokenizer, text, in.len, NIB_TOKENIZE_SPECIAL, !wild && !nfc);
    check_normal_form(text, in.len);
    fuzz_check_text(tokenizer, text, in.len, ALL_FLAGS, false);
    check_interpreted(tokenizer, text, in.len);
    nib_tokenizer_free(tokenizer);
    return 0;
}
