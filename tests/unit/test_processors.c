/* Penalties, bans, the further filters and the alternatives: known vectors, every combination against plain_sample.h bit
 * for bit, and each one's distribution by chi-square. What test_sample.c asks of the other filters is not asked again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "chi.h"
#include "decode/sample.h"
#include "plain_sample.h"

static float logits[PLAIN_MOST];
static plain_kept kept;

static nib_sampler *new_sampler(int64_t V) {
    nib_sampler *s;
    assert_int_equal(nib_sampler_new(&s, V, nib_kernels_find("auto"), NULL), NIB_OK);
    return s;
}

static nib_choice choose_from(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                              const float *l, nib_alternative *top) {
    nib_choice choice = {.top = top};
    nib_error err;
    if (nib_sampler_choose(&choice, s, params, place, l, &err) != NIB_OK) {
        fail_msg("%s", err.message);
    }
    return choice;
}

/* The tokens that 3,000 draws give, a bit each. */
static unsigned support(nib_sample_params params, const nib_sample_place *where, const float *l, int64_t V) {
    unsigned set = 0;
    nib_sampler *s = new_sampler(V);
    nib_sample_place place = *where;
    for (uint32_t position = 0; position < 3000; position++) {
        place.position = position;
        set |= 1u << choose_from(s, &params, &place, l, NULL).id;
    }
    nib_sampler_free(s);
    return set;
}

/* ---- known vectors ---- */

static const float five[5] = {2, 1, 0.5f, 0, -1}; /* p 0.563, 0.207, 0.126, 0.076, 0.028; entropy 1.206489 */
static const nib_sample_place nowhere = {0};

static unsigned set_of(nib_sample_params params) {
    return support(params, &nowhere, five, 5);
}

/* What is neutral, but for what is given. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define WITH(...)                                                                                                      \
    ((nib_sample_params){.temperature = 1,                                                                             \
                         .dynatemp_exponent = 1,                                                                       \
                         .top_p = 1,                                                                                   \
                         .typical_p = 1,                                                                               \
                         .repetition_penalty = 1,                                                                      \
                         .repeat_last_n = -1,                                                                          \
                         .dry_base = 1.75,                                                                             \
                         .dry_allowed_length = 2,                                                                      \
                         .dry_last_n = -1,                                                                             \
                         __VA_ARGS__})

static void typical_keeps_what_is_nearest_to_the_entropy(void **state) {
    (void)state;
    assert_int_equal(set_of(WITH(.typical_p = 0)), 0x2);
    assert_int_equal(set_of(WITH(.typical_p = 0.2)), 0x2);
    assert_int_equal(set_of(WITH(.typical_p = 0.5)), 0x3);
    assert_int_equal(set_of(WITH(.typical_p = 0.9)), 0xf);
    assert_int_equal(set_of(WITH()), 0x1f);
}

static void cutoffs_compare_with_probabilities(void **state) {
    (void)state;
    assert_int_equal(set_of(WITH(.epsilon_cutoff = 0.05)), 0xf);
    assert_int_equal(set_of(WITH(.epsilon_cutoff = 0.2)), 0x3);
    assert_int_equal(set_of(WITH(.epsilon_cutoff = 1)), 0x1); /* the best always stays */
    assert_int_equal(set_of(WITH(.eta_cutoff = 0.05)), 0xf);
    assert_int_equal(set_of(WITH(.eta_cutoff = 0.3)), 0x3); /* 0.163904 */
}

static void top_n_sigma_counts_deviations_from_the_largest(void **state) {
    (void)state;
    assert_int_equal(set_of(WITH(.top_n_sigma = 1)), 0x3); /* deviation 1: equality stays */
    assert_int_equal(set_of(WITH(.top_n_sigma = 1.5)), 0x7);
    assert_int_equal(set_of(WITH(.temperature = 0.5, .top_n_sigma = 1.5)), 0x7); /* has no scale */
}

