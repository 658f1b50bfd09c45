/* The loop that byte-level BPE and SentencePiece's BPE share: join the best pair of neighbours until none is left. */
#ifndef NIB_TEXT_MERGE_H
#define NIB_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stretch of text. Symbols form a list in the order of the text; symbol 0 stays its head. */
typedef struct nib_symbol {
    uint32_t start, len; /* bytes; len 0: joined into a neighbour */
    int32_t id;          /* -1: no token has this text */
    int32_t prev, next;  /* -1: none */
} nib_symbol;

/* A pair that may be joined. */
typedef struct nib_candidate {
    uint64_t order; /* rank << 32 | index of the left symbol: the lowest is joined first */
    uint32_t len;   /* of both together: another length means that one of them has grown since */
    int32_t id;     /* of the joined symbol */
} nib_candidate;

typedef struct nib_merger {
    const char *text;
    nib_symbol *symbols; /* [n] */
    size_t n, cap;
    nib_candidate *heap; /* [n_heap] the lowest order first */
    size_t n_heap, cap_heap;
    size_t steps; /* comparisons and look-ups since the merger was made: the work done */
} nib_merger;

/* Whether left and right (neighbours in text) may be joined: then rank (lower first) and the id they become. */
typedef bool nib_merge_rule(uint32_t *rank, int32_t *id, const void *user, const char *text, const nib_symbol *left,
                            const nib_symbol *right);

void nib_merger_begin(nib_merger *merger, const char *text);

/* Append a symbol. False when out of memory. */
bool nib_merger_add(nib_merger *merger, uint32_t start, uint32_t len, int32_t id);

/* Join until nothing can be joined. n log n in the number of symbols. False when out of memory. */
bool nib_merger_run(nib_merger *merger, nib_merge_rule *rule, const void *user);

void nib_merger_clear(nib_merger *merger);

#endif
