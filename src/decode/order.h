/* Tokens by logit, largest first, equal ones by lower id: as 64-bit keys, selected and sorted in place in linear time
 * and without allocation. Keys of different ids differ, so the order is total. */
#ifndef NIB_DECODE_ORDER_H
#define NIB_DECODE_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The larger key comes first: a larger logit, or the same one (-0 is +0) and a lower id. l is no NaN. */
static inline uint64_t nib_order_key(float l, int32_t id) {
    float zero = l + 0.0f; /* -0 becomes +0 */
    uint32_t bits;
    memcpy(&bits, &zero, sizeof bits);
    bits ^= (bits >> 31) != 0 ? 0xffffffffu : 0x80000000u;
    return (uint64_t)bits << 32 | (0xffffffffu - (uint32_t)id);
}

static inline int32_t nib_order_id(uint64_t key) {
    return (int32_t)(0xffffffffu - (uint32_t)key);
}

static inline float nib_order_logit(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32);
    bits ^= (bits >> 31) != 0 ? 0x80000000u : 0xffffffffu;
    float l;
    memcpy(&l, &bits, sizeof l);
    return l;
}

/* Moves the k largest of key [n], which all differ, to the front, in no order. k <= n. At most 8 passes over what is
 * undecided. */
void nib_order_select(uint64_t *key, size_t n, size_t k);

/* Sorts key [n], which all differ, largest first. */
void nib_order_sort(uint64_t *key, size_t n);

#endif