static void xtc_leaves_the_least_likely_of_the_likely(void **state) {
    (void)state;
    assert_int_equal(set_of(WITH(.xtc_probability = 1, .xtc_threshold = 0.1)), 0x1c);
    assert_int_equal(set_of(WITH(.xtc_probability = 1, .xtc_threshold = 0.3)), 0x1f); /* one only */
    assert_int_equal(set_of(WITH(.xtc_probability = 1, .xtc_threshold = 0.51)), 0x1f);
    assert_int_equal(set_of(WITH(.xtc_probability = 0, .xtc_threshold = 0.1)), 0x1f);
    assert_int_equal(set_of(WITH(.xtc_probability = 1, .xtc_threshold = 0)), 0x10);
}

static void the_dynamic_temperature_follows_the_entropy(void **state) {
    (void)state;
    nib_sample_params params = WITH(.dynatemp_range = 0.5);
    plain_filter(&kept, &params, &nowhere, five, 5);
    assert_true(fabs(kept.T - 1.249634) < 1e-6);
    params.dynatemp_exponent = 2;
    plain_filter(&kept, &params, &nowhere, five, 5);
    assert_true(fabs(kept.T - (0.5 + 0.749634 * 0.749634)) < 1e-5);
}

static void filters_of_the_llama_order_see_temperature_one(void **state) {
    (void)state;
    nib_sample_params params = WITH(.temperature = 4, .min_p = 0.3);
    assert_int_equal(set_of(params), 0x1f); /* p / p_max at 4: 0.78, 0.69, 0.61, 0.47 */
    params.llama_order = true;
    assert_int_equal(set_of(params), 0x3);
}

/* The logits after processing: each token's log-probability, processed and greedy, against that of a token that nothing
 * touches. */
static void assert_logits(const float *want, nib_sample_params params, const nib_sample_place *place, const float *l,
                          int64_t V) {
    nib_alternative top[16];
    params.greedy = params.processed_logprobs = true;
    params.top_logprobs = V;
    nib_sampler *s = new_sampler(V);
    nib_choice choice = choose_from(s, &params, place, l, top);
    plain_sum sum = plain_logsum(want, V);
    assert_int_equal(choice.n_top, V);
    for (size_t i = 0; i < choice.n_top; i++) {
        double expected =
            want[top[i].id] > -INFINITY ? (double)want[top[i].id] - sum.max - nib_log(sum.total) : (double)-INFINITY;
        assert_true((double)top[i].logprob == expected || fabs((double)top[i].logprob - expected) < 1e-6);
    }
    nib_sampler_free(s);
}

static const int32_t text[] = {0, 1, 1, 2, 1, 1};

static const nib_sample_place in_text = {.history = text, .n_history = 6, .n_prompt = 3};

static void penalties_count_what_they_say(void **state) {
    (void)state;
    static const int32_t seen[] = {0, 4, 4};
    const nib_sample_place place = {.history = seen, .n_history = 3};
    assert_logits((float[]){2 / 1.5f, 1, 0.5f, 0, -1.5f}, WITH(.repetition_penalty = 1.5, .repeat_last_n = -1), &place,
                  five, 5);
    nib_sample_params params = WITH(.frequency_penalty = 0.5, .presence_penalty = 0.25, .repeat_last_n = -1);
    assert_logits((float[]){2, 1 - 1.25f, 0.5f - 0.75f, 0, -1}, params, &in_text, five, 5); /* output 2, 1, 1 */
    params.llama_order = true;                                                              /* the prompt too */
    assert_logits((float[]){2 - 0.75f, 1 - 2.25f, 0.5f - 0.75f, 0, -1}, params, &in_text, five, 5);
    params.repeat_last_n = 2;
    assert_logits((float[]){2, 1 - 1.25f, 0.5f, 0, -1}, params, &in_text, five, 5);
    params.repeat_last_n = 0;
    assert_logits(five, params, &in_text, five, 5);
    params = WITH(.repetition_penalty = 2, .repeat_last_n = -1, .penalise_generated = true);
    assert_logits((float[]){2, 0.5f, 0.25f, 0, -1}, params, &in_text, five, 5);
}

static void ngrams_are_not_repeated(void **state) {
    (void)state;
    static const float no = -INFINITY;
    nib_sample_params params = WITH(.no_repeat_ngram_size = 1);
    assert_logits((float[]){no, no, no, 0, -1}, params, &in_text, five, 5);
    params.no_repeat_ngram_size = 2; /* 1 was followed by 1, 2 and 1 */
    assert_logits((float[]){2, no, no, 0, -1}, params, &in_text, five, 5);
    params.no_repeat_ngram_size = 3; /* 1 1 was followed by 2 */
    assert_logits((float[]){2, 1, no, 0, -1}, params, &in_text, five, 5);
    params.no_repeat_ngram_size = 6;
    assert_logits(five, params, &in_text, five, 5);
}

