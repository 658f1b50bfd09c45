/* Small GGUF models of random blocks. The layouts of blocks are those of the ggml project's ggml-common.h. */
#include "quant_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "gguf_writer.h"
#include "kernel/dtype.h"
#include "table_model.h"

typedef struct source {
    uint64_t seed, n;
} source;

static uint64_t next(source *s) {
    return nib_mix64(s->seed, s->n++);
}

/* 0.5 .. 1.5 */
static double near_1(source *s) {
    return 0.5 + (double)(next(s) >> 40) * 0x1p-24;
}

/* x as binary16, cut off. */
static uint16_t half_of(double x) {
    uint16_t sign = x < 0 ? 0x8000 : 0;
    int exponent = 0;
    x = x < 0 ? -x : x;
    while (x >= 2) {
        x /= 2;
        exponent++;
    }
    while (x < 1 && exponent > -14) {
        x *= 2;
        exponent--;
    }
    assert_true(exponent <= 15);
    unsigned bits = (unsigned)(x * 1024);
    return (uint16_t)(sign | (bits < 1024 ? bits : ((unsigned)(exponent + 14) << 10) + bits));
}

static void put_half(unsigned char *at, double x) {
    uint16_t half = half_of(x);
    memcpy(at, &half, sizeof half);
}

/* Where the scales of a quantised block lie, how large its values are when d is 1, and the minimum, in d, that makes
 * their mean about 0. */
typedef struct shape {
    int type, d_at, m_at; /* m_at -1: no minimum */
    double rms, minimum;
} shape;

static const shape shapes[] = {
    {NIB_Q4_0, 0, -1, 4.6, 0}, {NIB_Q4_1, 0, 2, 4.6, -7.5}, {NIB_Q5_0, 0, -1, 9.2, 0},   {NIB_Q5_1, 0, 2, 9.2, -15.5},
    {NIB_Q8_0, 0, -1, 74, 0},  {NIB_Q4_K, 0, 2, 430, 7.5},  {NIB_Q5_K, 0, 2, 870, 15.5}, {NIB_Q6_K, 208, -1, 1370, 0},
};

static const shape *shape_of(int type) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (shapes[i].type == type) {
            return &shapes[i];
        }
    }
    return NULL;
}

/* A block whose values have about this root mean square. */
static void fill_block(unsigned char *block, const shape *q, size_t bytes, double rms, source *s) {
    for (size_t i = 0; i < bytes; i++) {
        block[i] = (unsigned char)next(s);
    }
    double d = next(s) % 32 == 0 ? 0 : near_1(s) * rms / q->rms;
    d = next(s) % 2 == 0 ? d : -d;
    put_half(block + q->d_at, d);
    if (q->m_at >= 0) {
        put_half(block + q->m_at, d * q->minimum * near_1(s));
    }
    if (q->type == NIB_Q8_0) {
        block[2 + next(s) % 32] = 0x80;
    }
}

/* One value of a float type: random sign and fraction, an exponent that gives a quarter of rms to twice rms. */
static void fill_value(unsigned char *value, int type, double rms, source *s) {
    double x = near_1(s) * rms * (next(s) % 2 == 0 ? 1 : -1);
    x = next(s) % 2 == 0 ? x : x / 2;
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == NIB_F32) {
        memcpy(value, &f, sizeof f);
    } else if (type == NIB_F16) {
        put_half(value, x);
    } else {
        uint16_t upper = (uint16_t)(bits >> 16);
        memcpy(value, &upper, sizeof upper);
    }
}

static int fitting(int type, uint32_t cols) {
    return cols % nib_dtype_find((uint32_t)type)->block == 0 ? type : cols % 32 == 0 ? NIB_Q8_0 : NIB_F32;
}

static void add_matrix(nib_test_gguf *w, const char *name, int type, uint32_t cols, uint32_t rows, double gain,
                       source *s) {
    type = fitting(type, cols);
    const nib_dtype_traits *traits = nib_dtype_find((uint32_t)type);
    const shape *q = shape_of(type);
    size_t n = (size_t)rows * (cols / traits->block), bytes = traits->block_bytes;
    double rms = gain / __builtin_sqrt((double)cols);
    unsigned char *data = malloc(n * bytes);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) {
        if (q != NULL) {
            fill_block(data + i * bytes, q, bytes, rms, s);
        } else {
            fill_value(data + i * bytes, type, rms, s);
        }
    }
    nib_test_gguf_tensor(w, name, (uint32_t)type, 2, (const uint64_t[]){cols, rows}, data, n * bytes);
    free(data);
}

