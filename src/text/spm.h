/* SentencePiece's BPE: characters, joined by the score of what they become, with bytes for unknown ones. */
#ifndef NIB_TEXT_SPM_H
#define NIB_TEXT_SPM_H

#include "text/ids.h"
#include "text/merge.h"
#include "text/pieces.h"

typedef struct nib_spm {
    const nib_pieces *pieces;
    uint32_t *ranks; /* [V] the order of the scores: the highest score has the lowest rank, equal scores equal ranks */
    int32_t unknown; /* -1: none */
    bool space_prefix;
} nib_spm;

/* pieces must outlive the result. Returns NIB_OK; NIB_EFORMAT (no scores, a score that is no number, neither byte tokens
 * nor an unknown token); NIB_ENOMEM. */
nib_status nib_spm_init(nib_spm *spm, const nib_pieces *pieces, const nib_vocab *vocab, nib_error *err);
void nib_spm_clear(nib_spm *spm);

/* Append the ids of text [len], a piece of text between special tokens. False when out of memory. */
bool nib_spm_encode(nib_ids *ids, nib_merger *merger, const nib_spm *spm, const char *text, size_t len);

#endif
