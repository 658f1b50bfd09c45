/* The KV cache of one timeline: pages of 64 positions for each layer, K of a kv head as [E][64], V as [64][E], of the
 * cache's element type. A page is also a group of the attention rule. */
#ifndef NIB_MODEL_KV_H
#define NIB_MODEL_KV_H

#include "kernel/kernel.h"
#include "model/arch.h"

typedef struct nib_kv {
    const nib_config *config; /* borrowed from the model */
    nib_kv_type type;
    unsigned char **pages; /* [n_pages][L], each [K][2][E * 64] elements: K, then V of a kv head */
    size_t n_pages, cap_pages;
} nib_kv;

void nib_kv_init(nib_kv *kv, const nib_config *config, nib_kv_type type);
void nib_kv_free(nib_kv *kv);

/* Makes room for positions 0 .. n-1. False when out of memory; what is there stays. */
bool nib_kv_reserve(nib_kv *kv, int64_t n);

/* Bytes of an element. */
size_t nib_kv_type_bytes(nib_kv_type type);

size_t nib_kv_bytes(const nib_kv *kv);

/* K [E][64] and V [64][E] of one group. */
void *nib_kv_keys(const nib_kv *kv, int64_t layer, int64_t head, int64_t group);
void *nib_kv_values(const nib_kv *kv, int64_t layer, int64_t head, int64_t group);

/* Store k and v [K][E] of a position, rounded to the type. */
void nib_kv_store(nib_kv *kv, const nib_kernels *kernels, int64_t layer, int64_t pos, const float *k, const float *v);

#endif
