/* The KV cache of one timeline. */
#include "model/kv.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

size_t nib_kv_type_bytes(nib_kv_type type) {
    return type == NIB_KV_F16 ? sizeof(uint16_t) : sizeof(float);
}

static size_t page_bytes(const nib_config *config, nib_kv_type type) {
    return (size_t)(config->K * config->E) * 2 * NIB_GROUP * nib_kv_type_bytes(type);
}

void nib_kv_store_init(nib_kv_store *store, const nib_config *config, nib_kv_type type) {
    *store = (nib_kv_store){.config = config, .type = type};
    nib_kv_pages_init(&store->pages, page_bytes(config, type), (size_t)config->L);
}

void nib_kv_store_free(nib_kv_store *store) {
    nib_kv_pages_free(&store->pages);
}

static size_t pages_of(int64_t n) {
    return (size_t)(n + NIB_GROUP - 1) / NIB_GROUP;
}

size_t nib_kv_store_pages(const nib_kv_store *store, int64_t n) {
    return pages_of(n) * (size_t)store->config->L;
}

size_t nib_kv_store_bytes(const nib_kv_store *store) {
    return store->pages.n_used * store->pages.page_bytes;
}

void nib_kv_init(nib_kv *kv, nib_kv_store *store) {
    *kv = (nib_kv){.store = store, .family = ++store->families};
}

static bool is_windowed(const nib_kv *kv, size_t layer) {
    return !nib_config_is_global(kv->store->config, (int64_t)layer);
}

static nib_kv_page **page_at(const nib_kv *kv, size_t page, size_t layer) {
    return &kv->pages[page * (size_t)kv->store->config->L + layer];
}

static void release(nib_kv *kv, nib_kv_page **page) {
    if (*page != NULL) {
        nib_kv_page_release(&kv->store->pages, *page);
        *page = NULL;
    }
}

/* Drops the pages from `page` on. */
static void drop_pages(nib_kv *kv, size_t page) {
    for (size_t i = page; i < kv->n_pages; i++) {
        for (size_t layer = 0; layer < (size_t)kv->store->config->L; layer++) {
            release(kv, page_at(kv, i, layer));
        }
    }
    kv->n_pages = page < kv->n_pages ? page : kv->n_pages;
    if (kv->n_pages == 0) {
        kv->kept = 0;
        kv->family = ++kv->store->families;
    }
}

void nib_kv_free(nib_kv *kv) {
    if (kv->store != NULL) {
        drop_pages(kv, 0);
    }
    nib_free(kv->pages);
    kv->pages = NULL;
    kv->cap_pages = 0;
}

/* Room in the list for n pages, those behind the present ones empty. */
static bool reserve_list(nib_kv *kv, size_t n) {
    size_t L = (size_t)kv->store->config->L, cap = kv->cap_pages * L;
    if (!nib_reserve(&kv->pages, &cap, n * L, sizeof(nib_kv_page *))) {
        return false;
    }
    kv->cap_pages = cap / L;
    for (size_t i = kv->n_pages * L; i < n * L; i++) {
        kv->pages[i] = NULL;
    }
    return true;
}

/* A page of the timeline's own in place of none or of a shared one. */
static bool own(nib_kv *kv, nib_kv_page **place) {
    nib_kv_pages *pool = &kv->store->pages;
    if (*place != NULL && (*place)->refs == 1) {
        return true;
    }
    nib_kv_page *page = nib_kv_page_new(pool);
    if (page == NULL) {
        return false;
    }
    if (*place != NULL) {
        memcpy(page->bytes, (*place)->bytes, pool->page_bytes);
        nib_kv_page_release(pool, *place);
    }
    *place = page;
    return true;
}

bool nib_kv_reserve(nib_kv *kv, int64_t from, int64_t end) {
    size_t L = (size_t)kv->store->config->L, want = pages_of(end);
    if (want > kv->n_pages && !reserve_list(kv, want)) {
        return false;
    }
    for (size_t page = (size_t)from / NIB_GROUP; page < want; page++) {
        for (size_t layer = 0; layer < L; layer++) {
            if (own(kv, page_at(kv, page, layer))) {
                continue;
            }
            for (size_t i = 0; i < layer && page >= kv->n_pages; i++) {
                release(kv, page_at(kv, page, i));
            }
            return false;
        }
        kv->n_pages = page < kv->n_pages ? kv->n_pages : page + 1;
    }
    return true;
}

