/* Biases, penalties, bans and the caller's own function: what changes the logits before tokens are taken away. In this
 * order: bias, repetition, frequency and presence, no-repeat n-grams, DRY, bad words, banned and allowed ids, the least
 * number of new tokens, the caller's function. docs/sampling.md. */
#include <math.h> /* INFINITY */
#include <string.h>

#include "base/number.h"
#include "decode/sampler_parts.h"

nib_status nib_sampler_fail_logit(nib_error *err, const float *l, int64_t V, const nib_sample_place *place,
                                  const char *what) {
    int64_t id = 0;
    while (id < V - 1 && l[id] < INFINITY) {
        id++;
    }
    char text[NIB_NUMBER_ROOM];
    return nib_fail(err, NIB_ENUMERIC,
                    "row %zu, position %u: the %s of token %lld is %s, expected a number below infinity", place->row,
                    (unsigned)place->position, what, (long long)id, nib_format_real(text, (double)l[id], 9));
}

/* The largest of l [n], n <= BLOCK. False when one is NaN or +infinity. Sixteen lanes, so that it is vector code. */
static bool scan_block(float *max, const float *l, int64_t n) {
    float lane[16];
    uint32_t bad[16] = {0};
    for (int j = 0; j < 16; j++) {
        lane[j] = -INFINITY;
    }
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int j = 0; j < 16; j++) {
            lane[j] = l[i + j] > lane[j] ? l[i + j] : lane[j];
            bad[j] |= l[i + j] < INFINITY ? 0u : 1u; /* NaN compares false */
        }
    }
    for (; i < n; i++) {
        lane[0] = l[i] > lane[0] ? l[i] : lane[0];
        bad[0] |= l[i] < INFINITY ? 0u : 1u;
    }
    for (int j = 1; j < 16; j++) {
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
        bad[0] |= bad[j];
    }
    *max = lane[0];
    return bad[0] == 0;
}

bool nib_sampler_scan(float *block_max, const float *l, int64_t V) {
    for (int64_t first = 0, b = 0; first < V; first += NIB_SAMPLER_BLOCK, b++) {
        if (!scan_block(&block_max[b], l + first, V - first < NIB_SAMPLER_BLOCK ? V - first : NIB_SAMPLER_BLOCK)) {
            return false;
        }
    }
    return true;
}

/* ---- biases ---- */

static void ban(nib_sampler *s, int32_t id) {
    if (id >= 0 && id < s->V) {
        s->penalised[id] = -INFINITY;
    }
}

static void ban_all(nib_sampler *s, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ban(s, ids[i]);
    }
}

/* Each bias goes to the last id of its sequence where the others were the last tokens of the text. */
static void add_biases(nib_sampler *s, const nib_bias *biases, size_t n, const nib_sample_place *place) {
    for (size_t i = 0; i < n; i++) {
        const nib_bias *bias = &biases[i];
        size_t before = bias->n - 1;
        if (before > place->n_history || (before > 0 && memcmp(place->history + (place->n_history - before), bias->ids,
                                                               before * sizeof bias->ids[0]) != 0)) {
            continue;
        }
        float *l = &s->penalised[bias->ids[before]];
        *l = (float)((double)*l + bias->bias);
    }
}

static void keep_allowed(nib_sampler *s, const int32_t *allowed, size_t n) {
    for (size_t i = 0; i < n; i++) {
        s->count[allowed[i]] = 1;
    }
    for (int64_t id = 0; id < s->V; id++) {
        s->penalised[id] = s->count[id] != 0 ? s->penalised[id] : -INFINITY;
    }
    for (size_t i = 0; i < n; i++) {
        s->count[allowed[i]] = 0;
    }
}

/* ---- penalties for what the text holds ---- */

/* A stretch of the text. */
typedef struct stretch {
    const int32_t *ids;
    size_t n;
} stretch;

/* The last `last` tokens of the text, -1: all; not from before its token `first`. */
static stretch last_of(const nib_sample_place *place, int64_t last, size_t first) {
    size_t n = place->n_history > first ? place->n_history - first : 0;
    n = last >= 0 && (uint64_t)last < n ? (size_t)last : n;
    return n == 0 ? (stretch){NULL, 0} : (stretch){place->history + (place->n_history - n), n};
}

static void count_ids(nib_sampler *s, stretch text) {
    for (size_t i = 0; i < text.n; i++) {
        if (text.ids[i] >= 0 && text.ids[i] < s->V) { /* others stand for no row of the logits */
            s->count[text.ids[i]]++;
        }
    }
}

static void clear_counts(nib_sampler *s, stretch text) {
    for (size_t i = 0; i < text.n; i++) {
        if (text.ids[i] >= 0 && text.ids[i] < s->V) {
            s->count[text.ids[i]] = 0;
        }
    }
}

/* Each id of the text once, however often it occurs. */
static void penalise_repetition(nib_sampler *s, stretch text, float theta) {
    count_ids(s, text);
    for (size_t i = 0; i < text.n; i++) {
        int32_t id = text.ids[i];
        if (id >= 0 && id < s->V && s->count[id] != 0) {
            float l = s->penalised[id];
            s->penalised[id] = l < 0 ? l * theta : l / theta;
            s->count[id] = 0;
        }
    }
}

