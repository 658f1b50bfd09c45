/* Choosing one token: bans, repetition penalty, then greedy or temperature, top_k, top_p, min_p and a draw.
 *
 * What may not be drawn is -infinity: logits as they come, a copy with bans and penalties, or, after a filter, an area
 * that is -infinity but for the tokens that were kept. Nothing sorts the whole vocabulary unless the mass needs it.
 * docs/numerics.md, rules 5 and 6; docs/options.md for the order. */
#include "decode/sample.h"

#include <assert.h>
#include <math.h> /* INFINITY */
#include <string.h>

#include "base/maths.h"
#include "base/memory.h"
#include "base/number.h"
#include "decode/logsum.h"
#include "decode/noise.h"
#include "decode/order.h"

_Static_assert((int)NIB_LOGSUM_BLOCK == (int)NIB_NOISE_BLOCK, "both read the same block maxima");

enum {
    BLOCK = NIB_LOGSUM_BLOCK,
    SORT_FIRST = 256 /* tokens sorted before the first look at their mass */
};

struct nib_sampler {
    const nib_kernels *kernels;
    int64_t V, blocks;
    nib_logits now;   /* what may be drawn at this point of the call */
    float *penalised; /* [V] logits with bans and penalties */
    float *block_max; /* [blocks] of the logits, or of penalised */
    float *kept;      /* [V] -infinity but for the tokens a filter kept; all of it between calls */
    float *kept_max;  /* [blocks] the same for the largest of each block */
    float *sum_m;     /* [blocks] log-sum-exp: largest of each block */
    float *sum_s;     /* [blocks] log-sum-exp: sum of each block */
    double *bound;    /* [blocks] the draw's */
    uint64_t *seen;   /* [(V + 63) / 64] a bit for each id of the history; 0 between calls */
    uint64_t *key;    /* [V] the list of kept tokens, order.h */
    size_t n_key;     /* tokens in the list */
    bool listed;      /* a filter has made the list; the tokens that may be drawn are those in it */
};

/* Allocates the work areas and brings them to what they are between calls. False when out of memory. */
static bool make_areas(nib_sampler *s, size_t V, size_t blocks) {
    s->penalised = nib_alloc(V, sizeof *s->penalised);
    s->block_max = nib_alloc(blocks, sizeof *s->block_max);
    s->kept = nib_alloc(V, sizeof *s->kept);
    s->kept_max = nib_alloc(blocks, sizeof *s->kept_max);
    s->sum_m = nib_alloc(blocks, sizeof *s->sum_m);
    s->sum_s = nib_alloc(blocks, sizeof *s->sum_s);
    s->bound = nib_alloc(blocks, sizeof *s->bound);
    s->seen = nib_alloc_zero((V + 63) / 64, sizeof *s->seen);
    s->key = nib_alloc(V, sizeof *s->key);
    if (s->penalised == NULL || s->block_max == NULL || s->kept == NULL || s->kept_max == NULL || s->sum_m == NULL ||
        s->sum_s == NULL || s->bound == NULL || s->seen == NULL || s->key == NULL) {
        return false;
    }
    for (size_t i = 0; i < V; i++) {
        s->kept[i] = -INFINITY;
    }
    for (size_t b = 0; b < blocks; b++) {
        s->kept_max[b] = -INFINITY;
    }
    return true;
}

nib_status nib_sampler_new(nib_sampler **out, int64_t V, const nib_kernels *kernels, nib_error *err) {
    *out = NULL;
    if (V < 1 || V > INT32_MAX) {
        return nib_fail(err, NIB_EINVAL, "vocabulary: %lld tokens, expected 1 to %d", (long long)V, INT32_MAX);
    }
    nib_sampler *s = nib_alloc_zero(1, sizeof *s);
    if (s == NULL) {
        return nib_fail_memory(err, sizeof *s, "the sampler");
    }
    s->kernels = kernels;
    s->V = V;
    s->blocks = nib_logsum_blocks(V);
    if (!make_areas(s, (size_t)V, (size_t)s->blocks)) {
        nib_sampler_free(s);
        return nib_fail_memory(err, (size_t)V * (2 * sizeof(float) + sizeof(uint64_t)), "the sampler's work areas");
    }
    *out = s;
    return NIB_OK;
}

void nib_sampler_free(nib_sampler *sampler) {
    if (sampler == NULL) {
        return;
    }
    nib_free(sampler->penalised);
    nib_free(sampler->block_max);
    nib_free(sampler->kept);
    nib_free(sampler->kept_max);
    nib_free(sampler->sum_m);
    nib_free(sampler->sum_s);
    nib_free(sampler->bound);
    nib_free(sampler->seen);
    nib_free(sampler->key);
    nib_free(sampler);
}

