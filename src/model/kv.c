/* The KV cache of one timeline. */
#include "model/kv.h"

#include <string.h>

#include "base/memory.h"

void nib_kv_init(nib_kv *kv, const nib_config *config, nib_kv_type type) {
    *kv = (nib_kv){.config = config, .type = type};
}

size_t nib_kv_type_bytes(nib_kv_type type) {
    return type == NIB_KV_F16 ? sizeof(uint16_t) : sizeof(float);
}

static size_t page_elements(const nib_kv *kv) {
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
        kv->pages[page * L + layer] = nib_alloc_aligned(page_elements(kv), nib_kv_type_bytes(kv->type));
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
    return kv->n_pages * (size_t)kv->config->L * page_elements(kv) * nib_kv_type_bytes(kv->type);
}

void *nib_kv_keys(const nib_kv *kv, int64_t layer, int64_t head, int64_t group) {
    size_t at = (size_t)(head * 2 * kv->config->E * NIB_GROUP) * nib_kv_type_bytes(kv->type);
    return kv->pages[group * kv->config->L + layer] + at;
}

void *nib_kv_values(const nib_kv *kv, int64_t layer, int64_t head, int64_t group) {
    size_t keys = (size_t)(kv->config->E * NIB_GROUP) * nib_kv_type_bytes(kv->type);
    return (unsigned char *)nib_kv_keys(kv, layer, head, group) + keys;
}

static void store_f32(nib_kv *kv, int64_t layer, int64_t pos, const float *k, const float *v) {
    int64_t E = kv->config->E, slot = pos % NIB_GROUP;
    for (int64_t head = 0; head < kv->config->K; head++) {
        float *keys = nib_kv_keys(kv, layer, head, pos / NIB_GROUP);
        float *values = nib_kv_values(kv, layer, head, pos / NIB_GROUP);
        for (int64_t e = 0; e < E; e++) {
            keys[e * NIB_GROUP + slot] = k[head * E + e];
        }
        memcpy(values + slot * E, v + head * E, (size_t)E * sizeof(float));
    }
}

static void store_f16(nib_kv *kv, const nib_kernels *kernels, int64_t layer, int64_t pos, const float *k,
                      const float *v) {
    int64_t E = kv->config->E, slot = pos % NIB_GROUP;
    for (int64_t head = 0; head < kv->config->K; head++) {
        uint16_t *keys = nib_kv_keys(kv, layer, head, pos / NIB_GROUP);
        uint16_t *values = nib_kv_values(kv, layer, head, pos / NIB_GROUP);
        for (int64_t done = 0; done < E; done += 64) {
            uint16_t part[64];
            int64_t n = E - done < 64 ? E - done : 64;
            kernels->to_f16(part, k + head * E + done, n);
            for (int64_t e = 0; e < n; e++) {
                keys[(done + e) * NIB_GROUP + slot] = part[e];
            }
        }
        kernels->to_f16(values + slot * E, v + head * E, E);
    }
}

void nib_kv_store(nib_kv *kv, const nib_kernels *kernels, int64_t layer, int64_t pos, const float *k, const float *v) {
    if (kv->type == NIB_KV_F16) {
        store_f16(kv, kernels, layer, pos, k, v);
    } else {
        store_f32(kv, layer, pos, k, v);
    }
}
