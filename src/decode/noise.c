/* The argmax of logit and noise without computing the noise of every token: the smallest exponential of a block of 256
 * is drawn first, and only a block whose best logit together with it could win is opened. */
#include "decode/noise.h"

#include <math.h> /* INFINITY */
#include <stdbool.h>
#include <stddef.h>

#include "base/maths.h"
#include "base/random.h"

/* Tokens i, i + 64, i + 128, i + 192 of a block share the four words of a counter. */
enum { GROUPS = NIB_NOISE_BLOCK / 4 };

/* Smallest exponential of a block, and the token of the block that has it. */
typedef struct minimum {
    double M;
    uint32_t J;
} minimum;

typedef struct search {
    const nib_noise *noise;
    const float *l; /* [V] */
    int64_t V;
    double T;
    double best; /* score of id */
    int32_t id;  /* -1: none yet */
} search;

static uint64_t join(uint32_t high, uint32_t low) {
    return (uint64_t)high << 32 | low;
}

static void draw_words(uint32_t word[4], const nib_noise *noise, uint32_t index, nib_noise_purpose purpose) {
    const uint32_t counter[4] = {index, noise->position, noise->stream, (uint32_t)purpose};
    nib_philox(word, counter, noise->seed);
}

double nib_noise_uniform(const nib_noise *noise, nib_noise_purpose purpose) {
    uint32_t word[4];
    draw_words(word, noise, 0, purpose);
    return ((double)join(word[0], word[1]) + 0.5) * 0x1p-64;
}

static minimum block_minimum(const nib_noise *noise, uint32_t block) {
    uint32_t word[4];
    draw_words(word, noise, block, NIB_NOISE_BLOCK_MINIMUM);
    return (minimum){nib_expo(join(word[0], word[1])) / NIB_NOISE_BLOCK, word[2] & (NIB_NOISE_BLOCK - 1)};
}

double nib_noise_expo(const nib_noise *noise, int32_t id) {
    uint32_t block = (uint32_t)id / NIB_NOISE_BLOCK, place = (uint32_t)id % NIB_NOISE_BLOCK;
    minimum least = block_minimum(noise, block);
    if (place == least.J) {
        return least.M;
    }
    uint32_t high[4], low[4], index = block * GROUPS + place % GROUPS, word = place / GROUPS;
    draw_words(high, noise, index, NIB_NOISE_TOKEN_HIGH);
    draw_words(low, noise, index, NIB_NOISE_TOKEN_LOW);
    return least.M + nib_expo(join(high[word], low[word]));
}

/* How far a bound may be wrong before it could hide the winner. */
static double margin(float l, double T) {
    double size = l < 0 ? -(double)l : (double)l;
    size = T > size ? T : size;
    return 1e-3 * (size > 1 ? size : 1);
}

/* Whether a token of logit l whose exponential is at least exp(log_e) may win. */
static bool may_win(const search *s, float l, double log_e) {
    return l > -INFINITY && (s->id < 0 || (double)l - s->T * log_e + margin(l, s->T) >= s->best);
}

static void offer(search *s, int64_t id, double E) {
    float l = s->l[id];
    if (!(l > -INFINITY)) {
        return;
    }
    double score = (double)l - s->T * nib_log(E);
    if (s->id < 0 || score > s->best || (score == s->best && id < s->id)) {
        s->best = score;
        s->id = (int32_t)id;
    }
}

/* The tokens first + group + 64 w, w = 0 .. 3, without the one at J. n: tokens of the block. */
static void open_group(search *s, int64_t first, int64_t n, uint32_t group, minimum least) {
    uint32_t high[4], low[4], index = (uint32_t)first / NIB_NOISE_BLOCK * GROUPS + group;
    draw_words(high, s->noise, index, NIB_NOISE_TOKEN_HIGH);
    bool have_low = false;
    for (uint32_t w = 0; w < 4; w++) {
        uint32_t place = group + w * GROUPS;
        if (place >= n || place == least.J) {
            continue;
        }
        /* expo(high:low) >= high 2^-32, since -log(1 - u) >= u */
        if (!may_win(s, s->l[first + place], nib_log(least.M + (double)high[w] * 0x1p-32))) {
            continue;
        }
        if (!have_low) {
            draw_words(low, s->noise, index, NIB_NOISE_TOKEN_LOW);
            have_low = true;
        }
        offer(s, first + place, least.M + nib_expo(join(high[w], low[w])));
    }
}

static void open_block(search *s, int64_t block) {
    int64_t first = block * NIB_NOISE_BLOCK, left = s->V - first;
    int64_t n = left < NIB_NOISE_BLOCK ? left : NIB_NOISE_BLOCK;
    minimum least = block_minimum(s->noise, (uint32_t)block);
    if (least.J < n) {
        offer(s, first + least.J, least.M);
    }
    double log_m = nib_log(least.M);
    for (uint32_t group = 0; group < GROUPS && group < n; group++) {
        bool any = false;
        for (int64_t place = group; place < n; place += GROUPS) {
            any = any || may_win(s, s->l[first + place], log_m);
        }
        if (any) {
            open_group(s, first, n, group, least);
        }
    }
}

/* bound[b] = what no token of block b can exceed, -infinity for a masked block. */
static void bound_blocks(double *bound, const nib_noise *noise, const float *block_max, int64_t blocks, double T) {
    for (int64_t b = 0; b < blocks; b++) {
        bound[b] = -INFINITY;
        if (block_max[b] > -INFINITY) {
            double log_m = nib_log(block_minimum(noise, (uint32_t)b).M);
            bound[b] = (double)block_max[b] - T * log_m + margin(block_max[b], T);
        }
    }
}

static int64_t largest(const double *bound, int64_t blocks) {
    int64_t best = 0;
    for (int64_t b = 1; b < blocks; b++) {
        best = bound[b] > bound[best] ? b : best;
    }
    return best;
}

int32_t nib_noise_draw(int64_t *n_opened, double *bound, const nib_noise *noise, const float *l, const float *block_max,
                       int64_t V, double T) {
    search s = {noise, l, V, T, -INFINITY, -1};
    int64_t blocks = (V + NIB_NOISE_BLOCK - 1) / NIB_NOISE_BLOCK, opened = 0;
    bound_blocks(bound, noise, block_max, blocks, T);
    /* The most promising block first: opening in id order looks at twice as many. */
    for (int64_t b = largest(bound, blocks); bound[b] > -INFINITY && bound[b] >= s.best; b = largest(bound, blocks)) {
        open_block(&s, b);
        bound[b] = -INFINITY;
        opened++;
    }
    if (n_opened != NULL) {
        *n_opened = opened;
    }
    return s.id;
}
