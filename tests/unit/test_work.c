/* The work area: every part lies in the one block, whatever the number of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/arch.h"
#include "model/work.h"

static nib_config small_config(void) {
    const nib_arch *arch = nib_arch_find("gemma3", 6);
    assert_non_null(arch);
    return (nib_config){.arch = arch,
                        .V = 8,
                        .D = 3,
                        .L = 1,
                        .H = 1,
                        .K = 1,
                        .E = 2,
                        .F = 1,
                        .context = 1 << 20,
                        .rope_dim = 2,
                        .rope_base = 10000.0};
}

static void check_parts(const nib_work *work, const nib_config *c) {
    int64_t n = work->n, half = c->rope_dim / 2;
    const struct {
        const float *part;
        int64_t floats;
    } parts[] = {
        {work->x, n * c->D},
        {work->h, n * NIB_PAD16(c->D)},
        {work->q, n * c->H * c->E},
        {work->k, n * c->K * c->E},
        {work->v, n * c->K * c->E},
        {work->a, n * NIB_PAD16(c->H * c->E)},
        {work->gate, n * NIB_PAD16(c->F)},
        {work->up, n * c->F},
        {work->y, n * c->D},
        {work->cos, 2 * n * half},
        {work->sin, 2 * n * half},
        {work->quant, ((int64_t)nib_quant_bytes(n, (c->D + 31) / 32 * 32) + 3) / 4},
    };
    enum { N_PARTS = sizeof parts / sizeof parts[0] };
    for (size_t i = 0; i < N_PARTS; i++) {
        const float *end = i + 1 < N_PARTS ? parts[i + 1].part : work->block + work->bytes / sizeof(float);
        assert_true(parts[i].part >= work->block && parts[i].part + parts[i].floats <= end);
    }
}

static void every_part_has_its_room(void **state) {
    (void)state;
    const int64_t rows[] = {1, 7, 256, 131072, 131073, 200000};
    nib_config config = small_config();
    nib_work work = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nib_error err;
        if (nib_work_reserve(&work, &config, rows[i], 1 + (int)i, &err) != NIB_OK) {
            fail_msg("%s", err.message);
        }
        assert_int_equal(work.n, rows[i]);
        check_parts(&work, &config);
    }
    assert_int_equal(nib_work_reserve(&work, &config, 3, 2, NULL), NIB_OK);
    assert_int_equal(work.n, 200000); /* never smaller */
    nib_work_free(&work);
}

static void sizes_beyond_the_address_space_are_refused(void **state) {
    (void)state;
    size_t bytes;
    nib_config config = small_config();
    config.D = 1 << 20;
    config.F = 1 << 22;
    config.H = config.K = 1 << 14;
    config.E = 1 << 14;
    assert_true(nib_work_bytes(&bytes, &config, 1) && bytes > (size_t)1 << 32);
    assert_false(nib_work_bytes(&bytes, &config, (int64_t)1 << 31));
    nib_work work = {0};
    assert_int_equal(nib_work_reserve(&work, &config, (int64_t)1 << 31, 1, NULL), NIB_ENOMEM);
    assert_null(work.block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_has_its_room),
        cmocka_unit_test(sizes_beyond_the_address_space_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
