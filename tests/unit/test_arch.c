/* Architectures: the sizes read from a file's keys, what is missing, impossible or not there yet, and which keys a
 * windowed layer sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "gguf_writer.h"
#include "kernel/dtype.h"
#include "model/arch.h"
#include "table_model.h"

/* One key of a head, or one that replaces it: text when it is not NULL, else a number, whole unless real is set. */
typedef struct key {
    const char *name, *text;
    double number;
    bool real;
} key;

static const key gemma3_keys[] = {
    {"general.architecture", "gemma3", 0, false},
    {"gemma3.context_length", NULL, 64, false},
    {"gemma3.embedding_length", NULL, 16, false},
    {"gemma3.block_count", NULL, 12, false},
    {"gemma3.feed_forward_length", NULL, 8, false},
    {"gemma3.attention.head_count", NULL, 4, false},
    {"gemma3.attention.head_count_kv", NULL, 2, false},
    {"gemma3.attention.key_length", NULL, 8, false},
    {"gemma3.attention.sliding_window", NULL, 3, false},
    {"gemma3.rope.freq_base", NULL, 12345, true},
    {"gemma3.attention.layer_norm_rms_epsilon", NULL, 0.5, true},
};

static const key llama_keys[] = {
    {"general.architecture", "llama", 0, false},   {"llama.context_length", NULL, 64, false},
    {"llama.embedding_length", NULL, 16, false},   {"llama.block_count", NULL, 2, false},
    {"llama.feed_forward_length", NULL, 8, false}, {"llama.attention.head_count", NULL, 4, false},
};
enum { N_GEMMA3 = sizeof gemma3_keys / sizeof gemma3_keys[0], N_LLAMA = sizeof llama_keys / sizeof llama_keys[0] };

static void write_key(nib_test_gguf *w, const key *k) {
    if (k->text != NULL) {
        nib_test_gguf_string(w, k->name, k->text);
    } else if (k->real) {
        nib_test_gguf_f32(w, k->name, (float)k->number);
    } else {
        nib_test_gguf_u32(w, k->name, (uint32_t)k->number);
    }
}

/* The config of a head of keys [n] of which `change` replaces the one of its name, or is added; without the key `drop`. */
static nib_status read_config(nib_config *config, const key *keys, size_t n, const key *change, const char *drop,
                              const char *tensor, nib_error *err) {
    nib_test_gguf *w = nib_test_gguf_new(3);
    bool changed = change == NULL;
    for (size_t i = 0; i < n; i++) {
        bool same = change != NULL && strcmp(change->name, keys[i].name) == 0;
        if (drop == NULL || strcmp(drop, keys[i].name) != 0) {
            write_key(w, same ? change : &keys[i]);
        }
        changed = changed || same;
    }
    if (!changed) {
        write_key(w, change);
    }
    const uint64_t dims[] = {16, 10};
    nib_test_gguf_tensor(w, tensor, NIB_F32, 2, dims, NULL, 160 * sizeof(float));
    size_t len;
    unsigned char *file = nib_test_gguf_finish(&len, w);
    nib_gguf *gguf;
    must(nib_gguf_open_memory(&gguf, file, len, err), err);
    nib_status status = nib_config_read(config, gguf, err);
    nib_gguf_free(gguf);
    free(file);
    return status;
}

static void a_gemma3_head_is_read(void **state) {
    (void)state;
    nib_config c;
    nib_error err;
    must(read_config(&c, gemma3_keys, N_GEMMA3, NULL, NULL, "token_embd.weight", &err), &err);
    const int64_t got[] = {c.V, c.D, c.L, c.H, c.K, c.E, c.F, c.context, c.window, c.rope_dim};
    const int64_t expected[] = {10, 16, 12, 4, 2, 8, 8, 64, 3, 8};
    assert_memory_equal(got, expected, sizeof got);
    assert_string_equal(c.arch->name, "gemma3");
    assert_true(c.rope_base == 12345.0 && c.eps == 0.5f);
    assert_true(c.q_scale == 1.0f / __builtin_sqrtf(8.0f));
    assert_int_equal(nib_config_kv_elements(&c), 12 * 2 * 8 * 2);
    for (int64_t i = 0; i < 12; i++) {
        assert_int_equal(nib_config_is_global(&c, i), i == 5 || i == 11);
    }
    c.window = 0;
    assert_true(nib_config_is_global(&c, 0));
}

