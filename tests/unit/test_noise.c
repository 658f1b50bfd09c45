/* Shared noise: its values by the rule written out once more, the draw against all tokens one by one, its distribution,
 * what it depends on, and a committed table of draws that another program made. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/maths.h"
#include "base/random.h"
#include "chi.h"
#include "decode/noise.h"

enum { MOST = 262144, BLOCKS = MOST / 256 };

static float logits[MOST], block_max[BLOCKS];
static double bound[BLOCKS], expos[MOST];

/* ---- the rule, once more ---- */

static void words(uint32_t w[4], const nib_noise *noise, uint32_t index, uint32_t purpose) {
    const uint32_t counter[4] = {index, noise->position, noise->stream, purpose};
    nib_philox(w, counter, noise->seed);
}

static double plain_expo(const nib_noise *noise, uint32_t t) {
    uint32_t w[4], high[4], low[4];
    words(w, noise, t >> 8, 0);
    double M = nib_expo((uint64_t)w[0] << 32 | w[1]) / 256;
    if ((t & 255) == (w[2] & 255)) {
        return M;
    }
    words(high, noise, (t >> 8) * 64 + (t & 63), 1);
    words(low, noise, (t >> 8) * 64 + (t & 63), 2);
    return M + nib_expo((uint64_t)high[t >> 6 & 3] << 32 | low[t >> 6 & 3]);
}

static void fill_expos(const nib_noise *noise, int32_t V) {
    for (int32_t t = 0; t < V; t++) {
        expos[t] = plain_expo(noise, (uint32_t)t);
    }
}

/* Every token's score, no bound anywhere. */
static int32_t brute_force(int32_t V, double T) {
    int32_t best = -1;
    double best_score = 0;
    for (int32_t t = 0; t < V; t++) {
        if (logits[t] == -INFINITY) {
            continue;
        }
        double score = (double)logits[t] - T * nib_log(expos[t]);
        if (best < 0 || score > best_score) {
            best = t;
            best_score = score;
        }
    }
    return best;
}

static void find_block_max(int32_t V) {
    for (int32_t b = 0; b < (V + 255) / 256; b++) {
        block_max[b] = -INFINITY;
    }
    for (int32_t t = 0; t < V; t++) {
        block_max[t / 256] = logits[t] > block_max[t / 256] ? logits[t] : block_max[t / 256];
    }
}

static int32_t draw(const nib_noise *noise, int32_t V, double T) {
    return nib_noise_draw(NULL, bound, noise, logits, block_max, V, T);
}

/* ---- logits ---- */

typedef enum logit_kind { BELL, TIES, EQUAL, MASKED, LARGE, ONE_LEFT, N_KINDS } logit_kind;

static float bell(uint64_t seed, int32_t t) {
    double sum = 0;
    for (uint64_t i = 0; i < 12; i++) {
        sum += (double)nib_mix64(seed + i, (uint64_t)t) * 0x1p-64;
    }
    return (float)((sum - 6) * 3);
}

static float make_logit(logit_kind kind, uint64_t seed, int32_t t, int32_t V) {
    uint64_t r = nib_mix64(seed, (uint64_t)t);
    switch (kind) {
    case TIES: return (float)(r >> 61);
    case EQUAL: return -7.25f;
    case MASKED: return r % 4 != 0 && t != V / 2 ? -INFINITY : bell(seed, t);
    case LARGE: return bell(seed, t) * 1e35f;
    case ONE_LEFT: return t == V - 1 ? -100.0f : -INFINITY;
    default: return bell(seed, t);
    }
}

static void fill_logits(logit_kind kind, uint64_t seed, int32_t V) {
    for (int32_t t = 0; t < V; t++) {
        logits[t] = make_logit(kind, seed, t, V);
    }
    find_block_max(V);
}

/* ---- values ---- */

static void a_tokens_noise_follows_the_rule(void **state) {
    (void)state;
    static const int32_t ids[] = {0, 1, 63, 64, 65, 127, 128, 191, 192, 255, 256, 257, 262143, INT32_MAX};
    for (uint64_t seed = 0; seed < 50; seed++) {
        nib_noise noise = {nib_mix64(1, seed), (uint32_t)seed * 77u, (uint32_t)(seed % 5)};
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
            double got = nib_noise_expo(&noise, ids[i]), want = plain_expo(&noise, (uint32_t)ids[i]);
            assert_memory_equal(&got, &want, sizeof got);
        }
    }
}

