/* The texts of all tokens, as bytes: GPT-2's stand-in letters, U+2581 for a space and <0xNN> are resolved once, here.
 * Stand-in letters: printable Latin-1 (! to ~, U+00A1 to U+00AC, U+00AE to U+00FF) stands for itself, the other 68 bytes
 * in order for U+0100 and on. */
#include "text/pieces.h"

#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

static const char word_mark[] = "\xe2\x96\x81"; /* U+2581, SentencePiece's space */
enum { WORD_MARK_LEN = 3 };

/* The byte that a letter below U+0144 stands for; -1: none. */
static int byte_of_letter(unsigned letter) {
    if ((letter >= '!' && letter <= '~') || (letter >= 0xa1 && letter <= 0xac) || (letter >= 0xae && letter <= 0xff)) {
        return (int)letter;
    }
    if (letter < 0x100 || letter >= 0x144) {
        return -1;
    }
    unsigned i = letter - 0x100;
    if (i <= 0x20) {
        return (int)i;
    }
    return i == 0x43 ? 0xad : (int)(i - 0x21 + 0x7f);
}

size_t nib_bytes_from_letters(char *out, const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        size_t width = nib_utf8_len(text + i, len - i);
        unsigned first = (unsigned char)text[i];
        unsigned letter = width == 1 ? first : 0x7f;
        if (width == 2) {
            letter = (first & 0x1fu) << 6 | ((unsigned char)text[i + 1] & 0x3fu);
        }
        int byte = width == 1 || width == 2 ? byte_of_letter(letter) : -1;
        if (byte < 0) {
            return (size_t)-1;
        }
        out[n++] = (char)byte;
        i += width;
    }
    return n;
}

/* Replaces each U+2581 by a space. Returns the number of bytes. */
static size_t unescape_spaces(char *out, const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        if (len - i >= WORD_MARK_LEN && memcmp(text + i, word_mark, WORD_MARK_LEN) == 0) {
            out[n++] = ' ';
            i += WORD_MARK_LEN;
        } else {
            out[n++] = text[i++];
        }
    }
    return n;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of "<0xNN>"; -1: spelled otherwise. */
static int byte_of_spelling(const char *text, size_t len) {
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') {
        return -1;
    }
    int high = hex_digit(text[3]);
    int low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static uint64_t hash_text(const char *text, size_t len) {
    uint64_t hash = 0xcbf29ce484222325u ^ len;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    return hash ^ hash >> 29;
}

const char *nib_pieces_text(size_t *len, const nib_pieces *pieces, int32_t id) {
    size_t begin = pieces->offsets[id];
    *len = pieces->offsets[id + 1] - begin - 1;
    return pieces->bytes + begin;
}

/* The slot that holds text, or the free one where it belongs. */
static size_t find_slot(const nib_pieces *pieces, const char *text, size_t len) {
    size_t mask = pieces->n_slots - 1;
    size_t i = (size_t)hash_text(text, len) & mask;
    while (pieces->slots[i] >= 0) {
        size_t other_len;
        const char *other = nib_pieces_text(&other_len, pieces, pieces->slots[i]);
        if (other_len == len && memcmp(other, text, len) == 0) {
            break;
        }
        i = (i + 1) & mask;
    }
    return i;
}

int32_t nib_pieces_find(const nib_pieces *pieces, const char *text, size_t len) {
    return len > pieces->longest ? -1 : pieces->slots[find_slot(pieces, text, len)];
}

/* Writes the bytes of token id behind those of the tokens before it. *found: whether a text may be turned into it. */
static nib_status add_piece(bool *found, nib_pieces *pieces, const nib_vocab *vocab, size_t id, nib_error *err) {
    const nib_vocab_text *token = &vocab->tokens[id];
    int32_t type = vocab->types == NULL ? NIB_TOKEN_NORMAL : vocab->types[id];
    if (type < NIB_TOKEN_NORMAL || type > NIB_TOKEN_BYTE) {
        return nib_fail(err, NIB_EFORMAT, "type of token %zu is %d, expected 1 to 6", id, (int)type);
    }
    char *out = pieces->bytes + pieces->offsets[id];
    size_t n;
    *found = type == NIB_TOKEN_NORMAL;
    if (type == NIB_TOKEN_BYTE) {
        int byte = byte_of_spelling(token->bytes, token->len);
        if (byte < 0) {
            return nib_fail(err, NIB_EFORMAT, "byte token %zu is spelled '%.*s', expected <0x00> to <0xFF>", id,
                            (int)(token->len < 40 ? token->len : 40), token->bytes);
        }
        *out = (char)byte;
        n = 1;
    } else if (vocab->kind == NIB_VOCAB_SPM && (type == NIB_TOKEN_NORMAL || type == NIB_TOKEN_USER_DEFINED)) {
        n = unescape_spaces(out, token->bytes, token->len);
        *found = true;
    } else {
        n = type == NIB_TOKEN_NORMAL ? nib_bytes_from_letters(out, token->bytes, token->len) : (size_t)-1;
        if (n == (size_t)-1) {
            n = token->len;
            *found = false;
            memcpy(out, token->bytes, n);
        }
    }
    out[n] = '\0';
    pieces->types[id] = (unsigned char)type;
    pieces->offsets[id + 1] = pieces->offsets[id] + n + 1;
    return NIB_OK;
}

