/* What the fuzz targets of both kinds of tokenizers share: reading a vocabulary from the input and judging the result. */
#ifndef NIB_TESTS_TOKEN_FUZZ_H
#define NIB_TESTS_TOKEN_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "small_vocab.h"
#include "text/tokenizer_parts.h"

enum { MAX_SPECIALS = 8, MAX_SPECIAL_LEN = 15, ALL_FLAGS = NIB_TOKENIZE_ADD_BOS | NIB_TOKENIZE_SPECIAL };

/* Input that has not been used yet. */
typedef struct fuzz_input {
    const uint8_t *data;
    size_t len;
} fuzz_input;

static inline void fuzz_die(const char *what) {
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

/* The next byte; 0 at the end. */
static inline unsigned fuzz_byte(fuzz_input *in) {
    if (in->len == 0) {
        return 0;
    }
    in->len--;
    return *in->data++;
}

/* The next text of a byte's length, at most max. */
static inline nib_vocab_text fuzz_text(fuzz_input *in, size_t max) {
    size_t len = fuzz_byte(in) % (max + 1);
    len = len < in->len ? len : in->len;
    nib_vocab_text text = {(const char *)in->data, len};
    in->data += len;
    in->len -= len;
    return text;
}

static inline void fuzz_add(small_vocab *small, nib_vocab_text text, int32_t type, float score) {
    int32_t id = small_add(small, "", type, score);
    small->tokens[id] = text;
}

/* A few tokens that are matched in the text. */
static inline void fuzz_add_specials(small_vocab *small, fuzz_input *in) {
    static const int32_t types[] = {NIB_TOKEN_CONTROL, NIB_TOKEN_USER_DEFINED, NIB_TOKEN_UNKNOWN, NIB_TOKEN_UNUSED};
    for (unsigned n = fuzz_byte(in) % MAX_SPECIALS; n > 0; n--) {
        int32_t type = types[fuzz_byte(in) % 4];
        fuzz_add(small, fuzz_text(in, MAX_SPECIAL_LEN), type, 0);
    }
}

/* A vocabulary of whatever the input says, right or wrong. */
static inline void fuzz_wild_vocab(small_vocab *small, fuzz_input *in) {
    for (unsigned n = fuzz_byte(in); n > 0; n--) {
        int32_t type = (int32_t)(fuzz_byte(in) % 9) - 1;
        float score = (float)(int)(fuzz_byte(in) - 128) / 16;
        fuzz_add(small, fuzz_text(in, MAX_SPECIAL_LEN), type, score);
    }
    for (unsigned n = fuzz_byte(in) % 64; n > 0; n--) {
        small->merges[small->vocab.n_merges++] = fuzz_text(in, 20);
    }
    small->vocab.bos = (int32_t)(fuzz_byte(in) % 64) - 2;
    small->vocab.eos = (int32_t)(fuzz_byte(in) % 64) - 2;
    small->vocab.unk = (int32_t)(fuzz_byte(in) % 64) - 2;
}

static inline void fuzz_check_deltas(const nib_tokenizer *tokenizer, const int32_t *ids, size_t n, const char *text,
                                     size_t len) {
    nib_decoder *decoder;
    nib_buffer out = {0};
    bool valid = true;
    if (nib_decoder_new(&decoder, tokenizer, NIB_DETOKENIZE_SPECIAL, NULL) != NIB_OK) {
        fuzz_die("no decoder");
    }
    for (size_t i = 0; i <= n; i++) {
        const char *delta;
        size_t delta_len;
        if (i == n) {
            delta = nib_decoder_finish(&delta_len, decoder);
        } else if (nib_decoder_push(&delta, &delta_len, decoder, ids[i], NULL) != NIB_OK) {
            fuzz_die("an id of encode is refused");
        }
        for (size_t at = 0, width; at < delta_len; at += width) {
            width = nib_utf8_len(delta + at, delta_len - at);
            if (width == 0) {
                fuzz_die("half a character came out");
            }
        }
        (void)nib_buffer_add(&out, delta, delta_len);
    }
    for (size_t at = 0, width; at < len && valid; at += width) {
        width = nib_utf8_len(text + at, len - at);
        valid = width > 0;
    }
    if (valid && (out.len != len || (len > 0 && memcmp(out.bytes, text, len) != 0))) {
        fuzz_die("the deltas are not the text");
    }
    nib_buffer_free(&out);
    nib_decoder_free(decoder);
}

/* Encodes text with these flags; the ids must be in range, the work linear, and, if it is a round trip, decoding must
 * give the text. */
static inline void fuzz_check_text(const nib_tokenizer *tokenizer, const char *text, size_t len, uint32_t flags,
                                   bool round_trip) {
    nib_encoding encoding;
    if (nib_encoding_run(&encoding, tokenizer, text, len, flags, NULL) != NIB_OK) {
        fuzz_die("a text is refused");
    }
    const nib_ids *ids = &encoding.ids;
    for (size_t i = 0; i < ids->n; i++) {
        /* A vocabulary may call its unknown token a control token; text without a token of its own still becomes it. */
        bool unknown = tokenizer->kind == NIB_VOCAB_SPM && ids->ids[i] == tokenizer->spm.unknown;
        bool control = nib_tokenizer_is_control(tokenizer, ids->ids[i]) && !unknown && !(flags & NIB_TOKENIZE_ADD_BOS);
        if (ids->ids[i] < 0 || ids->ids[i] >= nib_tokenizer_size(tokenizer)) {
            fuzz_die("an id is out of range");
        }
        if (control && !(flags & NIB_TOKENIZE_SPECIAL)) {
            fuzz_die("a control token came unasked");
        }
    }
    if (encoding.steps > (len + 1) * 2 * (MAX_SPECIAL_LEN + 2) || encoding.merger.steps > (len + 16) * 100) {
        fuzz_die("too much work");
    }
    char *back;
    size_t back_len;
    if (nib_tokenizer_decode(&back, &back_len, tokenizer, ids->ids, ids->n, NIB_DETOKENIZE_SPECIAL, NULL) != NIB_OK) {
        fuzz_die("ids of encode are refused");
    }
    if (round_trip && (back_len != len || (len > 0 && memcmp(back, text, len) != 0))) {
        fuzz_die("decode is not the inverse of encode");
    }
    fuzz_check_deltas(tokenizer, ids->ids, ids->n, back, back_len);
    nib_free(back);
    nib_encoding_clear(&encoding);
}

/* Makes the tokenizer; NULL: refused, with a code and a message as promised. */
static inline nib_tokenizer *fuzz_make(const small_vocab *small) {
    nib_tokenizer *tokenizer;
    nib_error err = {.code = NIB_OK, .message = ""};
    nib_status status = nib_tokenizer_new(&tokenizer, &small->vocab, &err);
    if (status == NIB_OK) {
        return tokenizer;
    }
    if (tokenizer != NULL || status != NIB_EFORMAT || err.code != status || err.message[0] == '\0') {
        fuzz_die("refused without a right message");
    }
    return NULL;
}

#endif
