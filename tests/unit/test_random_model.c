/* Models with random weights: their sizes, overrides and refusals, and that the same seed gives the same bits on every
 * machine and rung: hashes of what each writes are kept here. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "model/model.h"
#include "model/random_model.h"
#include "table_model.h"

/* ---- sizes ---- */

static nib_random_spec parse(const char *name, const char *overrides) {
    nib_random_spec spec;
    nib_error err;
    must(nib_random_parse(&spec, name, strlen(name), overrides, strlen(overrides), true, &err), &err);
    return spec;
}

static void the_names_have_their_sizes(void **state) {
    (void)state;
    const struct {
        const char *name;
        int64_t V, D, L, H, K, F, context;
        bool tied;
        nib_norm_kind norm;
        nib_norm_place place;
        nib_position_kind position;
        nib_ffn_kind ffn;
    } cases[] = {
        {"llama-tiny", 256, 64, 2, 4, 2, 128, 128, false, NIB_NORM_RMS, NIB_NORM_BEFORE, NIB_POSITION_ROPE_PAIRS,
         NIB_FFN_SILU_GATED},
        {"qwen2-tiny", 256, 64, 2, 4, 2, 128, 128, true, NIB_NORM_RMS, NIB_NORM_BEFORE, NIB_POSITION_ROPE_HALVES,
         NIB_FFN_SILU_GATED},
        {"qwen3-tiny", 256, 64, 2, 4, 2, 128, 128, true, NIB_NORM_RMS, NIB_NORM_BEFORE, NIB_POSITION_ROPE_HALVES,
         NIB_FFN_SILU_GATED},
        {"gpt2-tiny", 256, 64, 2, 4, 4, 256, 128, true, NIB_NORM_LAYER, NIB_NORM_BEFORE, NIB_POSITION_LEARNED,
         NIB_FFN_GELU_TANH},
        {"gpt-config", 50257, 768, 12, 12, 12, 3072, 1024, true, NIB_NORM_LAYER, NIB_NORM_BEFORE,
         NIB_POSITION_SINUSOIDAL, NIB_FFN_GELU_ERF},
        {"gpt-tiny", 256, 64, 2, 2, 2, 128, 128, true, NIB_NORM_LAYER, NIB_NORM_BEFORE, NIB_POSITION_SINUSOIDAL,
         NIB_FFN_GELU_ERF},
        {"gpt2-small", 50257, 768, 12, 12, 12, 3072, 1024, true, NIB_NORM_LAYER, NIB_NORM_BEFORE, NIB_POSITION_LEARNED,
         NIB_FFN_GELU_TANH},
        {"gpt", 40478, 768, 12, 12, 12, 3072, 512, true, NIB_NORM_LAYER, NIB_NORM_AFTER, NIB_POSITION_LEARNED,
         NIB_FFN_GELU_TANH},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_random_spec spec = parse(cases[i].name, "");
        const nib_config *c = &spec.config;
        const int64_t got[] = {c->V, c->D, c->L, c->H, c->K, c->F, c->context};
        const int64_t expected[] = {cases[i].V, cases[i].D, cases[i].L,      cases[i].H,
                                    cases[i].K, cases[i].F, cases[i].context};
        assert_memory_equal(got, expected, sizeof got);
        assert_int_equal(spec.tied, cases[i].tied);
        assert_int_equal(c->arch->norm, cases[i].norm);
        assert_int_equal(c->arch->place, cases[i].place);
        assert_int_equal(c->arch->position, cases[i].position);
        assert_int_equal(c->arch->ffn, cases[i].ffn);
        assert_int_equal(spec.seed, 0);
    }
}

