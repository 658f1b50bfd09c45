/* SentencePiece's BPE, as in its bpe_model: characters are symbols, and the two neighbours whose joint text is the token
 * with the best score are joined, the leftmost first among equals, until none is left. Spaces are U+2581 in the files
 * and spaces here (pieces.c), in tokens and text alike, so that text never grows. Tokens of type unused are never
 * made. */
#include "text/spm.h"

#include <string.h>

#include "base/utf8.h"

/* Bits of a float in the order of its value, the highest first; score is no NaN. */
static uint32_t rank_of_score(float score) {
    uint32_t bits;
    score += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &score, sizeof bits);
    uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ~ascending;
}

static bool may_join(uint32_t *rank, int32_t *id, const void *user, const char *text, const nib_symbol *left,
                     const nib_symbol *right) {
    const nib_spm *spm = user;
    *id = nib_pieces_find(spm->pieces, text + left->start, (size_t)left->len + right->len);
    if (*id < 0) {
        return false;
    }
    *rank = spm->ranks[*id];
    return true;
}

static nib_status fill_ranks(nib_spm *spm, const nib_vocab *vocab, nib_error *err) {
    if (vocab->scores == NULL) {
        return nib_fail(err, NIB_EFORMAT, "the vocabulary has no scores, expected %zu", vocab->n_tokens);
    }
    for (size_t id = 0; id < vocab->n_tokens; id++) {
        if (vocab->scores[id] != vocab->scores[id]) {
            return nib_fail(err, NIB_EFORMAT, "score of token %zu is nan, expected a number", id);
        }
        spm->ranks[id] = rank_of_score(vocab->scores[id]);
    }
    for (int byte = 0; byte < 256; byte++) {
        if (spm->unknown >= 0 || spm->pieces->byte_id[byte] >= 0) {
            return NIB_OK;
        }
    }
    return nib_fail(err, NIB_EFORMAT, "the vocabulary has neither byte tokens nor an unknown token, expected either");
}

nib_status nib_spm_init(nib_spm *spm, const nib_pieces *pieces, const nib_vocab *vocab, nib_error *err) {
    *spm = (nib_spm){.pieces = pieces, .unknown = vocab->unk, .space_prefix = vocab->add_space_prefix};
    spm->ranks = nib_alloc(pieces->n, sizeof *spm->ranks);
    nib_status status = spm->ranks == NULL ? nib_fail_memory(err, pieces->n * sizeof *spm->ranks, "the scores")
                                           : fill_ranks(spm, vocab, err);
    if (status != NIB_OK) {
        nib_spm_clear(spm);
    }
    return status;
}

void nib_spm_clear(nib_spm *spm) {
    nib_free(spm->ranks);
    *spm = (nib_spm){0};
}

/* The text as the merges see it: [*len] bytes, a space before it if the vocabulary wants one, U+2581 as a space. */
static char *prepare(size_t *len, const nib_spm *spm, const char *text, size_t text_len) {
    static const char mark[] = "\xe2\x96\x81";
    char *out = nib_alloc(text_len + 1, 1);
    if (out == NULL) {
        return NULL;
    }
    size_t n = 0;
    if (spm->space_prefix) {
        out[n++] = ' ';
    }
    for (size_t i = 0; i < text_len;) {
        bool is_mark = text[i] == mark[0] && text_len - i >= 3 && memcmp(text + i, mark, 3) == 0;
        out[n++] = is_mark ? ' ' : text[i];
        i += is_mark ? 3 : 1;
    }
    *len = n;
    return out;
}

static bool add_characters(nib_merger *merger, const nib_spm *spm, const char *text, size_t len) {
    nib_merger_begin(merger, text);
    for (size_t i = 0; i < len;) {
        size_t width = nib_utf8_len(text + i, len - i);
        width = width == 0 ? 1 : width;
        int32_t id = nib_pieces_find(spm->pieces, text + i, width);
        if (!nib_merger_add(merger, (uint32_t)i, (uint32_t)width, id)) {
            return false;
        }
        i += width;
    }
    return true;
}

/* A symbol that is no token: its bytes, or the unknown token; a run of those is one. */
static bool add_unknown(nib_ids *ids, bool *after_unknown, const nib_spm *spm, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        int32_t byte = spm->pieces->byte_id[(unsigned char)text[i]];
        if (byte < 0 && (spm->unknown < 0 || *after_unknown)) {
            continue;
        }
        if (!nib_ids_add(ids, byte < 0 ? spm->unknown : byte)) {
            return false;
        }
        *after_unknown = byte < 0;
    }
    return true;
}

static bool add_symbols(nib_ids *ids, const nib_merger *merger, const nib_spm *spm) {
    bool after_unknown = false;
    for (int32_t i = merger->n > 0 ? 0 : -1; i >= 0; i = merger->symbols[i].next) {
        const nib_symbol *symbol = &merger->symbols[i];
        if (symbol->id < 0) {
            if (!add_unknown(ids, &after_unknown, spm, merger->text + symbol->start, symbol->len)) {
                return false;
            }
        } else {
            after_unknown = false;
            if (!nib_ids_add(ids, symbol->id)) {
                return false;
            }
        }
    }
    return true;
}

bool nib_spm_encode(nib_ids *ids, nib_merger *merger, const nib_spm *spm, const char *text, size_t len) {
    if (len == 0) {
        return true;
    }
    size_t n;
    char *prepared = prepare(&n, spm, text, len);
    bool ok = prepared != NULL && add_characters(merger, spm, prepared, n) && nib_merger_run(merger, may_join, spm) &&
              add_symbols(ids, merger, spm);
    nib_free(prepared);
    return ok;
}
