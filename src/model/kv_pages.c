/* Memory for the pages of KV caches. */
#include "model/kv_pages.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

enum { SLAB_BYTES = 2 << 20 /* a huge page: slabs grow up to it, then stay at `step` pages */ };

void nib_kv_pages_init(nib_kv_pages *pool, size_t page_bytes, size_t step) {
    *pool = (nib_kv_pages){.page_bytes = (page_bytes + 63) / 64 * 64, .step = step};
}

void nib_kv_pages_free(nib_kv_pages *pool) {
    assert(pool->n_used == 0);
    for (size_t i = 0; i < pool->n_slabs; i++) {
        nib_free(pool->slabs[i].pages);
        nib_free(pool->slabs[i].memory);
    }
    nib_free(pool->slabs);
    nib_kv_pages_init(pool, pool->page_bytes, pool->step);
}

static bool add_slab(nib_kv_pages *pool, size_t n) {
    size_t bytes;
    if (!nib_reserve(&pool->slabs, &pool->cap_slabs, pool->n_slabs + 1, sizeof pool->slabs[0]) ||
        !nib_mul_size(&bytes, n, pool->page_bytes)) {
        return false;
    }
    nib_kv_slab slab = {nib_alloc(n, sizeof(nib_kv_page)), nib_alloc_large(bytes), n, n};
    if (slab.pages == NULL || slab.memory == NULL) {
        nib_free(slab.pages);
        nib_free(slab.memory);
        return false;
    }
    pool->slabs[pool->n_slabs++] = slab;
    pool->n_pages += n;
    return true;
}

bool nib_kv_pages_fix(nib_kv_pages *pool, size_t n) {
    if (n > pool->n_pages && !add_slab(pool, n - pool->n_pages)) {
        return false;
    }
    pool->fixed = true;
    return true;
}

/* As many as there are already, up to SLAB_BYTES: a short text takes little, a long one few steps. */
static size_t next_slab(const nib_kv_pages *pool) {
    size_t n = pool->step;
    while (n < pool->n_pages && n * pool->page_bytes < SLAB_BYTES) {
        n *= 2;
    }
    return n;
}

/* A page that was used before, else one that never was. */
static nib_kv_page *take(nib_kv_pages *pool) {
    nib_kv_page *page = pool->free;
    if (page != NULL) {
        pool->free = page->next_free;
        return page;
    }
    for (size_t i = pool->n_slabs; i-- > 0;) {
        nib_kv_slab *slab = &pool->slabs[i];
        if (slab->n_fresh > 0) {
            size_t at = slab->n - slab->n_fresh--;
            slab->pages[at].bytes = slab->memory + at * pool->page_bytes;
            return &slab->pages[at];
        }
    }
    return NULL;
}

nib_kv_page *nib_kv_page_new(nib_kv_pages *pool) {
    if (pool->n_used == pool->n_pages && (pool->fixed || !add_slab(pool, next_slab(pool)))) {
        return NULL;
    }
    nib_kv_page *page = take(pool);
    assert(page != NULL);
    page->refs = 1;
    page->next_free = NULL;
    pool->n_used++;
#ifndef NDEBUG
    memset(page->bytes, 0xff, pool->page_bytes);
#endif
    return page;
}

void nib_kv_page_release(nib_kv_pages *pool, nib_kv_page *page) {
    assert(page->refs > 0);
    if (--page->refs == 0) {
        page->next_free = pool->free;
        pool->free = page;
        pool->n_used--;
    }
}
