/* Noise shared by all who draw at the same seed, position and stream: an Exp(1) for each token, and the token whose
 * logit plus Gumbel noise is the largest. docs/numerics.md, rule 6. Nothing depends on V or on the order of draws. */
#ifndef NIB_DECODE_NOISE_H
#define NIB_DECODE_NOISE_H

#include <stdint.h>

enum { NIB_NOISE_BLOCK = 256 };

/* The last word of the counter. Never renumbered: a seed's text would change. */
typedef enum nib_noise_purpose {
    NIB_NOISE_BLOCK_MINIMUM = 0,
    NIB_NOISE_TOKEN_HIGH = 1,
    NIB_NOISE_TOKEN_LOW = 2,
    NIB_NOISE_XTC = 3,
    NIB_NOISE_ACCEPT = 4,
    NIB_NOISE_RESIDUAL = 5,
    NIB_NOISE_BEAM = 6,
    NIB_NOISE_CDF = 7
} nib_noise_purpose;

typedef struct nib_noise {
    uint64_t seed;
    uint32_t position; /* index of the drawn token in its timeline */
    uint32_t stream;   /* candidate number */
} nib_noise;

/* One uniform in (0, 1], for the purposes XTC, accept, residual and cdf. */
double nib_noise_uniform(const nib_noise *noise, nib_noise_purpose purpose);

/* The token's standard exponential E; -log(E) is its Gumbel noise. */
double nib_noise_expo(const nib_noise *noise, int32_t id);

/* The token of the largest l - T log(E) among those with l > -infinity, ties to the lower id; -1 when there is none.
 *
 *  n_opened           blocks whose tokens were looked at; may be NULL
 *  bound [blocks]     work area
 *  l [V]              no NaN, no +infinity
 *  block_max [blocks] the largest l of each 256 ids
 *  T                  > 0
 */
int32_t nib_noise_draw(int64_t *n_opened, double *bound, const nib_noise *noise, const float *l, const float *block_max,
                       int64_t V, double T);

#endif
