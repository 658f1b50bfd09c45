/* Choosing a token as the rules say it, with whole sorts and over all tokens: what src/decode/sample.c must equal bit
 * for bit. Noise itself comes from nib_noise_expo, which test_noise.c checks. */
#ifndef NIB_TESTS_PLAIN_SAMPLE_H
#define NIB_TESTS_PLAIN_SAMPLE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decode/noise.h"
#include "decode/sample.h"
#include "plain_logsum.h"

enum { PLAIN_MOST = 262144 };

/* What is left after bans, penalty and filters. */
typedef struct plain_kept {
    float l[PLAIN_MOST];       /* [V] -infinity: not kept */
    float x[PLAIN_MOST];       /* [V] tempered; -infinity: not kept */
    int32_t order[PLAIN_MOST]; /* [V] ids, best first */
    int64_t V;
    double T; /* of x; 1 when greedy */
} plain_kept;

static const float *plain_sort_by;

static inline int plain_compare(const void *a, const void *b) {
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    float x = plain_sort_by[i], y = plain_sort_by[j];
    return x > y ? -1 : x < y ? 1 : i < j ? -1 : i > j;
}

static inline void plain_drop(plain_kept *kept, int32_t id) {
    kept->l[id] = -INFINITY;
    kept->x[id] = -INFINITY;
}

/* The last `last` tokens of the text (-1: all) that lie at or behind `first`, as counts of each id. */
static inline const uint32_t *plain_count(const nib_sample_place *place, int64_t last, size_t first) {
    static uint32_t count[PLAIN_MOST];
    memset(count, 0, sizeof count);
    for (size_t i = first; i < place->n_history; i++) {
        if (last < 0 || (int64_t)(place->n_history - i) <= last) {
            count[place->history[i]]++;
        }
    }
    return count;
}

static inline void plain_penalise(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place,
                                  int64_t V) {
    float theta = (float)params->repetition_penalty;
    const uint32_t *count = plain_count(place, params->repeat_last_n, params->penalise_generated ? place->n_prompt : 0);
    for (int64_t id = 0; id < V && theta != 1; id++) {
        if (count[id] > 0) {
            kept->l[id] = kept->l[id] < 0 ? kept->l[id] * theta : kept->l[id] / theta;
        }
    }
    bool all = params->llama_order && !params->penalise_generated;
    count = plain_count(place, params->repeat_last_n, all ? 0 : place->n_prompt);
    for (int64_t id = 0; id < V; id++) {
        if (count[id] > 0) {
            double penalty = (double)count[id] * params->frequency_penalty + params->presence_penalty;
            kept->l[id] = (float)((double)kept->l[id] - penalty);
        }
    }
}

static inline bool plain_ends_with(const nib_sample_place *place, size_t end, const int32_t *ids, size_t n) {
    return n <= end && (n == 0 || memcmp(place->history + end - n, ids, n * sizeof ids[0]) == 0);
}

static inline void plain_ngrams(plain_kept *kept, const nib_sample_place *place, size_t n) {
    for (size_t i = n - 1; n > 0 && i < place->n_history; i++) { /* history[i] followed n - 1 tokens */
        if (plain_ends_with(place, place->n_history, place->history + i - (n - 1), n - 1)) {
            kept->l[place->history[i]] = -INFINITY;
        }
    }
}

/* Breakers without tails alone; the whole definition by comparing every place with the end. */
static inline void plain_dry(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place,
                             int64_t V) {
    static size_t longest[PLAIN_MOST];
    static bool breaks[PLAIN_MOST];
    size_t n = place->n_history, most = 0;
    n = params->dry_last_n >= 0 && (size_t)params->dry_last_n < n ? (size_t)params->dry_last_n : n;
    const int32_t *text = place->history + (place->n_history - n);
    memset(longest, 0, sizeof longest);
    memset(breaks, 0, sizeof breaks);
    for (size_t i = 0; i < params->n_breakers; i++) {
        breaks[params->breakers[i].head] = true;
    }
    while (most < n && !breaks[text[n - 1 - most]]) {
        most++;
    }
    for (size_t next = 1; next < n; next++) {
        size_t same = 0;
        while (same < next && text[next - 1 - same] == text[n - 1 - same]) {
            same++;
        }
        same = same < most ? same : most;
        longest[text[next]] = same > longest[text[next]] ? same : longest[text[next]];
    }
    for (int64_t id = 0; id < V; id++) {
        int64_t over = (int64_t)longest[id] - params->dry_allowed_length;
        if (longest[id] > 0 && over >= 0 && !breaks[id]) {
            double most_over = params->dry_base > 1 ? (double)(int64_t)(88.7228 / nib_log(params->dry_base)) : 1e9;
            double exponent = (double)over < most_over ? (double)over : most_over;
            kept->l[id] = (float)((double)kept->l[id] - params->dry_multiplier * nib_pow(params->dry_base, exponent));
        }
    }
}

static inline void plain_biases(plain_kept *kept, const nib_bias *biases, size_t n, const nib_sample_place *place) {
    for (size_t i = 0; i < n; i++) {
        if (plain_ends_with(place, place->n_history, biases[i].ids, biases[i].n - 1)) {
            float *l = &kept->l[biases[i].ids[biases[i].n - 1]];
            *l = (float)((double)*l + biases[i].bias);
        }
    }
}