static void what_a_llama_head_leaves_out_has_its_default(void **state) {
    (void)state;
    nib_config c;
    nib_error err;
    must(read_config(&c, llama_keys, N_LLAMA, NULL, NULL, "token_embd.weight", &err), &err);
    assert_int_equal(c.K, 4);
    assert_int_equal(c.E, 4);
    assert_int_equal(c.rope_dim, 4);
    assert_int_equal(c.window, 0);
    assert_true(c.rope_base == 10000.0 && c.eps == 1e-5f);
    for (int64_t i = 0; i < 2; i++) {
        assert_true(nib_config_is_global(&c, i));
    }
    must(read_config(&c, gemma3_keys, N_GEMMA3, NULL, "gemma3.rope.freq_base", "token_embd.weight", &err), &err);
    assert_true(c.rope_base == 1000000.0);
}

static void the_largest_gemma3_scales_by_its_width_over_its_heads(void **state) {
    (void)state;
    nib_config c;
    nib_error err;
    const key layers = {"gemma3.block_count", NULL, 62, false};
    must(read_config(&c, gemma3_keys, N_GEMMA3, &layers, NULL, "token_embd.weight", &err), &err);
    assert_true(c.q_scale == 0.5f); /* 1/sqrt(16 / 4) */
}

static void a_missing_key_is_named(void **state) {
    (void)state;
    for (size_t i = 0; i < N_LLAMA; i++) {
        nib_config c;
        nib_error err;
        must_fail(read_config(&c, llama_keys, N_LLAMA, NULL, llama_keys[i].name, "token_embd.weight", &err),
                  NIB_EFORMAT, &err, llama_keys[i].name);
    }
    nib_config c;
    nib_error err;
    must_fail(read_config(&c, llama_keys, N_LLAMA, NULL, NULL, "other.weight", &err), NIB_EFORMAT, &err,
              "token_embd.weight: missing");
}

static void refused(const key *change, nib_status expected, const char *texts) {
    nib_config c;
    nib_error err;
    must_fail(read_config(&c, llama_keys, N_LLAMA, change, NULL, "token_embd.weight", &err), expected, &err, texts);
}

static void impossible_sizes_are_named(void **state) {
    (void)state;
    static const char *const names[] = {"llama.context_length",       "llama.embedding_length",
                                        "llama.block_count",          "llama.feed_forward_length",
                                        "llama.attention.head_count", "llama.attention.head_count_kv",
                                        "llama.attention.key_length"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const double values[] = {0, 4294967295.0};
        for (size_t j = 0; j < 2; j++) {
            refused(&(key){names[i], NULL, values[j], false}, NIB_EFORMAT, "expected");
        }
        refused(&(key){names[i], "many", 0, false}, NIB_EFORMAT, names[i]);
        refused(&(key){names[i], NULL, 4, true}, NIB_EFORMAT, names[i]);
    }
    refused(&(key){"llama.attention.head_count_kv", NULL, 3, false}, NIB_EFORMAT, "kv head count: 3");
    refused(&(key){"llama.rope.dimension_count", NULL, 3, false}, NIB_EFORMAT, "rope dimension count: 3");
    refused(&(key){"llama.rope.dimension_count", NULL, 6, false}, NIB_EFORMAT, "rope dimension count: 6");
    refused(&(key){"llama.rope.freq_base", NULL, 0, true}, NIB_EFORMAT, "rope base 0");
    refused(&(key){"llama.attention.layer_norm_rms_epsilon", NULL, -1, true}, NIB_EFORMAT, "epsilon -1");
}

static void what_comes_later_is_refused_by_name(void **state) {
    (void)state;
    nib_config c;
    nib_error err;
    refused(&(key){"general.architecture", "mamba", 0, false}, NIB_EUNSUPPORTED,
            "\"mamba\"|llama, gemma3, qwen2, qwen3, gpt2");
    refused(&(key){"llama.rope.scaling.type", "longrope", 0, false}, NIB_EUNSUPPORTED,
            "llama.rope.scaling.type|\"longrope\"|linear or yarn");
    refused(&(key){"llama.expert_count", NULL, 8, false}, NIB_EUNSUPPORTED, "llama.expert_count: 8");
    refused(&(key){"llama.attention.value_length", NULL, 8, false}, NIB_EUNSUPPORTED, "value_length: 8");
    must_fail(read_config(&c, llama_keys, N_LLAMA, NULL, NULL, "rope_factors_long.weight", &err), NIB_EUNSUPPORTED,
              &err, "rope_factors_long.weight");
    const key none = {"llama.rope.scaling.type", "none", 0, false};
    must(read_config(&c, llama_keys, N_LLAMA, &none, NULL, "token_embd.weight", &err), &err);
}

