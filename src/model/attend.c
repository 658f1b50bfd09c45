/* The attention of one layer, cut into units for the threads. docs/numerics.md, rule 4. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "model/pass.h"

enum { SMALL_FLOPS = 100000 /* about 2 microseconds: not worth sharing */ };

/* The first key that a row sees in a layer. */
static int64_t first_key(const nib_config *config, int64_t layer, int64_t pos) {
    return nib_config_is_global(config, layer) || pos < config->window ? 0 : pos - config->window + 1;
}

/* Query heads of a kv head that one unit takes. */
static int64_t heads_of_part(const nib_config *c) {
    int64_t n_q = c->H / c->K;
    return n_q < NIB_ATTEND_ROWS ? n_q : NIB_ATTEND_ROWS;
}

int64_t nib_attend_tiles(nib_work *work, const nib_config *config, const nib_forward_row *rows, int64_t n) {
    int64_t most = NIB_ATTEND_ROWS / heads_of_part(config), n_tiles = 0;
    for (int64_t t = 0; t < n; n_tiles++) {
        nib_tile *tile = &work->tiles[n_tiles];
        *tile = (nib_tile){t, 1};
        while (tile->n < most && t + tile->n < n && rows[t + tile->n].kv->family == rows[t].kv->family) {
            tile->n++;
        }
        t += tile->n;
    }
    return n_tiles;
}

/* Groups that a row sees: their number, and the first in *first. */
static int64_t groups_of(int64_t *first, const nib_config *c, int64_t layer, int64_t pos) {
    *first = first_key(c, layer, pos) / NIB_GROUP;
    return pos / NIB_GROUP - *first + 1;
}

static nib_attend_plan make_plan(const nib_config *c, int64_t layer, const nib_forward_row *rows, int64_t n,
                                 int64_t n_tiles, int threads) {
    nib_attend_plan plan = {.part_heads = heads_of_part(c), .runs = 1};
    int64_t longest = 0;
    for (int64_t t = 0; t < n; t++) {
        int64_t first, groups = groups_of(&first, c, layer, rows[t].pos);
        longest = groups > longest ? groups : longest;
    }
    plan.n_parts = (c->H / c->K + plan.part_heads - 1) / plan.part_heads;
    plan.run = longest;
    int64_t units = n_tiles * c->K * plan.n_parts, want = 4 * (int64_t)threads;
    if (threads > 1 && units < want && longest >= 4) {
        int64_t runs = (want + units - 1) / units;
        runs = runs < longest / 2 ? runs : longest / 2;
        plan.run = (longest + runs - 1) / runs;
        plan.runs = (longest + plan.run - 1) / plan.run;
    }
    return plan;
}

/* What is kept of a group of one row and kv head: the states of its query heads, then their o. */
static size_t slot_bytes(const nib_config *c) {
    return (size_t)(c->H / c->K) * (sizeof(nib_attn_state) + (size_t)c->E * sizeof(float));
}

static nib_attn_state *slot(const nib_pass *p, int64_t row, int64_t kv_head, int64_t group) {
    int64_t most = p->plan.run * p->plan.runs;
    size_t at = (size_t)((row * p->c->K + kv_head) * most + group) * slot_bytes(p->c);
    return (nib_attn_state *)(void *)((unsigned char *)p->w->kept + at);
}

static float *slot_o(const nib_pass *p, nib_attn_state *states) {
    return (float *)(void *)(states + p->c->H / p->c->K);
}

size_t nib_attend_kept_bytes(const nib_config *config, int64_t n_tiles, const nib_forward_row *rows, int64_t n,
                             int threads) {
    size_t most = 0;
    for (int64_t layer = 0; layer < config->L; layer++) {
        nib_attend_plan plan = make_plan(config, layer, rows, n, n_tiles, threads);
        size_t bytes = plan.runs == 1 ? 0 : (size_t)(n * config->K * plan.run * plan.runs) * slot_bytes(config);
        most = bytes > most ? bytes : most;
    }
    return most;
}

int nib_attend_plan_layer(nib_pass *p, int threads) {
    p->plan = make_plan(p->c, p->index, p->rows, p->n, p->n_tiles, threads);
    p->plan.items = p->n_tiles * p->c->K * p->plan.n_parts * p->plan.runs;
    p->plan.unit_items = (p->plan.items + NIB_STEP_UNITS - 1) / NIB_STEP_UNITS; /* more than 1 for 100,000s of rows */
    return (int)((p->plan.items + p->plan.unit_items - 1) / p->plan.unit_items);
}

