/* Allocation with checked sizes and a fault hook. Everything in the library allocates through these. */
#ifndef NIB_BASE_MEMORY_H
#define NIB_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* *product = a * b; false when it does not fit. */
bool nib_mul_size(size_t *product, size_t a, size_t b);

/* *sum = a + b; false when it does not fit. */
bool nib_add_size(size_t *sum, size_t a, size_t b);

/* n elements of size_bytes, uninitialised; NULL on overflow, when the system has none, or at an injected fault. n = 0
 * gives a pointer that may be freed. */
void *nib_alloc(size_t n, size_t size_bytes);

/* The same, filled with 0. */
void *nib_alloc_zero(size_t n, size_t size_bytes);

/* The same, aligned to 64 bytes and filled with 0; freed with nib_free like the others. */
void *nib_alloc_aligned(size_t n, size_t size_bytes);

/* Uninitialised bytes for what is large and read again and again: aligned to 64 bytes, in huge pages from 2 MiB on
 * where the system has them; freed with nib_free. */
void *nib_alloc_large(size_t size_bytes);

/* Grows or shrinks; on failure NULL, and array stays as it was. */
void *nib_realloc(void *array, size_t n, size_t size_bytes);

/* Makes *array hold at least n elements, growing by half; *cap is its room. False when out of
 * memory, nothing changed. */
bool nib_reserve(void *array_pointer, size_t *cap, size_t n, size_t size_bytes);

/* Bytes that may still be allocated before the system kills somebody for memory: the least of what the machine and the
 * cgroup have. SIZE_MAX when the system does not say. Allocations that would leave less than 16 MiB are refused. */
size_t nib_memory_available(void);

/* A copy of text [len], terminated; NULL when out of memory. */
char *nib_copy_text(const char *text, size_t len);

/* Fault injection for tests: the n-th allocation from now (from 1) and all after it fail; 0 switches it off. */
void nib_alloc_fail_at(size_t n);

/* For tests: nib_memory_available answers this; 0: the truth again. */
void nib_memory_pretend(size_t available);

/* Allocations since the last nib_alloc_fail_at. */
size_t nib_alloc_count(void);

#endif
