/* Files: mapped read-only, or read whole. */
#ifndef NIB_BASE_FILE_H
#define NIB_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct nib_mapping {
    const unsigned char *data; /* [len]; NULL when len is 0 */
    size_t len;
    void *base; /* what to unmap */
} nib_mapping;

/* Which file a path leads to, and which state of it. */
typedef struct nib_file_id {
    uint64_t device, inode, size_bytes, changed_ns;
} nib_file_id;

/* False when the path leads to no file. */
bool nib_file_identify(nib_file_id *id, const char *path);

/* Map a regular file. NIB_EIO names path and reason. */
nib_status nib_map_file(nib_mapping *out, const char *path, nib_error *err);

/* Gives back the memory of the whole pages in data [len], a part of a mapping; they are read from the file again when they
 * are looked at. */
void nib_mapping_drop(const void *data, size_t len);

void nib_unmap_file(nib_mapping *mapping);

#endif
