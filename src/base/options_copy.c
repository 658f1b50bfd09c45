/* A copy of the lists of generate options, all in one piece of memory. */
#include <string.h>

#include "base/memory.h"
#include "base/options.h"

/* Hands out memory; without memory it only counts. */
typedef struct arena {
    unsigned char *memory;
    size_t used;
} arena;

/* A copy of n elements, at a multiple of 8 bytes. */
static void *take(arena *a, const void *from, size_t n, size_t size) {
    size_t at = a->used;
    a->used += (n * size + 7) / 8 * 8; /* the lists lie in memory: no overflow */
    if (a->memory == NULL || n == 0) {
        return NULL;
    }
    memcpy(a->memory + at, from, n * size);
    return a->memory + at;
}

static const void *copy_texts(arena *a, const nib_text *texts, size_t n) {
    nib_text *copy = take(a, texts, n, sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        char *bytes = take(a, texts[i].bytes, texts[i].len, 1);
        if (copy != NULL) {
            copy[i].bytes = bytes;
        }
    }
    return copy;
}

static const void *copy_biases(arena *a, const nib_bias *biases, size_t n) {
    nib_bias *copy = take(a, biases, n, sizeof *biases);
    for (size_t i = 0; i < n; i++) {
        int32_t *ids = take(a, biases[i].ids, biases[i].n, sizeof biases[i].ids[0]);
        if (copy != NULL) {
            copy[i].ids = ids;
        }
    }
    return copy;
}

/* Copies one list of options into copy. */
static void copy_list(arena *a, nib_generate_options *copy, const nib_generate_options *options,
                      const nib_option *option) {
    const void *list, *own;
    size_t n;
    memcpy(&list, (const char *)options + option->offset, sizeof list);
    memcpy(&n, (const char *)options + option->offset + sizeof list, sizeof n);
    switch (option->kind) {
    case NIB_OPTION_KIND_IDS: own = take(a, list, n, sizeof(int32_t)); break;
    case NIB_OPTION_KIND_TEXTS: own = copy_texts(a, list, n); break;
    case NIB_OPTION_KIND_BIASES: own = copy_biases(a, list, n); break;
    default: return;
    }
    if (a->memory != NULL) {
        memcpy((char *)copy + option->offset, &own, sizeof own);
    }
}

static void copy_lists(arena *a, nib_generate_options *copy, const nib_generate_options *options) {
    size_t n;
    const nib_option *list = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        if (list[i].scope == NIB_SCOPE_GENERATE) {
            copy_list(a, copy, options, &list[i]);
        }
    }
}

nib_status nib_generate_options_copy(nib_generate_options *copy, void **memory, const nib_generate_options *options,
                                     nib_error *err) {
    arena a = {NULL, 0};
    *copy = *options;
    copy_lists(&a, copy, options);
    size_t bytes = a.used > 0 ? a.used : 1;
    *memory = nib_alloc(bytes, 1);
    if (*memory == NULL) {
        return nib_fail_memory(err, bytes, "the lists of options");
    }
    a = (arena){*memory, 0};
    copy_lists(&a, copy, options);
    return NIB_OK;
}
