/* The KV cache: what is stored is found again in the layout that attention reads, pages come as they are needed and stay
 * when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/maths.h"
#include "base/memory.h"
#include "kernel/kernel.h"
#include "model/kv.h"

enum { L = 3, K = 2, E = 5, N = 200 };

static const nib_config config = {.L = L, .K = K, .E = E};

static const nib_kv_type types[] = {NIB_KV_F32, NIB_KV_F16};

/* A different number for each place; in binary16, where there are not as many, for each of the near ones. */
static float value(nib_kv_type type, int64_t layer, int64_t pos, int64_t head, int64_t e, int v) {
    int64_t n = (((layer * N + pos) * K + head) * E + e) * 2 + v;
    return (float)(type == NIB_KV_F16 ? n % 2039 : n);
}

static float element(const nib_kv *kv, const void *block, int64_t i) {
    return kv->type == NIB_KV_F16 ? nib_half_to_float(((const uint16_t *)block)[i]) : ((const float *)block)[i];
}

static void store(nib_kv *kv, int64_t layer, int64_t pos) {
    float k[K * E], v[K * E];
    for (int64_t head = 0; head < K; head++) {
        for (int64_t e = 0; e < E; e++) {
            k[head * E + e] = value(kv->type, layer, pos, head, e, 0);
            v[head * E + e] = value(kv->type, layer, pos, head, e, 1);
        }
    }
    nib_kv_store(kv, nib_kernels_find("base"), layer, pos, k, v);
}

static void check(const nib_kv *kv, int64_t layer, int64_t pos) {
    int64_t group = pos / NIB_GROUP, slot = pos % NIB_GROUP;
    for (int64_t head = 0; head < K; head++) {
        for (int64_t e = 0; e < E; e++) {
            const void *keys = nib_kv_keys(kv, layer, head, group), *values = nib_kv_values(kv, layer, head, group);
            assert_true(element(kv, keys, e * NIB_GROUP + slot) == value(kv->type, layer, pos, head, e, 0));
            assert_true(element(kv, values, slot * E + e) == value(kv->type, layer, pos, head, e, 1));
        }
    }
}

static void check_places(nib_kv_type type) {
    nib_kv kv;
    nib_kv_init(&kv, &config, type);
    assert_true(nib_kv_reserve(&kv, N));
    for (int64_t i = 0; i < N; i++) {
        int64_t pos = i * 7 % N; /* in any order: each place is written once */
        for (int64_t layer = 0; layer < L; layer++) {
            store(&kv, layer, pos);
        }
    }
    for (int64_t pos = 0; pos < N; pos++) {
        for (int64_t layer = 0; layer < L; layer++) {
            check(&kv, layer, pos);
        }
    }
    nib_kv_free(&kv);
}

static void what_is_stored_is_found_in_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        check_places(types[i]);
    }
}

/* Clamped to what binary16 holds, nearest even. */
static void values_are_rounded_to_binary16(void **state) {
    (void)state;
    static const float given[E] = {1e9f, -1e9f, 1.00048828125f, 1.00146484375f, 0x1p-25f};
    static const float kept[E] = {65504.0f, -65504.0f, 1.0f, 1.001953125f, 0.0f};
    float both[K * E];
    nib_kv kv;
    memcpy(both, given, sizeof given);
    memcpy(both + E, given, sizeof given);
    nib_kv_init(&kv, &config, NIB_KV_F16);
    assert_true(nib_kv_reserve(&kv, 1));
    nib_kv_store(&kv, nib_kernels_find("base"), 1, 0, both, both);
    for (int64_t e = 0; e < E; e++) {
        assert_true(element(&kv, nib_kv_keys(&kv, 1, 1, 0), e * NIB_GROUP) == kept[e]);
        assert_true(element(&kv, nib_kv_values(&kv, 1, 1, 0), e) == kept[e]);
    }
    nib_kv_free(&kv);
}

static void check_pages(nib_kv_type type) {
    nib_kv kv;
    nib_kv_init(&kv, &config, type);
    size_t token_bytes = nib_config_kv_elements(&config) * nib_kv_type_bytes(type);
    assert_int_equal(nib_kv_bytes(&kv), 0);
    for (int64_t n = 1; n <= N; n++) {
        assert_true(nib_kv_reserve(&kv, n));
        size_t pages = (size_t)(n + NIB_GROUP - 1) / NIB_GROUP;
        assert_int_equal(kv.n_pages, pages);
        assert_int_equal(nib_kv_bytes(&kv), pages * NIB_GROUP * token_bytes);
        store(&kv, L - 1, n - 1);
    }
    assert_true(nib_kv_reserve(&kv, 1)); /* never fewer */
    assert_int_equal(kv.n_pages, (N + NIB_GROUP - 1) / NIB_GROUP);
    for (int64_t pos = 0; pos < N; pos++) {
        check(&kv, L - 1, pos);
    }
    nib_kv_free(&kv);
    assert_int_equal(nib_kv_bytes(&kv), 0);
    nib_kv_free(&kv); /* freeing twice is harmless */
}

static void pages_come_as_they_are_needed_and_keep_what_they_hold(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        check_pages(types[i]);
    }
}

static void a_page_that_cannot_be_had_leaves_the_others(void **state) {
    (void)state;
    for (size_t fault = 1;; fault++) {
        nib_kv kv;
        nib_kv_init(&kv, &config, NIB_KV_F16);
        assert_true(nib_kv_reserve(&kv, 64));
        store(&kv, 1, 63);
        nib_alloc_fail_at(fault);
        bool ok = nib_kv_reserve(&kv, N);
        nib_alloc_fail_at(0);
        check(&kv, 1, 63);
        if (!ok) {
            assert_true(kv.n_pages >= 1 && kv.n_pages < 4);
            assert_true(nib_kv_reserve(&kv, N));
        }
        assert_int_equal(kv.n_pages, 4);
        nib_kv_free(&kv);
        if (ok) {
            assert_true(fault > 3 * L);
            return;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_is_found_in_its_place),
        cmocka_unit_test(values_are_rounded_to_binary16),
        cmocka_unit_test(pages_come_as_they_are_needed_and_keep_what_they_hold),
        cmocka_unit_test(a_page_that_cannot_be_had_leaves_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
