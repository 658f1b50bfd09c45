/* Memory for the pages of KV caches: handed out one at a time, shared by counted references, taken back for the next.
 * What a page holds is known to kv.c alone. Used by one thread at a time. */
#ifndef NIB_MODEL_KV_PAGES_H
#define NIB_MODEL_KV_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nib_kv_page {
    unsigned char *bytes; /* [page_bytes], aligned to 64 */
    size_t refs;
    struct nib_kv_page *next_free;
} nib_kv_page;

/* Pages that were allocated together. */
typedef struct nib_kv_slab {
    nib_kv_page *pages; /* [n] */
    unsigned char *memory;
    size_t n, n_fresh; /* pages in all; those that were never handed out, at the end */
} nib_kv_slab;

typedef struct nib_kv_pages {
    size_t page_bytes; /* a multiple of 64 */
    size_t step;       /* pages that are allocated together at least */
    nib_kv_slab *slabs;
    size_t n_slabs, cap_slabs;
    nib_kv_page *free;
    size_t n_pages, n_used;
    bool fixed; /* a static cache: what there is is all */
} nib_kv_pages;

void nib_kv_pages_init(nib_kv_pages *pool, size_t page_bytes, size_t step);

/* Frees all memory; no page may be in use any more. */
void nib_kv_pages_free(nib_kv_pages *pool);

/* Makes the pool hold n pages at least, in one piece that costs nothing until it is written, and no more than it then
 * has. False when out of memory; the pool stays as it was. */
bool nib_kv_pages_fix(nib_kv_pages *pool, size_t n);

/* A page with one reference; NULL when out of memory or when a fixed pool is used up. What it holds is undefined; in a
 * build with assertions it is NaN in every type, so that a read of it shows. */
nib_kv_page *nib_kv_page_new(nib_kv_pages *pool);

/* Gives one reference back. */
void nib_kv_page_release(nib_kv_pages *pool, nib_kv_page *page);

#endif