static void overrides_change_what_they_name(void **state) {
    (void)state;
    nib_random_spec page = parse("gpt-config", "d_model=256,n_heads=4,n_layers=4");
    assert_int_equal(page.config.V, 50257);
    assert_int_equal(page.config.D, 256);
    assert_int_equal(page.config.H, 4);
    assert_int_equal(page.config.K, 4);
    assert_int_equal(page.config.L, 4);
    assert_int_equal(page.config.F, 1024);
    nib_random_spec all =
        parse("llama-tiny", "vocab_size=11,d_model=24,n_heads=6,n_kv_heads=3,n_layers=5,d_ff=7,max_seq_len=9,"
                            "seed=18446744073709551615");
    const int64_t got[] = {all.config.V, all.config.D, all.config.H,      all.config.K,
                           all.config.L, all.config.F, all.config.context};
    const int64_t expected[] = {11, 24, 6, 3, 5, 7, 9};
    assert_memory_equal(got, expected, sizeof got);
    assert_true(all.seed == UINT64_MAX);
}

/* ---- refusals ---- */

static void refused(const char *name, const char *overrides, nib_status expected, const char *texts) {
    nib_model *model = (nib_model *)(uintptr_t)1;
    nib_error err;
    must_fail(nib_model_random(&model, name, overrides, 0, NULL, &err), expected, &err, texts);
    assert_null(model);
    char path[256];
    (void)snprintf(path, sizeof path, "random:%s,%s", name, overrides);
    model = (nib_model *)(uintptr_t)1;
    must_fail(nib_model_open(&model, path, NULL, &err), expected, &err, texts);
    assert_null(model);
}

static void unknown_names_and_keys_are_refused(void **state) {
    (void)state;
    refused("llama", "d_ff=8", NIB_EINVAL, "\"llama\"|llama-tiny, qwen2-tiny|gpt-tiny, gpt2-small or gpt");
    refused("", "d_ff=8", NIB_EINVAL, "\"\"|llama-tiny");
    refused("llama-tiny", "width=3", NIB_EINVAL, "\"width=3\"|vocab_size");
    refused("llama-tiny", "d_ff", NIB_EINVAL, "\"d_ff\"|key=value");
    refused("llama-tiny", "d_ff=8,,n_layers=1", NIB_EINVAL, "\"\"|key=value");
    refused("llama-tiny", " d_ff=8", NIB_EINVAL, "\" d_ff=8\"");
    nib_model *model;
    nib_error err;
    must_fail(nib_model_random(&model, "llama-tiny", "seed=3", 0, NULL, &err), NIB_EINVAL, &err, "seed=3");
    must_fail(nib_model_open(&model, "random:llama-tiny,seed=-1", NULL, &err), NIB_EINVAL, &err, "seed=-1");
    must_fail(nib_model_open(&model, "random:", NULL, &err), NIB_EINVAL, &err, "\"\"");
    must_fail(nib_model_random(&model, NULL, NULL, 0, NULL, &err), NIB_EINVAL, &err, "name");
}

static void impossible_sizes_are_refused(void **state) {
    (void)state;
    const char *const keys[] = {"vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_seq_len"};
    const char *const values[] = {"0", "-1", "1.5", "", "x", "9223372036854775808", "9223372036854775807"};
    const char *const names[] = {"llama-tiny", "gpt-config"};
    for (size_t n = 0; n < 2; n++) {
        for (size_t i = 0; i < 6; i++) {
            for (size_t j = 0; j < 7; j++) {
                char pair[64];
                (void)snprintf(pair, sizeof pair, "%s=%s", keys[i], values[j]);
                refused(names[n], pair, NIB_EINVAL, "");
            }
        }
    }
    refused("llama-tiny", "d_model=66", NIB_EINVAL, "d_model 66|n_heads 4");
    refused("llama-tiny", "n_kv_heads=3", NIB_EINVAL, "kv head count: 3");
    refused("llama-tiny", "d_model=20", NIB_EINVAL, "rope dimension count: 5");
    refused("llama-tiny", "n_layers=4097", NIB_EINVAL, "block count: 4097|1 to 4096");
}

static void huge_models_are_refused_without_touching_memory(void **state) {
    (void)state;
    nib_model_memory memory = {.size = sizeof memory};
    nib_error err;
    const char *huge = "d_model=1048576,n_heads=64,n_layers=4096,d_ff=4194304,max_seq_len=1024";
    refused("gpt2-small", huge, NIB_ENOMEM, "weights of a random model");
    refused("gpt-config", "vocab_size=268435456,d_model=1048576,n_heads=64", NIB_ENOMEM, "weights of a random model");
    must(nib_model_estimate(&memory, "random:gpt-config,vocab_size=268435456,d_model=1048576,n_heads=64", &err), &err);
    assert_true(memory.weights > (size_t)1 << 50);
}