bool nib_kv_fork(nib_kv *kv, const nib_kv *from, int64_t n) {
    size_t L = (size_t)kv->store->config->L, n_pages = pages_of(n);
    assert(kv->n_pages == 0 && n_pages <= from->n_pages);
    if (!reserve_list(kv, n_pages)) {
        return false;
    }
    for (size_t i = 0; i < n_pages * L; i++) {
        kv->pages[i] = from->pages[i];
        if (kv->pages[i] != NULL) {
            kv->pages[i]->refs++;
        }
    }
    kv->n_pages = n_pages;
    kv->kept = from->kept;
    kv->family = from->family;
    return true;
}

/* The first page that a windowed layer needs for positions from n on. */
static size_t first_needed(const nib_kv *kv, int64_t n) {
    int64_t window = kv->store->config->window;
    return window == 0 || n < window ? 0 : (size_t)(n - window + 1) / NIB_GROUP;
}

int64_t nib_kv_usable(const nib_kv *kv, int64_t n) {
    int64_t most = (int64_t)kv->n_pages * NIB_GROUP;
    n = n < most ? n : most;
    return first_needed(kv, n) >= kv->kept ? n : 0;
}

void nib_kv_rewind(nib_kv *kv, int64_t n) {
    assert(n == 0 || nib_kv_usable(kv, n) == n);
    drop_pages(kv, pages_of(n));
}

void nib_kv_trim(nib_kv *kv, int64_t n) {
    size_t needed = first_needed(kv, n);
    needed = needed < kv->n_pages ? needed : kv->n_pages;
    if (kv->kept >= needed) {
        return;
    }
    for (size_t layer = 0; layer < (size_t)kv->store->config->L; layer++) {
        for (size_t page = kv->kept; page < needed && is_windowed(kv, layer); page++) {
            release(kv, page_at(kv, page, layer));
        }
    }
    kv->kept = needed;
}

bool nib_kv_has_page(const nib_kv *kv, int64_t layer, int64_t group) {
    return (size_t)group < kv->n_pages && *page_at(kv, (size_t)group, (size_t)layer) != NULL;
}

bool nib_kv_same_page(const nib_kv *a, const nib_kv *b, int64_t layer, int64_t group) {
    return a == b || *page_at(a, (size_t)group, (size_t)layer) == *page_at(b, (size_t)group, (size_t)layer);
}

void *nib_kv_keys(const nib_kv *kv, int64_t layer, int64_t head, int64_t group) {
    size_t at = (size_t)(head * 2 * kv->store->config->E * NIB_GROUP) * nib_kv_type_bytes(kv->store->type);
    return (*page_at(kv, (size_t)group, (size_t)layer))->bytes + at;
}

void *nib_kv_values(const nib_kv *kv, int64_t layer, int64_t head, int64_t group) {
    size_t keys = (size_t)(kv->store->config->E * NIB_GROUP) * nib_kv_type_bytes(kv->store->type);
    return (unsigned char *)nib_kv_keys(kv, layer, head, group) + keys;
}

static void store_f32(nib_kv *kv, int64_t layer, int64_t pos, const float *k, const float *v) {
    int64_t E = kv->store->config->E, slot = pos % NIB_GROUP;
    for (int64_t head = 0; head < kv->store->config->K; head++) {
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
    int64_t E = kv->store->config->E, slot = pos % NIB_GROUP;
    for (int64_t head = 0; head < kv->store->config->K; head++) {
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

void nib_kv_put(nib_kv *kv, const nib_kernels *kernels, int64_t layer, int64_t pos, const float *k, const float *v) {
    if (kv->store->type == NIB_KV_F16) {
        store_f16(kv, kernels, layer, pos, k, v);
    } else {
        store_f32(kv, layer, pos, k, v);
    }
}
