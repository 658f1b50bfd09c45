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
    return kv->store->type == NIB_KV_F16 ? nib_half_to_float(((const uint16_t *)block)[i]) : ((const float *)block)[i];
}

static void store(nib_kv *kv, int64_t layer, int64_t pos) {
    float k[K * E], v[K * E];
    for (int64_t head = 0; head < K; head++) {
        for (int64_t e = 0; e < E; e++) {
            k[head * E + e] = value(kv->store->type, layer, pos, head, e, 0);
            v[head * E + e] = value(kv->store->type, layer, pos, head, e, 1);
        }
    }
    nib_kv_put(kv, nib_kernels_find("base"), layer, pos, k, v);
}

static void check(const nib_kv *kv, int64_t layer, int64_t pos) {
    int64_t group = pos / NIB_GROUP, slot = pos % NIB_GROUP;
    for (int64_t head = 0; head < K; head++) {
        for (int64_t e = 0; e < E; e++) {
            const void *keys = nib_kv_keys(kv, layer, head, group), *values = nib_kv_values(kv, layer, head, group);
            assert_true(element(kv, keys, e * NIB_GROUP + slot) == value(kv->store->type, layer, pos, head, e, 0));
            assert_true(element(kv, values, slot * E + e) == value(kv->store->type, layer, pos, head, e, 1));
        }
    }
}

static void check_places(nib_kv_type type) {
    nib_kv_store all;
    nib_kv kv;
    nib_kv_store_init(&all, &config, type);
    nib_kv_init(&kv, &all);
    assert_true(nib_kv_reserve(&kv, 0, N));
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
    nib_kv_store_free(&all);
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
    nib_kv_store all;
    nib_kv kv;
    memcpy(both, given, sizeof given);
    memcpy(both + E, given, sizeof given);
    nib_kv_store_init(&all, &config, NIB_KV_F16);
    nib_kv_init(&kv, &all);
    assert_true(nib_kv_reserve(&kv, 0, 1));
    nib_kv_put(&kv, nib_kernels_find("base"), 1, 0, both, both);
    for (int64_t e = 0; e < E; e++) {
        assert_true(element(&kv, nib_kv_keys(&kv, 1, 1, 0), e * NIB_GROUP) == kept[e]);
        assert_true(element(&kv, nib_kv_values(&kv, 1, 1, 0), e) == kept[e]);
    }
    nib_kv_free(&kv);
    nib_kv_store_free(&all);
}

static void check_pages(nib_kv_type type) {
    nib_kv_store all;
    nib_kv kv;
    nib_kv_store_init(&all, &config, type);
    nib_kv_init(&kv, &all);
    size_t page_bytes = (K * E * 2 * NIB_GROUP * nib_kv_type_bytes(type) + 63) / 64 * 64;
    assert_int_equal(nib_kv_store_bytes(&all), 0);
    for (int64_t n = 1; n <= N; n++) {
        assert_true(nib_kv_reserve(&kv, 0, n));
        size_t pages = (size_t)(n + NIB_GROUP - 1) / NIB_GROUP;
        assert_int_equal(kv.n_pages, pages);
        assert_int_equal(nib_kv_store_bytes(&all), pages * L * page_bytes);
        store(&kv, L - 1, n - 1);
    }
    assert_true(nib_kv_reserve(&kv, 0, 1)); /* never fewer */
    assert_int_equal(kv.n_pages, (N + NIB_GROUP - 1) / NIB_GROUP);
    for (int64_t pos = 0; pos < N; pos++) {
        check(&kv, L - 1, pos);
    }
    nib_kv_free(&kv);
    assert_int_equal(nib_kv_store_bytes(&all), 0);
    nib_kv_free(&kv); /* freeing twice is harmless */
    nib_kv_store_free(&all);
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
        nib_kv_store all;
        nib_kv kv;
        nib_kv_store_init(&all, &config, NIB_KV_F16);
        nib_kv_init(&kv, &all);
        assert_true(nib_kv_reserve(&kv, 0, 64));
        store(&kv, 1, 63);
        nib_alloc_fail_at(fault);
        bool ok = nib_kv_reserve(&kv, 0, N);
        nib_alloc_fail_at(0);
        check(&kv, 1, 63);
        if (!ok) {
            assert_true(kv.n_pages >= 1 && kv.n_pages < 4);
            assert_true(nib_kv_reserve(&kv, 0, N));
        }
        assert_int_equal(kv.n_pages, 4);
        nib_kv_free(&kv);
        nib_kv_store_free(&all);
        if (ok) {
            assert_true(fault > 3);
            return;
        }
    }
}

