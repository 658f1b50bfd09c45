/* Choosing a token: known vectors and edge cases of penalties and filters, equality with plain_sample.h bit for bit,
 * distributions by chi-square over 100,000 draws with fixed seeds, and what a choice may not depend on. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "chi.h"
#include "decode/sample.h"
#include "plain_sample.h"

static float logits[PLAIN_MOST], copy[PLAIN_MOST];
static plain_kept kept;

static const nib_sample_params neutral = {
    .temperature = 1, .top_p = 1, .typical_p = 1, .repetition_penalty = 1, .repeat_last_n = -1};

static nib_sample_params with_filters(double temperature, int64_t top_k, double top_p, double min_p) {
    nib_sample_params params = neutral;
    params.temperature = temperature;
    params.top_k = top_k;
    params.top_p = top_p;
    params.min_p = min_p;
    return params;
}

static nib_sampler *new_sampler(int64_t V) {
    nib_sampler *s;
    assert_int_equal(nib_sampler_new(&s, V, nib_kernels_find("auto"), NULL), NIB_OK);
    return s;
}

static nib_choice choose_from(nib_sampler *s, const nib_sample_params *params, const nib_sample_place *place,
                              const float *l) {
    nib_choice choice = {0};
    nib_error err;
    if (nib_sampler_choose(&choice, s, params, place, l, &err) != NIB_OK) {
        fail_msg("%s", err.message);
    }
    return choice;
}

static nib_choice choose(const nib_sample_params *params, const nib_sample_place *place, const float *l, int64_t V) {
    nib_sampler *s = new_sampler(V);
    nib_choice choice = choose_from(s, params, place, l);
    nib_sampler_free(s);
    return choice;
}

/* The tokens that 3,000 draws of either sampler give, a bit each: what the filters kept, if it is probable enough. */
static unsigned support(nib_sample_params params, const float *l, int64_t V) {
    unsigned sets[2] = {0, 0};
    nib_sampler *s = new_sampler(V);
    for (int cdf = 0; cdf < 2; cdf++) {
        params.cdf = cdf == 1;
        for (uint32_t position = 0; position < 3000; position++) {
            nib_sample_place place = {.position = position};
            sets[cdf] |= 1u << choose_from(s, &params, &place, l).id;
        }
    }
    nib_sampler_free(s);
    assert_int_equal(sets[0], sets[1]);
    return sets[0];
}

/* ---- known vectors ---- */

static const float five[5] = {2, 1, 0.5f, 0, -1}; /* p 0.563, 0.207, 0.126, 0.076, 0.028 */

static unsigned top_p_set(double p) {
    return support(with_filters(1, 0, p, 0), five, 5);
}

static unsigned min_p_set(double p) {
    return support(with_filters(1, 0, 1, p), five, 5);
}

static unsigned top_k_set(int64_t k) {
    return support(with_filters(1, k, 1, 0), five, 5);
}

static void top_p_keeps_the_smallest_set_that_reaches_it(void **state) {
    (void)state;
    assert_int_equal(top_p_set(0), 0x1);
    assert_int_equal(top_p_set(0.5), 0x1);
    assert_int_equal(top_p_set(0.8), 0x7);
    assert_int_equal(top_p_set(0.9), 0xf);
    assert_int_equal(top_p_set(0.95), 0xf);
    assert_int_equal(top_p_set(1), 0x1f);
}

static void top_p_stops_where_the_mass_is_exactly_reached(void **state) {
    (void)state;
    const float equal[4] = {1, 1, 1, 1};
    assert_int_equal(support(with_filters(1, 0, 0.25, 0), equal, 4), 0x1);
    assert_int_equal(support(with_filters(1, 0, 0.5, 0), equal, 4), 0x3);
    assert_int_equal(support(with_filters(1, 0, 0.75, 0), equal, 4), 0x7);
    assert_int_equal(support(with_filters(1, 0, 0.76, 0), equal, 4), 0xf);
    /* p 1/2, 1/4, 1/8, 1/8. binary32 has no log(2): token 1 is rounded up, or the mass would be 1e-9 short of 3/4. */
    const float halves[4] = {0, -0x1.62e42ep-1f, -0x1.62e43p+0f, -0x1.62e43p+0f};
    assert_int_equal(support(with_filters(1, 0, 0.75, 0), halves, 4), 0x3);
}

