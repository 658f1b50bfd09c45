/* GGUF files as a whole: mapping, the parts of a split one, access. The head of one file is read by gguf_head. */
#include "format/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "format/gguf_head.h"

enum {
    PARTS_MAX = 99999,   /* five digits in the file's name */
    PART_SUFFIX_LEN = 20 /* -00001-of-00003.gguf */
};

struct nib_gguf {
    char *label;        /* what messages call the first file */
    nib_mapping *parts; /* [n_parts], or NULL for a file in memory */
    size_t n_parts;
    uint32_t version;
    nib_gguf_meta meta;      /* of the first part */
    nib_tensor_list tensors; /* of all parts */
    nib_name_index names;    /* of tensors */
};

/* What one part says of the whole. */
typedef struct split {
    uint64_t no, count, n_tensors; /* count 0: no part of anything; n_tensors UINT64_MAX: it does not say */
} split;

/* The last component of a path: messages have no room for a long one. */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static char *make_label(const char *path) {
    const char *name = base_name(path);
    size_t len = strlen(name);
    return nib_copy_text(name, len < 120 ? len : 120);
}

static nib_status read_split(split *out, const nib_gguf_meta *meta, nib_error *err) {
    *out = (split){0, 0, UINT64_MAX};
    nib_status status = nib_gguf_meta_uint(&out->count, meta, "split.count", err);
    if (status == NIB_OK) {
        status = nib_gguf_meta_uint(&out->no, meta, "split.no", err);
    }
    if (status == NIB_OK) {
        status = nib_gguf_meta_uint(&out->n_tensors, meta, "split.tensors.count", err);
    }
    if (status == NIB_OK && out->count > PARTS_MAX) {
        return nib_fail(err, NIB_EFORMAT, "%s: split.count %" PRIu64 ", expected at most %d", meta->label, out->count,
                        PARTS_MAX);
    }
    return status;
}

/* Builds the index over all tensors; a name must be there once in all parts together. */
static nib_status index_tensors(nib_gguf *gguf, nib_error *err) {
    const nib_tensor_list *list = &gguf->tensors;
    if (!nib_name_index_init(&gguf->names, list->n)) {
        return nib_fail_memory(err, list->n * sizeof(nib_name_slot), "the index of tensors");
    }
    for (size_t i = 0; i < list->n; i++) {
        if (!nib_name_index_add(&gguf->names, list->items[i].name, i)) {
            return nib_fail(err, NIB_EFORMAT, "%s: tensor %zu '%.80s': the name is there a second time, expected once",
                            gguf->label, i, list->items[i].name);
        }
    }
    return NIB_OK;
}

/* Maps one file and appends its tensors. */
static nib_status read_part(nib_gguf_meta *meta, uint32_t *version, nib_gguf *gguf, const char *path, const char *label,
                            nib_error *err) {
    size_t part = gguf->n_parts;
    nib_mapping *mapping = &gguf->parts[part];
    nib_status status = nib_map_file(mapping, path, err);
    if (status != NIB_OK) {
        return status;
    }
    gguf->n_parts++;
    return nib_gguf_head_read(meta, version, &gguf->tensors, part, label, mapping->data, mapping->len, err);
}

/* Whether path ends as the first of count parts must: -00001-of-<count>.gguf. */
static bool is_first_name(const char *path, uint64_t count) {
    char suffix[PART_SUFFIX_LEN + 1];
    size_t len = strlen(path);
    (void)snprintf(suffix, sizeof suffix, "-00001-of-%05u.gguf", (unsigned)count);
    return len >= PART_SUFFIX_LEN && strcmp(path + len - PART_SUFFIX_LEN, suffix) == 0;
}

static nib_status check_first(const split *first, const nib_gguf *gguf, const char *path, nib_error *err) {
    if (first->no != 0) {
        return nib_fail(err, NIB_EFORMAT,
                        "%s: split.no %" PRIu64 ", expected 0: open the first of the %" PRIu64 " parts", gguf->label,
                        first->no, first->count);
    }
    if (first->count > 1 && !is_first_name(path, first->count)) {
        return nib_fail(err, NIB_EFORMAT, "%s: the name of a first part, expected to end in -00001-of-%05u.gguf",
                        gguf->label, (unsigned)first->count);
    }
    return NIB_OK;
}

/* Reads part i (from 0), whose path is path with its number in place of the first's, and compares what it says of the
 * whole with what the first says. */