static void biases_and_bans_look_at_the_tokens_before(void **state) {
    (void)state;
    static const float no = -INFINITY;
    static const int32_t one[] = {3}, pair[] = {1, 2}, other[] = {0, 4}, banned[] = {0}, allowed[] = {1, 2};
    const nib_bias biases[] = {{one, 1, 1.5}, {pair, 2, -0.5}, {other, 2, 5}}, bad[] = {{pair, 2, -INFINITY}};
    nib_sample_params params = WITH(.biases = biases, .n_biases = 3);
    assert_logits((float[]){2, 1, 0, 1.5f, -1}, params, &in_text, five, 5);
    params = WITH(.bad = bad, .n_bad = 1, .banned = banned, .n_banned = 1);
    assert_logits((float[]){no, 1, no, 0, -1}, params, &in_text, five, 5);
    params = WITH(.allowed = allowed, .n_allowed = 2);
    assert_logits((float[]){no, 1, 0.5f, no, no}, params, &in_text, five, 5);
    params = WITH(.late = {{banned, 1, 4}, {allowed, 2, 3}}); /* 3 new tokens are there */
    assert_logits((float[]){no, 1, 0.5f, 0, -1}, params, &in_text, five, 5);
}

static void dry_grows_with_the_length_of_the_repeat(void **state) {
    (void)state;
    static const double penalty[] = {0, 0, 0.8, 1.4, 2.45, 0, 7.503125};
    static const float zeros[9] = {0};
    int32_t ids[20];
    for (size_t length = 1; length <= 6; length++) { /* 1 .. length, 7, 8, 1 .. length: 7 would go on */
        size_t n = 0;
        for (size_t i = 0; i < 2 * length + 2; i++) {
            ids[n++] = i < length       ? (int32_t)i + 1
                       : i < length + 2 ? (int32_t)(7 + i - length)
                                        : (int32_t)(i - length - 1);
        }
        const nib_sample_place place = {.history = ids, .n_history = n};
        float want[9] = {0};
        want[7] = length == 5 ? -(float)(0.8 * 1.75 * 1.75 * 1.75) : -(float)penalty[length];
        nib_sample_params params =
            WITH(.dry_multiplier = 0.8, .dry_base = 1.75, .dry_allowed_length = 2, .dry_last_n = -1);
        assert_logits(want, params, &place, zeros, 9);
        const nib_breaker at_one[] = {{1, NULL, 0}}; /* what lies behind it counts: one token less */
        params.breakers = at_one;
        params.n_breakers = 1;
        want[7] = length < 3 ? 0 : (float)((double)want[7] / 1.75);
        assert_logits(want, params, &place, zeros, 9);
        const nib_breaker at_seven[] = {{7, NULL, 0}}; /* a breaker is not penalised */
        params.breakers = at_seven;
        assert_logits(zeros, params, &place, zeros, 9);
    }
}

static void a_breaker_may_be_several_tokens(void **state) {
    (void)state;
    static const int32_t ids[] = {1, 2, 3, 4, 7, 8, 1, 2, 3, 4}, tail[] = {2};
    static const float zeros[9] = {0};
    const nib_sample_place place = {.history = ids, .n_history = 10};
    const nib_breaker breakers[] = {{1, tail, 1}, {3, tail, 1}};
    nib_sample_params params = WITH(.dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 1, .dry_last_n = -1,
                                    .breakers = breakers, .n_breakers = 2);
    assert_logits((float[]){0, 0, 0, 0, 0, 0, 0, -2, 0}, params, &place, zeros, 9); /* 3 4 is the repeat */
}

/* ---- the alternatives ---- */