static void min_p_is_relative_to_the_best_and_keeps_equality(void **state) {
    (void)state;
    assert_int_equal(min_p_set(0), 0x1f);
    assert_int_equal(min_p_set(0.1), 0xf);
    assert_int_equal(min_p_set(0.2), 0x7);
    assert_int_equal(min_p_set(0.3), 0x3);
    assert_int_equal(min_p_set(0.5), 0x1);
    assert_int_equal(min_p_set(1), 0x1);
    double equal = nib_exp(-1.5); /* token 2 against token 0, exactly */
    assert_int_equal(min_p_set(equal), 0x7);
    assert_int_equal(min_p_set(equal * (1 + 0x1p-52)), 0x3);
}

static void top_k_keeps_exactly_k_and_none_above_the_vocabulary(void **state) {
    (void)state;
    static const struct {
        int64_t k;
        unsigned set;
    } cases[] = {{0, 0x1f}, {1, 0x1}, {2, 0x3}, {4, 0xf}, {5, 0x1f}, {6, 0x1f}, {INT32_MAX, 0x1f}, {INT64_MAX, 0x1f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(top_k_set(cases[i].k), cases[i].set);
    }
}

static void ties_go_to_the_lower_id(void **state) {
    (void)state;
    const float ties[6] = {0, 3, 3, -0.0f, 3, 0};
    const nib_sample_place place = {.position = 4};
    nib_sample_params greedy = neutral;
    greedy.greedy = true;
    assert_int_equal(choose(&greedy, &place, ties, 6).id, 1);
    assert_int_equal(support(with_filters(1, 2, 1, 0), ties, 6), 0x06);
    assert_int_equal(support(with_filters(1, 4, 1, 0), ties, 6), 0x17);
    assert_int_equal(support(with_filters(1, 5, 1, 0), ties, 6), 0x1f);
    assert_int_equal(support(with_filters(1, 0, 0.6, 0), ties, 6), 0x06);
    assert_int_equal(support(with_filters(1, 0, 1, 1), ties, 6), 0x16);
}

/* p after top_k 3: 0.628, 0.231, 0.140; of all five: 0.563, 0.207, 0.126. 0.8 needs 2 of the three, 3 of the five. */
static void each_filter_sees_the_survivors_of_the_one_before(void **state) {
    (void)state;
    assert_int_equal(support(with_filters(1, 3, 0.8, 0), five, 5), 0x3);
    assert_int_equal(support(with_filters(1, 3, 0.9, 0), five, 5), 0x7);
    assert_int_equal(support(with_filters(1, 3, 0.9, 0.3), five, 5), 0x3);
}

static void filters_see_the_tempered_distribution(void **state) {
    (void)state;
    /* At T = 1/2: 0.830, 0.112, 0.041, 0.015, 0.002. At T = 2: 0.379, 0.230, 0.179, 0.139, 0.085. */
    assert_int_equal(support(with_filters(0.5, 0, 0.8, 0), five, 5), 0x1);
    assert_int_equal(support(with_filters(2, 0, 0.8, 0), five, 5), 0xf);
    assert_int_equal(support(with_filters(2, 0, 1, 0.3), five, 5), 0xf);
}

/* Processed log-probabilities show the penalised logits: differences of log-probabilities at T = 1 are theirs. */
static void assert_penalised(const float *want, const float *l, int64_t V, double penalty, const int32_t *history,
                             size_t n_history) {
    nib_sample_params params = neutral;
    params.repetition_penalty = penalty;
    params.processed_logprobs = true;
    nib_sample_place place = {.history = history, .n_history = n_history};
    nib_sampler *s = new_sampler(V);
    plain_sum sum = plain_logsum(want, V);
    unsigned seen = 0;
    for (place.position = 0; place.position < 3000; place.position++) {
        nib_choice choice = choose_from(s, &params, &place, l);
        float x = (float)((double)want[choice.id] - sum.max);
        assert_true(choice.logprob == (float)((double)x - nib_log(sum.total)));
        seen |= 1u << choice.id;
    }
    nib_sampler_free(s);
    assert_int_equal(seen, (1u << V) - 1);
}

static void repetition_divides_positive_and_multiplies_negative_logits_once(void **state) {
    (void)state;
    const float theta = 1.5f;
    assert_penalised((float[]){2 / theta, 1, 0.5f, 0, -1 * theta}, five, 5, 1.5, (int32_t[]){0, 4}, 2);
    const float three[3] = {2, -1, 0.5f};
    assert_penalised((float[]){1, -2, 0.5f}, three, 3, 2, (int32_t[]){0, 1}, 2);
    assert_penalised((float[]){1, -2, 0.5f}, three, 3, 2, (int32_t[]){1, 0, 0, 1, 0, 1, 1}, 7);
    assert_penalised((float[]){4, -0.5f, 0.5f}, three, 3, 0.5, (int32_t[]){0, 1}, 2);
    assert_penalised((float[]){2 / 1.3f, -1 * 1.3f, 0.5f}, three, 3, 1.3, (int32_t[]){0, 1}, 2);
}

static void a_penalty_of_one_changes_no_bit(void **state) {
    (void)state;
    const int32_t history[] = {0, 1, 2, 3, 4};
    for (uint32_t position = 0; position < 100; position++) {
        nib_sample_params params = neutral;
        params.processed_logprobs = position % 2 == 0;
        nib_sample_place without = {.position = position},
                         with = {.history = history, .n_history = 5, .position = position};
        nib_choice a = choose(&params, &without, five, 5), b = choose(&params, &with, five, 5);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

static void banned_tokens_are_never_drawn(void **state) {
    (void)state;
    const int32_t banned[] = {0, 3, 3, -1, 5, INT32_MAX};
    nib_sample_params params = neutral;
    params.banned = banned;
    params.n_banned = 6;
    assert_int_equal(support(params, five, 5), 0x16);
    params.top_k = 2;
    assert_int_equal(support(params, five, 5), 0x06);
    params.greedy = true;
    const nib_sample_place place = {.position = 0};
    assert_int_equal(choose(&params, &place, five, 5).id, 1);
}

static void logits_of_minus_infinity_are_never_drawn(void **state) {
    (void)state;
    const float holes[6] = {-INFINITY, 0, -INFINITY, 1, 1, -INFINITY};
    assert_int_equal(support(neutral, holes, 6), 0x1a);
    assert_int_equal(support(with_filters(1, 5, 1, 0), holes, 6), 0x1a);
    assert_int_equal(support(with_filters(1, 0, 0.9999, 0), holes, 6), 0x1a);
    assert_int_equal(support(with_filters(1, 0, 1, 1e-300), holes, 6), 0x1a);
}

/* ---- temperatures and log-probabilities ---- */

static void fill_bell(uint64_t seed, int64_t V, float width) {
    for (int64_t i = 0; i < V; i++) {
        double sum = -6;
        for (uint64_t j = 0; j < 12; j++) {
            sum += (double)nib_mix64(seed * 12 + j, (uint64_t)i) * 0x1p-64;
        }
        logits[i] = (float)sum * width;
    }
}

static void tiny_temperatures_equal_greedy(void **state) {
    (void)state;
    static const double temperatures[] = {1e-300, 1e-40, 1e-12, 1e-7};
    static const int64_t sizes[] = {5, 257, 1000};
    for (uint32_t i = 0; i < 3 * 4 * 2 * 20; i++) {
        int64_t V = sizes[i % 3];
        fill_bell(i, V, 4);
        const nib_sample_place place = {.position = i};
        nib_sample_params greedy = neutral;
        greedy.greedy = true;
        nib_sample_params tiny = with_filters(temperatures[i / 3 % 4], 0, 1, 0);
        tiny.cdf = i / 12 % 2 == 1;
        nib_choice want = choose(&greedy, &place, logits, V), got = choose(&tiny, &place, logits, V);
        assert_memory_equal(&got, &want, sizeof got);
        tiny.top_p = 0.9;
        tiny.top_k = 3;
        tiny.min_p = 0.1;
        tiny.processed_logprobs = true;
        got = choose(&tiny, &place, logits, V);
        assert_int_equal(got.id, want.id);
        assert_true(got.logprob == 0);
    }
}

static void raw_logprobs_are_of_the_untouched_logits(void **state) {
    (void)state;
    const int32_t history[] = {0, 1}, banned[] = {2};
    nib_sample_params params = {.temperature = 0.3,
                                .typical_p = 1,
                                .repeat_last_n = -1,
                                .top_k = 3,
                                .top_p = 0.9,
                                .min_p = 0.01,
                                .repetition_penalty = 1.7,
                                .banned = banned,
                                .n_banned = 1};
    plain_sum sum = plain_logsum(five, 5);
    for (uint32_t position = 0; position < 200; position++) {
        nib_sample_place place = {.history = history, .n_history = 2, .position = position};
        params.greedy = position % 2 == 1;
        nib_choice choice = choose(&params, &place, five, 5);
        assert_true(choice.logprob == (float)((double)five[choice.id] - sum.max - nib_log(sum.total)));
    }
}

static void a_greedy_processed_logprob_is_over_all_tokens_that_are_not_banned(void **state) {
    (void)state;
    const int32_t banned[] = {0};
    nib_sample_params params = with_filters(9, 1, 1, 0);
    params.greedy = true;
    params.processed_logprobs = true;
    params.banned = banned;
    params.n_banned = 1;
    const nib_sample_place place = {.position = 0};
    nib_choice choice = choose(&params, &place, five, 5);
    assert_int_equal(choice.id, 1);
    plain_sum sum = plain_logsum((float[]){-INFINITY, 0, -0.5f, -1, -2}, 5);
    assert_true(choice.logprob == (float)-nib_log(sum.total));
}

/* ---- equality with the plain form ---- */

typedef enum logit_kind { BELL, TIES, EQUAL, HOLES, PEAKED, N_KINDS } logit_kind;

static void fill_logits(logit_kind kind, uint64_t seed, int64_t V) {
    fill_bell(seed, V, 3);
    for (int64_t i = 0; i < V; i++) {
        uint64_t r = nib_mix64(seed, (uint64_t)i);
        if (kind == TIES) {
            logits[i] = (float)(r >> 61) - 3;
        } else if (kind == EQUAL) {
            logits[i] = -1.5f;
        } else if (kind == HOLES && r % 3 != 0 && i != V / 2) {
            logits[i] = -INFINITY;
        } else if (kind == PEAKED && r % 50 == 0) {
            logits[i] += (float)(r >> 40) * 0x1p-20f;
        }
    }
}

static uint64_t pick(uint64_t *state, uint64_t n) {
    *state = nib_mix64(*state, n);
    return *state % n;
}

enum { N_HISTORY = 300, N_BANNED = 20 };

typedef struct setting {
    nib_sample_params params;
    nib_sample_place place;
    int32_t history[N_HISTORY], banned[N_BANNED];
} setting;

static void make_setting(setting *s, uint64_t seed, int64_t V) {
    static const double temperatures[] = {1e-40, 1e-5, 0.1, 0.7, 1, 1, 1.5, 10};
    static const double top_p[] = {0, 1e-9, 0.1, 0.5, 0.9, 0.95, 0.999, 1 - 0x1p-53, 1, 1, 1, 1};
    static const double min_p[] = {1e-300, 1e-9, 0.05, 0.3, 1, 0, 0, 0};
    static const double penalties[] = {1, 1, 1, 1.1, 1.3, 0.8, 1e6, 1e-3};
    const int64_t top_k[] = {0, 0, 0, 0, 0, 0, 1, 2, 40, V / 3, V - 1, V, V + 1, INT64_MAX};
    uint64_t r = seed;
    memset(s, 0, sizeof *s);
    for (int i = 0; i < N_HISTORY; i++) {
        s->history[i] = (int32_t)pick(&r, (uint64_t)V);
    }
    for (int i = 0; i < N_BANNED; i++) {
        s->banned[i] = (int32_t)pick(&r, (uint64_t)V);
    }
    s->params = (nib_sample_params){.typical_p = 1,
                                    .repeat_last_n = -1,
                                    .greedy = pick(&r, 8) == 0,
                                    .temperature = temperatures[pick(&r, 8)],
                                    .top_k = top_k[pick(&r, 14)],
                                    .top_p = top_p[pick(&r, 12)],
                                    .min_p = min_p[pick(&r, 8)],
                                    .repetition_penalty = penalties[pick(&r, 8)],
                                    .cdf = pick(&r, 3) == 0,
                                    .processed_logprobs = pick(&r, 2) == 0,
                                    .banned = s->banned,
                                    .n_banned = V > 500 ? pick(&r, 2) * N_BANNED
                                                : V > 5 ? pick(&r, 2) * 3
                                                        : 0,
                                    .seed = r};
    s->place = (nib_sample_place){.history = s->history,
                                  .n_history = pick(&r, 3) * N_HISTORY / 2,
                                  .position = (uint32_t)pick(&r, 1000),
                                  .stream = (uint32_t)pick(&r, 4)};
}

static void assert_equals_plain(nib_sampler *s, const setting *now, uint64_t seed, int64_t V) {
    memcpy(copy, logits, (size_t)V * sizeof *copy);
    nib_choice want = plain_choose(&kept, &now->params, &now->place, logits, V);
    nib_choice got = choose_from(s, &now->params, &now->place, logits);
    if (memcmp(&got, &want, sizeof got) != 0) {
        const nib_sample_params *p = &now->params;
        fail_msg(
            "V %lld, seed %llu (greedy %d, T %g, top_k %lld, top_p %g, min_p %g, penalty %g, cdf %d, processed %d): "
            "token %d %.9g, expected %d %.9g",
            (long long)V, (unsigned long long)seed, p->greedy, p->temperature, (long long)p->top_k, p->top_p, p->min_p,
            p->repetition_penalty, p->cdf, p->processed_logprobs, got.id, (double)got.logprob, want.id,
            (double)want.logprob);
    }
    assert_memory_equal(copy, logits, (size_t)V * sizeof *copy);
}

static bool all_masked(const setting *now, int64_t V) {
    plain_process(&kept, &now->params, &now->place, logits, V);
    for (int64_t i = 0; i < V; i++) {
        if (kept.l[i] > -INFINITY) {
            return false;
        }
    }
    return true;
}

/* One sampler for all settings: nothing of one call is left for the next. On every rung. */
static void every_choice_equals_the_plain_form_bit_for_bit(void **state) {
    (void)state;
    static const struct {
        int64_t V;
        uint64_t n;
    } cases[] = {{1, 200},   {2, 200},     {5, 500},    {255, 400},  {256, 400},
                 {257, 400}, {1000, 1000}, {5000, 500}, {50257, 60}, {PLAIN_MOST, 12}};
    for (size_t k = 0; nib_kernels_name(k) != NULL; k++) {
        const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(k));
        for (size_t i = 0; kernels != NULL && i < sizeof cases / sizeof *cases; i++) {
            nib_sampler *s;
            assert_int_equal(nib_sampler_new(&s, cases[i].V, kernels, NULL), NIB_OK);
            for (uint64_t seed = 0; seed < cases[i].n; seed++) {
                setting now;
                make_setting(&now, seed, cases[i].V);
                fill_logits((logit_kind)(seed % N_KINDS), seed, cases[i].V);
                if (!all_masked(&now, cases[i].V)) {
                    assert_equals_plain(s, &now, seed, cases[i].V);
                }
            }
            nib_sampler_free(s);
        }
    }
}

/* ---- distributions ---- */

enum { DRAWS = 100000, TABLE = 300 };

/* 300 tokens over two blocks, peaked, with ties and holes. */
static void fill_table(void) {
    fill_bell(2, TABLE, 2);
    for (int i = 0; i < TABLE; i += 7) {
        logits[i] = -INFINITY;
    }
    logits[50] = logits[290] = 5;
    logits[3] = 6;
    logits[299] = 4.5f;
    logits[100] = logits[101] = logits[102] = 3;
}

static void assert_distribution(nib_sample_params params, uint64_t seed, const nib_sample_place *where,
                                uint32_t draws) {
    params.seed = seed;
    static size_t count[TABLE];
    static double expected[TABLE];
    nib_sampler *s = new_sampler(TABLE);
    plain_filter(&kept, &params, where, logits, TABLE);
    double total = 0;
    for (int i = 0; i < TABLE; i++) {
        expected[i] = nib_exp((double)kept.x[i]);
        total += expected[i];
    }
    for (int i = 0; i < TABLE; i++) {
        expected[i] *= draws / total;
    }
    for (int cdf = 0; cdf < 2; cdf++) {
        params.cdf = cdf == 1;
        memset(count, 0, sizeof count);
        nib_sample_place place = *where;
        for (place.position = 0; place.position < draws; place.position++) {
            count[choose_from(s, &params, &place, logits).id]++;
        }
        size_t freedom = 0;
        double chi = chi_square(&freedom, count, expected, TABLE);
        print_message("%s: chi-square %.1f, %zu degrees of freedom, bound %.1f\n", cdf ? "cdf" : "noise", chi, freedom,
                      chi_bound(freedom));
        assert_true(chi < chi_bound(freedom));
    }
    nib_sampler_free(s);
}

static void draws_follow_the_exact_distribution(void **state) {
    (void)state;
    static const int32_t history[] = {3, 50, 3, 100, 200, 201, 299, 3}, banned[] = {3, 290};
    const nib_sample_place empty = {.stream = 1}, with = {.history = history, .n_history = 8, .stream = 2};
    nib_sample_params ban = neutral, penalty = neutral, all = with_filters(1.5, 60, 0.9, 0.03);
    ban.banned = banned;
    ban.n_banned = 2;
    penalty.repetition_penalty = 1.4;
    all.repetition_penalty = 1.2;
    fill_table();
    assert_distribution(neutral, 1, &empty, DRAWS);
    assert_distribution(with_filters(0.7, 0, 1, 0), 2, &empty, DRAWS);
    assert_distribution(with_filters(1.5, 0, 1, 0), 3, &empty, DRAWS);
    assert_distribution(with_filters(1, 20, 1, 0), 4, &empty, DRAWS);
    assert_distribution(with_filters(1, 0, 0.8, 0), 5, &empty, DRAWS);
    assert_distribution(with_filters(1, 0, 1, 0.04), 6, &empty, DRAWS);
    assert_distribution(ban, 7, &empty, DRAWS);
    assert_distribution(penalty, 8, &with, DRAWS);
    assert_distribution(all, 9, &with, DRAWS);
}

static void every_seed_draws_the_same_distribution(void **state) {
    (void)state;
    static const uint64_t seeds[] = {0, 1, 0xffffffffull, UINT64_MAX};
    const nib_sample_place empty = {.stream = 0};
    fill_table();
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        assert_distribution(neutral, seeds[i], &empty, DRAWS / 5);
    }
}

/* ---- what a choice depends on ---- */

static void the_row_of_a_batch_and_earlier_calls_do_not_matter(void **state) {
    (void)state;
    fill_table();
    nib_sampler *s = new_sampler(TABLE);
    nib_choice forth[64];
    for (uint32_t i = 0; i < 64; i++) {
        nib_sample_params params = with_filters(1, i % 2 * 30, 1 - i % 3 * 0.05, 0);
        params.seed = 1;
        forth[i] = choose_from(s, &params, &(nib_sample_place){.position = i / 8, .stream = i % 8, .row = i}, logits);
    }
    for (uint32_t i = 64; i-- > 0;) {
        nib_sample_params params = with_filters(1, i % 2 * 30, 1 - i % 3 * 0.05, 0);
        params.seed = 1;
        nib_choice again =
            choose_from(s, &params, &(nib_sample_place){.position = i / 8, .stream = i % 8, .row = 7}, logits);
        assert_memory_equal(&again, &forth[i], sizeof again);
    }
    nib_sampler_free(s);
}

/* Two independent draws over 300 equal tokens agree once in 300: 3,000 pairs, 10 expected, over 27 once in 10^5. */
static void streams_positions_and_seeds_choose_differently(void **state) {
    (void)state;
    for (int i = 0; i < TABLE; i++) {
        logits[i] = 0;
    }
    nib_sampler *s = new_sampler(TABLE);
    for (int cdf = 0; cdf < 2; cdf++) {
        nib_sample_params params = neutral;
        params.seed = 5;
        params.cdf = cdf == 1;
        nib_sample_params other = params;
        other.seed = 6;
        int same[3] = {0, 0, 0};
        for (uint32_t i = 0; i < 3000; i++) {
            int32_t id = choose_from(s, &params, &(nib_sample_place){.position = 2 * i}, logits).id;
            same[0] += id == choose_from(s, &params, &(nib_sample_place){.position = 2 * i, .stream = 1}, logits).id;
            same[1] += id == choose_from(s, &params, &(nib_sample_place){.position = 2 * i + 1}, logits).id;
            same[2] += id == choose_from(s, &other, &(nib_sample_place){.position = 2 * i}, logits).id;
        }
        for (int i = 0; i < 3; i++) {
            assert_in_range(same[i], 0, 27);
        }
    }
    nib_sampler_free(s);
}

/* ---- failures ---- */

static void assert_refused(const nib_sample_params *params, const float *l, int64_t V, const char *words[3]) {
    nib_sampler *s = new_sampler(V);
    nib_choice choice = {.id = -7, .logprob = -7};
    nib_error err = {NIB_OK, ""};
    const nib_sample_place place = {.position = 12, .row = 34};
    assert_int_equal(nib_sampler_choose(&choice, s, params, &place, l, &err), NIB_ENUMERIC);
    assert_int_equal(err.code, NIB_ENUMERIC);
    assert_non_null(strstr(err.message, "row 34"));
    assert_non_null(strstr(err.message, "position 12"));
    for (int i = 0; i < 3; i++) {
        if (strstr(err.message, words[i]) == NULL) {
            fail_msg("\"%s\" lacks \"%s\"", err.message, words[i]);
        }
    }
    assert_int_equal(choice.id, -7);
    /* and the sampler is as good as new */
    const nib_sample_place next = {.position = 1};
    fill_bell(1, V, 1);
    nib_choice a = choose_from(s, &neutral, &next, logits), b = choose(&neutral, &next, logits, V);
    assert_memory_equal(&a, &b, sizeof a);
    nib_sampler_free(s);
}

static void nan_and_infinity_are_refused_with_row_position_and_token(void **state) {
    (void)state;
    static const int64_t places[] = {0, 500, 999};
    static float bad[1000];
    for (size_t i = 0; i < 3 * 2 * 3; i++) {
        fill_bell(i, 1000, 3);
        memcpy(bad, logits, sizeof bad);
        int64_t where = places[i % 3];
        bad[where] = i / 3 % 2 == 0 ? NAN : INFINITY;
        char token[32];
        (void)snprintf(token, sizeof token, "token %lld is", (long long)where);
        const char *words[3] = {token, i / 3 % 2 == 0 ? "nan" : "inf", "expected"};
        nib_sample_params params = neutral;
        params.greedy = i / 6 == 0;
        params.processed_logprobs = i / 6 == 1;
        assert_refused(&params, bad, 1000, words);
    }
}

static void without_a_token_that_can_be_drawn_there_is_an_error(void **state) {
    (void)state;
    static float none[300];
    static int32_t all[300];
    static float some[300];
    for (int i = 0; i < 300; i++) {
        none[i] = -INFINITY;
        some[i] = 1;
        all[i] = 299 - i;
    }
    const char *words[3] = {"300 tokens", "banned", "expected"};
    for (int i = 0; i < 4; i++) {
        nib_sample_params params = neutral;
        params.greedy = i % 2 == 0;
        params.processed_logprobs = i / 2 == 0;
        assert_refused(&params, none, 300, words);
        params.banned = all;
        params.n_banned = 300;
        assert_refused(&params, some, 300, words);
    }
}

static void a_penalty_that_overflows_is_an_error(void **state) {
    (void)state;
    nib_sampler *s = new_sampler(3);
    nib_choice choice;
    nib_error err;
    nib_sample_params params = neutral;
    params.repetition_penalty = 1e-6;
    const int32_t history[] = {1};
    nib_sample_place place = {.history = history, .n_history = 1, .position = 2};
    const float large[3] = {1, 1e35f, 2};
    assert_int_equal(nib_sampler_choose(&choice, s, &params, &place, large, &err), NIB_ENUMERIC);
    assert_non_null(strstr(err.message, "penalised logit of token 1 is inf"));
    nib_sampler_free(s);
}

static void a_new_sampler_reports_each_allocation_that_fails(void **state) {
    (void)state;
    nib_sampler *s = NULL;
    nib_status status = NIB_ENOMEM;
    size_t n = 0;
    while (status != NIB_OK) {
        nib_error err = {NIB_OK, ""};
        nib_alloc_fail_at(++n);
        status = nib_sampler_new(&s, 1000, nib_kernels_find("auto"), &err);
        nib_alloc_fail_at(0);
        assert_true(status == NIB_OK || (status == NIB_ENOMEM && err.code == NIB_ENOMEM && s == NULL));
    }
    assert_true(n > 2);
    nib_sampler_free(s);
    nib_sampler_free(NULL);
}

static void a_vocabulary_out_of_range_is_refused(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, -1, (int64_t)INT32_MAX + 1, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        nib_sampler *s;
        assert_int_equal(nib_sampler_new(&s, sizes[i], nib_kernels_find("auto"), NULL), NIB_EINVAL);
        assert_null(s);
    }
}

