/* The metadata of one GGUF file: values and typed access. The entries have been checked against the file before. */
#include "format/gguf_meta.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"

const nib_gguf_type *nib_gguf_type_find(uint32_t number) {
    static const nib_gguf_type types[] = {
        [NIB_GGUF_U8] = {"u8", 1, NIB_VALUE_UINT},           [NIB_GGUF_I8] = {"i8", 1, NIB_VALUE_INT},
        [NIB_GGUF_U16] = {"u16", 2, NIB_VALUE_UINT},         [NIB_GGUF_I16] = {"i16", 2, NIB_VALUE_INT},
        [NIB_GGUF_U32] = {"u32", 4, NIB_VALUE_UINT},         [NIB_GGUF_I32] = {"i32", 4, NIB_VALUE_INT},
        [NIB_GGUF_F32] = {"f32", 4, NIB_VALUE_REAL},         [NIB_GGUF_BOOL] = {"bool", 1, NIB_VALUE_BOOL},
        [NIB_GGUF_STRING] = {"string", 8, NIB_VALUE_STRING}, [NIB_GGUF_ARRAY] = {"array", 0, NIB_VALUE_UINT},
        [NIB_GGUF_U64] = {"u64", 8, NIB_VALUE_UINT},         [NIB_GGUF_I64] = {"i64", 8, NIB_VALUE_INT},
        [NIB_GGUF_F64] = {"f64", 8, NIB_VALUE_REAL},
    };
    return number < sizeof types / sizeof types[0] ? &types[number] : NULL;
}

uint64_t nib_gguf_load(const unsigned char *bytes, size_t n) {
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

static int64_t sign_extend(uint64_t bits, size_t size) {
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    return (int64_t)((bits ^ sign) - sign);
}

static double real_of(uint64_t bits, size_t size) {
    if (size == 4) {
        uint32_t half = (uint32_t)bits;
        float single;
        memcpy(&single, &half, sizeof single);
        return (double)single;
    }
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

void nib_gguf_meta_value(nib_value *value, const nib_gguf_meta *meta, size_t i, size_t j) {
    const nib_gguf_meta_entry *entry = &meta->entries[i];
    const nib_gguf_type *type = nib_gguf_type_find(entry->type);
    size_t at = entry->starts != NULL ? entry->starts[j] : entry->at + j * type->size;
    uint64_t bits = nib_gguf_load(meta->data + at, type->size);
    *value = (nib_value){.kind = type->kind};
    switch (type->kind) {
    case NIB_VALUE_UINT:
    case NIB_VALUE_BOOL:
        value->u = bits;
        value->i = (int64_t)bits;
        break;
    case NIB_VALUE_INT:
        value->i = sign_extend(bits, type->size);
        value->u = (uint64_t)value->i;
        break;
    case NIB_VALUE_REAL:
        value->r = real_of(bits, type->size);
        value->is_float32 = type->size == 4;
        break;
    case NIB_VALUE_STRING:
        value->text = (const char *)meta->data + at + 8;
        value->len = (size_t)bits;
        break;
    }
}

static bool is_integer(nib_value_kind kind) {
    return kind == NIB_VALUE_UINT || kind == NIB_VALUE_INT;
}

static const char *kind_name(nib_value_kind kind) {
    switch (kind) {
    case NIB_VALUE_UINT:
    case NIB_VALUE_INT: return "integer";
    case NIB_VALUE_REAL: return "f32 or f64";
    case NIB_VALUE_BOOL: return "bool";
    case NIB_VALUE_STRING: return "string";
    }
    return "value";
}

/* Checks that entry i is, or is not, an array, and of that kind. */
static nib_status check_kind(const nib_gguf_meta *meta, size_t i, bool is_array, nib_value_kind kind, nib_error *err) {
    const nib_gguf_meta_entry *entry = &meta->entries[i];
    const nib_gguf_type *type = nib_gguf_type_find(entry->type);
    bool fits = type->kind == kind || (is_integer(type->kind) && is_integer(kind));
    if (fits && entry->is_array == is_array) {
        return NIB_OK;
    }
    return nib_fail(err, NIB_EFORMAT, "%s: %.80s has type %s%s, expected %s%s", meta->label, entry->key,
                    entry->is_array ? "array of " : "", type->name, is_array ? "array of " : "", kind_name(kind));
}

/* The value of a key that is no array; *found is false when the key is absent. */
static nib_status scalar(nib_value *value, bool *found, const nib_gguf_meta *meta, const char *key, nib_value_kind kind,
                         nib_error *err) {
    int64_t i = nib_name_index_find(&meta->keys, key);
    *found = false;
    if (i < 0) {
        return NIB_OK;
    }
    nib_status status = check_kind(meta, (size_t)i, false, kind, err);
    if (status == NIB_OK) {
        nib_gguf_meta_value(value, meta, (size_t)i, 0);
        *found = true;
    }
    return status;
}

nib_status nib_gguf_meta_uint(uint64_t *value, const nib_gguf_meta *meta, const char *key, nib_error *err) {
    nib_value found;
    bool is_there;
    nib_status status = scalar(&found, &is_there, meta, key, NIB_VALUE_UINT, err);
    if (status != NIB_OK || !is_there) {
        return status;
    }
    if (found.kind == NIB_VALUE_INT && found.i < 0) {
        return nib_fail(err, NIB_EFORMAT, "%s: %.80s %" PRId64 ", expected at least 0", meta->label, key, found.i);
    }
    *value = found.u;
    return NIB_OK;
}

nib_status nib_gguf_meta_real(double *value, const nib_gguf_meta *meta, const char *key, nib_error *err) {
    nib_value found;
    bool is_there;
    nib_status status = scalar(&found, &is_there, meta, key, NIB_VALUE_REAL, err);
    if (status == NIB_OK && is_there) {
        *value = found.r;
    }
    return status;
}

nib_status nib_gguf_meta_bool(bool *value, const nib_gguf_meta *meta, const char *key, nib_error *err) {
    nib_value found;
    bool is_there;
    nib_status status = scalar(&found, &is_there, meta, key, NIB_VALUE_BOOL, err);
    if (status == NIB_OK && is_there) {
        *value = found.u != 0;
    }
    return status;
}

nib_status nib_gguf_meta_string(const char **text, size_t *len, const nib_gguf_meta *meta, const char *key,
                                nib_error *err) {
    nib_value found;
    bool is_there;
    nib_status status = scalar(&found, &is_there, meta, key, NIB_VALUE_STRING, err);
    if (status == NIB_OK && is_there) {
        *text = found.text;
        *len = found.len;
    }
    return status;
}

nib_status nib_gguf_meta_array(int64_t *entry, size_t *n, const nib_gguf_meta *meta, const char *key,
                               nib_value_kind kind, nib_error *err) {
    *entry = -1;
    *n = 0;
    int64_t i = nib_name_index_find(&meta->keys, key);
    if (i < 0) {
        return NIB_OK;
    }
    nib_status status = check_kind(meta, (size_t)i, true, kind, err);
    if (status == NIB_OK) {
        *entry = i;
        *n = meta->entries[i].n;
    }
    return status;
}

void nib_gguf_meta_free(nib_gguf_meta *meta) {
    for (size_t i = 0; i < meta->n_entries; i++) {
        nib_free(meta->entries[i].key);
        nib_free(meta->entries[i].starts);
    }
    nib_free(meta->entries);
    nib_name_index_free(&meta->keys);
    *meta = (nib_gguf_meta){0};
}