/* Forks share pages until one of them writes; then it has a copy, and the other keeps what it had. */
static void forks_share_pages_and_copy_what_they_write(void **state) {
    (void)state;
    nib_kv_store all;
    nib_kv kv, fork;
    nib_kv_store_init(&all, &config, NIB_KV_F32);
    nib_kv_init(&kv, &all);
    nib_kv_init(&fork, &all);
    assert_true(nib_kv_reserve(&kv, 0, 100));
    for (int64_t pos = 0; pos < 100; pos++) {
        store(&kv, 1, pos);
    }
    size_t bytes = nib_kv_store_bytes(&all);
    assert_true(nib_kv_fork(&fork, &kv, 70));
    assert_int_equal(nib_kv_store_bytes(&all), bytes);
    assert_true(nib_kv_same_page(&kv, &fork, 1, 0) && nib_kv_same_page(&kv, &fork, 1, 1));
    assert_true(nib_kv_reserve(&fork, 70, 71));
    assert_int_equal(nib_kv_store_bytes(&all), bytes + bytes / 2);
    assert_true(nib_kv_same_page(&kv, &fork, 1, 0) && !nib_kv_same_page(&kv, &fork, 1, 1));
    float other[K * E] = {0};
    nib_kv_put(&fork, nib_kernels_find("base"), 1, 70, other, other);
    for (int64_t pos = 0; pos < 100; pos++) {
        check(&kv, 1, pos);
    }
    for (int64_t pos = 0; pos < 70; pos++) {
        check(&fork, 1, pos);
    }
    nib_kv_free(&kv);
    assert_int_equal(nib_kv_store_bytes(&all), bytes);
    nib_kv_free(&fork);
    assert_int_equal(nib_kv_store_bytes(&all), 0);
    nib_kv_store_free(&all);
}

/* Every layer but the second has a window: it gives back what no later position sees, and says what it cannot go back to. */
static void windowed_layers_give_pages_back(void **state) {
    (void)state;
    static const nib_arch arch = {.window_period = 2};
    const nib_config windowed = {.arch = &arch, .L = L, .K = K, .E = E, .window = 30};
    nib_kv_store all;
    nib_kv kv;
    nib_kv_store_init(&all, &windowed, NIB_KV_F32);
    nib_kv_init(&kv, &all);
    assert_true(nib_kv_reserve(&kv, 0, 200));
    size_t page = nib_kv_store_bytes(&all) / (4 * L);
    nib_kv_trim(&kv, 92); /* position 92 sees 63 */
    assert_int_equal(nib_kv_store_bytes(&all), 4 * L * page);
    nib_kv_trim(&kv, 93);
    assert_int_equal(nib_kv_store_bytes(&all), (4 * L - 2) * page);
    assert_false(nib_kv_has_page(&kv, 0, 0) || nib_kv_has_page(&kv, 2, 0));
    assert_true(nib_kv_has_page(&kv, 1, 0) && nib_kv_has_page(&kv, 0, 1));
    assert_int_equal(nib_kv_usable(&kv, 200), 200);
    assert_int_equal(nib_kv_usable(&kv, 93), 93);
    assert_int_equal(nib_kv_usable(&kv, 92), 0);
    nib_kv_rewind(&kv, 0);
    assert_int_equal(nib_kv_store_bytes(&all), 0);
    assert_int_equal(nib_kv_usable(&kv, 92), 0);
    nib_kv_free(&kv);
    nib_kv_store_free(&all);
}

/* A static cache has the pages that it was given and no more. */
static void a_fixed_store_does_not_grow(void **state) {
    (void)state;
    nib_kv_store all;
    nib_kv kv;
    nib_kv_store_init(&all, &config, NIB_KV_F32);
    nib_kv_init(&kv, &all);
    assert_true(nib_kv_pages_fix(&all.pages, nib_kv_store_pages(&all, 100)));
    assert_true(nib_kv_reserve(&kv, 0, 128));
    assert_false(nib_kv_reserve(&kv, 128, 129));
    nib_kv_rewind(&kv, 64);
    assert_true(nib_kv_reserve(&kv, 64, 128));
    nib_kv_free(&kv);
    nib_kv_store_free(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_is_found_in_its_place),
        cmocka_unit_test(values_are_rounded_to_binary16),
        cmocka_unit_test(pages_come_as_they_are_needed_and_keep_what_they_hold),
        cmocka_unit_test(a_page_that_cannot_be_had_leaves_the_others),
        cmocka_unit_test(forks_share_pages_and_copy_what_they_write),
        cmocka_unit_test(windowed_layers_give_pages_back),
        cmocka_unit_test(a_fixed_store_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