static void each_uniform_is_in_its_interval_and_belongs_to_its_purpose(void **state) {
    (void)state;
    static const nib_noise_purpose purposes[] = {NIB_NOISE_XTC, NIB_NOISE_ACCEPT, NIB_NOISE_RESIDUAL, NIB_NOISE_CDF};
    static const uint32_t numbers[] = {3, 4, 5, 7}; /* as the rule has them */
    for (uint32_t position = 0; position < 1000; position++) {
        nib_noise noise = {3, position, 1};
        for (int i = 0; i < 4; i++) {
            uint32_t w[4];
            words(w, &noise, 0, numbers[i]);
            double u = nib_noise_uniform(&noise, purposes[i]);
            assert_true(u > 0 && u <= 1);
            assert_true(u == ((double)((uint64_t)w[0] << 32 | w[1]) + 0.5) * 0x1p-64);
            assert_true(i == 0 || u != nib_noise_uniform(&noise, purposes[i - 1]));
        }
    }
}

/* 64 bins of equal probability of Exp(1): the token with the block's minimum and the others alike. */
static void the_noise_of_a_token_is_exponential(void **state) {
    (void)state;
    static const int32_t ids[] = {0, 70, 255, 1000};
    enum { N = 50000, BINS = 64 };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        size_t count[BINS] = {0};
        double expected[BINS];
        for (uint32_t position = 0; position < N; position++) {
            nib_noise noise = {11, position, 0};
            double u = nib_exp(-nib_noise_expo(&noise, ids[i]));
            size_t bin = (size_t)(u * BINS);
            count[bin < BINS ? bin : BINS - 1]++;
        }
        for (int b = 0; b < BINS; b++) {
            expected[b] = (double)N / BINS;
        }
        assert_true(chi_fits(count, expected, BINS));
    }
}

/* The uniforms of two tokens of a block, which share its minimum, fill an 8 x 8 table evenly. */
static void the_noises_of_two_tokens_of_a_block_are_independent(void **state) {
    (void)state;
    static const int32_t pairs[][2] = {{0, 1}, {3, 67}, {10, 255}, {0, 256}};
    enum { N = 50000, SIDE = 8 };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t count[SIDE * SIDE] = {0};
        double expected[SIDE * SIDE];
        for (uint32_t position = 0; position < N; position++) {
            nib_noise noise = {12, position, 0};
            size_t a = (size_t)(nib_exp(-nib_noise_expo(&noise, pairs[i][0])) * SIDE);
            size_t b = (size_t)(nib_exp(-nib_noise_expo(&noise, pairs[i][1])) * SIDE);
            count[(a < SIDE ? a : SIDE - 1) * SIDE + (b < SIDE ? b : SIDE - 1)]++;
        }
        for (int b = 0; b < SIDE * SIDE; b++) {
            expected[b] = (double)N / (SIDE * SIDE);
        }
        assert_true(chi_fits(count, expected, SIDE * SIDE));
    }
}

/* ---- the draw ---- */

static const double temperatures[] = {1e-40, 1e-5, 0.01, 0.3, 0.7, 1, 1.5, 4, 10, 1e6, 1e30};
enum { N_TEMPERATURES = sizeof temperatures / sizeof *temperatures };

static void assert_draws_equal_brute_force(int32_t V, uint64_t seed) {
    nib_noise noise = {seed, (uint32_t)(seed * 31 + (uint64_t)V), (uint32_t)(seed % 3)};
    fill_expos(&noise, V);
    for (int kind = 0; kind < N_KINDS; kind++) {
        fill_logits((logit_kind)kind, seed, V);
        for (int i = 0; i < N_TEMPERATURES; i++) {
            int32_t got = draw(&noise, V, temperatures[i]), want = brute_force(V, temperatures[i]);
            if (got != want) {
                print_error("V %d, seed %llu, kind %d, T %g: %d, expected %d\n", V, (unsigned long long)seed, kind,
                            temperatures[i], got, want);
            }
            assert_int_equal(got, want);
        }
    }
}

static void the_draw_equals_brute_force_over_all_tokens(void **state) {
    (void)state;
    static const struct {
        int32_t V;
        uint64_t seeds;
    } cases[] = {{1, 60},   {2, 60},   {5, 200},   {64, 60},   {65, 60}, {255, 60},
                 {256, 60}, {257, 60}, {1000, 60}, {50257, 4}, {MOST, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t seed = 0; seed < cases[i].seeds; seed++) {
            assert_draws_equal_brute_force(cases[i].V, seed);
        }
    }
}

static void when_every_token_is_masked_there_is_no_draw(void **state) {
    (void)state;
    for (int32_t t = 0; t < 300; t++) {
        logits[t] = -INFINITY;
    }
    find_block_max(300);
    nib_noise noise = {1, 2, 3};
    assert_int_equal(draw(&noise, 300, 1.0), -1);
}

static double blocks_opened(logit_kind kind) {
    fill_logits(kind, 5, MOST);
    int64_t sum = 0;
    for (uint32_t position = 0; position < 200; position++) {
        nib_noise noise = {5, position, 0};
        int64_t opened;
        assert_true(nib_noise_draw(&opened, bound, &noise, logits, block_max, MOST, 1.0) >= 0);
        sum += opened;
    }
    return (double)sum / 200;
}