/* ---- bits ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Of the ids that n greedy tokens give after a prompt of three, and of the bits of the finished text's logits. */
static uint64_t hash_of(const char *path, int cpu, size_t n) {
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    nib_generate_options generate = NIB_GENERATE_OPTIONS_INIT;
    nib_model *model;
    nib_error err;
    const int32_t prompt[] = {1, 2, 3};
    options.cpu = cpu;
    options.compute = NIB_COMPUTE_EXACT; /* a cache of binary32 */
    must(nib_model_open(&model, path, &options, &err), &err);
    nib_session *session = new_session(model);
    generate.do_sample = NIB_DO_SAMPLE_NO;
    generate.max_new_tokens = (int64_t)n;
    nib_result *result = generate_one(session, prompt, 3, &generate);
    assert_int_equal(result->B, 1);
    assert_int_equal(result->T, 3 + n);
    size_t V = (size_t)model->config.V, T = result->T;
    float *logits = malloc(T * V * sizeof(float));
    assert_non_null(logits);
    must(nib_session_logits(logits, session, result->ids, T, 0, &err), &err);
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, result->ids, T * sizeof(int32_t));
    hash = hash_bytes(hash, logits, T * V * sizeof(float));
    free(logits);
    nib_result_free(result);
    nib_session_free(session);
    nib_model_free(model);
    return hash;
}

static const struct {
    const char *path;
    size_t n;
    uint64_t hash;
} kept[] = {
    {"random:llama-tiny", 20, 0xb1f92b6ac994a197},
    {"random:llama-tiny,seed=18446744073709551615", 20, 0xdb0aa9b65ab734b2},
    {"random:qwen2-tiny", 20, 0x2f741baff8f8cda8},
    {"random:qwen3-tiny", 20, 0xbdc12888c1382a4c},
    {"random:gpt2-tiny", 20, 0xe4a9f06a12e5d230},
    {"random:gpt-tiny,seed=1", 20, 0x7dc55de532f4cfe7},
    {"random:gpt-config,vocab_size=500,d_model=64,n_heads=4,n_layers=4", 20, 0x1d0754901f332918},
    {"random:gpt2-small,vocab_size=500,d_model=48,n_heads=4,n_layers=3", 10, 0xde8d66ed8e932a2d},
    {"random:gpt,vocab_size=500,d_model=48,n_heads=4,n_layers=3", 5, 0x10ed7f9a37a8cc67},
    {"random:llama-tiny,d_model=72,n_heads=6,n_kv_heads=1,d_ff=100,max_seq_len=300,vocab_size=1000", 250,
     0x147d4c29d7d27be6},
};

static void what_a_seed_writes_stays_the_same_on_every_rung(void **state) {
    (void)state;
    bool same = true;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        for (int cpu = NIB_CPU_BASE; nib_kernels_name((size_t)cpu - 1) != NULL; cpu++) {
            if (nib_kernels_find(nib_kernels_name((size_t)cpu - 1)) == NULL) {
                continue;
            }
            uint64_t hash = hash_of(kept[i].path, cpu, kept[i].n);
            if (hash != kept[i].hash) {
                print_error("%s, cpu %d: 0x%016" PRIx64 ", kept 0x%016" PRIx64 "\n", kept[i].path, cpu, hash,
                            kept[i].hash);
                same = false;
            }
        }
    }
    assert_true(same);
}

static void the_full_vocabularies_generate(void **state) {
    (void)state;
    (void)hash_of("random:gpt2-small,n_layers=1", NIB_CPU_AUTO, 10);
    (void)hash_of("random:gpt,n_layers=1", NIB_CPU_AUTO, 5);
}

