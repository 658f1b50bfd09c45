/* Byte-level BPE as GPT-2 defined it: text is cut into words, each byte of a word is a symbol, and the pair of
 * neighbours that comes first in the list of merges is joined until none is left. */
#include "text/bpe.h"

#include <string.h>

#include "base/utf8.h"
#include "text/nfc.h"

/* U+FFFD, which stands for an invalid byte where the vocabulary lacks the byte itself. */
static const char replacement[] = "\xef\xbf\xbd";

static size_t hash_pair(uint32_t left, uint32_t right) {
    uint64_t hash = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32);
}

/* The pair's slot, or the free one where it belongs. */
static nib_bpe_pair *find_pair(const nib_bpe *bpe, uint32_t left, uint32_t right) {
    size_t mask = bpe->n_slots - 1;
    size_t i = hash_pair(left, right) & mask;
    while (bpe->pairs[i].id >= 0 && (bpe->pairs[i].left != left || bpe->pairs[i].right != right)) {
        i = (i + 1) & mask;
    }
    return &bpe->pairs[i];
}

static bool may_join(uint32_t *rank, int32_t *id, const void *user, const char *text, const nib_symbol *left,
                     const nib_symbol *right) {
    (void)text;
    const nib_bpe_pair *pair = find_pair(user, (uint32_t)left->id, (uint32_t)right->id);
    *rank = pair->rank;
    *id = pair->id;
    return pair->id >= 0;
}

/* The id of letters [len] once they are bytes in buffer; -1: not known. */
static int32_t find_letters(char *buffer, const nib_pieces *pieces, const char *letters, size_t len) {
    size_t n = nib_bytes_from_letters(buffer, letters, len);
    return n == (size_t)-1 ? -1 : nib_pieces_find(pieces, buffer, n);
}

/* Adds merge i of the vocabulary; buffer has room for its text. */
static nib_status add_merge(nib_bpe *bpe, char *buffer, const nib_vocab_text *merge, size_t i, nib_error *err) {
    const char *space = merge->len < 2 ? NULL : memchr(merge->bytes + 1, ' ', merge->len - 1);
    int32_t left = -1, right = -1, both = -1;
    if (space != NULL) {
        size_t left_len = (size_t)(space - merge->bytes);
        size_t right_len = merge->len - left_len - 1;
        left = find_letters(buffer, bpe->pieces, merge->bytes, left_len);
        size_t n = left < 0 ? 0 : nib_bytes_from_letters(buffer, merge->bytes, left_len);
        right = find_letters(buffer + n, bpe->pieces, space + 1, right_len);
        size_t m = right < 0 ? 0 : nib_bytes_from_letters(buffer + n, space + 1, right_len);
        both = left < 0 || right < 0 ? -1 : nib_pieces_find(bpe->pieces, buffer, n + m);
    }
    if (both < 0) {
        return nib_fail(err, NIB_EFORMAT, "merge %zu is '%.*s', expected two tokens that are a token together", i,
                        (int)(merge->len < 80 ? merge->len : 80), merge->bytes);
    }
    nib_bpe_pair *pair = find_pair(bpe, (uint32_t)left, (uint32_t)right);
    if (pair->id < 0) {
        *pair = (nib_bpe_pair){.left = (uint32_t)left, .right = (uint32_t)right, .rank = (uint32_t)i, .id = both};
    }
    return NIB_OK;
}

static nib_status add_merges(nib_bpe *bpe, const nib_vocab *vocab, nib_error *err) {
    size_t longest = 0;
    for (size_t i = 0; i < vocab->n_merges; i++) {
        longest = vocab->merges[i].len > longest ? vocab->merges[i].len : longest;
    }
    bpe->n_slots = 16;
    while (bpe->n_slots < 2 * vocab->n_merges) {
        bpe->n_slots *= 2;
    }
    char *buffer = nib_alloc(longest, 1);
    bpe->pairs = nib_alloc(bpe->n_slots, sizeof *bpe->pairs);
    nib_status status = NIB_OK;
    if (buffer == NULL || bpe->pairs == NULL) {
        status = nib_fail_memory(err, bpe->n_slots * sizeof *bpe->pairs, "the merges");
    } else {
        memset(bpe->pairs, 0xff, bpe->n_slots * sizeof *bpe->pairs);
    }
    for (size_t i = 0; i < vocab->n_merges && status == NIB_OK; i++) {
        status = add_merge(bpe, buffer, &vocab->merges[i], i, err);
    }
    nib_free(buffer);
    return status;
}

