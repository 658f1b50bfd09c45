/* The head of one GGUF file. Format: the GGUF specification of the ggml project, versions 2 and 3. */
#include "format/gguf_head.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    NAME_MAX_BYTES = 65535, /* of a key, by the specification; of a tensor's name, so that something bounds it */
    ENTRY_MIN_BYTES = 8 + 1 + 4 + 1,
    TENSOR_MIN_BYTES = 8 + 1 + 4 + 8 + 4 + 8,
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MIN = 8,
    ALIGNMENT_MAX = 1 << 20
};

/* A position in the file, and what is being read there, for messages. */
typedef struct reader {
    const unsigned char *data; /* [len] */
    size_t len, at;
    const char *label;
    const char *thing; /* "tensor", "metadata entry"; NULL for the file's own fields */
    size_t number;     /* which of them */
    const char *name;  /* its name, or NULL before that is known */
    nib_error *err;
} reader;

static nib_status fail(const reader *r, nib_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A failure whose message begins with the file and the thing that is being read. */
static nib_status fail(const reader *r, nib_status code, const char *format, ...) {
    char where[160] = "";
    char what[256];
    if (r->thing != NULL && r->name != NULL) {
        (void)snprintf(where, sizeof where, "%s %zu '%.80s': ", r->thing, r->number, r->name);
    } else if (r->thing != NULL) {
        (void)snprintf(where, sizeof where, "%s %zu: ", r->thing, r->number);
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return nib_fail(r->err, code, "%s: %s%s", r->label, where, what);
}

static size_t rest(const reader *r) {
    return r->len - r->at;
}

static nib_status take(const unsigned char **bytes, reader *r, size_t n, const char *what) {
    if (n > rest(r)) {
        return fail(r, NIB_EFORMAT, "%s at byte %zu: the file ends at byte %zu, expected %zu bytes more", what, r->at,
                    r->len, n - rest(r));
    }
    *bytes = r->data + r->at;
    r->at += n;
    return NIB_OK;
}

static nib_status take_u32(uint32_t *value, reader *r, const char *what) {
    const unsigned char *bytes = NULL;
    nib_status status = take(&bytes, r, 4, what);
    if (status == NIB_OK) {
        *value = (uint32_t)nib_gguf_load(bytes, 4);
    }
    return status;
}

static nib_status take_u64(uint64_t *value, reader *r, const char *what) {
    const unsigned char *bytes = NULL;
    nib_status status = take(&bytes, r, 8, what);
    if (status == NIB_OK) {
        *value = nib_gguf_load(bytes, 8);
    }
    return status;
}

/* A count of things that take at least min_bytes each, so that the rest of the file bounds it. */
static nib_status take_count(size_t *count, reader *r, size_t min_bytes, const char *what) {
    uint64_t n = 0;
    nib_status status = take_u64(&n, r, what);
    if (status != NIB_OK) {
        return status;
    }
    if (n > rest(r) / min_bytes) {
        return fail(r, NIB_EFORMAT, "%s %" PRIu64 ", expected at most %zu: the file has %zu bytes more", what, n,
                    rest(r) / min_bytes, rest(r));
    }
    *count = (size_t)n;
    return NIB_OK;
}

static nib_status take_string(const char **text, size_t *len, reader *r, const char *what) {
    nib_status status = take_count(len, r, 1, what);
    if (status == NIB_OK) {
        *text = (const char *)r->data + r->at;
        r->at += *len;
    }
    return status;
}

/* A key or a tensor's name, as a copy. */
static nib_status take_name(char **name, reader *r, const char *what) {
    const char *text = NULL;
    size_t len = 0;
    nib_status status = take_string(&text, &len, r, what);
    if (status != NIB_OK) {
        return status;
    }
    if (len < 1 || len > NAME_MAX_BYTES) {
        return fail(r, NIB_EFORMAT, "%s %zu, expected 1 to %d", what, len, NAME_MAX_BYTES);
    }
    if (memchr(text, '\0', len) != NULL) {
        return fail(r, NIB_EFORMAT, "a NUL byte in the name '%.80s', expected none", text);
    }
    *name = nib_copy_text(text, len);
    return *name == NULL ? nib_fail_memory(r->err, len + 1, "a name") : NIB_OK;
}

static nib_status check_version(uint32_t version, const reader *r) {
    /* Small numbers: in the other byte order their two low bytes are 0. */
    if (version != 0 && (version & 0xffff) == 0) {
        return fail(r, NIB_EFORMAT, "version 0x%08" PRIx32 ": the byte order is foreign, expected little endian",
                    version);
    }
    if (version != 2 && version != 3) {
        return fail(r, NIB_EUNSUPPORTED, "GGUF version %" PRIu32 ", expected 2 or 3", version);
    }
    return NIB_OK;
}

static nib_status read_version(uint32_t *version, reader *r) {
    const uint32_t right = 0x46554747; /* "GGUF" */
    uint32_t magic = 0;
    nib_status status = take_u32(&magic, r, "magic");
    if (status != NIB_OK) {
        return status;
    }
    if (magic == __builtin_bswap32(right)) {
        return fail(r, NIB_EFORMAT, "magic 'FUGG': the byte order is foreign, expected 'GGUF' and little endian");
    }
    if (magic != right) {
        return fail(r, NIB_EFORMAT, "magic 0x%08" PRIx32 ", expected 'GGUF' (0x47475546): no GGUF file",
                    __builtin_bswap32(magic));
    }
    status = take_u32(version, r, "version");
    return status == NIB_OK ? check_version(*version, r) : status;
}

/* Steps over n strings and keeps where each starts: random access to 262,144 tokens must not walk. */
static nib_status read_strings(nib_gguf_meta_entry *entry, reader *r) {
    const char *text = NULL;
    size_t len = 0;
    if (!entry->is_array) {
        return take_string(&text, &len, r, "string length");
    }
    entry->starts = nib_alloc(entry->n, sizeof *entry->starts);
    if (entry->starts == NULL) {
        return nib_fail_memory(r->err, entry->n * sizeof *entry->starts, "the places of strings");
    }
    for (size_t i = 0; i < entry->n; i++) {
        entry->starts[i] = r->at;
        nib_status status = take_string(&text, &len, r, "string length");
        if (status != NIB_OK) {
            return status;
        }
    }
    return NIB_OK;
}

static nib_status read_values(nib_gguf_meta_entry *entry, reader *r) {
    const unsigned char *bytes = NULL;
    entry->at = r->at;
    if (entry->type == NIB_GGUF_STRING) {
        return read_strings(entry, r);
    }
    /* Cannot overflow: take_count has bounded an array's n by the rest of the file. */
    size_t size = nib_gguf_type_find(entry->type)->size * entry->n;
    nib_status status = take(&bytes, r, size, "value");
    if (status != NIB_OK || entry->type != NIB_GGUF_BOOL) {
        return status;
    }
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] > 1) {
            return fail(r, NIB_EFORMAT, "bool %u, expected 0 or 1", bytes[i]);
        }
    }
    return NIB_OK;
}