static void add_norm(nib_test_gguf *w, const char *name, uint32_t n, source *s) {
    float *values = malloc(n * sizeof(float));
    assert_non_null(values);
    for (uint32_t i = 0; i < n; i++) {
        values[i] = (float)near_1(s);
    }
    nib_test_gguf_tensor(w, name, NIB_F32, 1, (const uint64_t[]){n}, values, n * sizeof(float));
    free(values);
}

static void add_size(nib_test_gguf *w, const quant_spec *spec, const char *key, uint32_t value) {
    char name[96];
    (void)snprintf(name, sizeof name, "%s.%s", spec->arch, key);
    nib_test_gguf_u32(w, name, value);
}

static void add_sizes(nib_test_gguf *w, const quant_spec *spec) {
    nib_test_gguf_string(w, "general.architecture", spec->arch);
    nib_test_gguf_string(w, "general.name", spec->name);
    add_size(w, spec, "context_length", spec->context);
    add_size(w, spec, "embedding_length", spec->D);
    add_size(w, spec, "block_count", spec->L);
    add_size(w, spec, "feed_forward_length", spec->F);
    add_size(w, spec, "attention.head_count", spec->H);
    add_size(w, spec, "attention.head_count_kv", spec->K);
    add_size(w, spec, "attention.key_length", spec->E);
    add_size(w, spec, "attention.value_length", spec->E);
    add_size(w, spec, "rope.dimension_count", spec->E - spec->E % 2);
    if (spec->window > 0) {
        add_size(w, spec, "attention.sliding_window", spec->window);
    }
}

static void add_layer(nib_test_gguf *w, const quant_spec *spec, uint32_t layer, source *s) {
    const struct {
        const char *part;
        uint32_t rows, cols;
    } matrices[] = {{"attn_q", spec->H * spec->E, spec->D}, {"attn_k", spec->K * spec->E, spec->D},
                    {"attn_v", spec->K * spec->E, spec->D}, {"attn_output", spec->D, spec->H * spec->E},
                    {"ffn_gate", spec->F, spec->D},         {"ffn_up", spec->F, spec->D},
                    {"ffn_down", spec->D, spec->F}};
    const struct {
        const char *part;
        uint32_t n;
    } norms[] = {{"attn_norm", spec->D},           {"ffn_norm", spec->D},
                 {"attn_q_norm", spec->E},         {"attn_k_norm", spec->E},
                 {"post_attention_norm", spec->D}, {"post_ffw_norm", spec->D}};
    char name[96];
    for (uint32_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
        (void)snprintf(name, sizeof name, "blk.%u.%s.weight", layer, matrices[i].part);
        add_matrix(w, name, spec->types[(i + layer) % spec->n_types], matrices[i].cols, matrices[i].rows, 1.5, s);
    }
    size_t n_norms = strcmp(spec->arch, "gemma3") == 0 ? sizeof norms / sizeof norms[0] : 2;
    for (size_t i = 0; i < n_norms; i++) {
        (void)snprintf(name, sizeof name, "blk.%u.%s.weight", layer, norms[i].part);
        add_norm(w, name, norms[i].n, s);
    }
}

unsigned char *quant_file(size_t *len, const quant_spec *spec) {
    source s = {spec->seed, 0};
    nib_test_gguf *w = nib_test_gguf_new(3);
    add_sizes(w, spec);
    add_matrix(w, "token_embd.weight", spec->types[spec->n_types - 1], spec->D, spec->V, 3, &s);
    for (uint32_t i = 0; i < spec->L; i++) {
        add_layer(w, spec, i, &s);
    }
    add_norm(w, "output_norm.weight", spec->D, &s);
    if (!spec->tied) {
        add_matrix(w, "output.weight", spec->types[0], spec->D, spec->V, 3, &s);
    }
    return nib_test_gguf_finish(len, w);
}

nib_model *quant_open(const unsigned char *file, size_t len, int compute, int cpu) {
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    nib_model *model;
    nib_error err;
    options.compute = compute;
    options.cpu = cpu;
    must(nib_model_open_memory(&model, file, len, &options, &err), &err);
    return model;
}