/* ---- logits, bans, penalties ---- */

static nib_status fail_logit(nib_error *err, const float *l, int64_t V, const nib_sample_place *place,
                             const char *what) {
    int64_t id = 0;
    while (id < V - 1 && l[id] < INFINITY) {
        id++;
    }
    char text[NIB_NUMBER_ROOM];
    return nib_fail(err, NIB_ENUMERIC,
                    "row %zu, position %u: the %s of token %lld is %s, expected a number below infinity", place->row,
                    (unsigned)place->position, what, (long long)id, nib_format_real(text, (double)l[id], 9));
}

/* The largest of l [n], n <= BLOCK. False when one is NaN or +infinity. Sixteen lanes, so that it is vector code. */
static bool scan_block(float *max, const float *l, int64_t n) {
    float lane[16];
    uint32_t bad[16] = {0};
    for (int j = 0; j < 16; j++) {
        lane[j] = -INFINITY;
    }
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int j = 0; j < 16; j++) {
            lane[j] = l[i + j] > lane[j] ? l[i + j] : lane[j];
            bad[j] |= l[i + j] < INFINITY ? 0u : 1u; /* NaN compares false */
        }
    }
    for (; i < n; i++) {
        lane[0] = l[i] > lane[0] ? l[i] : lane[0];
        bad[0] |= l[i] < INFINITY ? 0u : 1u;
    }
    for (int j = 1; j < 16; j++) {
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
        bad[0] |= bad[j];
    }
    *max = lane[0];
    return bad[0] == 0;
}

static bool scan(float *block_max, const float *l, int64_t V) {
    for (int64_t first = 0, b = 0; first < V; first += BLOCK, b++) {
        if (!scan_block(&block_max[b], l + first, V - first < BLOCK ? V - first : BLOCK)) {
            return false;
        }
    }
    return true;
}

/* Each id of the history once, however often it occurs; ids the vocabulary does not have are passed over. */
static void penalise(nib_sampler *s, const nib_sample_place *place, float theta) {
    for (size_t i = 0; i < place->n_history; i++) {
        int32_t id = place->history[i];
        if (id < 0 || id >= s->V || (s->seen[id >> 6] >> (id & 63) & 1) != 0) {
            continue;
        }
        s->seen[id >> 6] |= (uint64_t)1 << (id & 63);
        float l = s->penalised[id];
        s->penalised[id] = l < 0 ? l * theta : l / theta;
    }
    for (size_t i = 0; i < place->n_history; i++) {
        int32_t id = place->history[i];
        if (id >= 0 && id < s->V) {
            s->seen[id >> 6] = 0;
        }
    }
}

/* s->now from logits whose block_max is known: without a ban or a penalty the logits themselves, not a copy. */
static nib_status process(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                          const float *logits, nib_error *err) {
    float theta = (float)params->repetition_penalty;
    bool penalty = theta != 1.0f && place->n_history > 0;
    s->now = (nib_logits){logits, s->block_max, s->V, -INFINITY};
    if (penalty || params->n_banned > 0) {
        memcpy(s->penalised, logits, (size_t)s->V * sizeof *logits);
        for (size_t i = 0; i < params->n_banned; i++) {
            if (params->banned[i] >= 0 && params->banned[i] < s->V) {
                s->penalised[params->banned[i]] = -INFINITY;
            }
        }
        if (penalty) {
            penalise(s, place, theta);
        }
        s->now.l = s->penalised;
        if (!scan(s->block_max, s->penalised, s->V)) { /* a penalty below 1 overflowed */
            return fail_logit(err, s->penalised, s->V, place, "penalised logit");
        }
    }
    for (int64_t b = 0; b < s->blocks; b++) {
        s->now.max = s->block_max[b] > s->now.max ? s->block_max[b] : s->now.max;
    }
    if (!(s->now.max > -INFINITY)) {
        return nib_fail(err, NIB_ENUMERIC,
                        "row %zu, position %u: each of the %lld tokens is banned or has a logit of -infinity, expected "
                        "at least one that can be drawn",
                        place->row, (unsigned)place->position, (long long)s->V);
    }
    return NIB_OK;
}

/* ---- filters ---- */

