/* Checked sizes, zeroed and aligned memory, growing arrays, and the fault hook that other tests rest on. */
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void products_and_sums_that_do_not_fit_are_refused(void **state) {
    (void)state;
    size_t x = 7;
    assert_true(nib_mul_size(&x, SIZE_MAX, 1) && x == SIZE_MAX);
    assert_true(nib_mul_size(&x, 0, SIZE_MAX) && x == 0);
    assert_false(nib_mul_size(&x, SIZE_MAX / 2 + 1, 2));
    assert_true(nib_add_size(&x, SIZE_MAX - 1, 1) && x == SIZE_MAX);
    assert_false(nib_add_size(&x, SIZE_MAX, 1));
}

static void sizes_that_overflow_give_null(void **state) {
    (void)state;
    assert_null(nib_alloc(SIZE_MAX, 2));
    assert_null(nib_alloc_zero(SIZE_MAX / 2, 3));
    assert_null(nib_alloc_aligned(SIZE_MAX, SIZE_MAX));
    assert_null(nib_realloc(NULL, SIZE_MAX, 2));
}

static void nothing_can_be_allocated_and_freed(void **state) {
    (void)state;
    void *blocks[] = {nib_alloc(0, 8), nib_alloc_zero(0, 8), nib_alloc_aligned(0, 8), nib_realloc(NULL, 0, 8)};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        assert_non_null(blocks[i]);
        nib_free(blocks[i]);
    }
    nib_free(NULL);
}

static void zeroed_and_aligned_memory_is_zero_and_aligned(void **state) {
    (void)state;
    unsigned char *zero = nib_alloc_zero(100, 3), *aligned = nib_alloc_aligned(100, 3);
    assert_non_null(zero);
    assert_non_null(aligned);
    assert_true((uintptr_t)aligned % 64 == 0);
    for (int i = 0; i < 300; i++) {
        assert_true(zero[i] == 0 && aligned[i] == 0);
    }
    nib_free(zero);
    nib_free(aligned);
}

static void reserve_grows_by_half_and_keeps_the_content(void **state) {
    (void)state;
    int *array = NULL;
    size_t cap = 0;
    assert_true(nib_reserve(&array, &cap, 1, sizeof *array));
    assert_int_equal(cap, 16);
    for (int i = 0; i < 16; i++) {
        array[i] = i;
    }
    int *before = array;
    assert_true(nib_reserve(&array, &cap, 16, sizeof *array));
    assert_ptr_equal(array, before);
    assert_true(nib_reserve(&array, &cap, 17, sizeof *array));
    assert_int_equal(cap, 24);
    assert_true(nib_reserve(&array, &cap, 1000, sizeof *array));
    assert_int_equal(cap, 1000);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(array[i], i);
    }
    nib_free(array);
}

static void reserve_changes_nothing_when_it_fails(void **state) {
    (void)state;
    int *array = NULL;
    size_t cap = 0;
    assert_true(nib_reserve(&array, &cap, 4, sizeof *array));
    int *before = array;
    assert_false(nib_reserve(&array, &cap, SIZE_MAX / 2, sizeof *array));
    nib_alloc_fail_at(1);
    assert_false(nib_reserve(&array, &cap, 100, sizeof *array));
    nib_alloc_fail_at(0);
    assert_ptr_equal(array, before);
    assert_int_equal(cap, 16);
    nib_free(array);
}

static void a_copy_of_text_is_terminated(void **state) {
    (void)state;
    char *copy = nib_copy_text("a\0bc", 3);
    assert_memory_equal(copy, "a\0b", 4);
    nib_free(copy);
    copy = nib_copy_text(NULL, 0);
    assert_string_equal(copy, "");
    nib_free(copy);
}

/* Many small pieces as well as one large one; and what was refused is given again when there is room. */
static void memory_that_the_system_lacks_is_refused(void **state) {
    (void)state;
    enum { PIECE = 1 << 20, MOST = 64 };
    void *pieces[MOST];
    size_t n = 0;
    nib_memory_pretend(100 << 20);
    assert_null(nib_alloc(85, PIECE));
    nib_memory_pretend(10 << 20);
    while (n < MOST && (pieces[n] = nib_alloc(1, PIECE)) != NULL) {
        n++;
    }
    assert_int_equal(n, 15); /* the sixteenth is the first that is looked at */
    assert_null(nib_alloc(1, 1));
    nib_memory_pretend(0);
    void *large = nib_alloc(32, PIECE);
    assert_non_null(large);
    nib_free(large);
    for (size_t i = 0; i < n; i++) {
        nib_free(pieces[i]);
    }
}

static void the_nth_allocation_and_all_after_it_fail(void **state) {
    (void)state;
    nib_alloc_fail_at(3);
    void *first = nib_alloc(1, 1), *second = nib_alloc_zero(1, 1), *third = nib_alloc_aligned(1, 1);
    void *fourth = nib_realloc(NULL, 1, 1), *fifth = nib_copy_text("x", 1);
    assert_int_equal(nib_alloc_count(), 5);
    nib_alloc_fail_at(0);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(third);
    assert_null(fourth);
    assert_null(fifth);
    assert_int_equal(nib_alloc_count(), 0);
    nib_free(first);
    nib_free(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_and_sums_that_do_not_fit_are_refused),
        cmocka_unit_test(sizes_that_overflow_give_null),
        cmocka_unit_test(nothing_can_be_allocated_and_freed),
        cmocka_unit_test(zeroed_and_aligned_memory_is_zero_and_aligned),
        cmocka_unit_test(reserve_grows_by_half_and_keeps_the_content),
        cmocka_unit_test(reserve_changes_nothing_when_it_fails),
        cmocka_unit_test(a_copy_of_text_is_terminated),
        cmocka_unit_test(memory_that_the_system_lacks_is_refused),
        cmocka_unit_test(the_nth_allocation_and_all_after_it_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
