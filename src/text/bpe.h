/* Byte-level BPE: words of bytes, joined by a list of ranked pairs. */
#ifndef NIB_TEXT_BPE_H
#define NIB_TEXT_BPE_H

#include "text/ids.h"
#include "text/merge.h"
#include "text/pieces.h"
#include "text/pretokenizer.h"

typedef struct nib_bpe_pair {
    uint32_t left, right; /* ids */
    uint32_t rank;
    int32_t id; /* of both joined; -1: a free slot */
} nib_bpe_pair;

typedef struct nib_bpe {
    const nib_pieces *pieces;
    nib_pretokenizer *pretokenizer;
    nib_bpe_pair *pairs; /* [n_slots] by hash of both ids */
    size_t n_slots;      /* a power of two */
} nib_bpe;

/* pieces must outlive the result. Returns NIB_OK; NIB_EUNSUPPORTED (pre-tokenizer); NIB_EFORMAT (a merge that is not two
 * known texts whose joint text is known too, named with its index; no token for any byte); NIB_ENOMEM. */
nib_status nib_bpe_init(nib_bpe *bpe, const nib_pieces *pieces, const nib_vocab *vocab, nib_error *err);
void nib_bpe_clear(nib_bpe *bpe);

/* Append the ids of text [len]. False when out of memory. */
bool nib_bpe_encode(nib_ids *ids, nib_merger *merger, nib_cutter *cutter, const nib_bpe *bpe, const char *text,
                    size_t len);

#endif