static void alternatives_come_best_first_with_the_chosen_one(void **state) {
    (void)state;
    nib_alternative top[6];
    nib_sample_params params =
        WITH(.top_logprobs = 2, .banned = (const int32_t[]){0, 1, 2}, .n_banned = 3, .greedy = true);
    nib_sampler *s = new_sampler(5);
    nib_choice choice = choose_from(s, &params, &nowhere, five, top);
    assert_int_equal(choice.id, 3);
    assert_int_equal(choice.n_top, 3);
    assert_true(top[0].id == 0 && top[1].id == 1 && top[2].id == 3 && top[2].logprob == choice.logprob);
    assert_true(fabs((double)top[0].logprob - log(0.563021)) < 1e-5 &&
                fabs((double)top[1].logprob - log(0.207124)) < 1e-5);
    params.processed_logprobs = true; /* only 3 and 4 can be drawn; then by id */
    params.top_logprobs = 4;
    choice = choose_from(s, &params, &nowhere, five, top);
    assert_int_equal(choice.n_top, 4);
    assert_true(top[0].id == 3 && top[1].id == 4 && top[2].id == 0 && top[3].id == 1);
    assert_true(top[2].logprob == -INFINITY && top[3].logprob == -INFINITY);
    const float ties[5] = {1, 3, 3, 3, 1};
    params = WITH(.top_logprobs = 1000, .greedy = true);
    choice = choose_from(s, &params, &nowhere, ties, top);
    assert_int_equal(choice.n_top, 5);
    assert_true(top[0].id == 1 && top[1].id == 2 && top[2].id == 3 && top[3].id == 0 && top[4].id == 4);
    nib_sampler_free(s);
}

static void ties_of_top_k_stay_when_asked(void **state) {
    (void)state;
    const float ties[5] = {1, 3, 3, 3, 0};
    nib_sample_params params = WITH(.top_k = 2);
    assert_int_equal(support(params, &nowhere, ties, 5), 0x6);
    params.top_k_ties = true;
    assert_int_equal(support(params, &nowhere, ties, 5), 0xe);
}

/* ---- the caller's function ---- */

static int count_calls(float *l, size_t V, const nib_logits_place *place, void *user) {
    int *calls = user;
    assert_int_equal(V, 5);
    assert_int_equal(place->n, 6);
    assert_int_equal(place->n_prompt, 3);
    assert_true(place->row == 4 && place->index == 2 && place->ids[3] == 2);
    assert_true(l[0] == 1); /* behind the penalty, before the filters */
    l[0] = -INFINITY;
    l[4] = 50;
    return (*calls)++ < 1 ? 0 : 9;
}

static int write_nan(float *l, size_t V, const nib_logits_place *place, void *user) {
    l[1] = NAN;
    (void)V;
    (void)place;
    (void)user;
    return 0;
}

static void the_callers_function_has_the_last_word(void **state) {
    (void)state;
    int calls = 0;
    nib_error err;
    nib_sample_place place = in_text;
    place.row = 4;
    place.stream = 2;
    nib_sample_params params =
        WITH(.repetition_penalty = 2, .repeat_last_n = -1, .top_k = 1, .hook = count_calls, .hook_user = &calls);
    nib_sampler *s = new_sampler(5);
    nib_choice choice = choose_from(s, &params, &place, five, NULL);
    assert_int_equal(choice.id, 4);
    assert_int_equal(nib_sampler_choose(&choice, s, &params, &place, five, &err), NIB_ECALLBACK);
    assert_non_null(strstr(err.message, "logits_callback answered 9"));
    params.hook = write_nan;
    assert_int_equal(nib_sampler_choose(&choice, s, &params, &place, five, &err), NIB_ENUMERIC);
    params.hook = NULL;
    choice = choose_from(s, &params, &place, five, NULL); /* nothing is left of it */
    assert_int_equal(choice.id, 0);
    nib_sampler_free(s);
}

/* ---- equality with the plain form ---- */

enum { N_HISTORY = 200, N_IDS = 12 };

typedef struct setting {
    nib_sample_params params;
    nib_sample_place place;
    int32_t history[N_HISTORY], ids[N_IDS];
    nib_bias biases[3];
    nib_breaker breakers[2];
} setting;

static uint64_t pick(uint64_t *state, uint64_t n) {
    *state = nib_mix64(*state, n);
    return *state % n;
}

