/* The KV cache of one timeline: pages of 64 positions for each layer, K of a kv head as [E][64], V as [64][E], of the
 * cache's element type. A page is also a group of the attention rule. Timelines with a common beginning share its pages;
 * who writes into a shared one gets a copy. Layers with a window give pages back that no later position sees. */
#ifndef NIB_MODEL_KV_H
#define NIB_MODEL_KV_H

#include "kernel/kernel.h"
#include "model/arch.h"
#include "model/kv_pages.h"

/* What all timelines of a session have in common. */
typedef struct nib_kv_store {
    const nib_config *config; /* borrowed from the model */
    nib_kv_type type;
    nib_kv_pages pages;
    uint64_t families; /* given out so far */
} nib_kv_store;

typedef struct nib_kv {
    nib_kv_store *store;
    nib_kv_page **pages; /* [n_pages][L]; NULL in a windowed layer that gave it back */
    size_t n_pages, cap_pages;
    size_t kept;     /* windowed layers have the pages from here on */
    uint64_t family; /* the same for timelines that may share pages */
} nib_kv;

void nib_kv_store_init(nib_kv_store *store, const nib_config *config, nib_kv_type type);

/* Frees the memory; all timelines must have been freed. */
void nib_kv_store_free(nib_kv_store *store);

/* Pages of n positions in all layers. */
size_t nib_kv_store_pages(const nib_kv_store *store, int64_t n);

/* Bytes of the pages that timelines hold, each counted once. */
size_t nib_kv_store_bytes(const nib_kv_store *store);

/* Bytes of an element. */
size_t nib_kv_type_bytes(nib_kv_type type);

void nib_kv_init(nib_kv *kv, nib_kv_store *store);
void nib_kv_free(nib_kv *kv);

/* Makes room for positions from .. end-1, which will be written: their pages are there and shared with nobody. False when
 * out of memory; what is there stays. */
bool nib_kv_reserve(nib_kv *kv, int64_t from, int64_t end);

/* Makes an empty cache hold the first n positions of `from`, by reference. False when out of memory; it stays empty. */
bool nib_kv_fork(nib_kv *kv, const nib_kv *from, int64_t n);

/* The longest beginning, n positions at most, behind which the timeline can go on: n, or 0 when a windowed layer has given
 * back what position n would see. */
int64_t nib_kv_usable(const nib_kv *kv, int64_t n);

/* Forgets all but the first n positions, which must be usable. */
void nib_kv_rewind(nib_kv *kv, int64_t n);

/* Gives back what no position from n on sees. */
void nib_kv_trim(nib_kv *kv, int64_t n);

/* Whether there is a page of a group in a layer. */
bool nib_kv_has_page(const nib_kv *kv, int64_t layer, int64_t group);

/* Whether two timelines have the page of a group in a layer in common. */
bool nib_kv_same_page(const nib_kv *a, const nib_kv *b, int64_t layer, int64_t group);

/* K [E][64] and V [64][E] of one group. */
void *nib_kv_keys(const nib_kv *kv, int64_t layer, int64_t head, int64_t group);
void *nib_kv_values(const nib_kv *kv, int64_t layer, int64_t head, int64_t group);

/* Store k and v [K][E] of a position that was reserved, rounded to the type. */
void nib_kv_put(nib_kv *kv, const nib_kernels *kernels, int64_t layer, int64_t pos, const float *k, const float *v);

#endif
