/* Choosing one token: its logits processed, filtered, drawn from; its log-probability, and the best others'. */
#include "decode/sample.h"

#include <assert.h>
#include <math.h> /* INFINITY */
#include <string.h>

#include "base/maths.h"
#include "base/memory.h"
#include "decode/order.h"
#include "decode/sampler_parts.h"

_Static_assert((int)NIB_LOGSUM_BLOCK == (int)NIB_NOISE_BLOCK, "both read the same block maxima");

/* Allocates the work areas and brings them to what they are between calls. False when out of memory. */
static bool make_areas(nib_sampler *s, size_t V, size_t blocks) {
    s->penalised = nib_alloc(V, sizeof *s->penalised);
    s->block_max = nib_alloc(blocks, sizeof *s->block_max);
    s->kept = nib_alloc(V, sizeof *s->kept);
    s->kept_max = nib_alloc(blocks, sizeof *s->kept_max);
    s->sum_m = nib_alloc(blocks, sizeof *s->sum_m);
    s->sum_s = nib_alloc(blocks, sizeof *s->sum_s);
    s->bound = nib_alloc(blocks, sizeof *s->bound);
    s->count = nib_alloc_zero(V, sizeof *s->count);
    s->key = nib_alloc(V, sizeof *s->key);
    if (s->penalised == NULL || s->block_max == NULL || s->kept == NULL || s->kept_max == NULL || s->sum_m == NULL ||
        s->sum_s == NULL || s->bound == NULL || s->count == NULL || s->key == NULL) {
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
        return nib_fail_memory(err, (size_t)V * (2 * sizeof(float) + sizeof(uint32_t) + sizeof(uint64_t)),
                               "the sampler's work areas");
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
    nib_free(sampler->count);
    nib_free(sampler->match);
    nib_free(sampler->key);
    nib_free(sampler);
}

/* ---- the draw ---- */

/* The largest logit, ties to the lower id. */
static int32_t best_token(const nib_logits *now) {
    int64_t b = 0;
    while (now->block_max[b] < now->max) {
        b++;
    }
    int64_t id = b * NIB_SAMPLER_BLOCK;
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
        if (!(s->now.block_max[id / NIB_SAMPLER_BLOCK] > -INFINITY)) {
            id += NIB_SAMPLER_BLOCK - 1;
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

static int32_t draw(nib_sampler *s, const nib_sample_params *params, const nib_noise *noise, double T) {
    if (params->cdf) {
        return draw_cdf(s, noise, T);
    }
    return nib_noise_draw(NULL, s->bound, noise, s->now.l, s->now.block_max, s->V, T);
}

/* ---- log-probabilities ---- */

/* Where log-probabilities come from: log(e^x / sum). */
typedef struct source {
    nib_logsum sum;
    double T;      /* of processed ones */
    bool tempered; /* processed: x is tempered; raw: x is the logit */
} source;

static float logprob_of(const nib_sampler *s, const source *from, float l) {
    return nib_logsum_logprob(&from->sum, from->tempered ? nib_tempered(l, s->now.max, from->T) : l);
}

/* The n largest of logits, best first, into choice->top. */
static void take_top(nib_choice *choice, nib_sampler *s, const source *from, const nib_logits *logits, size_t n) {
    if (!s->listed) {
        nib_sampler_list_top(s, logits, n);
    }
    size_t n_top = s->n_key < n ? s->n_key : n; /* the list keeps its tokens: hide needs them */
    nib_order_select(s->key, s->n_key, n_top);
    nib_order_sort(s->key, n_top);
    for (size_t i = 0; i < n_top; i++) {
        int32_t id = nib_order_id(s->key[i]);
        choice->top[i] = (nib_alternative){id, logprob_of(s, from, logits->l[id])};
    }
    choice->n_top = n_top;
    for (int32_t id = 0; choice->n_top < n; id++) { /* too few can be drawn: the others, of probability 0, by id */
        if (!(logits->l[id] > -INFINITY)) {
            choice->top[choice->n_top++] = (nib_alternative){id, -INFINITY};
        }
    }
}

/* The chosen token stands among the alternatives, behind them if need be. */
static void add_chosen(nib_choice *choice) {
    for (size_t i = 0; i < choice->n_top; i++) {
        if (choice->top[i].id == choice->id) {
            return;
        }
    }
    choice->top[choice->n_top++] = (nib_alternative){choice->id, choice->logprob};
}

static size_t count_top(const nib_sampler *s, const nib_sample_params *params) {
    return params->top_logprobs < s->V ? (size_t)params->top_logprobs : (size_t)s->V;
}

/* Of the distribution the token was drawn from. A greedy choice is taken to be from all tokens that are not banned,
 * after penalties, at temperature 1: the choice itself has no distribution. */
static void tell_processed(nib_choice *choice, nib_sampler *s, const nib_sample_params *params, double T) {
    source from = {.T = T, .tempered = true};
    nib_logsum_tempered(&from.sum, s->sum_m, s->sum_s, s->kernels, &s->now, T);
    choice->logprob = logprob_of(s, &from, s->now.l[choice->id]);
    if (params->top_logprobs > 0) {
        take_top(choice, s, &from, &s->now, count_top(s, params));
    }
}

/* ---- all of it ---- */

nib_status nib_sampler_choose(nib_choice *choice, nib_sampler *sampler, const nib_sample_params *params,
                              const nib_sample_place *place, const float *logits, nib_error *err) {
    nib_sampler *s = sampler;
    assert(params->greedy || params->temperature > 0);
    source raw = {.sum = {0, 1}};
    bool valid = params->processed_logprobs
                     ? nib_sampler_scan(s->block_max, logits, s->V)
                     : nib_logsum_raw(&raw.sum, s->block_max, s->sum_s, s->kernels, logits, s->V);
    if (!valid) {
        return nib_sampler_fail_logit(err, logits, s->V, place, "logit");
    }
    choice->n_top = 0;
    s->listed = s->shown = false;
    if (params->top_logprobs > 0 && !params->processed_logprobs) {
        nib_logits all = {logits, s->block_max, s->V, 0};
        take_top(choice, s, &raw, &all, count_top(s, params));
    }
    nib_status status = nib_sampler_process(s, params, place, logits, err);
    if (status != NIB_OK) {
        return status;
    }
    const nib_noise noise = {params->seed, place->position, place->stream};
    double T = params->greedy ? 1 : nib_sampler_filter(s, params, &noise);
    choice->id = params->greedy ? best_token(&s->now) : draw(s, params, &noise, T);
    if (params->processed_logprobs) {
        tell_processed(choice, s, params, T);
    } else {
        choice->logprob = nib_logsum_logprob(&raw.sum, logits[choice->id]);
    }
    if (params->top_logprobs > 0) {
        add_chosen(choice);
    }
    nib_sampler_hide(s);
    return NIB_OK;
}