static inline void plain_process(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place,
                                 const float *logits, int64_t V) {
    memcpy(kept->l, logits, (size_t)V * sizeof *logits);
    plain_biases(kept, params->biases, params->n_biases, place);
    plain_penalise(kept, params, place, V);
    plain_ngrams(kept, place, (size_t)params->no_repeat_ngram_size);
    if (params->dry_multiplier != 0) {
        plain_dry(kept, params, place, V);
    }
    plain_biases(kept, params->bad, params->n_bad, place);
    for (size_t i = 0; i < params->n_banned; i++) {
        kept->l[params->banned[i]] = -INFINITY;
    }
    for (int64_t id = 0; id < V && params->n_allowed > 0; id++) {
        bool allowed = false;
        for (size_t i = 0; i < params->n_allowed; i++) {
            allowed = allowed || params->allowed[i] == id;
        }
        kept->l[id] = allowed ? kept->l[id] : -INFINITY;
    }
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < params->late[i].n; j++) {
            if ((int64_t)(place->n_history - place->n_prompt) < params->late[i].min_new) {
                kept->l[params->late[i].ids[j]] = -INFINITY;
            }
        }
    }
}

/* x at temperature T of what is kept. */
static inline void plain_temper(plain_kept *kept, double T) {
    double max = -INFINITY;
    kept->T = T;
    for (int64_t id = 0; id < kept->V; id++) {
        max = (double)kept->l[id] > max ? (double)kept->l[id] : max;
    }
    for (int64_t id = 0; id < kept->V; id++) {
        kept->x[id] = (float)(((double)kept->l[id] - max) / T);
    }
}

static inline void plain_sort(plain_kept *kept, const float *by) {
    for (int64_t id = 0; id < kept->V; id++) {
        kept->order[id] = (int32_t)id;
    }
    plain_sort_by = by;
    qsort(kept->order, (size_t)kept->V, sizeof *kept->order, plain_compare);
}

/* Drops what stands, in the order of `by`, behind the tokens whose mass reaches p. */
static inline void plain_cut(plain_kept *kept, const float *by, double p) {
    double limit = p * plain_logsum(kept->x, kept->V).total, mass = 0;
    plain_sort(kept, by);
    for (int64_t i = 0; i < kept->V; i++) {
        int32_t id = kept->order[i];
        double own = nib_exp((double)kept->x[id]);
        if (i > 0 && !(mass < limit)) {
            plain_drop(kept, id);
        }
        mass += own;
    }
}

static inline double plain_mean(const plain_kept *kept) {
    double sum = 0;
    for (int64_t id = 0; id < kept->V; id++) {
        double e = nib_exp((double)kept->x[id]);
        sum += e > 0 ? e * (double)kept->x[id] : 0;
    }
    return sum / plain_logsum(kept->x, kept->V).total;
}

static inline double plain_entropy(const plain_kept *kept) {
    return nib_log(plain_logsum(kept->x, kept->V).total) - plain_mean(kept);
}

static inline void plain_dynamic(plain_kept *kept, const nib_sample_params *params) {
    double T = params->temperature, range = params->dynatemp_range, n = 0;
    for (int64_t id = 0; id < kept->V; id++) {
        n += kept->l[id] > -INFINITY;
    }
    plain_temper(kept, 1);
    if (range > 0 && n > 1) {
        double even = plain_entropy(kept) / nib_log(n), low = T > range ? T - range : 0;
        even = even < 0 ? 0 : even > 1 ? 1 : even;
        T = low + (T + range - low) * (even > 0 ? nib_pow(even, params->dynatemp_exponent) : 0);
        T = T > 1e-30 ? T : 1e-30;
    }
    plain_temper(kept, T);
}

static inline void plain_top_k(plain_kept *kept, const nib_sample_params *params) {
    plain_sort(kept, kept->l);
    float last = params->top_k > 0 && params->top_k < kept->V ? kept->l[kept->order[params->top_k - 1]] : 0;
    for (int64_t i = params->top_k; params->top_k > 0 && i < kept->V; i++) {
        if (!params->top_k_ties || kept->l[kept->order[i]] < last) {
            plain_drop(kept, kept->order[i]);
        }
    }
}

/* Drops what has exp(x) < least, but not what is as probable as the best. */
static inline void plain_least(plain_kept *kept, double least) {
    for (int64_t id = 0; id < kept->V; id++) {
        if (nib_exp((double)kept->x[id]) < (least < 1 ? least : 1)) {
            plain_drop(kept, (int32_t)id);
        }
    }
}

static inline void plain_top_and_min_p(plain_kept *kept, const nib_sample_params *params) {
    if (params->top_p < 1) {
        plain_cut(kept, kept->l, params->top_p);
    }
    plain_least(kept, params->min_p);
}