/* llama_keys and more. */
static nib_status read_scaled(nib_config *config, const key *more, size_t n, nib_error *err) {
    key keys[N_LLAMA + 8];
    assert_true(n <= 8);
    memcpy(keys, llama_keys, sizeof llama_keys);
    memcpy(keys + N_LLAMA, more, n * sizeof *more);
    return read_config(config, keys, N_LLAMA + n, NULL, NULL, "token_embd.weight", err);
}

static void rope_scaling_is_read(void **state) {
    (void)state;
    nib_config c;
    nib_error err;
    must(read_config(&c, llama_keys, N_LLAMA, NULL, NULL, "token_embd.weight", &err), &err);
    assert_int_equal(c.rope.kind, NIB_ROPE_PLAIN);
    /* A factor without a kind, by its name of now and its first one. */
    must(read_scaled(&c, &(key){"llama.rope.scaling.factor", NULL, 8, true}, 1, &err), &err);
    assert_true(c.rope.kind == NIB_ROPE_LINEAR && c.rope.factor == 8.0);
    must(read_scaled(&c, &(key){"llama.rope.scale_linear", NULL, 2, true}, 1, &err), &err);
    assert_true(c.rope.kind == NIB_ROPE_LINEAR && c.rope.factor == 2.0);
    const key yarn[] = {{"llama.rope.scaling.type", "yarn", 0, false},
                        {"llama.rope.scaling.factor", NULL, 4, true},
                        {"llama.rope.scaling.original_context_length", NULL, 16, false},
                        {"llama.rope.scaling.yarn_beta_fast", NULL, 24, true},
                        {"llama.rope.scaling.yarn_beta_slow", NULL, 2, true},
                        {"llama.rope.scaling.attn_factor", NULL, 0.5, true}};
    must(read_scaled(&c, yarn, 6, &err), &err);
    assert_true(c.rope.kind == NIB_ROPE_YARN && c.rope.factor == 4.0 && c.rope.original == 16.0);
    assert_true(c.rope.beta_fast == 24.0 && c.rope.beta_slow == 2.0 && c.rope.attn_factor == 0.5);
    must(read_scaled(&c, yarn, 2, &err), &err); /* what converters leave out */
    assert_true(c.rope.original == 64.0 && c.rope.beta_fast == 32.0 && c.rope.beta_slow == 1.0);
    assert_true(c.rope.attn_factor == 1.0);
}

static void rope_scaling_that_is_impossible_or_not_there_is_named(void **state) {
    (void)state;
    nib_config c;
    nib_error err;
    key yarn[3] = {{"llama.rope.scaling.type", "yarn", 0, false}, {"llama.rope.scaling.factor", NULL, 0, true}};
    must_fail(read_scaled(&c, yarn, 2, &err), NIB_EFORMAT, &err, "llama.rope.scaling.factor: 0");
    yarn[1].number = 4;
    yarn[2] = (key){"llama.rope.scaling.yarn_ext_factor", NULL, 0.5, true};
    must_fail(read_scaled(&c, yarn, 3, &err), NIB_EUNSUPPORTED, &err, "yarn_ext_factor: 0.5");
    yarn[2] = (key){"llama.rope.scaling.yarn_attn_factor", NULL, 1.5, true};
    must_fail(read_scaled(&c, yarn, 3, &err), NIB_EUNSUPPORTED, &err, "yarn_attn_factor: 1.5");
    yarn[2].number = 1.1386294; /* 1 + log(4) / 10 */
    must(read_scaled(&c, yarn, 3, &err), &err);
    yarn[2] = (key){"llama.rope.scaling.yarn_log_multiplier", NULL, 0.1, true};
    must_fail(read_scaled(&c, yarn, 3, &err), NIB_EUNSUPPORTED, &err, "yarn_log_multiplier: 0.1");
}

/* ---- windows ---- */

/* A gemma3 of one layer, which sees a window of 3, with random weights. */
enum { V = 20, D = 16, H = 2, E = 8, F = 12, WINDOW = 3 };

static void random_tensor(nib_test_gguf *w, const char *name, size_t cols, size_t rows) {
    float values[V * D];
    const uint64_t dims[] = {cols, rows};
    assert_true(cols * rows <= V * D);
    for (size_t i = 0; i < cols * rows; i++) {
        values[i] = (float)(nib_mix64(strlen(name) * 31 + (size_t)name[6], i) >> 40) * 0x1p-23f - 1.0f;
    }
    nib_test_gguf_tensor(w, name, NIB_F32, rows == 1 ? 1 : 2, dims, values, cols * rows * sizeof(float));
}

