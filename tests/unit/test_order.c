/* Selection and sorting of logits: the order of the keys, and both against a plain insertion sort. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "decode/order.h"

enum { MOST = 5000 };

static int descending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* kind 0: normal range; 1: few different values; 2: all equal; 3: ascending; 4: any bits below infinity */
static float make_logit(int kind, int32_t id, uint64_t seed) {
    uint64_t r = nib_mix64(seed, (uint64_t)id);
    switch (kind) {
    case 0: return (float)(int32_t)(r >> 32) * 0x1p-27f;
    case 1: return (float)(r >> 62);
    case 2: return 3.0f;
    case 3: return (float)id;
    default: break;
    }
    uint32_t bits = (uint32_t)r;
    bits = (bits & 0x7f800000u) == 0x7f800000u ? bits & 0xff7fffffu : bits;
    float l;
    memcpy(&l, &bits, sizeof l);
    return l;
}

static void make_keys(uint64_t *key, uint64_t *sorted, size_t n, int kind) {
    for (size_t i = 0; i < n; i++) {
        key[i] = nib_order_key(make_logit(kind, (int32_t)i, n), (int32_t)i);
        sorted[i] = key[i];
    }
    qsort(sorted, n, sizeof *sorted, descending);
}

static void larger_logits_come_first_and_equal_ones_by_lower_id(void **state) {
    (void)state;
    assert_true(nib_order_key(2.0f, 9) > nib_order_key(1.0f, 0));
    assert_true(nib_order_key(-1.0f, 9) > nib_order_key(-2.0f, 0));
    assert_true(nib_order_key(0x1p-149f, 9) > nib_order_key(0.0f, 0));
    assert_true(nib_order_key(1.0f, 3) > nib_order_key(1.0f, 4));
    assert_true(nib_order_key(0.0f, 1) > nib_order_key(-0.0f, 2));
    assert_true(nib_order_key(-0.0f, 1) > nib_order_key(0.0f, 2));
    assert_true(nib_order_key(-0x1p-149f, 0) < nib_order_key(-0.0f, INT32_MAX));
    assert_true(nib_order_key(-INFINITY, 0) < nib_order_key(-3.4e38f, INT32_MAX));
}

static void a_key_gives_back_its_logit_and_id(void **state) {
    (void)state;
    for (int32_t id = 0; id < MOST; id++) {
        float l = make_logit(4, id, 1);
        assert_true(nib_order_logit(nib_order_key(l, id)) == l);
        assert_int_equal(nib_order_id(nib_order_key(l, id)), id);
    }
    assert_int_equal(nib_order_id(nib_order_key(0.0f, INT32_MAX)), INT32_MAX);
}

static void sorting_equals_a_comparison_sort(void **state) {
    (void)state;
    static uint64_t key[MOST], sorted[MOST];
    for (int kind = 0; kind < 5; kind++) {
        for (size_t n = 0; n <= MOST; n += n < 70 ? 1 : n == 70 ? 930 : 2000) {
            make_keys(key, sorted, n, kind);
            nib_order_sort(key, n);
            assert_memory_equal(key, sorted, n * sizeof *key + (n == 0));
        }
    }
}

static void selection_puts_exactly_the_best_k_in_front(void **state) {
    (void)state;
    static uint64_t key[MOST], sorted[MOST];
    static const size_t sizes[] = {1, 2, 3, 24, 25, 69, 255, 256, 257, 1000, MOST};
    for (int kind = 0; kind < 5; kind++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t n = sizes[i];
            for (size_t k = 0; k <= n; k += 1 + n / 13) {
                make_keys(key, sorted, n, kind);
                nib_order_select(key, n, k);
                qsort(key, k, sizeof *key, descending);
                qsort(key + k, n - k, sizeof *key, descending);
                assert_memory_equal(key, sorted, n * sizeof *key);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(larger_logits_come_first_and_equal_ones_by_lower_id),
        cmocka_unit_test(a_key_gives_back_its_logit_and_id),
        cmocka_unit_test(sorting_equals_a_comparison_sort),
        cmocka_unit_test(selection_puts_exactly_the_best_k_in_front),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