/* One of the values, mostly the neutral one, which comes first. */
static double some(uint64_t *r, double a, double b, double c, double d) {
    const double values[] = {a, a, a, b, c, d};
    return values[pick(r, 6)];
}

static void make_setting(setting *s, uint64_t seed, int64_t V) {
    uint64_t r = seed, kinds = pick(&r, 2) == 0 ? 5 : 100;
    memset(s, 0, sizeof *s);
    for (int i = 0; i < N_HISTORY; i++) {
        s->history[i] = (int32_t)(pick(&r, kinds) % (uint64_t)V);
    }
    for (int i = 0; i < N_IDS; i++) {
        s->ids[i] = (int32_t)(pick(&r, kinds) % (uint64_t)V);
    }
    for (size_t i = 0; i < 3; i++) {
        s->biases[i] = (nib_bias){s->ids + 2 * i, 1 + i, i == 2 ? (double)-INFINITY : (double)pick(&r, 9) - 4};
    }
    s->breakers[0].head = (int32_t)(3 % (V - V / 2)); /* in the order of their heads */
    s->breakers[1].head = s->breakers[0].head + (int32_t)(V / 2);
    size_t n = pick(&r, 3) * N_HISTORY / 2;
    s->place = (nib_sample_place){.history = s->history, .n_history = n, .n_prompt = n / 3, .position = (uint32_t)seed};
    s->params = (nib_sample_params){.greedy = pick(&r, 10) == 0,
                                    .llama_order = pick(&r, 2) == 0,
                                    .temperature = some(&r, 1, 0.3, 3, 1e-5),
                                    .dynatemp_range = some(&r, 0, 0.2, 1, 5),
                                    .dynatemp_exponent = some(&r, 1, 0.5, 2, 0),
                                    .top_k = (int64_t)some(&r, 0, 1, 20, 300),
                                    .top_k_ties = pick(&r, 2) == 0,
                                    .top_p = some(&r, 1, 0.9, 0.3, 0),
                                    .min_p = some(&r, 0, 0.05, 0.5, 1e-9),
                                    .typical_p = some(&r, 1, 0.9, 0.3, 0),
                                    .epsilon_cutoff = some(&r, 0, 1e-3, 0.1, 1),
                                    .eta_cutoff = some(&r, 0, 1e-3, 0.1, 1),
                                    .top_n_sigma = some(&r, 0, 1, 2.5, 0.01),
                                    .xtc_probability = some(&r, 0, 0.5, 1, 1),
                                    .xtc_threshold = some(&r, 0.1, 0.01, 0.5, 0),
                                    .repetition_penalty = some(&r, 1, 1.3, 0.8, 2),
                                    .frequency_penalty = some(&r, 0, 0.1, -0.2, 1),
                                    .presence_penalty = some(&r, 0, 0.1, -0.2, 1),
                                    .repeat_last_n = (int64_t)some(&r, -1, 0, 7, 64),
                                    .penalise_generated = pick(&r, 4) == 0,
                                    .no_repeat_ngram_size = (int64_t)some(&r, 0, 2, 3, 5),
                                    .dry_multiplier = some(&r, 0, 0.8, 2, 0.1),
                                    .dry_base = some(&r, 1.75, 1, 1.1, 3),
                                    .dry_allowed_length = (int64_t)some(&r, 2, 1, 3, 5),
                                    .dry_last_n = (int64_t)some(&r, -1, 64, 10, 0),
                                    .breakers = s->breakers,
                                    .n_breakers = pick(&r, 3),
                                    .biases = s->biases,
                                    .n_biases = pick(&r, 3),
                                    .bad = s->biases + 2,
                                    .n_bad = pick(&r, 2),
                                    .banned = s->ids,
                                    .n_banned = pick(&r, 4) == 0 ? 3 : 0,
                                    .allowed = s->ids,
                                    .n_allowed = pick(&r, 8) == 0 ? N_IDS : 0,
                                    .late = {{s->ids + 4, 2, (int64_t)pick(&r, 100)}, {s->ids, 1, 0}},
                                    .cdf = pick(&r, 3) == 0,
                                    .processed_logprobs = pick(&r, 2) == 0,
                                    .top_logprobs = (int64_t)some(&r, 0, 1, 5, 40),
                                    .seed = r};
}

