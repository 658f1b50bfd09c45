/* From names to their numbers: open addressing with linear probing. */
#include "format/name_index.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"

static uint64_t hash(uint64_t seed, const char *name) {
    size_t len = strlen(name);
    uint64_t h = nib_mix64(seed, len);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, name + i, len - i < 8 ? len - i : 8);
        h = nib_mix64(h ^ word, 0);
    }
    return h;
}

/* The slot that holds name, or the free one where it belongs. */
static nib_name_slot *slot_of(const nib_name_index *index, const char *name) {
    size_t at = (size_t)hash(index->seed, name) & index->mask;
    while (index->slots[at].name != NULL && strcmp(index->slots[at].name, name) != 0) {
        at = (at + 1) & index->mask;
    }
    return &index->slots[at];
}

bool nib_name_index_init(nib_name_index *index, size_t n) {
    size_t cap = 2;
    while (cap / 2 < n) {
        if (!nib_mul_size(&cap, cap, 2)) {
            return false;
        }
    }
    nib_name_slot *slots = nib_alloc_zero(cap, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    *index = (nib_name_index){slots, cap - 1, nib_random_seed()};
    return true;
}

bool nib_name_index_add(nib_name_index *index, const char *name, size_t number) {
    nib_name_slot *slot = slot_of(index, name);
    if (slot->name != NULL) {
        return false;
    }
    *slot = (nib_name_slot){name, number};
    return true;
}

int64_t nib_name_index_find(const nib_name_index *index, const char *name) {
    if (index->slots == NULL) {
        return -1;
    }
    const nib_name_slot *slot = slot_of(index, name);
    return slot->name == NULL ? -1 : (int64_t)slot->number;
}

void nib_name_index_free(nib_name_index *index) {
    nib_free(index->slots);
    *index = (nib_name_index){0};
}