static unsigned char *windowed_file(size_t *len) {
    static const char *const norms[] = {"blk.0.attn_norm.weight", "blk.0.post_attention_norm.weight",
                                        "blk.0.ffn_norm.weight", "blk.0.post_ffw_norm.weight", "output_norm.weight"};
    nib_test_gguf *w = nib_test_gguf_new(3);
    const double sizes[] = {0, 128, D, 1, F, H, 1, E, WINDOW, 10000, 1e-6};
    for (size_t i = 0; i < N_GEMMA3; i++) {
        key k = gemma3_keys[i];
        k.number = sizes[i];
        write_key(w, &k);
    }
    for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
        random_tensor(w, norms[i], D, 1);
    }
    random_tensor(w, "token_embd.weight", D, V);
    random_tensor(w, "blk.0.attn_q.weight", D, H * E);
    random_tensor(w, "blk.0.attn_k.weight", D, E);
    random_tensor(w, "blk.0.attn_v.weight", D, E);
    random_tensor(w, "blk.0.attn_output.weight", H * E, D);
    random_tensor(w, "blk.0.attn_q_norm.weight", E, 1);
    random_tensor(w, "blk.0.attn_k_norm.weight", E, 1);
    random_tensor(w, "blk.0.ffn_gate.weight", D, F);
    random_tensor(w, "blk.0.ffn_up.weight", D, F);
    random_tensor(w, "blk.0.ffn_down.weight", F, D);
    return nib_test_gguf_finish(len, w);
}

/* Logits [n][V] of a text in chunks of so many tokens. */
static void windowed_logits(float *logits, nib_model *model, const int32_t *ids, size_t n, int64_t chunk) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_session *session;
    nib_error err;
    options.prefill_chunk = chunk;
    must(nib_session_new(&session, model, &options, &err), &err);
    must(nib_session_logits(logits, session, ids, n, 0, &err), &err);
    nib_session_free(session);
}

static void a_window_holds_the_token_and_those_before_it(void **state) {
    (void)state;
    enum { N = 8 };
    int32_t ids[N] = {1, 2, 3, 4, 5, 6, 7, 8};
    float whole[N][V], changed[N][V], chunked[N][V];
    size_t len;
    unsigned char *file = windowed_file(&len);
    nib_model *model;
    nib_error err;
    must(nib_model_open_memory(&model, file, len, NULL, &err), &err);
    windowed_logits(whole[0], model, ids, N, 0);
    for (int64_t chunk = 1; chunk <= N; chunk++) {
        windowed_logits(chunked[0], model, ids, N, chunk);
        assert_memory_equal(chunked, whole, sizeof whole);
    }
    for (size_t at = 0; at < N; at++) {
        ids[at] += 10;
        for (int64_t chunk = 0; chunk <= 2; chunk++) {
            windowed_logits(changed[0], model, ids, N, chunk);
            for (size_t i = 0; i < N; i++) {
                bool sees = i >= at && i < at + WINDOW;
                assert_int_equal(memcmp(changed[i], whole[i], sizeof whole[i]) != 0, sees);
            }
        }
        ids[at] -= 10;
    }
    nib_model_free(model);
    free(file);
}

static void windows_count_over_the_borders_of_pages(void **state) {
    (void)state;
    enum { N = 66 }; /* the last token sees one key of the first page */
    static float whole[N][V], last[V];
    int32_t ids[N];
    size_t len;
    unsigned char *file = windowed_file(&len);
    nib_model *model;
    nib_error err;
    must(nib_model_open_memory(&model, file, len, NULL, &err), &err);
    for (size_t i = 0; i < N; i++) {
        ids[i] = (int32_t)(nib_mix64(1, i) % V);
    }
    windowed_logits(whole[0], model, ids, N, 0);
    for (size_t i = 0; i < N - WINDOW; i++) {
        ids[i] = (ids[i] + 1) % V; /* all that the last token does not see */
    }
    nib_session *session = new_session(model);
    must(nib_session_logits(last, session, ids, N, N - 1, &err), &err);
    assert_memory_equal(last, whole[N - 1], sizeof last);
    nib_session_free(session);
    nib_model_free(model);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gemma3_head_is_read),
        cmocka_unit_test(rope_scaling_is_read),
        cmocka_unit_test(rope_scaling_that_is_impossible_or_not_there_is_named),
        cmocka_unit_test(what_a_llama_head_leaves_out_has_its_default),
        cmocka_unit_test(the_largest_gemma3_scales_by_its_width_over_its_heads),
        cmocka_unit_test(a_missing_key_is_named),
        cmocka_unit_test(impossible_sizes_are_named),
        cmocka_unit_test(what_comes_later_is_refused_by_name),
        cmocka_unit_test(a_window_holds_the_token_and_those_before_it),
        cmocka_unit_test(windows_count_over_the_borders_of_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
