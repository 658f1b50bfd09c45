/* The parts of a choice: process.c and dry.c change logits, filter.c takes tokens away, sample.c draws. What may not be
 * drawn is -infinity: logits as they come, a copy with bans and penalties, or, behind a filter, an area that is -infinity
 * but for the tokens that were kept. */
#ifndef NIB_DECODE_SAMPLER_PARTS_H
#define NIB_DECODE_SAMPLER_PARTS_H

#include "decode/logsum.h"
#include "decode/noise.h"
#include "decode/sample.h"

enum { NIB_SAMPLER_BLOCK = NIB_LOGSUM_BLOCK };

struct nib_sampler {
    const nib_kernels *kernels;
    int64_t V, blocks;
    nib_logits now;   /* what may be drawn at this point of the call */
    const float *all; /* [V] the logits before the filters */
    float *penalised; /* [V] logits with bans and penalties */
    float *block_max; /* [blocks] of all */
    float *kept;      /* [V] -infinity but for the tokens a filter kept; all of it between calls */
    float *kept_max;  /* [blocks] the same for the largest of each block */
    float *sum_m;     /* [blocks] log-sum-exp: largest of each block */
    float *sum_s;     /* [blocks] log-sum-exp: sum of each block */
    double *bound;    /* [blocks] the draw's */
    uint32_t *count;  /* [V] of each id, what the penalty at work counts; 0 between penalties */
    uint64_t *key;    /* [V] the list of kept tokens, order.h */
    size_t n_key;     /* tokens in the list */
    bool listed;      /* a filter has made the list; the tokens that may be drawn are those in it */
    bool shown;       /* the list lies in kept, and now is of it */
    uint32_t *match;  /* [cap_match] DRY's */
    size_t cap_match;
};

/* The largest of each block. False when one is NaN or +infinity. */
bool nib_sampler_scan(float *block_max, const float *l, int64_t V);

/* NIB_ENUMERIC for the first logit that is NaN or +infinity. */
nib_status nib_sampler_fail_logit(nib_error *err, const float *l, int64_t V, const nib_sample_place *place,
                                  const char *what);

/* Makes now and all of logits [V], whose block_max is known, with biases, penalties and bans. */
nib_status nib_sampler_process(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                               const float *logits, nib_error *err);

/* Takes DRY's penalties from s->penalised. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_sampler_dry(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                           nib_error *err);

/* Filters what may be drawn. Returns the temperature to draw at. */
double nib_sampler_filter(nib_sampler *s, const nib_sample_params *params, const nib_noise *noise);

/* Lists the n largest of logits in key, in no order. */
void nib_sampler_list_top(nib_sampler *s, const nib_logits *logits, size_t n);

/* Undoes what the filters of this call left in kept. */
void nib_sampler_hide(nib_sampler *s);

#endif
