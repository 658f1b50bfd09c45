/* The choice of a rung and its self-check. What the kernels compute is tests/checkkern's. */
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names_are_in_order_best_last(void **state) {
    (void)state;
    const char *const names[] = {"base", "avx2", "avx512", "avx512vnni", "neon", "neondot"};
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(nib_kernels_name(i), names[i]);
    }
    assert_null(nib_kernels_name(6));
    assert_null(nib_kernels_name((size_t)-1));
}

static void base_is_on_every_machine(void **state) {
    (void)state;
    assert_non_null(nib_kernels_find("base"));
    assert_string_equal(nib_kernels_find("base")->name, "base");
}

static void an_unknown_name_is_not_found(void **state) {
    (void)state;
    assert_null(nib_kernels_find("avx1024"));
    assert_null(nib_kernels_find(""));
    assert_null(nib_kernels_find("Base"));
}

static void auto_is_the_best_this_machine_has(void **state) {
    (void)state;
    const nib_kernels *best = NULL;
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(i));
        best = kernels == NULL ? best : kernels;
    }
    assert_ptr_equal(nib_kernels_find("auto"), best);
}

static void every_rung_passes_its_self_check(void **state) {
    (void)state;
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(i));
        assert_true(kernels == NULL || nib_kernels_selfcheck(kernels));
    }
}

#ifdef __x86_64__
#include <xmmintrin.h>

/* What a host linked with fast-math flags, or one with another rounding mode, hands to its threads. */
static void the_self_check_notices_another_state_of_the_unit(void **state) {
    (void)state;
    static const unsigned modes[] = {0x8000, 0x0040, 0x2000, 0x4000, 0x6000}; /* FTZ, DAZ, down, up, to zero */
    unsigned before = _mm_getcsr();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        for (size_t j = 0; nib_kernels_name(j) != NULL; j++) {
            const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(j));
            _mm_setcsr(before | modes[i]);
            bool sound = kernels != NULL && nib_kernels_selfcheck(kernels);
            _mm_setcsr(before);
            assert_false(sound);
        }
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_in_order_best_last),
        cmocka_unit_test(base_is_on_every_machine),
        cmocka_unit_test(an_unknown_name_is_not_found),
        cmocka_unit_test(auto_is_the_best_this_machine_has),
        cmocka_unit_test(every_rung_passes_its_self_check),
#ifdef __x86_64__
        cmocka_unit_test(the_self_check_notices_another_state_of_the_unit),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