static inline void plain_typical(plain_kept *kept, const nib_sample_params *params) {
    static float near[PLAIN_MOST];
    double mean = plain_mean(kept);
    for (int64_t id = 0; id < kept->V; id++) {
        double shift = mean - (double)kept->x[id];
        near[id] = kept->l[id] > -INFINITY ? -(float)(shift < 0 ? -shift : shift) : -INFINITY;
    }
    if (params->typical_p < 1) {
        plain_cut(kept, near, params->typical_p);
        plain_temper(kept, kept->T);
    }
}

static inline void plain_cutoffs(plain_kept *kept, const nib_sample_params *params) {
    double epsilon = params->epsilon_cutoff;
    plain_least(kept, epsilon * plain_logsum(kept->x, kept->V).total);
    epsilon = params->eta_cutoff;
    if (epsilon > 0) {
        double eta = __builtin_sqrt(epsilon) * nib_exp(-plain_entropy(kept));
        plain_least(kept, (eta < epsilon ? eta : epsilon) * plain_logsum(kept->x, kept->V).total);
    }
}

static inline void plain_top_n_sigma(plain_kept *kept, double sigmas) {
    double n = 0, mean = 0, squares = 0, max = -INFINITY;
    for (int64_t id = 0; id < kept->V; id++) {
        double l = (double)kept->l[id];
        n += kept->l[id] > -INFINITY;
        mean += kept->l[id] > -INFINITY ? l : 0;
        max = l > max ? l : max;
    }
    mean /= n;
    for (int64_t id = 0; id < kept->V; id++) {
        double d = (double)kept->l[id] - mean;
        squares += kept->l[id] > -INFINITY ? d * d : 0;
    }
    for (int64_t id = 0; id < kept->V && sigmas > 0; id++) {
        if ((double)kept->l[id] < max - sigmas * __builtin_sqrt(squares / n)) {
            plain_drop(kept, (int32_t)id);
        }
    }
}

static inline void plain_xtc(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place) {
    nib_noise noise = {params->seed, place->position, place->stream};
    if (params->xtc_probability <= 0 || params->xtc_threshold > 0.5 ||
        nib_noise_uniform(&noise, NIB_NOISE_XTC) > params->xtc_probability) {
        return;
    }
    double least = params->xtc_threshold * plain_logsum(kept->x, kept->V).total;
    int64_t n = 0;
    plain_sort(kept, kept->l);
    while (n < kept->V && kept->l[kept->order[n]] > -INFINITY && nib_exp((double)kept->x[kept->order[n]]) >= least) {
        n++;
    }
    for (int64_t i = 0; i + 1 < n; i++) {
        plain_drop(kept, kept->order[i]);
    }
    plain_temper(kept, kept->T);
}

/* What may be drawn, and x at the temperature it is drawn at. */
static inline void plain_filter(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place,
                                const float *logits, int64_t V) {
    plain_process(kept, params, place, logits, V);
    kept->V = V;
    plain_temper(kept, 1);
    if (params->greedy) {
        plain_sort(kept, kept->l);
    } else if (params->llama_order) {
        plain_top_n_sigma(kept, params->top_n_sigma);
        plain_top_k(kept, params);
        plain_typical(kept, params);
        plain_top_and_min_p(kept, params);
        plain_cutoffs(kept, params);
        plain_xtc(kept, params, place);
        plain_dynamic(kept, params);
    } else {
        plain_dynamic(kept, params);
        plain_top_k(kept, params);
        plain_top_and_min_p(kept, params);
        plain_typical(kept, params);
        plain_cutoffs(kept, params);
        plain_top_n_sigma(kept, params->top_n_sigma);
        plain_xtc(kept, params, place);
    }
}

static inline int32_t plain_noise(const plain_kept *kept, const nib_noise *noise) {
    int32_t best = -1;
    double best_score = 0;
    for (int32_t id = 0; id < kept->V; id++) {
        if (kept->l[id] == -INFINITY) {
            continue;
        }
        double score = (double)kept->l[id] - kept->T * nib_log(nib_noise_expo(noise, id));
        if (best < 0 || score > best_score) {
            best = id;
            best_score = score;
        }
    }
    return best;
}

static inline int32_t plain_cdf(const plain_kept *kept, const nib_noise *noise) {
    double limit = nib_noise_uniform(noise, NIB_NOISE_CDF) * plain_logsum(kept->x, kept->V).total, mass = 0;
    int32_t last = -1;
    for (int32_t id = 0; id < kept->V; id++) {
        double p = nib_exp((double)kept->x[id]);
        mass += p;
        last = p > 0 ? id : last;
        if (mass > limit) {
            return id;
        }
    }
    return last;
}

static inline nib_choice plain_choose(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place,
                                      const float *logits, int64_t V) {
    nib_noise noise = {params->seed, place->position, place->stream};
    plain_filter(kept, params, place, logits, V);
    nib_choice choice = {.id = kept->order[0]};
    if (!params->greedy) {
        choice.id = params->cdf ? plain_cdf(kept, &noise) : plain_noise(kept, &noise);
    }
    const float *from = params->processed_logprobs ? kept->x : logits;
    plain_sum sum = plain_logsum(from, V);
    choice.logprob = (float)((double)from[choice.id] - sum.max - nib_log(sum.total));
    return choice;
}

#endif