/* Equal logits need the block of the smallest exponential alone. With independent normal ones (standard deviation 3)
 * each block's largest is above what it mostly draws: 87 of 1,024 blocks. The peaked head of a model needs fewer. */
static void few_blocks_are_opened(void **state) {
    (void)state;
    double equal = blocks_opened(EQUAL), normal = blocks_opened(BELL);
    print_message("blocks opened of %d: %.1f of equal logits, %.1f of normal ones\n", BLOCKS, equal, normal);
    assert_true(equal < 1.5);
    assert_true(normal < BLOCKS / 8);
}

/* ---- what it depends on ---- */

static void nothing_depends_on_the_vocabularys_size(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        nib_noise noise = {seed, 9, 0};
        fill_logits(BELL, seed, 700);
        int32_t few = draw(&noise, 700, 1.0);
        for (int32_t t = 700; t < 5000; t++) {
            logits[t] = t % 2 == 0 ? -INFINITY : -1e6f;
        }
        find_block_max(5000);
        assert_int_equal(draw(&noise, 5000, 1.0), few);
    }
}

/* Over equal logits two independent draws agree once in V. 4,000 pairs at V = 1000: 4 expected, more than 15 once in
 * 10^5. */
static void assert_independent(nib_noise a, nib_noise b) {
    fill_logits(EQUAL, 0, 1000);
    int same = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        same += draw(&a, 1000, 1.0) == draw(&b, 1000, 1.0);
        a.position += 2;
        b.position += 2;
    }
    assert_in_range(same, 0, 15);
}

static void streams_positions_and_seeds_draw_independently(void **state) {
    (void)state;
    assert_independent((nib_noise){1, 0, 0}, (nib_noise){1, 0, 1});
    assert_independent((nib_noise){1, 0, 0}, (nib_noise){1, 1, 0});
    assert_independent((nib_noise){1, 0, 0}, (nib_noise){2, 0, 0});
    assert_independent((nib_noise){1, 0, 0}, (nib_noise){1ull << 32, 0, 0});
    assert_independent((nib_noise){0, 0, 0}, (nib_noise){UINT64_MAX, 0, 0});
    assert_independent((nib_noise){1, 0, 1}, (nib_noise){1, 1, 0});
}

static void every_seed_gives_an_even_histogram(void **state) {
    (void)state;
    static const uint64_t seeds[] = {0, 1, 42, 0xffffffffull, 0x100000000ull, UINT64_MAX};
    enum { N = 50000, V = 300 };
    fill_logits(EQUAL, 0, V);
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        size_t count[V] = {0};
        double expected[V];
        for (uint32_t position = 0; position < N; position++) {
            nib_noise noise = {seeds[i], position, 0};
            count[draw(&noise, V, 1.0)]++;
        }
        for (int t = 0; t < V; t++) {
            expected[t] = (double)N / V;
        }
        assert_true(chi_fits(count, expected, V));
    }
}

/* ---- the committed table ---- */

static void draws_equal_the_committed_table(void **state) {
    (void)state;
    FILE *file = fopen(NIB_TEST_GOLDEN "/noise.txt", "r");
    assert_non_null(file);
    char line[256];
    int rows = 0;
    for (int32_t t = 0; t < MOST; t++) {
        logits[t] = (float)(nib_mix64(2026, (uint64_t)t) >> 40) * 0x1p-20f;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long long seed;
        unsigned position, stream;
        int V, id;
        double T;
        if (line[0] == '#') {
            continue;
        }
        assert_int_equal(sscanf(line, "%llu %u %u %d %lf %d", &seed, &position, &stream, &V, &T, &id), 6);
        assert_in_range(V, 1, MOST);
        find_block_max(V);
        nib_noise noise = {seed, position, stream};
        assert_int_equal(draw(&noise, V, T), id);
        rows++;
    }
    (void)fclose(file);
    assert_int_equal(rows, 218);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tokens_noise_follows_the_rule),
        cmocka_unit_test(each_uniform_is_in_its_interval_and_belongs_to_its_purpose),
        cmocka_unit_test(the_noise_of_a_token_is_exponential),
        cmocka_unit_test(the_noises_of_two_tokens_of_a_block_are_independent),
        cmocka_unit_test(the_draw_equals_brute_force_over_all_tokens),
        cmocka_unit_test(when_every_token_is_masked_there_is_no_draw),
        cmocka_unit_test(few_blocks_are_opened),
        cmocka_unit_test(nothing_depends_on_the_vocabularys_size),
        cmocka_unit_test(streams_positions_and_seeds_draw_independently),
        cmocka_unit_test(every_seed_gives_an_even_histogram),
        cmocka_unit_test(draws_equal_the_committed_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
