/* What is in a model file: its metadata and its tensors, without opening it as a model. */
#ifndef NIB_FILE_H
#define NIB_FILE_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nib_file nib_file;

typedef enum nib_value_kind {
    NIB_VALUE_UINT = 0, /* u */
    NIB_VALUE_INT,      /* i */
    NIB_VALUE_REAL,     /* r */
    NIB_VALUE_BOOL,     /* u, 0 or 1 */
    NIB_VALUE_STRING    /* text [len], bytes of the file, not terminated */
} nib_value_kind;

/** One value. */
typedef struct nib_value {
    nib_value_kind kind;
    int is_float32; /* r came from a binary32: nine significant digits say all of it */
    uint64_t u;
    int64_t i;
    double r;
    const char *text;
    size_t len;
} nib_value;

/** One metadata entry. Pointers are borrowed while the file is open. */
typedef struct nib_file_entry {
    const char *key;  /* terminated */
    const char *type; /* "u8" "i8" "u16" "i16" "u32" "i32" "u64" "i64" "f32" "f64" "bool" "string" */
    int is_array;
    size_t n; /* elements; 1 when it is no array */
} nib_file_entry;

/** One tensor. Pointers are borrowed while the file is open. */
typedef struct nib_file_tensor {
    const char *name; /* terminated */
    const char *type; /* "F32", "Q4_K", .. */
    uint32_t n_dims;  /* 1 .. 4 */
    uint64_t dims[4]; /* as in the file: dims[0] is contiguous; 1 beyond n_dims */
    size_t size_bytes;
    size_t offset; /* in its file, of the first byte */
    size_t part;   /* which file of a split one, from 0 */
} nib_file_tensor;

/** Read the head of a model file; tensors are not read.
 *
 *  path  a GGUF file; of a split one, the first: the others are found beside it
 *
 *  Returns NIB_OK; NIB_EIO; NIB_EFORMAT (the message names the field, its value and what was expected);
 *          NIB_EUNSUPPORTED (a version or a tensor type that is not known); NIB_ENOMEM.
 */
NIB_API nib_status nib_file_open(nib_file **out, const char *path, nib_error *err);

/** "GGUF", and its version. */
NIB_API const char *nib_file_format(uint32_t *version, const nib_file *file);

NIB_API size_t nib_file_n_entries(const nib_file *file);
NIB_API size_t nib_file_n_tensors(const nib_file *file);
NIB_API size_t nib_file_n_parts(const nib_file *file);

/** Bytes of all parts together. */
NIB_API size_t nib_file_size_bytes(const nib_file *file);

/** Entry i. Returns NIB_OK; NIB_EINVAL (i). */
NIB_API nib_status nib_file_get_entry(nib_file_entry *entry, const nib_file *file, size_t i, nib_error *err);

/** Element j of entry i. Returns NIB_OK; NIB_EINVAL (i or j). */
NIB_API nib_status nib_file_get_value(nib_value *value, const nib_file *file, size_t i, size_t j, nib_error *err);

/** Tensor i. Returns NIB_OK; NIB_EINVAL (i). */
NIB_API nib_status nib_file_get_tensor(nib_file_tensor *tensor, const nib_file *file, size_t i, nib_error *err);

/** Close a file. NULL is accepted. */
NIB_API void nib_file_free(nib_file *file);

#ifdef __cplusplus
}
#endif
#endif