static void fill_logits(uint64_t seed, int64_t V) {
    for (int64_t i = 0; i < V; i++) {
        uint64_t a = nib_mix64(seed, (uint64_t)i);
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            sum += (float)(a >> (16 * k) & 0xffff) * 0x1p-14f - 2;
        }
        logits[i] = seed % 3 == 0 ? (float)(a >> 62) : seed % 3 == 1 && a % 3 == 0 ? -INFINITY : sum;
    }
    logits[V / 2] = 1;
}

static bool has_token(const setting *now, int64_t V) {
    plain_process(&kept, &now->params, &now->place, logits, V);
    for (int64_t i = 0; i < V; i++) {
        if (kept.l[i] > -INFINITY) {
            return true;
        }
    }
    return false;
}

/* The alternatives, from a whole sort. */
static void check_top(const setting *now, const nib_choice *got, int64_t V) {
    static float from[PLAIN_MOST];
    bool processed = now->params.processed_logprobs;
    int64_t n = now->params.top_logprobs < V ? now->params.top_logprobs : V;
    memcpy(from, processed ? kept.l : logits, (size_t)V * sizeof from[0]);
    plain_sum sum = plain_logsum(processed ? kept.x : logits, V);
    kept.V = V;
    plain_sort(&kept, from);
    bool there = false;
    for (int64_t i = 0; i < n; i++) {
        int32_t id = kept.order[i];
        float x = processed ? kept.x[id] : logits[id];
        assert_int_equal(got->top[i].id, id);
        assert_true(got->top[i].logprob == (float)((double)x - sum.max - nib_log(sum.total)));
        there = there || id == got->id;
    }
    assert_int_equal(got->n_top, n + (there || n == 0 ? 0 : 1));
    assert_true(n == 0 || there || (got->top[n].id == got->id && got->top[n].logprob == got->logprob));
}

/* One sampler for all settings: nothing of one call is left for the next. */
static void every_choice_equals_the_plain_form_bit_for_bit(void **state) {
    (void)state;
    static const struct {
        int64_t V;
        uint64_t n;
    } cases[] = {{1, 100}, {2, 300}, {5, 2000}, {256, 1000}, {300, 6000}, {1000, 2000}, {50257, 60}, {PLAIN_MOST, 5}};
    nib_alternative top[41];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t V = cases[i].V;
        nib_sampler *s = new_sampler(V);
        for (uint64_t seed = 0; seed < cases[i].n; seed++) {
            setting now;
            make_setting(&now, seed, V);
            fill_logits(seed, V);
            if (!has_token(&now, V)) {
                continue;
            }
            nib_choice want = plain_choose(&kept, &now.params, &now.place, logits, V);
            nib_choice got = choose_from(s, &now.params, &now.place, logits, top);
            if (got.id != want.id || got.logprob != want.logprob) {
                fail_msg("V %lld, seed %llu: token %d %.9g, expected %d %.9g", (long long)V, (unsigned long long)seed,
                         got.id, (double)got.logprob, want.id, (double)want.logprob);
            }
            check_top(&now, &got, V);
        }
        nib_sampler_free(s);
    }
}

/* ---- distributions ---- */

enum { DRAWS = 100000, TABLE = 300 };

static void assert_distribution(const char *name, nib_sample_params params, const nib_sample_place *where) {
    static size_t count[TABLE];
    static double expected[TABLE];
    nib_sampler *s = new_sampler(TABLE);
    for (int cdf = 0; cdf < 2; cdf++) {
        params.cdf = cdf == 1;
        memset(count, 0, sizeof count);
        memset(expected, 0, sizeof expected);
        nib_sample_place place = *where;
        for (place.position = 0; place.position < DRAWS; place.position++) {
            count[choose_from(s, &params, &place, logits, NULL).id]++;
        }
        /* With XTC half of the places draw from one distribution, half from another: 1000 places tell the share. */
        uint32_t places = params.xtc_probability > 0 ? DRAWS : 1;
        double acting = 0;
        for (place.position = 0; place.position < places && places > 1; place.position++) {
            nib_noise noise = {params.seed, place.position, place.stream};
            acting += nib_noise_uniform(&noise, NIB_NOISE_XTC) <= params.xtc_probability;
        }
        for (int act = 0; act < 2; act++) {
            nib_sample_params fixed = params;
            fixed.xtc_probability = act;
            double share = places == 1 ? 1 - act : act == 1 ? acting / DRAWS : 1 - acting / DRAWS, total = 0;
            plain_filter(&kept, &fixed, where, logits, TABLE);
            for (int i = 0; i < TABLE; i++) {
                total += nib_exp((double)kept.x[i]);
            }
            for (int i = 0; i < TABLE; i++) {
                expected[i] += share * DRAWS * nib_exp((double)kept.x[i]) / total;
            }
        }
        size_t freedom = 0;
        double chi = chi_square(&freedom, count, expected, TABLE);
        print_message("%s, %s: chi-square %.1f, %zu degrees of freedom, bound %.1f\n", name, cdf ? "cdf" : "noise", chi,
                      freedom, chi_bound(freedom));
        assert_true(chi < chi_bound(freedom));
    }
    nib_sampler_free(s);
}

