/* One forward pass over a flat list of tokens: prefill, decoding, scoring are all this call. */
#ifndef NIB_MODEL_FORWARD_H
#define NIB_MODEL_FORWARD_H

#include <stdatomic.h>

#include "base/pool.h"
#include "model/kv.h"
#include "model/weights.h"
#include "model/work.h"

enum { NIB_FORWARD_ROWS = 1 << 20 /* of one pass at most */ };

/* One token of the list. Tokens of one timeline stand together, in increasing position; those before them are in its
 * cache. Timelines that share pages read them once if they stand together. */
typedef struct nib_forward_row {
    int32_t token;
    int64_t pos;
    nib_kv *kv;    /* in which pos was reserved */
    float *logits; /* [V], or NULL: not wanted */
} nib_forward_row;

/* What a pass needs of the model and the session. */
typedef struct nib_forward_context {
    const nib_config *config;
    const nib_weights *weights;
    const nib_kernels *kernels;
    nib_pool *pool;           /* NULL: one thread */
    nib_work *work;           /* nib_forward makes room in it */
    const atomic_int *cancel; /* ends the pass between layers when not 0 */
    uint64_t *kv_bytes;       /* NULL, or what attention reads of the cache is added to it */
} nib_forward_context;

/* n is 1 .. NIB_FORWARD_ROWS. Returns NIB_OK; NIB_ECANCELLED (err has no text) or NIB_ENOMEM: the cache beyond what was there before is then
 * undefined. */
nib_status nib_forward(const nib_forward_context *context, const nib_forward_row *rows, int64_t n, nib_error *err);

#endif
