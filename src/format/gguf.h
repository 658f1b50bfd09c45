/* GGUF files, versions 2 and 3, single and split: the head is read and every count and offset checked against the file;
 * tensors stay where they are. Format: the GGUF specification of the ggml project. */
#ifndef NIB_FORMAT_GGUF_H
#define NIB_FORMAT_GGUF_H

#include <nib/file.h>

#include "base/error.h"
#include "kernel/dtype.h"

typedef struct nib_gguf nib_gguf;

/* One tensor: dims[0] is contiguous. data stays valid until nib_gguf_free. */
typedef struct nib_tensor {
    const char *name;          /* terminated */
    uint32_t n_dims;           /* 1 .. 4 */
    uint64_t dims[4];          /* 1 beyond n_dims; each at least 1 */
    uint32_t type;             /* a number that nib_dtype_find knows */
    const unsigned char *data; /* [size_bytes] */
    size_t size_bytes;
    size_t offset; /* of the first byte in its file */
    size_t part;   /* which file of a split one, from 0 */
} nib_tensor;

/* Map a file and, of a split one, the other parts, which lie beside the first as NAME-00002-of-00003.gguf; path must be
 * the first's. After success every field is in range and every tensor's data lies in the file.
 * Returns NIB_OK; NIB_EIO (a file or a part that cannot be read); NIB_EFORMAT (no GGUF, damaged, truncated, foreign byte
 * order, or parts that do not belong together); NIB_EUNSUPPORTED (another version, an unknown tensor type, arrays within
 * arrays); NIB_ENOMEM. Time and memory are linear in the head's size. */
nib_status nib_gguf_open(nib_gguf **out, const char *path, nib_error *err);

/* The same for a file that lies in memory; data [len] stays the caller's. A split one is NIB_EUNSUPPORTED. */
nib_status nib_gguf_open_memory(nib_gguf **out, const void *data, size_t len, nib_error *err);

/* Whether the tensors lie in mapped files (not in the caller's memory). */
bool nib_gguf_is_mapped(const nib_gguf *gguf);

void nib_gguf_free(nib_gguf *gguf);

uint32_t nib_gguf_version(const nib_gguf *gguf);
size_t nib_gguf_n_parts(const nib_gguf *gguf);
size_t nib_gguf_size_bytes(const nib_gguf *gguf); /* of all parts */

/* Metadata by index and by key. An index is 0 .. n-1; find gives -1 when there is none. */
size_t nib_gguf_n_entries(const nib_gguf *gguf);
void nib_gguf_entry(nib_file_entry *entry, const nib_gguf *gguf, size_t i);
void nib_gguf_value(nib_value *value, const nib_gguf *gguf, size_t i, size_t j);
int64_t nib_gguf_find(const nib_gguf *gguf, const char *key);

/* Typed access. Each returns NIB_OK and leaves *value alone when the key is absent; NIB_EFORMAT naming key, type and what
 * was expected when it is there with another type, or does not fit (any integer type is taken where an integer is
 * wanted, any real where a real is wanted). */
nib_status nib_gguf_get_uint(uint64_t *value, const nib_gguf *gguf, const char *key, nib_error *err);
nib_status nib_gguf_get_real(double *value, const nib_gguf *gguf, const char *key, nib_error *err);
nib_status nib_gguf_get_bool(bool *value, const nib_gguf *gguf, const char *key, nib_error *err);
nib_status nib_gguf_get_string(const char **text, size_t *len, const nib_gguf *gguf, const char *key, nib_error *err);

/* An array by key: *entry its index, *n its length, -1 and 0 when absent; NIB_EFORMAT when it is no array of that kind. An
 * integer kind takes any integers: nib_gguf_value sets both u and i for them, as two's complement. */
nib_status nib_gguf_get_array(int64_t *entry, size_t *n, const nib_gguf *gguf, const char *key, nib_value_kind kind,
                              nib_error *err);

size_t nib_gguf_n_tensors(const nib_gguf *gguf);
const nib_tensor *nib_gguf_tensor(const nib_gguf *gguf, size_t i);

/* By name (hashed); NULL when there is none. */
const nib_tensor *nib_gguf_find_tensor(const nib_gguf *gguf, const char *name);

#endif
