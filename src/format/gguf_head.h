/* Reads the head of one GGUF file: version, metadata, tensors; every count, length, dimension and offset is checked
 * against the file's size before it is used and before memory in proportion to it is taken. */
#ifndef NIB_FORMAT_GGUF_HEAD_H
#define NIB_FORMAT_GGUF_HEAD_H

#include "format/gguf.h"
#include "format/gguf_meta.h"

typedef struct nib_tensor_list {
    nib_tensor *items; /* [cap], n used; the names are the list's own */
    size_t n, cap;
} nib_tensor_list;

/* Appends the tensors of data [len] to the list, as of that part, and sets *version and *meta, which borrows data and
 * label. After a failure *meta is empty and the list may hold some tensors more.
 * Returns NIB_OK, NIB_EFORMAT, NIB_EUNSUPPORTED, NIB_ENOMEM. */
nib_status nib_gguf_head_read(nib_gguf_meta *meta, uint32_t *version, nib_tensor_list *tensors, size_t part,
                              const char *label, const unsigned char *data, size_t len, nib_error *err);

void nib_tensor_list_free(nib_tensor_list *list);

#endif
