/* Rotary positions: the frequencies of a model and the magnitude of its rotation. docs/numerics.md, rule 5. */
#ifndef NIB_MODEL_ROPE_H
#define NIB_MODEL_ROPE_H

#include "model/arch.h"

/* freq [rope_dim / 2]: radians a token, scaled, in double and then rounded to binary32. local: of the layers with a
 * window, which are not scaled where the architecture gives them a base of their own. */
void nib_rope_frequencies(double *freq, const nib_config *config, bool local);

/* What cosines and sines are multiplied by: 1, but in YaRN attn_factor * (1 + log(factor) / 10). */
double nib_rope_magnitude(const nib_rope_scaling *rope);

#endif
