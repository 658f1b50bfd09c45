/* A tiny llama file that writes what it is told. */
#include "script_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/gguf_meta.h"
#include "gguf_writer.h"
#include "kernel/dtype.h"
#include "table_model.h"

enum { HEAD = 2, F = 1 }; /* widths of the only head and of the feed-forward */

/* The vocabulary's size, V. */
static size_t n_rows(const script_spec *script) {
    return SCRIPT_FIRST + script->n + script->n_control + script->n_extra;
}

/* What follows token t. */
static size_t next_of(const script_spec *script, size_t t) {
    if (script->after[t] != 0) {
        return (size_t)script->after[t];
    }
    if (t == SCRIPT_START) {
        return SCRIPT_FIRST;
    }
    return t >= SCRIPT_FIRST && t + 1 < SCRIPT_FIRST + script->n ? t + 1 : SCRIPT_END;
}

static void write_sizes(nib_test_gguf *w, const script_spec *script) {
    nib_test_gguf_string(w, "general.architecture", "llama");
    nib_test_gguf_string(w, "general.name", "script");
    nib_test_gguf_u32(w, "llama.context_length", script->context > 0 ? (uint32_t)script->context : 256);
    nib_test_gguf_u32(w, "llama.embedding_length", (uint32_t)n_rows(script));
    nib_test_gguf_u32(w, "llama.block_count", 1);
    nib_test_gguf_u32(w, "llama.feed_forward_length", F);
    nib_test_gguf_u32(w, "llama.attention.head_count", 1);
    nib_test_gguf_u32(w, "llama.attention.key_length", HEAD);
    nib_test_gguf_u32(w, "llama.attention.value_length", HEAD);
    nib_test_gguf_u32(w, "llama.rope.dimension_count", HEAD);
}

static void write_vocabulary(nib_test_gguf *w, const script_spec *script) {
    const char *texts[SCRIPT_MOST] = {"!", "<start>", "<end>"};
    size_t lens[SCRIPT_MOST] = {1, 7, 5};
    int32_t types[SCRIPT_MOST] = {1, 3, 3};
    size_t n = SCRIPT_FIRST;
    for (size_t i = 0; i < script->n; i++, n++) {
        texts[n] = script->pieces[i].bytes;
        lens[n] = script->pieces[i].len;
        types[n] = 4;
    }
    for (size_t i = 0; i < script->n_control; i++, n++) {
        texts[n] = script->spelling[i];
        lens[n] = strlen(script->spelling[i]);
        types[n] = 3;
    }
    nib_test_gguf_string(w, "tokenizer.ggml.model", "gpt2");
    nib_test_gguf_string(w, "tokenizer.ggml.pre", script->pre == NULL ? "gpt-2" : script->pre);
    nib_test_gguf_strings_len(w, "tokenizer.ggml.tokens", n, texts, lens);
    nib_test_gguf_array(w, "tokenizer.ggml.token_type", NIB_GGUF_I32, n, types, sizeof types[0]);
    nib_test_gguf_u32(w, "tokenizer.ggml.bos_token_id", SCRIPT_START);
    nib_test_gguf_u32(w, "tokenizer.ggml.eos_token_id", SCRIPT_END);
    if (!script->silent_on_start) {
        nib_test_gguf_bool(w, "tokenizer.ggml.add_bos_token", true);
    }
}

static void write_ids(nib_test_gguf *w, const script_spec *script) {
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {{"tokenizer.ggml.eot_token_id", script->eot_id},
               {"tokenizer.ggml.eom_token_id", script->eom_id},
               {"tokenizer.ggml.padding_token_id", script->pad_id}};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (ids[i].id >= 0) {
            nib_test_gguf_u32(w, ids[i].key, (uint32_t)ids[i].id);
        }
    }
}

static void write_matrix(nib_test_gguf *w, const char *name, size_t cols, size_t rows, const float *values) {
    uint64_t dims[2] = {cols, rows};
    nib_test_gguf_tensor(w, name, NIB_F32, rows == 1 ? 1 : 2, dims, values, cols * rows * sizeof(float));
}

/* Weights that are 0 where it matters: each sub-block adds nothing. */
static void write_layer(nib_test_gguf *w, size_t D) {
    write_matrix(w, "blk.0.attn_norm.weight", D, 1, NULL);
    write_matrix(w, "blk.0.attn_q.weight", D, HEAD, NULL);
    write_matrix(w, "blk.0.attn_k.weight", D, HEAD, NULL);
    write_matrix(w, "blk.0.attn_v.weight", D, HEAD, NULL);
    write_matrix(w, "blk.0.attn_output.weight", HEAD, D, NULL);
    write_matrix(w, "blk.0.ffn_norm.weight", D, 1, NULL);
    write_matrix(w, "blk.0.ffn_gate.weight", D, F, NULL);
    write_matrix(w, "blk.0.ffn_up.weight", D, F, NULL);
    write_matrix(w, "blk.0.ffn_down.weight", F, D, NULL);
}

unsigned char *script_file(size_t *len, const script_spec *script) {
    size_t V = n_rows(script);
    assert_true(V <= SCRIPT_MOST);
    nib_test_gguf *w = nib_test_gguf_new(3);
    write_sizes(w, script);
    write_vocabulary(w, script);
    write_ids(w, script);
    float *embedding = calloc(V * V, sizeof(float));
    float *head = calloc(V * V, sizeof(float));
    float *ones = calloc(V, sizeof(float));
    assert_true(embedding != NULL && head != NULL && ones != NULL);
    for (size_t t = 0; t < V; t++) {
        embedding[t * V + t] = 1.0f;
        head[next_of(script, t) * V + t] = 100.0f;
        ones[t] = 1.0f;
    }
    write_matrix(w, "token_embd.weight", V, V, embedding);
    write_layer(w, V);
    write_matrix(w, "output_norm.weight", V, 1, ones);
    write_matrix(w, "output.weight", V, V, head);
    free(embedding);
    free(head);
    free(ones);
    return nib_test_gguf_finish(len, w);
}

script_model script_model_open(const script_spec *script) {
    script_model opened;
    nib_error err;
    size_t len;
    opened.file = script_file(&len, script);
    must(nib_model_open_memory(&opened.model, opened.file, len, NULL, &err), &err);
    return opened;
}

void script_model_close(script_model *opened) {
    nib_model_free(opened->model);
    free(opened->file);
}