#define DISTRIBUTION(...) assert_distribution(#__VA_ARGS__, WITH(.seed = 11, .repeat_last_n = -1, __VA_ARGS__), &place)

static void draws_follow_the_exact_distribution(void **state) {
    (void)state;
    static const int32_t history[] = {3, 50, 3, 100, 200, 201, 150, 3, 50, 3, 100}, ids[] = {3, 50, 150};
    static const nib_bias biases[] = {{ids, 1, -2}, {ids + 2, 1, 3}, {ids + 1, 1, -INFINITY}};
    const nib_sample_place place = {.history = history, .n_history = 11, .n_prompt = 4, .stream = 3};
    fill_logits(2, TABLE);
    logits[3] = logits[50] = logits[150] = 4;
    DISTRIBUTION(.typical_p = 0.6);
    DISTRIBUTION(.epsilon_cutoff = 0.003);
    DISTRIBUTION(.eta_cutoff = 0.1);
    DISTRIBUTION(.top_n_sigma = 2);
    DISTRIBUTION(.xtc_probability = 0.5, .xtc_threshold = 0.02);
    DISTRIBUTION(.dynatemp_range = 0.9);
    DISTRIBUTION(.frequency_penalty = 0.7);
    DISTRIBUTION(.presence_penalty = 0.7);
    DISTRIBUTION(.no_repeat_ngram_size = 3);
    DISTRIBUTION(.dry_multiplier = 0.8, .dry_base = 1.75, .dry_allowed_length = 2, .dry_last_n = -1);
    DISTRIBUTION(.biases = biases, .n_biases = 2);
    DISTRIBUTION(.bad = biases + 2, .n_bad = 1);
    DISTRIBUTION(.allowed = ids, .n_allowed = 3);
    DISTRIBUTION(.late = {{ids, 2, 100}, {0}});
    DISTRIBUTION(.typical_p = 0.9, .llama_order = true, .temperature = 1.4, .top_n_sigma = 3, .min_p = 0.01);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typical_keeps_what_is_nearest_to_the_entropy),
        cmocka_unit_test(cutoffs_compare_with_probabilities),
        cmocka_unit_test(top_n_sigma_counts_deviations_from_the_largest),
        cmocka_unit_test(xtc_leaves_the_least_likely_of_the_likely),
        cmocka_unit_test(the_dynamic_temperature_follows_the_entropy),
        cmocka_unit_test(filters_of_the_llama_order_see_temperature_one),
        cmocka_unit_test(penalties_count_what_they_say),
        cmocka_unit_test(ngrams_are_not_repeated),
        cmocka_unit_test(biases_and_bans_look_at_the_tokens_before),
        cmocka_unit_test(dry_grows_with_the_length_of_the_repeat),
        cmocka_unit_test(a_breaker_may_be_several_tokens),
        cmocka_unit_test(alternatives_come_best_first_with_the_chosen_one),
        cmocka_unit_test(ties_of_top_k_stay_when_asked),
        cmocka_unit_test(the_callers_function_has_the_last_word),
        cmocka_unit_test(every_choice_equals_the_plain_form_bit_for_bit),
        cmocka_unit_test(draws_follow_the_exact_distribution),
    };
    return cmocka_run_group_tests_name("processors", tests, NULL, NULL);
}
