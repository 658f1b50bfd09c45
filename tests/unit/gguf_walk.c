/* Looks at every field of a file that was accepted. */
#include "gguf_walk.h"

#include <string.h>

/* Whether [part, part + n) lies in data [len]. */
static bool lies_in(const void *part, size_t n, const unsigned char *data, size_t len) {
    uintptr_t begin = (uintptr_t)data;
    uintptr_t at = (uintptr_t)part;
    return at >= begin && at - begin <= len && n <= len - (at - begin);
}

static const char *check_value(const nib_value *value, const nib_file_entry *entry, const unsigned char *data,
                               size_t len) {
    switch (value->kind) {
    case NIB_VALUE_UINT: return entry->type[0] == 'u' ? NULL : "an unsigned kind of another type";
    case NIB_VALUE_INT: return entry->type[0] == 'i' ? NULL : "a signed kind of another type";
    case NIB_VALUE_REAL:
        return strcmp(entry->type, value->is_float32 ? "f32" : "f64") == 0 ? NULL : "a real kind of another type";
    case NIB_VALUE_BOOL:
        return strcmp(entry->type, "bool") == 0 && value->u <= 1 ? NULL : "a bool that is neither 0 nor 1";
    case NIB_VALUE_STRING:
        return strcmp(entry->type, "string") == 0 && lies_in(value->text, value->len, data, len)
                   ? NULL
                   : "a string outside the file";
    }
    return "an unknown value kind";
}

static const char *check_entry(const nib_gguf *gguf, size_t i, const unsigned char *data, size_t len) {
    nib_file_entry entry;
    nib_gguf_entry(&entry, gguf, i);
    if (entry.key == NULL || entry.key[0] == '\0' || entry.type == NULL) {
        return "an entry without key or type";
    }
    if (nib_gguf_find(gguf, entry.key) != (int64_t)i) {
        return "a key that is not found";
    }
    if (entry.n > len || (!entry.is_array && entry.n != 1)) {
        return "an impossible number of elements";
    }
    for (size_t j = 0; j < entry.n; j++) {
        nib_value value;
        nib_gguf_value(&value, gguf, i, j);
        const char *wrong = check_value(&value, &entry, data, len);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}

static const char *check_tensor(const nib_gguf *gguf, size_t i, const unsigned char *data, size_t len) {
    const nib_tensor *tensor = nib_gguf_tensor(gguf, i);
    const nib_dtype_traits *traits = nib_dtype_find(tensor->type);
    if (tensor->name == NULL || tensor->name[0] == '\0' || traits == NULL) {
        return "a tensor without name or type";
    }
    if (nib_gguf_find_tensor(gguf, tensor->name) != tensor) {
        return "a tensor that is not found by name";
    }
    if (tensor->n_dims < 1 || tensor->n_dims > 4 || tensor->dims[0] % traits->block != 0) {
        return "impossible dimensions";
    }
    size_t n = 1;
    for (uint32_t d = 0; d < 4; d++) {
        if (tensor->dims[d] < 1 || (d >= tensor->n_dims && tensor->dims[d] != 1)) {
            return "a dimension of 0, or one beyond n_dims that is not 1";
        }
        if (__builtin_mul_overflow(n, tensor->dims[d], &n)) {
            return "a product of dimensions that overflows";
        }
    }
    if (tensor->size_bytes != n / traits->block * traits->block_bytes || tensor->size_bytes == 0) {
        return "a size that is not the dimensions'";
    }
    if (!lies_in(tensor->data, tensor->size_bytes, data, len) || tensor->data != data + tensor->offset) {
        return "data outside the file or not at offset";
    }
    return tensor->part == 0 ? NULL : "a part other than the only one";
}

static const char *check_alignment(const nib_gguf *gguf) {
    uint64_t alignment = 32;
    if (nib_gguf_get_uint(&alignment, gguf, "general.alignment", NULL) != NIB_OK) {
        return "an alignment that is no number";
    }
    for (size_t i = 0; i < nib_gguf_n_tensors(gguf); i++) {
        if (alignment < 8 || nib_gguf_tensor(gguf, i)->offset % alignment != 0) {
            return "a tensor that is not aligned";
        }
    }
    return NULL;
}

const char *nib_test_gguf_walk(const nib_gguf *gguf, const unsigned char *data, size_t len) {
    const char *wrong = NULL;
    if ((nib_gguf_version(gguf) != 2 && nib_gguf_version(gguf) != 3) || nib_gguf_n_parts(gguf) != 1) {
        return "an impossible version or number of parts";
    }
    for (size_t i = 0; i < nib_gguf_n_entries(gguf) && wrong == NULL; i++) {
        wrong = check_entry(gguf, i, data, len);
    }
    for (size_t i = 0; i < nib_gguf_n_tensors(gguf) && wrong == NULL; i++) {
        wrong = check_tensor(gguf, i, data, len);
    }
    return wrong == NULL ? check_alignment(gguf) : wrong;
}
