/* A growing array of token ids. */
#ifndef NIB_TEXT_IDS_H
#define NIB_TEXT_IDS_H

#include <stdint.h>

#include "base/memory.h"

typedef struct nib_ids {
    int32_t *ids; /* [cap], n used */
    size_t n, cap;
} nib_ids;

/* False when out of memory. */
static inline bool nib_ids_add(nib_ids *ids, int32_t id) {
    if (!nib_reserve(&ids->ids, &ids->cap, ids->n + 1, sizeof *ids->ids)) {
        return false;
    }
    ids->ids[ids->n++] = id;
    return true;
}

#endif
