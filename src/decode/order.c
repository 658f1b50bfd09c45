/* Radix selection and radix sort of the keys of order.h, most significant byte first, both in place. The C library's
 * qsort may allocate, and a comparison sort has inputs that make it quadratic; here no input is worse than 8 passes. */
#include "decode/order.h"

enum {
    TOP_SHIFT = 56, /* the most significant byte */
    SHORT_RUN = 24, /* sorted by insertion */
    DIGITS = 256
};

static unsigned digit(uint64_t key, int shift) {
    return (unsigned)(key >> shift) & (DIGITS - 1);
}

static void swap(uint64_t *a, uint64_t *b) {
    uint64_t t = *a;
    *a = *b;
    *b = t;
}

static void count_digits(size_t count[DIGITS], const uint64_t *key, size_t n, int shift) {
    memset(count, 0, DIGITS * sizeof count[0]);
    for (size_t i = 0; i < n; i++) {
        count[digit(key[i], shift)]++;
    }
}

/* The shift of the first digit in which key [n] differ; n > 0. -1 when they are all equal. */
static int first_difference(const uint64_t *key, size_t n) {
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++) {
        differ |= key[i] ^ key[0];
    }
    int shift = TOP_SHIFT;
    while (shift >= 0 && differ >> shift == 0) {
        shift -= 8;
    }
    return shift;
}

/* Puts keys with a digit above pivot first, those with pivot next, the others last. Returns how many are above. */
static size_t partition(uint64_t *key, size_t n, int shift, unsigned pivot) {
    size_t above = 0, end = n;
    for (size_t i = 0; i < end;) {
        unsigned d = digit(key[i], shift);
        if (d > pivot) {
            swap(&key[i++], &key[above++]);
        } else if (d == pivot) {
            i++;
        } else {
            swap(&key[i], &key[--end]);
        }
    }
    return above;
}

void nib_order_select(uint64_t *key, size_t n, size_t k) {
    while (k > 0 && k < n) {
        int shift = first_difference(key, n); /* keys differ, so there is one, and it is smaller each time */
        size_t count[DIGITS];
        count_digits(count, key, n, shift);
        unsigned pivot = DIGITS - 1;
        for (size_t seen = 0; seen + count[pivot] < k; pivot--) {
            seen += count[pivot];
        }
        size_t above = partition(key, n, shift, pivot);
        key += above;
        k -= above;
        n = count[pivot];
    }
}

static void insertion_sort(uint64_t *key, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint64_t moved = key[i];
        size_t j = i;
        for (; j > 0 && key[j - 1] < moved; j--) {
            key[j] = key[j - 1];
        }
        key[j] = moved;
    }
}

/* Swaps every key into the run of its digit, largest digit first. end [DIGITS] becomes the end of each run. */
static void deal(uint64_t *key, size_t end[DIGITS], const size_t count[DIGITS], int shift) {
    size_t next[DIGITS], start = 0;
    for (int d = DIGITS - 1; d >= 0; d--) {
        next[d] = start;
        start += count[d];
        end[d] = start;
    }
    for (int d = DIGITS - 1; d >= 0; d--) {
        while (next[d] < end[d]) {
            unsigned own = digit(key[next[d]], shift);
            if (own == (unsigned)d) {
                next[d]++;
            } else {
                swap(&key[next[d]], &key[next[own]++]);
            }
        }
    }
}

/* Recursion is one level for each byte at most: 8. */
void nib_order_sort(uint64_t *key, size_t n) {
    if (n <= SHORT_RUN) {
        insertion_sort(key, n);
        return;
    }
    int shift = first_difference(key, n);
    size_t count[DIGITS], end[DIGITS];
    count_digits(count, key, n, shift);
    deal(key, end, count, shift);
    for (int d = 0; d < DIGITS; d++) {
        if (count[d] > 1) {
            nib_order_sort(key + end[d] - count[d], count[d]);
        }
    }
}
