/* Tokens that are matched in the text itself, before anything else: user-defined ones always, control ones on request. */
#ifndef NIB_TEXT_SPECIAL_H
#define NIB_TEXT_SPECIAL_H

#include "text/pieces.h"

/* A tree of bytes. Edges lie in one hash table: a vocabulary may have thousands of special tokens. */
typedef struct nib_special_node {
    int32_t id;      /* the token that ends here; -1: none */
    bool on_request; /* a control or unknown token */
} nib_special_node;

typedef struct nib_special_edge {
    uint32_t from; /* node * 256 + byte */
    uint32_t to;   /* node; 0: no edge */
} nib_special_edge;

typedef struct nib_specials {
    nib_special_node *nodes; /* [n_nodes], the root first */
    size_t n_nodes;
    nib_special_edge *edges; /* [n_edges] by hash */
    size_t n_edges;          /* a power of two */
    bool marks;              /* U+2581 in a text is a space */
} nib_specials;

/* Returns NIB_OK; NIB_EFORMAT (special tokens of more than 16 MiB together); NIB_ENOMEM. */
nib_status nib_specials_init(nib_specials *specials, const nib_pieces *pieces, bool marks, nib_error *err);
void nib_specials_clear(nib_specials *specials);

/* The first place at or behind from where a special token begins, and the longest one there: *id, *len. Returns the
 * place; len of the text and *id -1 when there is none. *steps counts the bytes looked at. */
size_t nib_specials_find(int32_t *id, size_t *id_len, size_t *steps, const nib_specials *specials, const char *text,
                         size_t len, size_t from, bool with_control);

#endif
