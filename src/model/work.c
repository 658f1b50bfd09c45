/* The work area of a session: what depends on the rows in one block, and room of each thread for attention. */
#include "model/work.h"

#include "base/memory.h"
#include "model/rope.h"

enum { N_PARTS = 12 };

/* Sizes of the parts in floats, in the order of `place`. */
static void part_sizes(int64_t sizes[N_PARTS], const nib_config *c, int64_t n) {
    int64_t half = c->rope_dim / 2, widest = c->D > c->H * c->E ? c->D : c->H * c->E;
    widest = NIB_PAD16(widest > c->F ? widest : c->F) + 16; /* a multiple of 32 fits below */
    const int64_t all[N_PARTS] = {
        n * c->D,
        n * NIB_PAD16(c->D),
        n * c->H * c->E,
        n * c->K * c->E,
        n * c->K * c->E,
        n * NIB_PAD16(c->H * c->E),
        n * NIB_PAD16(c->F),
        n * c->F,
        n * c->D,
        2 * n * half,
        2 * n * half,
        n * widest / 32 * (NIB_QUANT_BLOCK / 4),
    };
    for (int i = 0; i < N_PARTS; i++) {
        sizes[i] = NIB_PAD16(all[i]);
    }
}

static void place(nib_work *work, const int64_t sizes[N_PARTS]) {
    float **parts[N_PARTS] = {&work->x,    &work->h,  &work->q, &work->k,   &work->v,   &work->a,
                              &work->gate, &work->up, &work->y, &work->cos, &work->sin, &work->quant};
    float *at = work->block;
    for (int i = 0; i < N_PARTS; i++) {
        *parts[i] = at;
        at += sizes[i];
    }
}

size_t nib_work_group_floats(const nib_config *config) {
    return NIB_ATTEND_ROWS * (size_t)config->E;
}

bool nib_work_bytes(size_t *bytes, const nib_config *config, int64_t n) {
    int64_t sizes[N_PARTS];
    size_t floats = 0;
    /* The bounds of nib_config_check keep one row below 2^32 floats and a context at 2^30 rows: no product overflows. */
    if (n < 0 || n > 1 << 30) {
        return false;
    }
    part_sizes(sizes, config, n);
    for (int i = 0; i < N_PARTS; i++) {
        if (!nib_add_size(&floats, floats, (size_t)sizes[i])) {
            return false;
        }
    }
    return nib_mul_size(bytes, floats, sizeof(float));
}

/* The parts that depend on n. */
static nib_status reserve_rows(nib_work *work, const nib_config *config, int64_t n, nib_error *err) {
    int64_t sizes[N_PARTS];
    size_t bytes;
    if (n <= work->n) {
        return NIB_OK;
    }
    if (!nib_work_bytes(&bytes, config, n)) {
        return nib_fail_memory(err, SIZE_MAX, "the work area");
    }
    nib_work_free(work);
    work->block = nib_alloc_aligned(bytes / sizeof(float), sizeof(float));
    work->freq = nib_alloc((size_t)config->rope_dim + 1, sizeof(double));
    work->tiles = nib_alloc((size_t)n, sizeof work->tiles[0]);
    if (work->block == NULL || work->freq == NULL || work->tiles == NULL) {
        nib_work_free(work);
        return nib_fail_memory(err, bytes, "the work area");
    }
    part_sizes(sizes, config, n);
    place(work, sizes);
    work->n = n;
    work->bytes = bytes;
    nib_rope_frequencies(work->freq, config, false);
    nib_rope_frequencies(work->freq + config->rope_dim / 2, config, true);
    work->magnitude[0] = nib_rope_magnitude(&config->rope);
    work->magnitude[1] = config->arch->local_rope_base > 0 ? 1.0 : work->magnitude[0];
    return NIB_OK;
}

nib_status nib_work_reserve(nib_work *work, const nib_config *config, int64_t n, int threads, nib_error *err) {
    nib_status status = reserve_rows(work, config, n, err);
    if (status != NIB_OK || threads <= work->threads) {
        return status;
    }
    nib_free(work->group_o);
    work->threads = 0;
    work->group_o = nib_alloc_aligned((size_t)threads * nib_work_group_floats(config), sizeof(float));
    if (work->group_o == NULL) {
        return nib_fail_memory(err, (size_t)threads * nib_work_group_floats(config) * sizeof(float), "the work area");
    }
    work->threads = threads;
    return NIB_OK;
}

nib_status nib_work_reserve_kept(nib_work *work, size_t bytes, nib_error *err) {
    if (!nib_reserve(&work->kept, &work->cap_kept, bytes, 1)) {
        return nib_fail_memory(err, bytes, "groups of attention");
    }
    return NIB_OK;
}

void nib_work_free(nib_work *work) {
    nib_free(work->block);
    nib_free(work->freq);
    nib_free(work->tiles);
    nib_free(work->group_o);
    nib_free(work->kept);
    *work = (nib_work){0};
}
