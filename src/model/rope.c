/* Frequencies of rotary positions and their scaling. Pairs are numbered 0 .. dim/2 - 1, the fastest first. */
#include "model/rope.h"

#include "base/maths.h"

double nib_rope_magnitude(const nib_rope_scaling *rope) {
    if (rope->kind != NIB_ROPE_YARN) {
        return 1.0;
    }
    return rope->attn_factor * (rope->factor > 1.0 ? 1.0 + 0.1 * nib_log(rope->factor) : 1.0);
}

/* The pair, as a real number, that makes so many turns within the original context: base^(-2 pair / dim) * original =
 * 2 pi turns. Within -1 .. dim. */
static double pair_of_turns(const nib_config *c, double turns) {
    const double two_pi = 6.283185307179586;
    double pair = (double)c->rope_dim * nib_log(c->rope.original / (turns * two_pi)) / (2.0 * nib_log(c->rope_base));
    if (!(pair > -1.0)) {
        return -1.0;
    }
    return pair < (double)c->rope_dim ? pair : (double)c->rope_dim;
}

/* How much of each frequency YaRN stretches goes from 0 at pair `low` to 1 at pair `high`, whole numbers. */
typedef struct ramp {
    double low, high;
} ramp;

static ramp yarn_ramp(const nib_config *c) {
    double low = pair_of_turns(c, c->rope.beta_fast), high = pair_of_turns(c, c->rope.beta_slow);
    double whole_low = (double)((int64_t)(low + 1.0) - 1); /* down: low + 1 is not negative */
    double whole_high = (double)((int64_t)(high + 1.0) - 1);
    whole_high += whole_high < high ? 1.0 : 0.0; /* up */
    double last = (double)(c->rope_dim - 1);
    ramp r = {whole_low > 0.0 ? whole_low : 0.0, whole_high < last ? whole_high : last};
    if (r.high == r.low) {
        r.high += 0.001; /* no division by 0 */
    }
    return r;
}

static double stretched_part(const ramp *r, int64_t pair) {
    double part = ((double)pair - r->low) / (r->high - r->low);
    return part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part;
}

static double scaled(const nib_config *c, const ramp *r, int64_t pair, double freq) {
    const nib_rope_scaling *rope = &c->rope;
    freq = rope->divisors == NULL ? freq : freq / (double)rope->divisors[pair];
    if (rope->kind == NIB_ROPE_PLAIN) {
        return freq;
    }
    double part = rope->kind == NIB_ROPE_YARN ? stretched_part(r, pair) : 1.0;
    return freq / rope->factor * part + freq * (1.0 - part);
}

void nib_rope_frequencies(double *freq, const nib_config *config, bool local) {
    double local_base = config->arch->local_rope_base;
    bool plain = local && local_base > 0;
    double base = plain ? local_base : config->rope_base;
    ramp r = {0.0, 1.0};
    if (config->rope.kind == NIB_ROPE_YARN) {
        r = yarn_ramp(config);
    }
    for (int64_t i = 0; i < config->rope_dim / 2; i++) {
        double exponent = -2.0 * (double)i / (double)config->rope_dim;
        double value = nib_pow(base, exponent);
        freq[i] = (double)(float)(plain ? value : scaled(config, &r, i, value));
    }
}
