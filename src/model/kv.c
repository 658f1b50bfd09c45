/* The KV cache of one timeline. */
#include "model/kv.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/kernel.h"

void nib_kv_init(nib_kv *kv, const nib_config *config) {
    *kv = (nib_kv){.config = config};
}

static size_t page_floats(const nib_kv *kv) {
    return (size_t)(kv->config->K * kv->config->E) * 2 * NIB_GROUP;
}

static void free_page(nib_kv *kv, size_t page) {
    size_t L = (size_t)kv->config->L;
    for (size_t layer = 0; layer < L; layer++) {
        nib_free(kv->pages[page * L + layer]);
        kv->pages[page * L + layer] = NULL;
    }
}

void nib_kv_free(nib_kv *kv) {
    for (size_t page = 0; page < kv->n_pages; page++) {
        free_page(kv, page);
    }
    nib_free(kv->pages);
    kv->pages = NULL;
    kv->n_pages = kv->cap_pages = 0;
}

static bool add_page(nib_kv *kv) {
    size_t L = (size_t)kv->config->L;
    size_t page = kv->n_pages;
    for (size_t layer = 0; layer < L; layer++) {
        kv->pages[page * L + layer] = NULL;
    }
    for (size_t layer = 0; layer < L; layer++) {
        kv->pages[page * L + layer] = nib_alloc_aligned(page_floats(kv), sizeof(float));
        if (kv->pages[page * L + layer] == NULL) {
            free_page(kv, page);
            return false;
        }
    }
    kv->n_pages++;
    return true;
}

bool nib_kv_reserve(nib_kv *kv, int64_t n) {
    size_t want = (size_t)(n + NIB_GROUP - 1) / NIB_GROUP;
    size_t L = (size_t)kv->config->L;
    size_t cap = kv->cap_pages * L;
    if (!nib_reserve(&kv->pages, &cap, want * L, sizeof kv->pages[0])) {
        return false;
    }
    kv->cap_pages = cap / L;
    while (kv->n_pages < want) {
        if (!add_page(kv)) {
            return false;
        }
    }
    return true;
}

size_t nib_kv_bytes(const nib_kv *kv) {
    return kv->n_pages * (size_t)kv->config->L * page_floats(kv) * sizeof(float);
}

float *nib_kv_keys(const nib_kv *kv, int64_t layer, int64_t head, int64_t group) {
    return kv->pages[group * kv->config->L + layer] + head * 2 * kv->config->E * NIB_GROUP;
}

float *nib_kv_values(const nib_kv *kv, int64_t layer, int64_t head, int64_t group) {
    return nib_kv_keys(kv, layer, head, group) + kv->config->E * NIB_GROUP;
}

void nib_kv_store(nib_kv *kv, int64_t layer, int64_t pos, const float *k, const float *v) {
    int64_t E = kv->config->E;
    int64_t slot = pos % NIB_GROUP;
    for (int64_t head = 0; head < kv->config->K; head++) {
        float *keys = nib_kv_keys(kv, layer, head, pos / NIB_GROUP);
        float *values = nib_kv_values(kv, layer, head, pos / NIB_GROUP);
        for (int64_t e = 0; e < E; e++) {
            keys[e * NIB_GROUP + slot] = k[head * E + e];
        }
        memcpy(values + slot * E, v + head * E, (size_t)E * sizeof(float));
    }
}