static nib_status take_type(uint32_t *type, reader *r, const char *what) {
    nib_status status = take_u32(type, r, what);
    if (status == NIB_OK && nib_gguf_type_find(*type) == NULL) {
        return fail(r, NIB_EFORMAT, "%s %" PRIu32 ", expected 0 to %d", what, *type, NIB_GGUF_F64);
    }
    return status;
}

static nib_status read_array_head(nib_gguf_meta_entry *entry, reader *r) {
    nib_status status = take_type(&entry->type, r, "element type");
    if (status != NIB_OK) {
        return status;
    }
    if (entry->type == NIB_GGUF_ARRAY) {
        return fail(r, NIB_EUNSUPPORTED, "element type array, expected no array within an array");
    }
    entry->is_array = true;
    return take_count(&entry->n, r, nib_gguf_type_find(entry->type)->size, "array length");
}

static nib_status read_entry(nib_gguf_meta_entry *entry, reader *r) {
    nib_status status = take_name(&entry->key, r, "key length");
    if (status != NIB_OK) {
        return status;
    }
    r->name = entry->key;
    entry->n = 1;
    status = take_type(&entry->type, r, "value type");
    if (status == NIB_OK && entry->type == NIB_GGUF_ARRAY) {
        status = read_array_head(entry, r);
    }
    return status == NIB_OK ? read_values(entry, r) : status;
}

