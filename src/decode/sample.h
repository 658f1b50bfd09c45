/* Choosing one token from the logits of one position: penalties, filters, shared noise or inverse CDF, and the chosen
 * token's log-probability. Order and rules: docs/options.md and docs/numerics.md, rules 5 and 6. */
#ifndef NIB_DECODE_SAMPLE_H
#define NIB_DECODE_SAMPLE_H

#include <stdbool.h>

#include "base/error.h"
#include "kernel/kernel.h"

/* Checked by nib_generate_options_check before they come here. */
typedef struct nib_sample_params {
    bool greedy;               /* the filters, temperature and noise are left out */
    double temperature;        /* > 0 unless greedy */
    int64_t top_k;             /* 0 or >= V: no filter */
    double top_p;              /* 1: no filter; 0: the best token */
    double min_p;              /* 0: no filter */
    double repetition_penalty; /* 1: none */
    bool cdf;                  /* inverse CDF in id order instead of noise */
    bool processed_logprobs;
    const int32_t *banned; /* [n_banned] ids that may not be drawn, or NULL */
    size_t n_banned;
    uint64_t seed;
} nib_sample_params;

/* Where the token is drawn. */
typedef struct nib_sample_place {
    const int32_t *history; /* [n_history] prompt and output so far */
    size_t n_history;
    uint32_t position; /* index of the drawn token in its timeline */
    uint32_t stream;   /* candidate number */
    size_t row;        /* for messages only */
} nib_sample_place;

typedef struct nib_choice {
    int32_t id;
    float logprob; /* nats; raw: before penalties, filters and temperature; processed: of the distribution drawn from */
} nib_choice;

/* Work areas for one V; used by one thread. */
typedef struct nib_sampler nib_sampler;

nib_status nib_sampler_new(nib_sampler **out, int64_t V, const nib_kernels *kernels, nib_error *err);
void nib_sampler_free(nib_sampler *sampler);

/* Choose from logits [V], which are left as they are. Returns NIB_OK; NIB_ENUMERIC (NaN or +infinity, no finite logit,
 * or every token banned: row and position are named). */
nib_status nib_sampler_choose(nib_choice *choice, nib_sampler *sampler, const nib_sample_params *params,
                              const nib_sample_place *place, const float *logits, nib_error *err);

#endif