static void a_choice_allocates_nothing(void **state) {
    (void)state;
    nib_sampler *s = new_sampler(5000);
    nib_alloc_fail_at(0);
    for (uint64_t seed = 0; seed < 100; seed++) {
        setting now;
        make_setting(&now, seed, 5000);
        fill_logits(BELL, seed, 5000);
        (void)choose_from(s, &now.params, &now.place, logits);
    }
    assert_int_equal(nib_alloc_count(), 0);
    nib_sampler_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_p_keeps_the_smallest_set_that_reaches_it),
        cmocka_unit_test(top_p_stops_where_the_mass_is_exactly_reached),
        cmocka_unit_test(min_p_is_relative_to_the_best_and_keeps_equality),
        cmocka_unit_test(top_k_keeps_exactly_k_and_none_above_the_vocabulary),
        cmocka_unit_test(ties_go_to_the_lower_id),
        cmocka_unit_test(each_filter_sees_the_survivors_of_the_one_before),
        cmocka_unit_test(filters_see_the_tempered_distribution),
        cmocka_unit_test(repetition_divides_positive_and_multiplies_negative_logits_once),
        cmocka_unit_test(a_penalty_of_one_changes_no_bit),
        cmocka_unit_test(banned_tokens_are_never_drawn),
        cmocka_unit_test(logits_of_minus_infinity_are_never_drawn),
        cmocka_unit_test(tiny_temperatures_equal_greedy),
        cmocka_unit_test(raw_logprobs_are_of_the_untouched_logits),
        cmocka_unit_test(a_greedy_processed_logprob_is_over_all_tokens_that_are_not_banned),
        cmocka_unit_test(every_choice_equals_the_plain_form_bit_for_bit),
        cmocka_unit_test(draws_follow_the_exact_distribution),
        cmocka_unit_test(every_seed_draws_the_same_distribution),
        cmocka_unit_test(the_row_of_a_batch_and_earlier_calls_do_not_matter),
        cmocka_unit_test(streams_positions_and_seeds_choose_differently),
        cmocka_unit_test(nan_and_infinity_are_refused_with_row_position_and_token),
        cmocka_unit_test(without_a_token_that_can_be_drawn_there_is_an_error),
        cmocka_unit_test(a_penalty_that_overflows_is_an_error),
        cmocka_unit_test(a_new_sampler_reports_each_allocation_that_fails),
        cmocka_unit_test(a_vocabulary_out_of_range_is_refused),
        cmocka_unit_test(a_choice_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
