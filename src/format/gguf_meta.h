/* The metadata of one GGUF file: where each entry's value lies, typed access to it. Reading the entries out of the file
 * and checking them is gguf_head's. */
#ifndef NIB_FORMAT_GGUF_META_H
#define NIB_FORMAT_GGUF_META_H

#include <nib/file.h>

#include "base/error.h"
#include "format/name_index.h"

/* The value types by the specification's numbers. */
enum {
    NIB_GGUF_U8 = 0,
    NIB_GGUF_I8,
    NIB_GGUF_U16,
    NIB_GGUF_I16,
    NIB_GGUF_U32,
    NIB_GGUF_I32,
    NIB_GGUF_F32,
    NIB_GGUF_BOOL,
    NIB_GGUF_STRING,
    NIB_GGUF_ARRAY,
    NIB_GGUF_U64,
    NIB_GGUF_I64,
    NIB_GGUF_F64
};

typedef struct nib_gguf_type {
    const char *name; /* "u32" */
    size_t size;      /* bytes of one value; of a string: of its length, the least it takes; 0 for an array */
    nib_value_kind kind;
} nib_gguf_type;

/* What is known of a value type; NULL for a number that is none. */
const nib_gguf_type *nib_gguf_type_find(uint32_t number);

typedef struct nib_gguf_meta_entry {
    char *key;     /* terminated */
    uint32_t type; /* of the value or of the elements; never NIB_GGUF_ARRAY */
    bool is_array;
    size_t n;       /* elements; 1 when it is no array */
    size_t at;      /* of the first element in the file */
    size_t *starts; /* [n] of each element in the file, for an array of strings; else NULL */
} nib_gguf_meta_entry;

typedef struct nib_gguf_meta {
    const char *label;         /* what messages call the file; borrowed */
    const unsigned char *data; /* [len] the file; borrowed */
    size_t len;
    nib_gguf_meta_entry *entries; /* [n_entries] */
    size_t n_entries;
    nib_name_index keys;
} nib_gguf_meta;

/* A number of n bytes, 1 .. 8, little endian. */
uint64_t nib_gguf_load(const unsigned char *bytes, size_t n);

/* Element j of entry i, both in range. */
void nib_gguf_meta_value(nib_value *value, const nib_gguf_meta *meta, size_t i, size_t j);

/* As the functions nib_gguf_get_* of gguf.h. */
nib_status nib_gguf_meta_uint(uint64_t *value, const nib_gguf_meta *meta, const char *key, nib_error *err);
nib_status nib_gguf_meta_real(double *value, const nib_gguf_meta *meta, const char *key, nib_error *err);
nib_status nib_gguf_meta_bool(bool *value, const nib_gguf_meta *meta, const char *key, nib_error *err);
nib_status nib_gguf_meta_string(const char **text, size_t *len, const nib_gguf_meta *meta, const char *key,
                                nib_error *err);
nib_status nib_gguf_meta_array(int64_t *entry, size_t *n, const nib_gguf_meta *meta, const char *key,
                               nib_value_kind kind, nib_error *err);

void nib_gguf_meta_free(nib_gguf_meta *meta);

#endif