static nib_status read_other_part(nib_gguf *gguf, char *path, uint64_t i, const split *first, nib_error *err) {
    size_t len = strlen(path);
    (void)snprintf(path + len - PART_SUFFIX_LEN, PART_SUFFIX_LEN + 1, "-%05u-of-%05u.gguf", (unsigned)i + 1,
                   (unsigned)first->count);
    char *label = make_label(path);
    if (label == NULL) {
        return nib_fail_memory(err, len, "a file's name");
    }
    nib_gguf_meta meta = {0};
    split here;
    uint32_t version;
    nib_status status = read_part(&meta, &version, gguf, path, label, err);
    if (status != NIB_OK) {
        goto free_label;
    }
    status = read_split(&here, &meta, err);
    if (status == NIB_OK && (here.no != i || here.count != first->count || here.n_tensors != first->n_tensors)) {
        status = nib_fail(err, NIB_EFORMAT,
                          "%s: split.no %" PRIu64 ", split.count %" PRIu64 ", split.tensors.count %" PRIu64
                          ", expected %" PRIu64 ", %" PRIu64 ", %" PRIu64 " as the first part has it",
                          label, here.no, here.count, here.n_tensors, i, first->count, first->n_tensors);
    }
    nib_gguf_meta_free(&meta);
free_label:
    nib_free(label);
    return status;
}

static nib_status read_other_parts(nib_gguf *gguf, const char *first_path, const split *first, nib_error *err) {
    size_t cap = 1;
    if (!nib_reserve(&gguf->parts, &cap, (size_t)first->count, sizeof *gguf->parts)) {
        return nib_fail_memory(err, (size_t)first->count * sizeof *gguf->parts, "the parts of a split file");
    }
    char *path = nib_copy_text(first_path, strlen(first_path));
    if (path == NULL) {
        return nib_fail_memory(err, strlen(first_path), "a file's name");
    }
    nib_status status = NIB_OK;
    for (uint64_t i = 1; i < first->count && status == NIB_OK; i++) {
        status = read_other_part(gguf, path, i, first, err);
    }
    nib_free(path);
    return status;
}

static nib_status read_files(nib_gguf *gguf, const char *path, nib_error *err) {
    split first;
    nib_status status = read_part(&gguf->meta, &gguf->version, gguf, path, gguf->label, err);
    if (status == NIB_OK) {
        status = read_split(&first, &gguf->meta, err);
    }
    if (status != NIB_OK || first.count == 0) {
        return status;
    }
    status = check_first(&first, gguf, path, err);
    if (status == NIB_OK && first.count > 1) {
        status = read_other_parts(gguf, path, &first, err);
    }
    if (status == NIB_OK && first.n_tensors != UINT64_MAX && first.n_tensors != gguf->tensors.n) {
        status = nib_fail(err, NIB_EFORMAT,
                          "%s: split.tensors.count %" PRIu64 ", expected %zu: so many are in the %" PRIu64 " parts",
                          gguf->label, first.n_tensors, gguf->tensors.n, first.count);
    }
    return status;
}

/* A file in memory has no others beside it. */
static nib_status check_whole(const nib_gguf *gguf, nib_error *err) {
    split here;
    nib_status status = read_split(&here, &gguf->meta, err);
    if (status == NIB_OK && here.count > 1) {
        return nib_fail(err, NIB_EUNSUPPORTED, "%s: split.count %" PRIu64 ", expected a file that is not split",
                        gguf->label, here.count);
    }
    return status;
}

nib_status nib_gguf_open(nib_gguf **out, const char *path, nib_error *err) {
    *out = NULL;
    nib_gguf *gguf = nib_alloc_zero(1, sizeof *gguf);
    if (gguf == NULL) {
        return nib_fail_memory(err, sizeof *gguf, "a model file");
    }
    nib_status status;
    gguf->label = make_label(path);
    gguf->parts = nib_alloc_zero(1, sizeof *gguf->parts);
    if (gguf->label == NULL || gguf->parts == NULL) {
        status = nib_fail_memory(err, strlen(path), "a file's name");
        goto free_gguf;
    }
    status = read_files(gguf, path, err);
    if (status == NIB_OK) {
        status = index_tensors(gguf, err);
    }
    if (status == NIB_OK) {
        *out = gguf;
        return NIB_OK;
    }
free_gguf:
    nib_gguf_free(gguf);
    return status;
}