static void seeds_differ_and_both_ways_of_opening_agree(void **state) {
    (void)state;
    const uint64_t seeds[] = {0, 1, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX};
    nib_model *models[5], *opened;
    nib_error err;
    for (size_t i = 0; i < 5; i++) {
        char path[64];
        must(nib_model_random(&models[i], "llama-tiny", NULL, seeds[i], NULL, &err), &err);
        (void)snprintf(path, sizeof path, "random:llama-tiny,seed=%" PRIu64, seeds[i]);
        must(nib_model_open(&opened, path, NULL, &err), &err);
        size_t n = models[i]->weights.n_vectors;
        assert_int_equal(opened->weights.n_vectors, n);
        assert_memory_equal(opened->weights.vectors, models[i]->weights.vectors, n * sizeof(float));
        nib_model_free(opened);
        for (size_t j = 0; j < i; j++) {
            size_t equal = 0;
            for (size_t k = 0; k < n; k++) {
                equal += models[i]->weights.vectors[k] == models[j]->weights.vectors[k];
            }
            assert_true(equal * 1000 < n);
        }
    }
    for (size_t i = 0; i < 5; i++) {
        nib_model_free(models[i]);
    }
}

/* Uniform weights of standard deviation 1/sqrt(inputs); norms within 0.9 to 1.1. The bound on the mean is 5 standard
 * errors; a variance estimated from n uniform values has a relative error of sqrt(0.8 / n). */
static void weights_have_the_documented_spread(void **state) {
    (void)state;
    nib_model *model;
    nib_error err;
    must(nib_model_random(&model, "llama-tiny", NULL, 3, NULL, &err), &err);
    const float *w = model->weights.embedding.data;
    double n = 256 * 64, sum = 0, squares = 0;
    for (size_t i = 0; i < 256 * 64; i++) {
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
    }
    double variance = squares / n;
    assert_true(sum / n < 5 * 0.125 / 128 && sum / n > -5 * 0.125 / 128); /* sqrt(n) is 128 */
    assert_true(variance * 64 > 0.96 && variance * 64 < 1.04);
    for (size_t i = 0; i < 64; i++) {
        float norm = model->weights.layers[0].attn_norm.weight[i];
        assert_true(norm >= 0.9f && norm <= 1.1f);
    }
    nib_model_free(model);
}

static void its_bytes_are_what_the_estimate_says(void **state) {
    (void)state;
    const char *const paths[] = {"random:llama-tiny",
                                 "random:gpt-tiny",
                                 "random:qwen2-tiny",
                                 "random:qwen3-tiny",
                                 "random:gpt2-small,vocab_size=500,d_model=48,n_heads=4,n_layers=3",
                                 "random:gpt,vocab_size=500,d_model=48,n_heads=4,n_layers=3"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        nib_model *model;
        nib_error err;
        nib_model_memory memory = {.size = sizeof memory};
        must(nib_model_estimate(&memory, paths[i], &err), &err);
        must(nib_model_open(&model, paths[i], NULL, &err), &err);
        nib_model_info info = {.size = sizeof info};
        must(nib_model_get_info(&info, model, &err), &err);
        assert_true(info.n_params > 0);
        assert_int_equal(info.weight_bytes, (size_t)info.n_params * sizeof(float));
        assert_true(info.weight_bytes <= memory.weights && memory.weights <= 2 * info.weight_bytes);
        assert_true(model->weights.n_vectors <= model->weights.cap_vectors);
        assert_int_equal(memory.kv_per_token, info.L * info.K * info.head_dim * 2 * 2);
        assert_null(nib_model_tokenizer(model));
        assert_int_equal(info.start_id, -1);
        assert_int_equal(info.end_id, -1);
        nib_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_names_have_their_sizes),
        cmocka_unit_test(overrides_change_what_they_name),
        cmocka_unit_test(unknown_names_and_keys_are_refused),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(huge_models_are_refused_without_touching_memory),
        cmocka_unit_test(what_a_seed_writes_stays_the_same_on_every_rung),
        cmocka_unit_test(the_full_vocabularies_generate),
        cmocka_unit_test(seeds_differ_and_both_ways_of_opening_agree),
        cmocka_unit_test(weights_have_the_documented_spread),
        cmocka_unit_test(its_bytes_are_what_the_estimate_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