/* Makes the tokens in the list the only ones that may be drawn. */
static void show_list(nib_sampler *s) {
    for (size_t i = 0; i < s->n_key; i++) {
        int32_t id = nib_order_id(s->key[i]);
        float l = nib_order_logit(s->key[i]);
        s->kept[id] = l;
        s->kept_max[id / BLOCK] = l > s->kept_max[id / BLOCK] ? l : s->kept_max[id / BLOCK];
    }
    s->now.l = s->kept;
    s->now.block_max = s->kept_max;
}

/* Undoes show_list for the same list. */
static void hide_list(nib_sampler *s) {
    for (size_t i = 0; i < s->n_key; i++) {
        int32_t id = nib_order_id(s->key[i]);
        s->kept[id] = -INFINITY;
        s->kept_max[id / BLOCK] = -INFINITY;
    }
}

/* Lists the tokens with l >= low and l > -infinity, in id order. */
static void list_above(nib_sampler *s, double low) {
    size_t n = 0;
    for (int64_t b = 0; b < s->blocks; b++) {
        float max = s->now.block_max[b];
        if (!((double)max >= low) || !(max > -INFINITY)) {
            continue;
        }
        int64_t first = b * BLOCK, end = first + BLOCK < s->V ? first + BLOCK : s->V;
        for (int64_t id = first; id < end; id++) {
            float l = s->now.l[id];
            s->key[n] = nib_order_key(l, (int32_t)id); /* n <= id, so there is room */
            n += (double)l >= low && l > -INFINITY;
        }
    }
    s->n_key = n;
    s->listed = true;
}

/* A logit that at least `want` tokens reach: the want-th largest of the blocks' largest. -infinity when there are fewer
 * blocks. For a want far below V it leaves a few times want tokens, found by one look at each block. */
static double reached_by(nib_sampler *s, int64_t want) {
    if (want >= s->blocks) {
        return -INFINITY;
    }
    for (int64_t b = 0; b < s->blocks; b++) {
        s->key[b] = nib_order_key(s->now.block_max[b], (int32_t)b);
    }
    nib_order_select(s->key, (size_t)s->blocks, (size_t)want);
    float low = INFINITY;
    for (int64_t i = 0; i < want; i++) {
        float max = nib_order_logit(s->key[i]);
        low = max < low ? max : low;
    }
    return (double)low;
}

static void keep_top_k(nib_sampler *s, int64_t k) {
    list_above(s, reached_by(s, k));
    if (s->n_key > (size_t)k) {
        nib_order_select(s->key, s->n_key, (size_t)k);
        s->n_key = (size_t)k;
    }
}

/* Cuts the list, best first, where the mass before a token has reached limit; the first token stays in any case. The
 * list is sorted a stretch at a time. False when the whole list does not reach it. */
static bool cut_at_mass(nib_sampler *s, double limit, double T) {
    double mass = 0;
    size_t sorted = 0, stretch = SORT_FIRST;
    for (size_t i = 0; i < s->n_key; i++) {
        if (i > 0 && !(mass < limit)) {
            s->n_key = i;
            return true;
        }
        if (i == sorted) {
            size_t left = s->n_key - sorted, n = stretch < left ? stretch : left;
            nib_order_select(s->key + sorted, left, n);
            nib_order_sort(s->key + sorted, n);
            sorted += n;
            stretch = 3 * sorted;
        }
        mass += nib_exp((double)nib_tempered(nib_order_logit(s->key[i]), s->now.max, T));
    }
    return !(mass < limit);
}

/* The smallest set of best tokens whose mass reaches p. */
static void keep_top_p(nib_sampler *s, double p, double T) {
    if (s->listed) {
        show_list(s);
    }
    nib_logsum sum;
    nib_logsum_tempered(&sum, s->sum_m, s->sum_s, s->kernels, &s->now, T);
    double limit = p * sum.total;
    if (s->listed) {
        hide_list(s);
        (void)cut_at_mass(s, limit, T);
        return;
    }
    /* Mostly a list above the middle one of the blocks' largest will do. If not, tokens of less than (1 - p) Z / V have
     * no more than (1 - p) Z together, so the others reach p Z, but for the rounding: then all of them. */
    double rest = 0.999 * (1 - p) * sum.total / (double)s->V;
    const double low[] = {reached_by(s, s->blocks / 2 + 1), (double)s->now.max + T * nib_log(rest), -INFINITY};
    for (size_t i = 0; i < sizeof low / sizeof *low; i++) {
        list_above(s, low[i]);
        if (cut_at_mass(s, limit, T)) {
            return;
        }
    }
}

