/* Names are found by content, once each. */
#include "format/name_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"

enum { N = 5000 };

static void every_name_finds_its_number(void **state) {
    (void)state;
    static char names[N][24];
    nib_name_index index;
    assert_true(nib_name_index_init(&index, N));
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "blk.%zu.weight", i);
        assert_true(nib_name_index_add(&index, names[i], i));
    }
    for (size_t i = 0; i < N; i++) {
        char copy[24];
        (void)snprintf(copy, sizeof copy, "blk.%zu.weight", i);
        assert_int_equal(nib_name_index_find(&index, copy), i);
        assert_false(nib_name_index_add(&index, copy, 0));
    }
    assert_int_equal(nib_name_index_find(&index, "blk.0.weigh"), -1);
    assert_int_equal(nib_name_index_find(&index, ""), -1);
    nib_name_index_free(&index);
    assert_int_equal(nib_name_index_find(&index, "blk.0.weight"), -1);
}

static void an_index_of_nothing_finds_nothing(void **state) {
    (void)state;
    nib_name_index index;
    assert_true(nib_name_index_init(&index, 0));
    assert_int_equal(nib_name_index_find(&index, "a"), -1);
    nib_name_index_free(&index);
}

static void a_size_beyond_memory_is_refused(void **state) {
    (void)state;
    nib_name_index index;
    assert_false(nib_name_index_init(&index, SIZE_MAX / 2));
    assert_false(nib_name_index_init(&index, SIZE_MAX));
    nib_alloc_fail_at(1);
    assert_false(nib_name_index_init(&index, 1));
    nib_alloc_fail_at(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_finds_its_number),
        cmocka_unit_test(an_index_of_nothing_finds_nothing),
        cmocka_unit_test(a_size_beyond_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