bool nib_attend_is_small(const nib_pass *p) {
    return p->n * p->plan.run * p->plan.runs * NIB_GROUP * p->c->H * p->c->E * 4 < SMALL_FLOPS;
}

/* The visible keys of group g for a row: false when there is none. */
static bool sees(nib_attn_shape *shape, const nib_pass *p, const nib_forward_row *row, int64_t g) {
    int64_t start = g * NIB_GROUP, first = first_key(p->c, p->index, row->pos) - start, last = row->pos - start;
    if (first >= NIB_GROUP || last < 0) {
        return false;
    }
    shape->lo = first > 0 ? first : 0;
    shape->hi = last < NIB_GROUP ? last : NIB_GROUP - 1;
    return true;
}

/* The query rows of a unit: m heads from `head` on for each token of a tile. */
typedef struct unit_rows {
    const nib_forward_row *rows; /* [n] */
    int64_t n, kv_head, head, m;
    const float *q[NIB_ATTEND_ROWS]; /* [n * m] */
    float *sum[NIB_ATTEND_ROWS];
    nib_attn_state running[NIB_ATTEND_ROWS];
    float *o;          /* room for one group */
    uint64_t kv_bytes; /* read of the cache */
} unit_rows;

static void gather(unit_rows *u, const nib_pass *p, const nib_tile *tile, int64_t kv_head, int64_t part) {
    const nib_config *c = p->c;
    int64_t n_q = c->H / c->K, head = part * p->plan.part_heads;
    u->rows = p->rows + tile->first;
    u->n = tile->n;
    u->kv_bytes = 0;
    u->kv_head = kv_head;
    u->head = kv_head * n_q + head;
    u->m = n_q - head < p->plan.part_heads ? n_q - head : p->plan.part_heads;
    for (int64_t i = 0; i < u->n * u->m; i++) {
        int64_t row = tile->first + i / u->m, h = u->head + i % u->m;
        u->q[i] = p->w->q + (row * c->H + h) * c->E;
        u->sum[i] = p->w->a + row * NIB_PAD16(c->H * c->E) + h * c->E;
    }
}

/* One group for the tokens t .. t + n-1 of a unit, which see the same keys of the same page. */
static void attend_group(unit_rows *u, const nib_pass *p, int64_t g, int64_t t, int64_t n,
                         const nib_attn_shape *shape) {
    const nib_kv *kv = u->rows[t].kv;
    const void *keys = nib_kv_keys(kv, p->index, u->kv_head, g), *values = nib_kv_values(kv, p->index, u->kv_head, g);
    int64_t E = p->c->E, at = t * u->m;
    u->kv_bytes += (uint64_t)(2 * (shape->hi - shape->lo + 1) * E) * nib_kv_type_bytes(kv->store->type);
    if (p->plan.runs == 1) {
        nib_attn_state states[NIB_ATTEND_ROWS];
        p->k->attn_group(states, u->o, E, u->q + at, n * u->m, keys, values, shape);
        p->k->attn_merge(u->running + at, u->sum + at, states, u->o, E, n * u->m, E);
        return;
    }
    for (int64_t i = t; i < t + n; i++) {
        int64_t first;
        (void)groups_of(&first, p->c, p->index, u->rows[i].pos);
        nib_attn_state *states = slot(p, u->rows + i - p->rows, u->kv_head, g - first);
        int64_t head = u->head - u->kv_head * (p->c->H / p->c->K);
        p->k->attn_group(states + head, slot_o(p, states) + head * E, E, u->q + i * u->m, u->m, keys, values, shape);
    }
}

/* The kernel asks for a page a little before it reads it, but for its beginning. */
static void prefetch_page(const unit_rows *u, const nib_pass *p, int64_t g) {
    const nib_kv *kv = u->rows[0].kv;
    if (!nib_kv_has_page(kv, p->index, g)) { /* another timeline of the tile does */
        return;
    }
    const unsigned char *page = nib_kv_keys(kv, p->index, u->kv_head, g);
    for (int at = 0; at < 2048; at += 64) {
        __builtin_prefetch(page + at, 0, 3);
    }
}

