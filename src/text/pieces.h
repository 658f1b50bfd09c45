/* The texts of all tokens, and the way back from a text to its token. */
#ifndef NIB_TEXT_PIECES_H
#define NIB_TEXT_PIECES_H

#include "text/vocab.h"

typedef struct nib_pieces {
    size_t n;
    char *bytes;          /* [offsets[n]] text after text, each followed by a NUL */
    size_t *offsets;      /* [n + 1] */
    unsigned char *types; /* [n] NIB_TOKEN_* */
    int32_t *slots;       /* [n_slots] id, or -1: texts that encoding may produce, by hash */
    size_t n_slots;       /* a power of two */
    size_t longest;       /* bytes of the longest text among the slots */
    int32_t byte_id[256]; /* the token of each byte; -1: none */
} nib_pieces;

/* Returns NIB_OK; NIB_EFORMAT (a type out of range, a byte token that is not spelled <0xNN>); NIB_ENOMEM. Control,
 * unknown and unused tokens are not found by text: no text may spell them by accident. Neither are, in a byte-level
 * vocabulary, tokens whose spelling holds letters that stand for no byte, or user-defined ones. */
nib_status nib_pieces_init(nib_pieces *pieces, const nib_vocab *vocab, nib_error *err);
void nib_pieces_clear(nib_pieces *pieces);

/* The bytes of token id, 0 <= id < n. */
const char *nib_pieces_text(size_t *len, const nib_pieces *pieces, int32_t id);

/* The token with this text; -1: none. */
int32_t nib_pieces_find(const nib_pieces *pieces, const char *text, size_t len);

/* Replaces GPT-2's stand-in letters by the bytes they stand for. out has room for len bytes and may be text itself.
 * Returns the number of bytes; (size_t)-1 when a letter stands for no byte. */
size_t nib_bytes_from_letters(char *out, const char *text, size_t len);

#endif
