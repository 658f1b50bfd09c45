/* From names to their numbers, in constant time: the keys and tensors of one model file. The names are borrowed and must
 * outlive the index. The hash is keyed by a random seed, so that no file can be made to collide; nothing that is
 * computed depends on it. */
#ifndef NIB_FORMAT_NAME_INDEX_H
#define NIB_FORMAT_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nib_name_slot {
    const char *name; /* NULL: free */
    size_t number;
} nib_name_slot;

typedef struct nib_name_index {
    nib_name_slot *slots; /* [mask + 1], at least half of them free */
    size_t mask;
    uint64_t seed;
} nib_name_index;

/* Makes room for n names. False when out of memory. */
bool nib_name_index_init(nib_name_index *index, size_t n);

/* Adds a name. False when it is there already. */
bool nib_name_index_add(nib_name_index *index, const char *name, size_t number);

/* The number of a name, or -1. */
int64_t nib_name_index_find(const nib_name_index *index, const char *name);

/* Frees the slots; the index is then empty. */
void nib_name_index_free(nib_name_index *index);

#endif
