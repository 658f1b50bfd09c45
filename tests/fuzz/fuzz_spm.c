/* SentencePiece's BPE: any pieces, scores, special tokens and text. A byte of options, then a vocabulary, then the text.
 * Where the vocabulary holds all bytes, decode is the inverse of encode, but for U+2581, which comes back as a space. */
#include "token_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void make_vocab(small_vocab *small, fuzz_input *in) {
    small_add_bytes(small);
    for (unsigned n = fuzz_byte(in) % 128; n > 0; n--) {
        float score = (float)(int)(fuzz_byte(in) - 128) / 16;
        fuzz_add(small, fuzz_text(in, MAX_SPECIAL_LEN), NIB_TOKEN_NORMAL, score);
    }
    fuzz_add_specials(small, in);
}

static bool holds_mark(const char *text, size_t len) {
    for (size_t i = 0; i + 3 <= len; i++) {
        if (memcmp(text + i, "\xe2\x96\x81", 3) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a user-defined token begins with a space: with the space that encode puts before a text, it may then be made of
 * one that the text does not hold. */
static bool holds_spaced_token(const small_vocab *small) {
    for (size_t id = 0; id < small->vocab.n_tokens; id++) {
        const nib_vocab_text *token = &small->tokens[id];
        bool spaced = token->len > 0 && (token->bytes[0] == ' ' || holds_mark(token->bytes, token->len));
        if (spaced && small->types[id] == NIB_TOKEN_USER_DEFINED) {
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static small_vocab small;
    fuzz_input in = {data, len};
    unsigned options = fuzz_byte(&in);
    bool wild = (options & 8) != 0;
    small_begin(&small, NIB_VOCAB_SPM);
    if (wild) {
        fuzz_wild_vocab(&small, &in);
    } else {
        make_vocab(&small, &in);
    }
    small.vocab.add_bos = (options & 16) != 0;
    small.vocab.add_eos = (options & 32) != 0;
    small.vocab.add_space_prefix = (options & 64) != 0;
    nib_tokenizer *tokenizer = fuzz_make(&small);
    if (tokenizer == NULL) {
        return wild ? 0 : (fuzz_die("a right vocabulary is refused"), 0);
    }
    const char *text = (const char *)in.data;
    bool round_trip =
        !wild && !holds_mark(text, in.len) && !(small.vocab.add_space_prefix && holds_spaced_token(&small));
    fuzz_check_text(tokenizer, text, in.len, 0, round_trip);
    fuzz_check_text(tokenizer, text, in.len, NIB_TOKENIZE_SPECIAL, round_trip);
    fuzz_check_text(tokenizer, text, in.len, ALL_FLAGS, false);
    nib_tokenizer_free(tokenizer);
    return 0;
}