static nib_status check_bytes(const nib_pieces *pieces, nib_error *err) {
    for (int byte = 0; byte < 256; byte++) {
        if (pieces->byte_id[byte] >= 0) {
            return NIB_OK;
        }
    }
    return nib_fail(err, NIB_EFORMAT, "none of the %zu tokens is a single byte, expected one for each byte", pieces->n);
}

nib_status nib_bpe_init(nib_bpe *bpe, const nib_pieces *pieces, const nib_vocab *vocab, nib_error *err) {
    *bpe = (nib_bpe){.pieces = pieces};
    nib_status status = nib_pretokenizer_new(&bpe->pretokenizer, vocab->pre, err);
    if (status == NIB_OK) {
        status = check_bytes(pieces, err);
    }
    if (status == NIB_OK) {
        status = add_merges(bpe, vocab, err);
    }
    if (status != NIB_OK) {
        nib_bpe_clear(bpe);
    }
    return status;
}

void nib_bpe_clear(nib_bpe *bpe) {
    nib_pretokenizer_free(bpe->pretokenizer);
    nib_free(bpe->pairs);
    *bpe = (nib_bpe){0};
}

/* What the handler of words needs. */
typedef struct word_target {
    nib_ids *ids;
    nib_merger *merger;
    const nib_bpe *bpe;
    bool whole_words;
} word_target;

/* The symbols of word: its bytes, but those that the vocabulary lacks: like the tokenizers that made such vocabularies,
 * nib writes nothing for them. */
static bool add_bytes(const word_target *target, const char *word, size_t len) {
    nib_merger_begin(target->merger, word);
    for (size_t i = 0; i < len; i++) {
        int32_t id = target->bpe->pieces->byte_id[(unsigned char)word[i]];
        if (id >= 0 && !nib_merger_add(target->merger, (uint32_t)i, 1, id)) {
            return false;
        }
    }
    return true;
}

static bool encode_word(void *user, const char *word, size_t len) {
    const word_target *target = user;
    int32_t whole = target->whole_words || len == 1 ? nib_pieces_find(target->bpe->pieces, word, len) : -1;
    if (whole >= 0) {
        return nib_ids_add(target->ids, whole);
    }
    nib_merger *merger = target->merger;
    if (!add_bytes(target, word, len) || !nib_merger_run(merger, may_join, target->bpe)) {
        return false;
    }
    for (int32_t i = merger->n > 0 ? 0 : -1; i >= 0; i = merger->symbols[i].next) {
        if (!nib_ids_add(target->ids, merger->symbols[i].id)) {
            return false;
        }
    }
    return true;
}

/* An invalid byte is its own token; where the vocabulary has none, it is encoded as U+FFFD. */
static bool encode_invalid(word_target *target, nib_cutter *cutter, char byte) {
    int32_t id = target->bpe->pieces->byte_id[(unsigned char)byte];
    if (id >= 0) {
        return nib_ids_add(target->ids, id);
    }
    return nib_cutter_run(cutter, replacement, 3, encode_word, target);
}

static bool encode_words(word_target *target, nib_cutter *cutter, const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        size_t end = i;
        for (size_t n; end < len && (n = nib_utf8_len(text + end, len - end)) > 0;) {
            end += n;
        }
        if (!nib_cutter_run(cutter, text + i, end - i, encode_word, target)) {
            return false;
        }
        if (end < len && !encode_invalid(target, cutter, text[end++])) {
            return false;
        }
        i = end;
    }
    return true;
}

bool nib_bpe_encode(nib_ids *ids, nib_merger *merger, nib_cutter *cutter, const nib_bpe *bpe, const char *text,
                    size_t len) {
    const nib_pretokenizer_kind *kind = nib_pretokenizer_get_kind(bpe->pretokenizer);
    word_target target = {ids, merger, bpe, kind->whole_words};
    if (!kind->nfc || !nib_nfc_needed(text, len)) {
        return encode_words(&target, cutter, text, len);
    }
    size_t normal_len;
    char *normal = nib_nfc(&normal_len, text, len);
    bool ok = normal != NULL && encode_words(&target, cutter, normal, normal_len);
    nib_free(normal);
    return ok;
}
