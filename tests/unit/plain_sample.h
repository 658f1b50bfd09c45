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
    double T; /* 1 when greedy */
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

static inline void plain_process(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place,
                                 const float *logits, int64_t V) {
    static bool seen[PLAIN_MOST];
    memset(seen, 0, sizeof seen);
    memcpy(kept->l, logits, (size_t)V * sizeof *logits);
    for (size_t i = 0; i < place->n_history; i++) {
        seen[place->history[i]] = true;
    }
    float theta = (float)params->repetition_penalty;
    for (int64_t id = 0; id < V; id++) {
        if (seen[id]) {
            kept->l[id] = kept->l[id] < 0 ? kept->l[id] * theta : kept->l[id] / theta;
        }
    }
    for (size_t i = 0; i < params->n_banned; i++) {
        kept->l[params->banned[i]] = -INFINITY;
    }
}

static inline void plain_top_p(plain_kept *kept, double p) {
    double limit = p * plain_logsum(kept->x, kept->V).total, mass = 0;
    for (int64_t i = 0; i < kept->V; i++) {
        int32_t id = kept->order[i];
        double own = nib_exp((double)kept->x[id]);
        if (i > 0 && !(mass < limit)) {
            plain_drop(kept, id);
        }
        mass += own;
    }
}

static inline void plain_filter(plain_kept *kept, const nib_sample_params *params, const nib_sample_place *place,
                                const float *logits, int64_t V) {
    plain_process(kept, params, place, logits, V);
    kept->V = V;
    kept->T = params->greedy ? 1 : params->temperature;
    double max = -INFINITY;
    for (int64_t id = 0; id < V; id++) {
        max = (double)kept->l[id] > max ? (double)kept->l[id] : max;
        kept->order[id] = (int32_t)id;
    }
    for (int64_t id = 0; id < V; id++) {
        kept->x[id] = (float)(((double)kept->l[id] - max) / kept->T);
    }
    plain_sort_by = kept->l;
    qsort(kept->order, (size_t)V, sizeof *kept->order, plain_compare);
    if (params->greedy) {
        return;
    }
    for (int64_t i = params->top_k; params->top_k > 0 && i < V; i++) {
        plain_drop(kept, kept->order[i]);
    }
    if (params->top_p < 1) {
        plain_top_p(kept, params->top_p);
    }
    for (int64_t id = 0; id < V; id++) {
        if (params->min_p > 0 && nib_exp((double)kept->x[id]) < params->min_p) {
            plain_drop(kept, (int32_t)id);
        }
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
    nib_choice choice = {kept->order[0], 0};
    if (!params->greedy) {
        choice.id = params->cdf ? plain_cdf(kept, &noise) : plain_noise(kept, &noise);
    }
    const float *from = params->processed_logprobs ? kept->x : logits;
    plain_sum sum = plain_logsum(from, V);
    choice.logprob = (float)((double)from[choice.id] - sum.max - nib_log(sum.total));
    return choice;
}

#endif
