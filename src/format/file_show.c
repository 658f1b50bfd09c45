/* The public view of a model file, include/nib/file.h: gguf.h with indices checked. */
#include <nib/file.h>

#include "base/memory.h"
#include "format/gguf.h"

struct nib_file {
    nib_gguf *gguf;
};

nib_status nib_file_open(nib_file **out, const char *path, nib_error *err) {
    *out = NULL;
    nib_file *file = nib_alloc(1, sizeof *file);
    if (file == NULL) {
        return nib_fail_memory(err, sizeof *file, "a model file");
    }
    nib_status status = nib_gguf_open(&file->gguf, path, err);
    if (status != NIB_OK) {
        nib_free(file);
        return status;
    }
    *out = file;
    return NIB_OK;
}

const char *nib_file_format(uint32_t *version, const nib_file *file) {
    *version = nib_gguf_version(file->gguf);
    return "GGUF";
}

size_t nib_file_n_entries(const nib_file *file) {
    return nib_gguf_n_entries(file->gguf);
}

size_t nib_file_n_tensors(const nib_file *file) {
    return nib_gguf_n_tensors(file->gguf);
}

size_t nib_file_n_parts(const nib_file *file) {
    return nib_gguf_n_parts(file->gguf);
}

size_t nib_file_size_bytes(const nib_file *file) {
    return nib_gguf_size_bytes(file->gguf);
}

static nib_status check_index(size_t i, size_t n, const char *what, nib_error *err) {
    if (i < n) {
        return NIB_OK;
    }
    return nib_fail(err, NIB_EINVAL, "%s %zu, expected less than %zu", what, i, n);
}

nib_status nib_file_get_entry(nib_file_entry *entry, const nib_file *file, size_t i, nib_error *err) {
    nib_status status = check_index(i, nib_file_n_entries(file), "metadata entry", err);
    if (status == NIB_OK) {
        nib_gguf_entry(entry, file->gguf, i);
    }
    return status;
}

nib_status nib_file_get_value(nib_value *value, const nib_file *file, size_t i, size_t j, nib_error *err) {
    nib_file_entry entry;
    nib_status status = nib_file_get_entry(&entry, file, i, err);
    if (status == NIB_OK) {
        status = check_index(j, entry.n, "element", err);
    }
    if (status == NIB_OK) {
        nib_gguf_value(value, file->gguf, i, j);
    }
    return status;
}

nib_status nib_file_get_tensor(nib_file_tensor *tensor, const nib_file *file, size_t i, nib_error *err) {
    nib_status status = check_index(i, nib_file_n_tensors(file), "tensor", err);
    if (status != NIB_OK) {
        return status;
    }
    const nib_tensor *from = nib_gguf_tensor(file->gguf, i);
    *tensor = (nib_file_tensor){.name = from->name,
                                .type = nib_dtype_find(from->type)->name,
                                .n_dims = from->n_dims,
                                .dims = {from->dims[0], from->dims[1], from->dims[2], from->dims[3]},
                                .size_bytes = from->size_bytes,
                                .offset = from->offset,
                                .part = from->part};
    return NIB_OK;
}

void nib_file_free(nib_file *file) {
    if (file == NULL) {
        return;
    }
    nib_gguf_free(file->gguf);
    nib_free(file);
}