static nib_status read_entries(nib_gguf_meta *meta, reader *r, size_t n) {
    meta->entries = nib_alloc_zero(n, sizeof *meta->entries);
    if (meta->entries == NULL || !nib_name_index_init(&meta->keys, n)) {
        return nib_fail_memory(r->err, n * sizeof *meta->entries, "metadata entries");
    }
    r->thing = "metadata entry";
    for (size_t i = 0; i < n; i++) {
        r->number = i;
        r->name = NULL;
        meta->n_entries = i + 1; /* also what a failure leaves half read is freed */
        nib_status status = read_entry(&meta->entries[i], r);
        if (status != NIB_OK) {
            return status;
        }
        if (!nib_name_index_add(&meta->keys, meta->entries[i].key, i)) {
            return fail(r, NIB_EFORMAT, "the key is there a second time, expected once");
        }
    }
    r->thing = NULL;
    return NIB_OK;
}

/* Reads dimension d and multiplies *n by it. */
static nib_status read_dim(nib_tensor *tensor, uint64_t *n, reader *r, uint32_t d) {
    uint64_t dim = 0;
    nib_status status = take_u64(&dim, r, "dims");
    if (status != NIB_OK) {
        return status;
    }
    if (dim < 1 || dim > INT64_MAX) {
        return fail(r, NIB_EFORMAT, "dims[%" PRIu32 "] %" PRIu64 ", expected 1 to 2^63 - 1", d, dim);
    }
    if (__builtin_mul_overflow(*n, dim, n) || *n > INT64_MAX) {
        return fail(r, NIB_EFORMAT, "dims[%" PRIu32 "] %" PRIu64 ", expected a product of dims below 2^63", d, dim);
    }
    tensor->dims[d] = dim;
    return NIB_OK;
}

/* Reads the dimensions; *n is their product, which fits in 63 bits. */
static nib_status read_dims(nib_tensor *tensor, uint64_t *n, reader *r) {
    nib_status status = take_u32(&tensor->n_dims, r, "n_dims");
    if (status != NIB_OK) {
        return status;
    }
    if (tensor->n_dims < 1 || tensor->n_dims > 4) {
        return fail(r, NIB_EFORMAT, "n_dims %" PRIu32 ", expected 1 to 4", tensor->n_dims);
    }
    *n = 1;
    for (uint32_t d = 0; d < tensor->n_dims && status == NIB_OK; d++) {
        status = read_dim(tensor, n, r, d);
    }
    return status;
}

static nib_status read_tensor_type(nib_tensor *tensor, uint64_t n, reader *r) {
    nib_status status = take_u32(&tensor->type, r, "type");
    if (status != NIB_OK) {
        return status;
    }
    const nib_dtype_traits *traits = nib_dtype_find(tensor->type);
    if (traits == NULL) {
        return fail(r, NIB_EUNSUPPORTED, "type %" PRIu32 ", expected the number of a known tensor type", tensor->type);
    }
    if (tensor->dims[0] % traits->block != 0) {
        return fail(r, NIB_EFORMAT, "dims[0] %" PRIu64 ", expected a multiple of %" PRIu32 ", the block of %s",
                    tensor->dims[0], traits->block, traits->name);
    }
    uint64_t size;
    if (__builtin_mul_overflow(n / traits->block, (uint64_t)traits->block_bytes, &size) || size > r->len) {
        return fail(r, NIB_EFORMAT, "%" PRIu64 " elements of %s by dims, expected what a file of %zu bytes can hold", n,
                    traits->name, r->len);
    }
    tensor->size_bytes = (size_t)size;
    return NIB_OK;
}

/* Reads all of a tensor but its data's place: offset is still the one from the start of the data part. */
static nib_status read_tensor(nib_tensor *tensor, reader *r) {
    uint64_t n = 0;
    uint64_t offset = 0;
    nib_status status = read_dims(tensor, &n, r);
    if (status == NIB_OK) {
        status = read_tensor_type(tensor, n, r);
    }
    if (status == NIB_OK) {
        status = take_u64(&offset, r, "offset");
    }
    if (status != NIB_OK) {
        return status;
    }
    if (offset > r->len) {
        return fail(r, NIB_EFORMAT, "offset %" PRIu64 ", expected less than the file's %zu bytes", offset, r->len);
    }
    tensor->offset = (size_t)offset;
    return NIB_OK;
}

