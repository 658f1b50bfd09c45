/* One forward pass over a flat list of tokens: prefill, decoding, scoring are all this call. */
#ifndef NIB_MODEL_FORWARD_H
#define NIB_MODEL_FORWARD_H

#include <stdatomic.h>

#include "model/kv.h"
#include "model/weights.h"
#include "model/work.h"

/* One token of the list. Tokens of one timeline stand in increasing position; those before it are in its cache or
 * earlier in the list. */
typedef struct nib_forward_row {
    int32_t token;
    int64_t pos;
    nib_kv *kv;    /* has room for pos */
    float *logits; /* [V], or NULL: not wanted */
} nib_forward_row;

/* What a pass needs of the model and the session. */
typedef struct nib_forward_context {
    const nib_config *config;
    const nib_weights *weights;
    const nib_kernels *kernels;
    nib_work *work;           /* has room for the rows */
    const atomic_int *cancel; /* ends the pass between layers when not 0 */
} nib_forward_context;

/* Returns false when it was cancelled: the cache beyond what was there before is then undefined. */
bool nib_forward(const nib_forward_context *context, const nib_forward_row *rows, int64_t n);

#endif
