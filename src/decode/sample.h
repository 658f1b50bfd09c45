/* Choosing one token from the logits of one position: penalties, filters, shared noise or inverse CDF, and the chosen
 * token's log-probability. Order and rules: docs/options.md and docs/numerics.md, rules 5 and 6. */
#ifndef NIB_DECODE_SAMPLE_H
#define NIB_DECODE_SAMPLE_H

#include <stdbool.h>

#include <nib/generate.h>

#include "base/error.h"
#include "kernel/kernel.h"

/* A breaker of DRY: a repeat is not looked for across the token `head` followed by tail [n]. */
typedef struct nib_breaker {
    int32_t head;
    const int32_t *tail; /* [n] borrowed; n = 0: the token breaks by itself */
    size_t n;
} nib_breaker;

/* Checked by nib_generate_options_check before they come here; named and explained there. Lists are borrowed. */
typedef struct nib_sample_params {
    bool greedy;        /* the filters, temperature and noise are left out */
    bool llama_order;   /* the filters' order of llama.cpp, temperature last; penalties count the prompt */
    double temperature; /* > 0 unless greedy */
    double dynatemp_range, dynatemp_exponent;
    int64_t top_k; /* 0 or >= V: no filter */
    bool top_k_ties;
    double top_p;     /* 1: no filter; 0: the best token */
    double min_p;     /* 0: no filter */
    double typical_p; /* 1: no filter */
    double epsilon_cutoff, eta_cutoff, top_n_sigma, xtc_probability, xtc_threshold;
    double repetition_penalty; /* 1: none */
    double frequency_penalty, presence_penalty;
    int64_t repeat_last_n; /* -1: the whole text */
    bool penalise_generated;
    int64_t no_repeat_ngram_size; /* 0: off */
    double dry_multiplier, dry_base;
    int64_t dry_allowed_length, dry_last_n;
    const nib_breaker *breakers; /* [n_breakers] by head */
    size_t n_breakers;
    const nib_bias *biases; /* [n_biases] */
    size_t n_biases;
    const nib_bias *bad; /* [n_bad] biases of -infinity */
    size_t n_bad;
    const int32_t *banned; /* [n_banned] ids that may not be drawn, or NULL */
    size_t n_banned;
    const int32_t *allowed; /* [n_allowed] the only ids that may be drawn; NULL: all */
    size_t n_allowed;
    struct {
        const int32_t *ids; /* [n] that may not be drawn before min_new new tokens are there */
        size_t n;
        int64_t min_new;
    } late[2];          /* end ids, stop ids */
    nib_logits_fn hook; /* NULL: none */
    void *hook_user;
    bool cdf; /* inverse CDF in id order instead of noise */
    bool processed_logprobs;
    int64_t top_logprobs; /* alternatives asked for */
    uint64_t seed;
} nib_sample_params;

/* Where the token is drawn. */
typedef struct nib_sample_place {
    const int32_t *history; /* [n_history] prompt and output so far */
    size_t n_history, n_prompt;
    uint32_t position; /* index of the drawn token in its timeline */
    uint32_t stream;   /* candidate number */
    size_t row;        /* for messages and the hook only */
} nib_sample_place;

typedef struct nib_choice {
    int32_t id;
    float logprob; /* nats; raw: before penalties, filters and temperature; processed: of the distribution drawn from */
    nib_alternative *top; /* the caller's room for min(top_logprobs, V) + 1; not touched when top_logprobs is 0 */
    size_t n_top;
} nib_choice;

/* Work areas for one V; used by one thread. */
typedef struct nib_sampler nib_sampler;

nib_status nib_sampler_new(nib_sampler **out, int64_t V, const nib_kernels *kernels, nib_error *err);
void nib_sampler_free(nib_sampler *sampler);

/* Choose from logits [V], which are left as they are. Returns NIB_OK; NIB_ENUMERIC (NaN or +infinity, no finite logit,
 * or every token banned: row and position are named); NIB_ECALLBACK (the hook's answer was not 0); NIB_ENOMEM (DRY
 * only). */
nib_status nib_sampler_choose(nib_choice *choice, nib_sampler *sampler, const nib_sample_params *params,
                              const nib_sample_place *place, const float *logits, nib_error *err);

#endif