nib_status nib_gguf_open_memory(nib_gguf **out, const void *data, size_t len, nib_error *err) {
    *out = NULL;
    nib_gguf *gguf = nib_alloc_zero(1, sizeof *gguf);
    if (gguf == NULL) {
        return nib_fail_memory(err, sizeof *gguf, "a model file");
    }
    nib_status status;
    gguf->label = make_label("model in memory");
    if (gguf->label == NULL) {
        status = nib_fail_memory(err, sizeof "model in memory", "a file's name");
        goto free_gguf;
    }
    gguf->n_parts = 1;
    status = nib_gguf_head_read(&gguf->meta, &gguf->version, &gguf->tensors, 0, gguf->label, data, len, err);
    if (status == NIB_OK) {
        status = check_whole(gguf, err);
    }
    if (status == NIB_OK) {
        status = index_tensors(gguf, err);
    }
    if (status == NIB_OK) {
        *out = gguf;
        return NIB_OK;
    }
free_gguf:
    nib_gguf_free(gguf);
    return status;
}

bool nib_gguf_is_mapped(const nib_gguf *gguf) {
    return gguf->parts != NULL;
}

void nib_gguf_free(nib_gguf *gguf) {
    if (gguf == NULL) {
        return;
    }
    nib_name_index_free(&gguf->names);
    nib_tensor_list_free(&gguf->tensors);
    nib_gguf_meta_free(&gguf->meta);
    for (size_t i = 0; gguf->parts != NULL && i < gguf->n_parts; i++) {
        nib_unmap_file(&gguf->parts[i]);
    }
    nib_free(gguf->parts);
    nib_free(gguf->label);
    nib_free(gguf);
}

uint32_t nib_gguf_version(const nib_gguf *gguf) {
    return gguf->version;
}

size_t nib_gguf_n_parts(const nib_gguf *gguf) {
    return gguf->n_parts;
}

size_t nib_gguf_size_bytes(const nib_gguf *gguf) {
    size_t size = gguf->meta.len;
    for (size_t i = 1; i < gguf->n_parts; i++) {
        size += gguf->parts[i].len; /* all are mapped at once, so the sum fits */
    }
    return size;
}

size_t nib_gguf_n_entries(const nib_gguf *gguf) {
    return gguf->meta.n_entries;
}

void nib_gguf_entry(nib_file_entry *entry, const nib_gguf *gguf, size_t i) {
    const nib_gguf_meta_entry *from = &gguf->meta.entries[i];
    *entry = (nib_file_entry){from->key, nib_gguf_type_find(from->type)->name, from->is_array, from->n};
}

void nib_gguf_value(nib_value *value, const nib_gguf *gguf, size_t i, size_t j) {
    nib_gguf_meta_value(value, &gguf->meta, i, j);
}

int64_t nib_gguf_find(const nib_gguf *gguf, const char *key) {
    return nib_name_index_find(&gguf->meta.keys, key);
}

nib_status nib_gguf_get_uint(uint64_t *value, const nib_gguf *gguf, const char *key, nib_error *err) {
    return nib_gguf_meta_uint(value, &gguf->meta, key, err);
}

nib_status nib_gguf_get_real(double *value, const nib_gguf *gguf, const char *key, nib_error *err) {
    return nib_gguf_meta_real(value, &gguf->meta, key, err);
}

nib_status nib_gguf_get_bool(bool *value, const nib_gguf *gguf, const char *key, nib_error *err) {
    return nib_gguf_meta_bool(value, &gguf->meta, key, err);
}

nib_status nib_gguf_get_string(const char **text, size_t *len, const nib_gguf *gguf, const char *key, nib_error *err) {
    return nib_gguf_meta_string(text, len, &gguf->meta, key, err);
}

nib_status nib_gguf_get_array(int64_t *entry, size_t *n, const nib_gguf *gguf, const char *key, nib_value_kind kind,
                              nib_error *err) {
    return nib_gguf_meta_array(entry, n, &gguf->meta, key, kind, err);
}

size_t nib_gguf_n_tensors(const nib_gguf *gguf) {
    return gguf->tensors.n;
}

const nib_tensor *nib_gguf_tensor(const nib_gguf *gguf, size_t i) {
    return &gguf->tensors.items[i];
}

const nib_tensor *nib_gguf_find_tensor(const nib_gguf *gguf, const char *name) {
    int64_t i = nib_name_index_find(&gguf->names, name);
    return i < 0 ? NULL : &gguf->tensors.items[i];
}