static void attend_groups(unit_rows *u, const nib_pass *p, int64_t g0, int64_t g1) {
    nib_attn_shape shape = {.E = p->c->E, .type = u->rows[0].kv->store->type}, other = shape;
    for (int64_t g = g0; g < g1; g++) {
        if (g + 1 < g1) {
            prefetch_page(u, p, g + 1);
        }
        for (int64_t t = 0; t < u->n;) {
            int64_t n = 1;
            if (sees(&shape, p, &u->rows[t], g)) {
                while (t + n < u->n && sees(&other, p, &u->rows[t + n], g) && other.lo == shape.lo &&
                       other.hi == shape.hi && nib_kv_same_page(u->rows[t].kv, u->rows[t + n].kv, p->index, g)) {
                    n++;
                }
                attend_group(u, p, g, t, n, &shape);
            }
            t += n;
        }
    }
}

/* The first and the last group that a row of the unit sees. */
static void range_of_tile(int64_t *first, int64_t *last, const nib_pass *p, const unit_rows *u) {
    int64_t least = u->rows[0].pos, most = least;
    for (int64_t t = 1; t < u->n; t++) {
        int64_t pos = u->rows[t].pos;
        least = pos < least ? pos : least;
        most = pos > most ? pos : most;
    }
    (void)groups_of(first, p->c, p->index, least);
    *last = most / NIB_GROUP;
}

/* Returns the bytes that were read of the cache. */
static uint64_t attend_item(const nib_pass *p, int64_t item, int thread) {
    const nib_config *c = p->c;
    int64_t rest = item, run = rest % p->plan.runs;
    rest /= p->plan.runs;
    int64_t part = rest % p->plan.n_parts;
    rest /= p->plan.n_parts;
    const nib_tile *tile = &p->w->tiles[p->n_tiles - 1 - rest / c->K]; /* the longest first */
    unit_rows u;
    gather(&u, p, tile, rest % c->K, part);
    u.o = p->w->group_o + (size_t)thread * nib_work_group_floats(c);
    int64_t first, last;
    range_of_tile(&first, &last, p, &u);
    if (p->plan.runs > 1) {
        /* The rows of a tile together may see a group more than the longest of them: the last run takes it. */
        int64_t end = first + (run + 1) * p->plan.run;
        bool rest_of_tile = run + 1 == p->plan.runs || end > last;
        attend_groups(&u, p, first + run * p->plan.run, rest_of_tile ? last + 1 : end);
        return u.kv_bytes;
    }
    for (int64_t i = 0; i < u.n * u.m; i++) {
        u.running[i] = (nib_attn_state){-INFINITY, 0.0f};
        memset(u.sum[i], 0, (size_t)c->E * sizeof(float));
    }
    attend_groups(&u, p, first, last + 1);
    for (int64_t i = 0; i < u.n * u.m; i++) {
        /* gather filled them. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
        p->k->attn_finish(u.sum[i], u.running[i].l, c->E);
    }
    return u.kv_bytes;
}

void nib_attend(void *pass, int unit, int thread) {
    nib_pass *p = pass;
    int64_t first = unit * p->plan.unit_items, end = first + p->plan.unit_items;
    uint64_t bytes = 0;
    for (int64_t item = first; item < end && item < p->plan.items; item++) {
        bytes += attend_item(p, item, thread);
    }
    atomic_fetch_add_explicit(&p->kv_bytes, bytes, memory_order_relaxed);
}

void nib_attend_merge(void *pass, int unit, int thread) {
    nib_pass *p = pass;
    const nib_config *c = p->c;
    int64_t row = unit / c->K, kv_head = unit % c->K, n_q = c->H / c->K;
    int64_t first, n_groups = groups_of(&first, c, p->index, p->rows[row].pos);
    (void)thread;
    for (int64_t head = 0; head < n_q; head += NIB_ATTEND_ROWS) {
        int64_t m = n_q - head < NIB_ATTEND_ROWS ? n_q - head : NIB_ATTEND_ROWS;
        nib_attn_state running[NIB_ATTEND_ROWS];
        float *sum[NIB_ATTEND_ROWS];
        for (int64_t i = 0; i < m; i++) {
            running[i] = (nib_attn_state){-INFINITY, 0.0f};
            sum[i] = p->w->a + row * NIB_PAD16(c->H * c->E) + (kv_head * n_q + head + i) * c->E;
            memset(sum[i], 0, (size_t)c->E * sizeof(float));
        }
        for (int64_t g = 0; g < n_groups; g++) {
            nib_attn_state *states = slot(p, row, kv_head, g);
            p->k->attn_merge(running, sum, states + head, slot_o(p, states) + head * c->E, c->E, m, c->E);
        }
        for (int64_t i = 0; i < m; i++) {
            p->k->attn_finish(sum[i], running[i].l, c->E);
        }
    }
}
