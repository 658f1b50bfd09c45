/* DRY: tokens that would go on with what stood earlier behind the same words are penalised, the more the longer those
 * words. As llama.cpp's llama_sampler_dry_apply. docs/sampling.md. */
#include <stdlib.h>
#include <string.h>

#include "base/maths.h"
#include "base/memory.h"
#include "decode/sampler_parts.h"

/* exp(88.7228) is the largest binary32: a larger exponent would overflow it. */
static const double log_max = 88.7228;

/* The breakers of a head: *n of them from the one returned. */
static const nib_breaker *breakers_of(size_t *n, const nib_sample_params *params, int32_t head) {
    size_t low = 0, high = params->n_breakers;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (params->breakers[middle].head < head) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *n = 0;
    while (low + *n < params->n_breakers && params->breakers[low + *n].head == head) {
        ++*n;
    }
    return *n == 0 ? NULL : params->breakers + low;
}

/* Tokens of the longest tail of a breaker whose head stands at text[at]; -1: none stands there whole. */
static int64_t tail_at(const nib_sample_params *params, const int32_t *text, size_t n, size_t at) {
    size_t n_breakers;
    const nib_breaker *breakers = breakers_of(&n_breakers, params, text[at]);
    int64_t longest = -1;
    for (size_t i = 0; i < n_breakers; i++) {
        size_t tail = breakers[i].n;
        if (tail < n - at && (int64_t)tail > longest &&
            (tail == 0 || memcmp(text + at + 1, breakers[i].tail, tail * sizeof text[0]) == 0)) {
            longest = (int64_t)tail;
        }
    }
    return longest;
}

/* Tokens at the end of text [n] that no breaker reaches: a repeat is no longer than that. */
static size_t unbroken(const nib_sample_params *params, const int32_t *text, size_t n) {
    for (size_t behind = 0; behind < n && params->n_breakers > 0; behind++) {
        int64_t tail = tail_at(params, text, n, n - 1 - behind);
        if (tail >= 0) {
            return behind - (size_t)tail;
        }
    }
    return n;
}

/* match[i]: how many tokens before text[n - i] equal the last of the text, i = 1 .. n - 1: the Z function of the text
 * read backwards (Gusfield 1997), linear in n. */
static void match_suffixes(uint32_t *match, const int32_t *text, size_t n) {
    size_t left = 0, right = 0; /* the match that reaches furthest, [left, right) backwards */
    const int32_t *last = text + n - 1;
    for (size_t i = 1; i < n; i++) {
        size_t same = 0;
        if (i < right) {
            size_t known = match[i - left];
            same = known < right - i ? known : right - i;
        }
        while (i + same < n && last[-(ptrdiff_t)same] == last[-(ptrdiff_t)(i + same)]) {
            same++;
        }
        match[i] = (uint32_t)same;
        if (i + same > right) {
            left = i;
            right = i + same;
        }
    }
}

static bool breaks_alone(const nib_sample_params *params, int32_t id) {
    size_t n;
    const nib_breaker *breakers = breakers_of(&n, params, id);
    for (size_t i = 0; i < n; i++) {
        if (breakers[i].n == 0) {
            return true;
        }
    }
    return false;
}

static double penalty_of(const nib_sample_params *params, uint32_t length) {
    double exponent = (double)(length - (uint32_t)params->dry_allowed_length);
    if (params->dry_base > 1.000001) {
        double most = (double)(int64_t)(log_max / nib_log(params->dry_base));
        exponent = most > 0 && exponent > most ? most : exponent;
    }
    return params->dry_multiplier * nib_pow(params->dry_base, exponent);
}

nib_status nib_sampler_dry(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                           nib_error *err) {
    size_t n = place->n_history;
    n = params->dry_last_n >= 0 && (uint64_t)params->dry_last_n < n ? (size_t)params->dry_last_n : n;
    uint32_t least = (uint32_t)params->dry_allowed_length;
    const int32_t *text = place->history + (place->n_history - n);
    size_t most = n > least ? unbroken(params, text, n) : 0;
    if (n <= least || most < least) {
        return NIB_OK;
    }
    if (!nib_reserve(&s->match, &s->cap_match, n, sizeof s->match[0])) {
        return nib_fail_memory(err, n * sizeof s->match[0], "the repeats of a text");
    }
    match_suffixes(s->match, text, n);
    for (size_t i = 1; i < n; i++) { /* the longest for each token that followed one */
        uint32_t length = s->match[i] < most ? s->match[i] : (uint32_t)most;
        int32_t next = text[n - i];
        if (length >= least && next >= 0 && next < s->V && length > s->count[next]) {
            s->count[next] = length;
        }
    }
    for (size_t i = 1; i < n; i++) {
        int32_t next = text[n - i];
        if (next < 0 || next >= s->V || s->count[next] == 0) {
            continue;
        }
        if (!breaks_alone(params, next)) {
            s->penalised[next] = (float)((double)s->penalised[next] - penalty_of(params, s->count[next]));
        }
        s->count[next] = 0;
    }
    return NIB_OK;
}
