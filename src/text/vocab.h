/* What a tokenizer is made of. text/ does not know where it came from. */
#ifndef NIB_TEXT_VOCAB_H
#define NIB_TEXT_VOCAB_H

#include <stdbool.h>

#include <nib/tokenizer.h>

#include "base/error.h"

typedef enum nib_vocab_kind {
    NIB_VOCAB_BPE, /* byte-level BPE by merges: GPT-2's stand-in letters for bytes */
    NIB_VOCAB_SPM  /* SentencePiece's BPE by scores, with byte fallback */
} nib_vocab_kind;

/* Types of tokens, numbered as in GGUF. */
enum {
    NIB_TOKEN_NORMAL = 1,
    NIB_TOKEN_UNKNOWN = 2,
    NIB_TOKEN_CONTROL = 3,
    NIB_TOKEN_USER_DEFINED = 4,
    NIB_TOKEN_UNUSED = 5,
    NIB_TOKEN_BYTE = 6
};

typedef struct nib_vocab_text {
    const char *bytes;
    size_t len;
} nib_vocab_text;

/* Everything is borrowed for the call of nib_tokenizer_new only. */
typedef struct nib_vocab {
    nib_vocab_kind kind;
    const char *pre; /* BPE: name of the pre-tokenizer, terminated; "" or NULL: refused */
    size_t n_tokens;
    const nib_vocab_text *tokens; /* [n_tokens] as spelled in the file */
    const int32_t *types;         /* [n_tokens], or NULL: all normal */
    const float *scores;          /* [n_tokens], SPM */
    const nib_vocab_text *merges; /* [n_merges] "left right", BPE */
    size_t n_merges;
    int32_t bos, eos, unk; /* -1: none */
    bool add_bos, add_eos;
    bool add_space_prefix; /* SPM: a space before the text */
} nib_vocab;

/* Returns NIB_OK; NIB_EUNSUPPORTED (a pre-tokenizer that is not known, by name); NIB_EFORMAT (a merge of unknown pieces, a
 * type or an id out of range, no byte tokens and no unknown token: named with index); NIB_ENOMEM. */
nib_status nib_tokenizer_new(nib_tokenizer **out, const nib_vocab *vocab, nib_error *err);

void nib_tokenizer_free(nib_tokenizer *tokenizer);

#endif