/* l - (count * frequency + presence), in double, rounded once. */
static void penalise_frequency(nib_sampler *s, stretch text, double frequency, double presence) {
    count_ids(s, text);
    for (size_t i = 0; i < text.n; i++) {
        int32_t id = text.ids[i];
        if (id >= 0 && id < s->V && s->count[id] != 0) {
            double penalty = (double)s->count[id] * frequency + presence;
            s->penalised[id] = (float)((double)s->penalised[id] - penalty);
            s->count[id] = 0;
        }
    }
    clear_counts(s, text);
}

static void penalise(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place) {
    size_t prompt = place->n_prompt;
    if (params->repetition_penalty != 1) {
        stretch text = last_of(place, params->repeat_last_n, params->penalise_generated ? prompt : 0);
        penalise_repetition(s, text, (float)params->repetition_penalty);
    }
    if (params->frequency_penalty != 0 || params->presence_penalty != 0) {
        bool with_prompt = params->llama_order && !params->penalise_generated;
        stretch text = last_of(place, params->repeat_last_n, with_prompt ? 0 : prompt);
        penalise_frequency(s, text, params->frequency_penalty, params->presence_penalty);
    }
}

/* Bans what followed each earlier place where the text's last n - 1 tokens stand. */
static void ban_ngrams(nib_sampler *s, const nib_sample_place *place, size_t n) {
    size_t before = n - 1;
    if (place->n_history < n) {
        return;
    }
    const int32_t *end = place->history + (place->n_history - before);
    for (size_t i = 0; i + before < place->n_history; i++) {
        if (before == 0 ||
            (place->history[i] == end[0] && memcmp(place->history + i, end, before * sizeof end[0]) == 0)) {
            ban(s, place->history[i + before]);
        }
    }
}

/* ---- all of it ---- */

/* Whether late ids of kind i may not be drawn yet. */
static bool is_early(const nib_sample_params *params, const nib_sample_place *place, int i) {
    return params->late[i].n > 0 && params->late[i].min_new > 0 &&
           (uint64_t)params->late[i].min_new > place->n_history - place->n_prompt;
}

/* Whether a copy of the logits is needed. */
static bool changes(const nib_sample_params *params, const nib_sample_place *place) {
    bool has_text = place->n_history > 0;
    return params->n_biases > 0 || params->n_bad > 0 || params->n_banned > 0 || params->n_allowed > 0 ||
           params->hook != NULL || is_early(params, place, 0) || is_early(params, place, 1) ||
           (has_text &&
            (params->repetition_penalty != 1 || params->frequency_penalty != 0 || params->presence_penalty != 0 ||
             params->no_repeat_ngram_size > 0 || params->dry_multiplier != 0));
}

static nib_status call_hook(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                            nib_error *err) {
    nib_logits_place where = {.row = place->row,
                              .index = place->stream,
                              .ids = place->history,
                              .n = place->n_history,
                              .n_prompt = place->n_prompt};
    int answer = params->hook(s->penalised, (size_t)s->V, &where, params->hook_user);
    if (answer != 0) {
        return nib_fail(err, NIB_ECALLBACK, "row %zu, position %u: logits_callback answered %d, expected 0", place->row,
                        (unsigned)place->position, answer);
    }
    return NIB_OK;
}

/* Works on the copy. */
static nib_status change(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                         nib_error *err) {
    add_biases(s, params->biases, params->n_biases, place);
    penalise(s, params, place);
    if (params->no_repeat_ngram_size > 0) {
        ban_ngrams(s, place, (size_t)params->no_repeat_ngram_size);
    }
    if (params->dry_multiplier != 0) {
        nib_status status = nib_sampler_dry(s, params, place, err);
        if (status != NIB_OK) {
            return status;
        }
    }
    add_biases(s, params->bad, params->n_bad, place);
    ban_all(s, params->banned, params->n_banned);
    if (params->n_allowed > 0) {
        keep_allowed(s, params->allowed, params->n_allowed);
    }
    for (int i = 0; i < 2; i++) {
        ban_all(s, params->late[i].ids, is_early(params, place, i) ? params->late[i].n : 0);
    }
    return params->hook != NULL ? call_hook(s, params, place, err) : NIB_OK;
}

nib_status nib_sampler_process(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                               const float *logits, nib_error *err) {
    s->now = (nib_logits){logits, s->block_max, s->V, -INFINITY};
    if (changes(params, place)) {
        memcpy(s->penalised, logits, (size_t)s->V * sizeof *logits);
        nib_status status = change(s, params, place, err);
        if (status != NIB_OK) {
            return status;
        }
        s->now.l = s->penalised;
        if (!nib_sampler_scan(s->block_max, s->penalised,
                              s->V)) { /* it overflowed, or the caller's function wrote it */
            return nib_sampler_fail_logit(err, s->penalised, s->V, place, "penalised logit");
        }
    }
    s->all = s->now.l;
    for (int64_t b = 0; b < s->blocks; b++) {
        s->now.max = s->block_max[b] > s->now.max ? s->block_max[b] : s->now.max;
    }
    if (!(s->now.max > -INFINITY)) {
        return nib_fail(err, NIB_ENUMERIC,
                        "row %zu, position %u: each of the %lld tokens is banned or has a logit of -infinity, expected "
                        "at least one that can be drawn",
                        place->row, (unsigned)place->position, (long long)s->V);
    }
    return NIB_OK;
}
