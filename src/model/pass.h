/* A forward pass while it runs: the list of rows and where it stands. Shared by forward.c and attend.c. */
#ifndef NIB_MODEL_PASS_H
#define NIB_MODEL_PASS_H

#include "model/forward.h"

/* How the attention of one layer is cut into items: (tile, kv head, part of its query heads, run of groups). When runs is
 * 1 an item merges its groups itself; else they are kept and merged by nib_attend_merge. */
typedef struct nib_attend_plan {
    int64_t part_heads, n_parts; /* query heads of a unit; parts of a kv head */
    int64_t run, runs;           /* groups of a run; runs, of the longest row */
    int64_t items, unit_items;   /* of that kind in all; that a unit of the pool takes one after the other */
} nib_attend_plan;

typedef struct nib_pass {
    const nib_forward_context *context;
    const nib_config *c;
    const nib_kernels *k;
    const nib_weights *weights;
    nib_work *w;
    const nib_forward_row *rows;
    int64_t n;
    int64_t n_tiles; /* of work->tiles */
    int64_t index;   /* the layer */
    const nib_layer *layer;
    int stage;
    int64_t head_first, head_n;       /* rows whose logits lie one after the other */
    int64_t unit_strips, unit_tokens; /* of the current product */
    nib_attend_plan plan;
    bool cancelled;
    _Atomic uint64_t kv_bytes; /* that attention read of the cache, each page once for the rows that share it */
} nib_pass;

/* Sorts the rows into work->tiles and returns how many there are. */
int64_t nib_attend_tiles(nib_work *work, const nib_config *config, const nib_forward_row *rows, int64_t n);

/* Plans the attention of the pass's layer for so many threads; returns the number of units. */
int nib_attend_plan_layer(nib_pass *pass, int threads);

/* Whether the planned attention is not worth sharing. */
bool nib_attend_is_small(const nib_pass *pass);

/* Bytes of what a split attention keeps, the most of all layers: for nib_work_reserve_kept. */
size_t nib_attend_kept_bytes(const nib_config *config, int64_t n_tiles, const nib_forward_row *rows, int64_t n,
                             int threads);

void nib_attend(void *pass, int unit, int thread);
void nib_attend_merge(void *pass, int unit, int thread); /* unit: row * K + kv head */

#endif
