/* What a tokenizer is made of, for the files of this folder, the decode loop and tests. */
#ifndef NIB_TEXT_TOKENIZER_PARTS_H
#define NIB_TEXT_TOKENIZER_PARTS_H

#include "text/bpe.h"
#include "text/special.h"
#include "text/spm.h"

struct nib_tokenizer {
    nib_vocab_kind kind;
    nib_pieces pieces;
    nib_specials specials;
    nib_bpe bpe; /* the one of these two that kind says */
    nib_spm spm;
    int32_t bos, eos; /* -1: none, or not to be added */
};

/* One call of encode. */
typedef struct nib_encoding {
    const nib_tokenizer *tokenizer;
    nib_ids ids;
    nib_merger merger;
    nib_cutter *cutter;
    size_t steps; /* bytes looked at for special tokens */
} nib_encoding;

/* encode, with the work areas left to be looked at. Returns what nib_tokenizer_encode does; clear it in any case. */
nib_status nib_encoding_run(nib_encoding *encoding, const nib_tokenizer *tokenizer, const char *text, size_t len,
                            uint32_t flags, nib_error *err);
void nib_encoding_clear(nib_encoding *encoding);

/* What decoding knows from one token to the next. */
typedef struct nib_detokenizer {
    const nib_tokenizer *tokenizer;
    uint32_t flags;
    bool strip; /* encode put a space before the next ordinary token, if it begins with one */
} nib_detokenizer;

void nib_detokenizer_begin(nib_detokenizer *detokenizer, const nib_tokenizer *tokenizer, uint32_t flags);

/* The bytes that token id, 0 <= id < V, adds to the text; borrowed from the tokenizer. */
const char *nib_detokenizer_next(size_t *len, nib_detokenizer *detokenizer, int32_t id);

#endif