static nib_status read_tensors(nib_tensor_list *list, reader *r, size_t n, size_t part) {
    size_t total;
    if (!nib_add_size(&total, list->n, n) || !nib_reserve(&list->items, &list->cap, total, sizeof *list->items)) {
        return nib_fail_memory(r->err, n * sizeof *list->items, "tensors");
    }
    r->thing = "tensor";
    for (size_t i = 0; i < n; i++) {
        r->number = i;
        r->name = NULL;
        char *name = NULL;
        nib_status status = take_name(&name, r, "name length");
        if (status != NIB_OK) {
            return status;
        }
        r->name = name;
        nib_tensor *tensor = &list->items[list->n++];
        *tensor = (nib_tensor){.name = name, .dims = {1, 1, 1, 1}, .part = part};
        status = read_tensor(tensor, r);
        if (status != NIB_OK) {
            return status;
        }
    }
    r->thing = NULL;
    return NIB_OK;
}

/* *alignment stays as it is when the file does not say. */
static nib_status read_alignment(size_t *alignment, const nib_gguf_meta *meta, const reader *r) {
    uint64_t value = *alignment;
    nib_status status = nib_gguf_meta_uint(&value, meta, "general.alignment", r->err);
    if (status != NIB_OK) {
        return status;
    }
    if (value < ALIGNMENT_MIN || value > ALIGNMENT_MAX || (value & (value - 1)) != 0) {
        return fail(r, NIB_EFORMAT, "general.alignment %" PRIu64 ", expected a power of two from %d to %d", value,
                    ALIGNMENT_MIN, ALIGNMENT_MAX);
    }
    *alignment = (size_t)value;
    return NIB_OK;
}

/* Turns the offset within the data part into one in the file, and checks that the data lies there. */
static nib_status place(nib_tensor *tensor, const reader *r, size_t alignment, size_t start) {
    if (tensor->offset % alignment != 0) {
        return fail(r, NIB_EFORMAT, "offset %zu, expected a multiple of general.alignment %zu", tensor->offset,
                    alignment);
    }
    size_t room = r->len > start ? r->len - start : 0;
    if (tensor->offset > room || tensor->size_bytes > room - tensor->offset) {
        return fail(r, NIB_EFORMAT,
                    "offset %zu and size %zu, expected to end within the %zu bytes of data that the file holds",
                    tensor->offset, tensor->size_bytes, room);
    }
    tensor->offset += start;
    tensor->data = r->data + tensor->offset;
    return NIB_OK;
}

/* Places the tensors from number first on, which are those of this file. */
static nib_status place_tensors(nib_tensor_list *list, size_t first, const nib_gguf_meta *meta, reader *r) {
    size_t alignment = ALIGNMENT_DEFAULT;
    nib_status status = read_alignment(&alignment, meta, r);
    if (status != NIB_OK) {
        return status;
    }
    /* Cannot overflow: no file comes within 1 MiB of the end of memory. */
    size_t start = (r->at + alignment - 1) / alignment * alignment;
    r->thing = "tensor";
    for (size_t i = first; i < list->n; i++) {
        r->number = i - first;
        r->name = list->items[i].name;
        status = place(&list->items[i], r, alignment, start);
        if (status != NIB_OK) {
            return status;
        }
    }
    return NIB_OK;
}

static nib_status read_all(nib_gguf_meta *meta, uint32_t *version, nib_tensor_list *tensors, size_t part, reader *r) {
    size_t n_tensors = 0;
    size_t n_entries = 0;
    size_t first = tensors->n;
    nib_status status = read_version(version, r);
    if (status == NIB_OK) {
        status = take_count(&n_tensors, r, TENSOR_MIN_BYTES, "tensor count");
    }
    if (status == NIB_OK) {
        status = take_count(&n_entries, r, ENTRY_MIN_BYTES, "metadata count");
    }
    if (status == NIB_OK) {
        status = read_entries(meta, r, n_entries);
    }
    if (status == NIB_OK) {
        status = read_tensors(tensors, r, n_tensors, part);
    }
    return status == NIB_OK ? place_tensors(tensors, first, meta, r) : status;
}

nib_status nib_gguf_head_read(nib_gguf_meta *meta, uint32_t *version, nib_tensor_list *tensors, size_t part,
                              const char *label, const unsigned char *data, size_t len, nib_error *err) {
    reader r = {.data = data, .len = len, .label = label, .err = err};
    *meta = (nib_gguf_meta){.label = label, .data = data, .len = len};
    nib_status status = read_all(meta, version, tensors, part, &r);
    if (status != NIB_OK) {
        nib_gguf_meta_free(meta);
    }
    return status;
}

void nib_tensor_list_free(nib_tensor_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        /* The list made the name; only its readers must not change it. */
        nib_free((void *)(uintptr_t)list->items[i].name);
    }
    nib_free(list->items);
    *list = (nib_tensor_list){0};
}
