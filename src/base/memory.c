/* Allocation with checked sizes and a fault hook. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_size_t alloc_count;
static atomic_size_t fail_at;

static bool fault(void) {
    size_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    size_t count = atomic_fetch_add_explicit(&alloc_count, 1, memory_order_relaxed) + 1;
    return at != 0 && count >= at;
}

bool nib_mul_size(size_t *product, size_t a, size_t b) {
    return !__builtin_mul_overflow(a, b, product);
}

bool nib_add_size(size_t *sum, size_t a, size_t b) {
    return !__builtin_add_overflow(a, b, sum);
}

void *nib_alloc(size_t n, size_t size_bytes) {
    size_t size;
    if (!nib_mul_size(&size, n, size_bytes) || fault()) {
        return NULL;
    }
    return malloc(size == 0 ? 1 : size);
}

void *nib_alloc_zero(size_t n, size_t size_bytes) {
    size_t size;
    if (!nib_mul_size(&size, n, size_bytes) || fault()) {
        return NULL;
    }
    return calloc(size == 0 ? 1 : size, 1);
}

void *nib_alloc_aligned(size_t n, size_t size_bytes) {
    size_t size;
    void *array = NULL;
    if (!nib_mul_size(&size, n, size_bytes) || fault()) {
        return NULL;
    }
    if (posix_memalign(&array, 64, size == 0 ? 1 : size) != 0) {
        return NULL;
    }
    return memset(array, 0, size);
}

void *nib_realloc(void *array, size_t n, size_t size_bytes) {
    size_t size;
    if (!nib_mul_size(&size, n, size_bytes) || fault()) {
        return NULL;
    }
    return realloc(array, size == 0 ? 1 : size);
}

bool nib_reserve(void *array_pointer, size_t *cap, size_t n, size_t size_bytes) {
    if (n <= *cap) {
        return true;
    }
    size_t want = *cap + *cap / 2;
    if (want < n) {
        want = n;
    }
    if (want < 16) {
        want = 16;
    }
    void *old;
    memcpy(&old, array_pointer, sizeof old);
    void *grown = nib_realloc(old, want, size_bytes);
    if (grown == NULL) {
        return false;
    }
    memcpy(array_pointer, &grown, sizeof grown);
    *cap = want;
    return true;
}

char *nib_copy_text(const char *text, size_t len) {
    char *copy = nib_alloc(len + 1, 1);
    if (copy == NULL) {
        return NULL;
    }
    if (len > 0) {
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    return copy;
}

void nib_free(void *array) {
    free(array);
}

void nib_alloc_fail_at(size_t n) {
    atomic_store(&alloc_count, 0);
    atomic_store(&fail_at, n);
}

size_t nib_alloc_count(void) {
    return atomic_load(&alloc_count);
}