/* Makes token id findable by its text, unless a lower id has the same one. */
static void index_piece(nib_pieces *pieces, size_t id) {
    size_t len;
    const char *text = nib_pieces_text(&len, pieces, (int32_t)id);
    if (len == 0) {
        return;
    }
    size_t slot = find_slot(pieces, text, len);
    if (pieces->slots[slot] < 0) {
        pieces->slots[slot] = (int32_t)id;
    }
    if (len > pieces->longest) {
        pieces->longest = len;
    }
}

/* A byte is written by a token of type byte; in a byte-level vocabulary by the token that is this one byte. */
static void find_bytes(nib_pieces *pieces, nib_vocab_kind kind) {
    for (int byte = 0; byte < 256; byte++) {
        char text = (char)byte;
        pieces->byte_id[byte] = kind == NIB_VOCAB_BPE ? nib_pieces_find(pieces, &text, 1) : -1;
    }
    for (size_t id = 0; id < pieces->n; id++) {
        unsigned char byte = (unsigned char)pieces->bytes[pieces->offsets[id]];
        if (pieces->types[id] == NIB_TOKEN_BYTE && pieces->byte_id[byte] < 0) {
            pieces->byte_id[byte] = (int32_t)id;
        }
    }
}

/* Room for n tokens of total bytes, terminators included. */
static nib_status reserve_pieces(nib_pieces *pieces, size_t total, nib_error *err) {
    pieces->n_slots = 16;
    while (pieces->n_slots < 2 * pieces->n) {
        pieces->n_slots *= 2;
    }
    pieces->bytes = nib_alloc(total, 1);
    pieces->offsets = nib_alloc_zero(pieces->n + 1, sizeof *pieces->offsets);
    pieces->types = nib_alloc(pieces->n, 1);
    pieces->slots = nib_alloc(pieces->n_slots, sizeof *pieces->slots);
    if (pieces->bytes == NULL || pieces->offsets == NULL || pieces->types == NULL || pieces->slots == NULL) {
        return nib_fail_memory(err, total + pieces->n_slots * sizeof *pieces->slots, "the vocabulary");
    }
    memset(pieces->slots, 0xff, pieces->n_slots * sizeof *pieces->slots);
    return NIB_OK;
}

static nib_status fill_pieces(nib_pieces *pieces, const nib_vocab *vocab, nib_error *err) {
    size_t total = 0;
    for (size_t id = 0; id < vocab->n_tokens; id++) {
        if (!nib_add_size(&total, total, vocab->tokens[id].len) || !nib_add_size(&total, total, 1)) {
            return nib_fail(err, NIB_EFORMAT, "the tokens are longer than the memory's addresses");
        }
    }
    nib_status status = reserve_pieces(pieces, total, err);
    for (size_t id = 0; id < vocab->n_tokens && status == NIB_OK; id++) {
        bool found = false;
        status = add_piece(&found, pieces, vocab, id, err);
        if (status == NIB_OK && found) {
            index_piece(pieces, id);
        }
    }
    return status;
}

nib_status nib_pieces_init(nib_pieces *pieces, const nib_vocab *vocab, nib_error *err) {
    *pieces = (nib_pieces){.n = vocab->n_tokens};
    nib_status status = fill_pieces(pieces, vocab, err);
    if (status != NIB_OK) {
        nib_pieces_clear(pieces);
        return status;
    }
    find_bytes(pieces, vocab->kind);
    return NIB_OK;
}

void nib_pieces_clear(nib_pieces *pieces) {
    nib_free(pieces->bytes);
    nib_free(pieces->offsets);
    nib_free(pieces->types);
    nib_free(pieces->slots);
    *pieces = (nib_pieces){0};
}
