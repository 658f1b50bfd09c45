/* Allocation with checked sizes and a fault hook. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_size_t alloc_count;
static atomic_size_t fail_at;
static atomic_size_t given_unseen; /* bytes given out since the last look at what the system has */
static atomic_size_t pretended_available;

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

/* The number after `label` in a small text file, times unit; fallback when there is none ("max"). */
static size_t read_number(const char *path, const char *label, size_t unit, size_t fallback) {
    char text[4096];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return fallback;
    }
    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    const char *at = strstr(text, label);
    if (at == NULL) {
        return fallback;
    }
    char *end;
    at += strlen(label);
    unsigned long long number = strtoull(at, &end, 10);
    if (end == at) {
        return fallback;
    }
    return number > SIZE_MAX / unit ? SIZE_MAX : (size_t)number * unit;
}

size_t nib_memory_available(void) {
    size_t pretended = atomic_load_explicit(&pretended_available, memory_order_relaxed);
    if (pretended != 0) {
        return pretended;
    }
    size_t machine = read_number("/proc/meminfo", "MemAvailable:", 1024, SIZE_MAX);
    size_t limit = read_number("/sys/fs/cgroup/memory.max", "", 1, SIZE_MAX);
    size_t used = read_number("/sys/fs/cgroup/memory.current", "", 1, 0);
    size_t group = limit == SIZE_MAX ? SIZE_MAX : limit > used ? limit - used : 0;
    return machine < group ? machine : group;
}

enum { STEP = 16 << 20 };

/* Linux promises more than it has and kills later: each time STEP bytes more were given out, what is asked for is
 * compared with what there is, less the step until the next look. */
static bool refused(size_t size) {
    if (fault()) {
        return true;
    }
    size_t given = atomic_fetch_add_explicit(&given_unseen, size, memory_order_relaxed);
    if (given < STEP && size < STEP - given) {
        return false;
    }
    size_t available = nib_memory_available();
    bool refuse = available < STEP || size > available - STEP;
    atomic_store_explicit(&given_unseen, refuse ? STEP : 0, memory_order_relaxed);
    return refuse;
}

void *nib_alloc(size_t n, size_t size_bytes) {
    size_t size;
    if (!nib_mul_size(&size, n, size_bytes) || refused(size)) {
        return NULL;
    }
    return malloc(size == 0 ? 1 : size);
}

void *nib_alloc_zero(size_t n, size_t size_bytes) {
    size_t size;
    if (!nib_mul_size(&size, n, size_bytes) || refused(size)) {
        return NULL;
    }
    return calloc(size == 0 ? 1 : size, 1);
}

void *nib_alloc_aligned(size_t n, size_t size_bytes) {
    size_t size;
    void *array = NULL;
    if (!nib_mul_size(&size, n, size_bytes) || refused(size)) {
        return NULL;
    }
    if (posix_memalign(&array, 64, size == 0 ? 1 : size) != 0) {
        return NULL;
    }
    return memset(array, 0, size);
}

void *nib_alloc_large(size_t size_bytes) {
    enum { HUGE = 2 << 20 };
    void *array = NULL;
    if (size_bytes > SIZE_MAX - HUGE || refused(size_bytes)) {
        return NULL;
    }
    bool huge = size_bytes >= HUGE;
    size_t unit = huge ? HUGE : 64, size = (size_bytes + unit - 1) / unit * unit;
    if (posix_memalign(&array, unit, size == 0 ? unit : size) != 0) {
        return NULL;
    }
    if (huge) {
        (void)madvise(array, size, MADV_HUGEPAGE); /* a wish: not every kernel has them */
    }
    return array;
}

void *nib_realloc(void *array, size_t n, size_t size_bytes) {
    size_t size;
    if (!nib_mul_size(&size, n, size_bytes) || refused(size)) {
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

void nib_memory_pretend(size_t available) {
    atomic_store(&given_unseen, 0);
    atomic_store(&pretended_available, available);
}