/* Keeps exp(x) >= min_p, the best having exp(x) = 1. Two bounds around log(min_p), wider apart than any rounding of x,
 * spare most tokens the exponential. */
static void keep_min_p(nib_sampler *s, double min_p, double T) {
    double log_p = nib_log(min_p), slack = 1e-6 * (1 - log_p);
    if (!s->listed) {
        double l_max = (double)s->now.max;
        list_above(s, l_max + T * (log_p - slack) - 1e-6 * (l_max < 0 ? -l_max : l_max));
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n_key; i++) {
        double x = (double)nib_tempered(nib_order_logit(s->key[i]), s->now.max, T);
        if (x > log_p + slack || (x > log_p - slack && nib_exp(x) >= min_p)) {
            s->key[n++] = s->key[i];
        }
    }
    s->n_key = n;
}

static void filter(nib_sampler *s, const nib_sample_params *params) {
    if (params->top_k > 0 && params->top_k < s->V) {
        keep_top_k(s, params->top_k);
    }
    if (params->top_p < 1) {
        keep_top_p(s, params->top_p, params->temperature);
    }
    if (params->min_p > 0) {
        keep_min_p(s, params->min_p, params->temperature);
    }
    if (s->listed) {
        show_list(s);
    }
}

/* ---- the draw ---- */

/* The largest logit, ties to the lower id. */
static int32_t best_token(const nib_logits *now) {
    int64_t b = 0;
    while (now->block_max[b] < now->max) {
        b++;
    }
    int64_t id = b * BLOCK;
    while (now->l[id] < now->max) {
        id++;
    }
    return (int32_t)id;
}

/* Inverse CDF in id order: the first token whose running sum exceeds u Z; where rounding lets none, the last one that
 * has a probability. */
static int32_t draw_cdf(nib_sampler *s, const nib_noise *noise, double T) {
    nib_logsum sum;
    nib_logsum_tempered(&sum, s->sum_m, s->sum_s, s->kernels, &s->now, T);
    double limit = nib_noise_uniform(noise, NIB_NOISE_CDF) * sum.total, mass = 0;
    int64_t last = 0;
    for (int64_t id = 0; id < s->V; id++) {
        if (!(s->now.block_max[id / BLOCK] > -INFINITY)) {
            id += BLOCK - 1;
            continue;
        }
        double p = nib_exp((double)nib_tempered(s->now.l[id], s->now.max, T));
        if (!(p > 0)) {
            continue;
        }
        last = id;
        mass += p;
        if (mass > limit) {
            break;
        }
    }
    return (int32_t)last;
}

static int32_t draw(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place) {
    const nib_noise noise = {params->seed, place->position, place->stream};
    if (params->cdf) {
        return draw_cdf(s, &noise, params->temperature);
    }
    return nib_noise_draw(NULL, s->bound, &noise, s->now.l, s->now.block_max, s->V, params->temperature);
}

/* Of the distribution the token was drawn from. A greedy choice is taken to be from all tokens that are not banned,
 * after penalties, at temperature 1: the choice itself has no distribution. */
static float processed_logprob(nib_sampler *s, const nib_sample_params *params, int32_t id) {
    double T = params->greedy ? 1.0 : params->temperature;
    nib_logsum sum;
    nib_logsum_tempered(&sum, s->sum_m, s->sum_s, s->kernels, &s->now, T);
    return nib_logsum_logprob(&sum, nib_tempered(s->now.l[id], s->now.max, T));
}

nib_status nib_sampler_choose(nib_choice *choice, nib_sampler *sampler, const nib_sample_params *params,
                              const nib_sample_place *place, const float *logits, nib_error *err) {
    nib_sampler *s = sampler;
    assert(params->greedy || params->temperature > 0);
    nib_logsum raw = {0, 1};
    bool valid = params->processed_logprobs ? scan(s->block_max, logits, s->V)
                                            : nib_logsum_raw(&raw, s->block_max, s->sum_s, s->kernels, logits, s->V);
    if (!valid) {
        return fail_logit(err, logits, s->V, place, "logit");
    }
    nib_status status = process(s, params, place, logits, err);
    if (status != NIB_OK) {
        return status;
    }
    s->listed = false;
    if (!params->greedy) {
        filter(s, params);
    }
    choice->id = params->greedy ? best_token(&s->now) : draw(s, params, place);
    choice->logprob = params->processed_logprobs ? processed_logprob(s, params, choice->id)
                                                 : nib_logsum_logprob(&raw, logits[choice->id]);
    if (s->listed) {
        hide_list(s);
    }
    return NIB_OK;
}
