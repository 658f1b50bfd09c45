/* Tokens that are matched in the text itself. Where several match, the leftmost wins, and there the longest: what
 * Hugging Face's tokenizers do with added tokens. */
#include "text/special.h"

#include <string.h>

#include "base/memory.h"

/* Keeps node * 256 + byte within 32 bits. */
enum { MAX_NODES = 1 << 24 };

static bool is_special(const nib_pieces *pieces, size_t id) {
    return pieces->types[id] == NIB_TOKEN_CONTROL || pieces->types[id] == NIB_TOKEN_USER_DEFINED ||
           pieces->types[id] == NIB_TOKEN_UNKNOWN;
}

/* The edge's place in the table, or the free one where it belongs. */
static nib_special_edge *find_edge(const nib_specials *specials, uint32_t from) {
    size_t mask = specials->n_edges - 1;
    size_t i = (from * 0x9e3779b1u >> 7) & mask;
    while (specials->edges[i].to != 0 && specials->edges[i].from != from) {
        i = (i + 1) & mask;
    }
    return &specials->edges[i];
}

static uint32_t step(const nib_specials *specials, uint32_t node, char byte) {
    return find_edge(specials, node * 256 + (unsigned char)byte)->to;
}

static void add_special(nib_specials *specials, const nib_pieces *pieces, size_t id) {
    size_t len;
    const char *text = nib_pieces_text(&len, pieces, (int32_t)id);
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t from = node * 256 + (unsigned char)text[i];
        nib_special_edge *edge = find_edge(specials, from);
        if (edge->to == 0) {
            *edge = (nib_special_edge){.from = from, .to = (uint32_t)specials->n_nodes};
            specials->nodes[specials->n_nodes++].id = -1;
        }
        node = edge->to;
    }
    /* Of several tokens with one text the first, but one that is always matched rather than one on request. */
    nib_special_node *here = &specials->nodes[node];
    bool on_request = pieces->types[id] != NIB_TOKEN_USER_DEFINED;
    if (node != 0 && (here->id < 0 || (here->on_request && !on_request))) {
        here->id = (int32_t)id;
        here->on_request = on_request;
    }
}

nib_status nib_specials_init(nib_specials *specials, const nib_pieces *pieces, bool marks, nib_error *err) {
    size_t max_nodes = 1;
    for (size_t id = 0; id < pieces->n; id++) {
        size_t len;
        (void)nib_pieces_text(&len, pieces, (int32_t)id);
        max_nodes += is_special(pieces, id) ? len : 0;
        if (max_nodes > MAX_NODES) {
            return nib_fail(err, NIB_EFORMAT, "the special tokens up to %zu have more than %d bytes together", id,
                            MAX_NODES);
        }
    }
    *specials = (nib_specials){.n_nodes = 1, .n_edges = 16, .marks = marks};
    while (specials->n_edges < 2 * max_nodes) {
        specials->n_edges *= 2;
    }
    specials->nodes = nib_alloc_zero(max_nodes, sizeof *specials->nodes);
    specials->edges = nib_alloc_zero(specials->n_edges, sizeof *specials->edges);
    if (specials->nodes == NULL || specials->edges == NULL) {
        nib_specials_clear(specials);
        return nib_fail_memory(err, specials->n_edges * sizeof *specials->edges, "the special tokens");
    }
    specials->nodes[0].id = -1;
    for (size_t id = 0; id < pieces->n; id++) {
        if (is_special(pieces, id)) {
            add_special(specials, pieces, id);
        }
    }
    return NIB_OK;
}

void nib_specials_clear(nib_specials *specials) {
    nib_free(specials->nodes);
    nib_free(specials->edges);
    *specials = (nib_specials){0};
}

/* Takes the next character of text from *node: a byte, or a whole U+2581 where a token has a space there, since user-defined
 * tokens are matched in the text that SentencePiece has prepared. Returns the bytes taken. */
static size_t advance(uint32_t *node, const nib_specials *specials, const char *text, size_t len) {
    if (specials->marks && len >= 3 && memcmp(text, "\xe2\x96\x81", 3) == 0) {
        uint32_t next = step(specials, *node, ' ');
        if (next != 0) {
            *node = next;
            return 3;
        }
    }
    *node = step(specials, *node, *text);
    return 1;
}

/* The longest token that begins at text; -1: none. */
static int32_t longest_at(size_t *id_len, size_t *steps, const nib_specials *specials, const char *text, size_t len,
                          bool with_control) {
    int32_t id = -1;
    uint32_t node = 0;
    for (size_t i = 0; i < len;) {
        ++*steps;
        i += advance(&node, specials, text + i, len - i);
        if (node == 0) {
            break;
        }
        const nib_special_node *here = &specials->nodes[node];
        if (here->id >= 0 && (with_control || !here->on_request)) {
            id = here->id;
            *id_len = i;
        }
    }
    return id;
}

size_t nib_specials_find(int32_t *id, size_t *id_len, size_t *steps, const nib_specials *specials, const char *text,
                         size_t len, size_t from, bool with_control) {
    for (size_t i = from; i < len; i++) {
        *id = longest_at(id_len, steps, specials, text + i, len - i, with_control);
        if (*id >= 0) {
            return i;
        }
    }
    *id = -1;
    *id_len = 0;
    return len;
}
