/* The named configurations of nib_model_random, and random weights. Weights are uniform with standard deviation
 * 1/sqrt(inputs), so that activations keep their size; norm weights lie around 1. Each is made from its own counter
 * (rule 6 of docs/numerics.md, purpose 16), so no order matters. */
#include "model/random_model.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/random.h"
#include "model/weights.h"

/* Architectures that no file names. */
static const nib_arch gpt_config = {.name = "gpt-config",
                                    .norm = NIB_NORM_LAYER,
                                    .position = NIB_POSITION_SINUSOIDAL,
                                    .ffn = NIB_FFN_GELU_ERF,
                                    .qkv_bias = true};
static const nib_arch gpt1 = {.name = "gpt",
                              .norm = NIB_NORM_LAYER,
                              .place = NIB_NORM_AFTER,
                              .position = NIB_POSITION_LEARNED,
                              .ffn = NIB_FFN_GELU_TANH,
                              .qkv_bias = true};

/* family is that of files, where arch is NULL. E 0 means D/H, F 0 means 4D, K 0 means H. */
static const struct preset {
    const char *name;
    const nib_arch *arch;
    const char *family;
    bool tied;
    int64_t V, D, L, H, K, E, F, context;
} presets[] = {
    {"llama-tiny", NULL, "llama", false, 256, 64, 2, 4, 2, 0, 128, 128},
    {"qwen2-tiny", NULL, "qwen2", true, 256, 64, 2, 4, 2, 0, 128, 128},
    {"qwen3-tiny", NULL, "qwen3", true, 256, 64, 2, 4, 2, 32, 128, 128},
    {"gpt2-tiny", NULL, "gpt2", true, 256, 64, 2, 4, 0, 0, 0, 128},
    {"gpt-config", &gpt_config, NULL, true, 50257, 768, 12, 12, 0, 0, 0, 1024},
    {"gpt-tiny", &gpt_config, NULL, true, 256, 64, 2, 2, 0, 0, 128, 128},
    {"gpt2-small", NULL, "gpt2", true, 50257, 768, 12, 12, 0, 0, 0, 1024},
    {"gpt", &gpt1, NULL, true, 40478, 768, 12, 12, 0, 0, 0, 512},
};

enum { N_PRESETS = sizeof presets / sizeof presets[0] };

static bool same(const char *name, const char *text, size_t len) {
    return strlen(name) == len && memcmp(name, text, len) == 0;
}

/* The field that a key sets; NULL when there is none. */
static int64_t *find_field(nib_config *config, const char *key, size_t len) {
    const struct {
        const char *key;
        int64_t *field;
    } fields[] = {
        {"vocab_size", &config->V}, {"d_model", &config->D}, {"n_layers", &config->L},          {"n_heads", &config->H},
        {"n_kv_heads", &config->K}, {"d_ff", &config->F},    {"max_seq_len", &config->context},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (same(fields[i].key, key, len)) {
            return fields[i].field;
        }
    }
    return NULL;
}

static nib_status set_pair(nib_random_spec *spec, const char *pair, size_t len, bool with_seed, nib_error *err) {
    const char *equals = memchr(pair, '=', len);
    size_t n_key = equals == NULL ? len : (size_t)(equals - pair);
    const char *value = pair + n_key + 1;
    size_t n_value = equals == NULL ? 0 : len - n_key - 1;
    int shown = (int)(len < 80 ? len : 80);
    if (with_seed && same("seed", pair, n_key)) {
        return equals != NULL && nib_parse_uint(&spec->seed, value, n_value)
                   ? NIB_OK
                   : nib_fail(err, NIB_EINVAL, "random model: \"%.*s\", expected seed=0 to 18446744073709551615", shown,
                              pair);
    }
    int64_t *field = find_field(&spec->config, pair, n_key);
    if (field == NULL || equals == NULL) {
        return nib_fail(err, NIB_EINVAL,
                        "random model: \"%.*s\", expected key=value with one of %svocab_size, d_model, "
                        "n_heads, n_kv_heads, n_layers, d_ff, max_seq_len",
                        shown, pair, with_seed ? "seed, " : "");
    }
    int64_t number;
    if (!nib_parse_int(&number, value, n_value) || number < 1) {
        return nib_fail(err, NIB_EINVAL, "random model: \"%.*s\", expected a whole number above 0", shown, pair);
    }
    *field = number;
    return NIB_OK;
}

static nib_status find_preset(const struct preset **preset, const char *name, size_t len, nib_error *err) {
    for (size_t i = 0; i < N_PRESETS; i++) {
        if (same(presets[i].name, name, len)) {
            *preset = &presets[i];
            return NIB_OK;
        }
    }
    return nib_fail(err, NIB_EINVAL,
                    "random model: \"%.*s\", expected llama-tiny, qwen2-tiny, qwen3-tiny, gpt2-tiny, gpt-config, "
                    "gpt-tiny, gpt2-small or gpt",
                    (int)(len < 80 ? len : 80), name);
}

/* What follows from the sizes that were given. */
static nib_status complete(nib_config *config, nib_error *err) {
    if (config->F <= 0) {
        config->F = config->D <= INT64_MAX / 4 ? 4 * config->D : INT64_MAX;
    }
    config->K = config->K > 0 ? config->K : config->H;
    if (config->E == 0 && config->D % config->H != 0) {
        return nib_fail(err, NIB_EINVAL, "random model: d_model %lld, expected a multiple of n_heads %lld",
                        (long long)config->D, (long long)config->H);
    }
    config->E = config->E > 0 ? config->E : config->D / config->H;
    config->rope_dim = nib_arch_is_rotary(config->arch) ? config->E : 0;
    float root = __builtin_sqrtf((float)config->E);
    config->q_scale = 1.0f / root;
    return nib_config_check(config, NIB_EINVAL, err);
}

nib_status nib_random_parse(nib_random_spec *spec, const char *name, size_t name_len, const char *overrides, size_t len,
                            bool with_seed, nib_error *err) {
    const struct preset *preset = NULL;
    nib_status status = find_preset(&preset, name, name_len, err);
    if (status != NIB_OK) {
        return status;
    }
    *spec = (nib_random_spec){.tied = preset->tied};
    const nib_arch *arch =
        preset->family == NULL ? preset->arch : nib_arch_find(preset->family, strlen(preset->family));
    spec->config = (nib_config){.arch = arch,
                                .V = preset->V,
                                .D = preset->D,
                                .L = preset->L,
                                .H = preset->H,
                                .K = preset->K,
                                .E = preset->E,
                                .F = preset->F,
                                .context = preset->context,
                                .rope_base = 10000.0,
                                .eps = 1e-5f};
    /* A comma at the end is followed by an empty pair, which is refused. */
    for (size_t i = 0; len > 0 && i <= len && status == NIB_OK;) {
        const char *comma = memchr(overrides + i, ',', len - i);
        size_t n = comma == NULL ? len - i : (size_t)(comma - (overrides + i));
        status = set_pair(spec, overrides + i, n, with_seed, err);
        i += n + 1;
    }
    return status == NIB_OK ? complete(&spec->config, err) : status;
}

typedef struct filler {
    nib_weights *weights;
    uint64_t seed;
    uint32_t tensor; /* number of the tensor: a word of the counter */
} filler;

/* n values centre + u * width, u uniform in [-1, 1) in steps of 2^-23. */
static float *fill(filler *f, int64_t n, float centre, float width) {
    float *out = f->weights->vectors + f->weights->n_vectors;
    assert((size_t)n <= f->weights->cap_vectors - f->weights->n_vectors);
    for (int64_t i = 0; i < n; i += 4) {
        const uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)((uint64_t)i >> 34), f->tensor, 16};
        uint32_t words[4];
        nib_philox(words, counter, f->seed);
        for (int64_t j = 0; j < 4 && i + j < n; j++) {
            float u = (float)((int32_t)(words[j] >> 8) - (1 << 23)) * 0x1p-23f;
            out[i + j] = centre + u * width;
        }
    }
    f->tensor++;
    f->weights->n_vectors += (size_t)n;
    f->weights->n_params += n;
    return out;
}

/* Uniform in +-sqrt(3/inputs): standard deviation 1/sqrt(inputs). */
static nib_matrix fill_matrix(filler *f, int64_t rows, int64_t cols) {
    float ratio = 3.0f / (float)cols;
    float width = __builtin_sqrtf(ratio);
    const float *data = fill(f, rows * cols, 0.0f, width);
    return (nib_matrix){
        .data = data, .rows = rows, .cols = cols, .row_bytes = (size_t)cols * sizeof *data, .dtype = NIB_F32};
}

static nib_linear fill_linear(filler *f, int64_t rows, int64_t cols, bool bias) {
    nib_linear linear = {fill_matrix(f, rows, cols), NULL};
    if (bias) {
        linear.bias = fill(f, rows, 0.0f, 0.1f);
    }
    return linear;
}

static nib_norm fill_norm(filler *f, int64_t n, bool bias) {
    nib_norm norm = {fill(f, n, 1.0f, 0.1f), NULL};
    if (bias) {
        norm.bias = fill(f, n, 0.0f, 0.1f);
    }
    return norm;
}

static void fill_layer(filler *f, const nib_config *c, nib_layer *layer) {
    bool bias = c->arch->norm == NIB_NORM_LAYER;
    layer->attn_norm = fill_norm(f, c->D, bias);
    layer->q = fill_linear(f, c->H * c->E, c->D, c->arch->qkv_bias);
    layer->k = fill_linear(f, c->K * c->E, c->D, c->arch->qkv_bias);
    layer->v = fill_linear(f, c->K * c->E, c->D, c->arch->qkv_bias);
    if (c->arch->qk_norm) {
        layer->q_norm = fill_norm(f, c->E, bias);
        layer->k_norm = fill_norm(f, c->E, bias);
    }
    layer->o = fill_linear(f, c->D, c->H * c->E, bias);
    layer->ffn_norm = fill_norm(f, c->D, bias);
    if (c->arch->ffn == NIB_FFN_SILU_GATED) {
        layer->gate = fill_linear(f, c->F, c->D, bias);
    }
    layer->up = fill_linear(f, c->F, c->D, bias);
    layer->down = fill_linear(f, c->D, c->F, bias);
}

/* Floats of a whole model: close, and never below, for fill writes into that room; false when they do not fit a
 * size. */
static bool count_floats(size_t *floats, const nib_config *c, bool tied) {
    int64_t positions = c->arch->position == NIB_POSITION_LEARNED ? c->context : 0;
    size_t table = (size_t)((tied ? 1 : 2) * c->V + positions), layer, all;
    size_t rows = (size_t)(2 * c->H * c->E + 2 * c->K * c->E + 3 * c->F + 16);
    size_t head_norms = c->arch->qk_norm ? (size_t)(2 * c->E) : 0;
    return nib_mul_size(&table, table, (size_t)c->D) && nib_mul_size(&layer, rows, (size_t)(c->D + 1)) &&
           nib_add_size(&layer, layer, head_norms) && nib_mul_size(&all, layer, (size_t)c->L) &&
           nib_add_size(&all, all, table) && nib_add_size(floats, all, (size_t)(2 * c->D));
}

bool nib_weights_random_bytes(size_t *bytes, const nib_config *config, bool tied) {
    return count_floats(bytes, config, tied) && nib_mul_size(bytes, *bytes, sizeof(float));
}

nib_status nib_weights_random(nib_weights *weights, const nib_config *config, bool tied, uint64_t seed,
                              nib_error *err) {
    size_t floats;
    *weights = (nib_weights){0};
    if (!count_floats(&floats, config, tied)) {
        return nib_fail(err, NIB_ENOMEM, "random model: its weights do not fit the address space");
    }
    weights->layers = nib_alloc_zero((size_t)config->L, sizeof weights->layers[0]);
    weights->vectors = nib_alloc(floats, sizeof(float));
    weights->cap_vectors = floats;
    if (weights->layers == NULL || weights->vectors == NULL) {
        nib_weights_free(weights);
        return nib_fail(err, NIB_ENOMEM, "out of memory: %zu floats for the weights of a random model", floats);
    }
    filler f = {weights, seed, 0};
    bool bias = config->arch->norm == NIB_NORM_LAYER;
    weights->embedding = fill_matrix(&f, config->V, config->D);
    if (config->arch->position == NIB_POSITION_LEARNED) {
        weights->positions = fill_matrix(&f, config->context, config->D);
    }
    for (int64_t i = 0; i < config->L; i++) {
        fill_layer(&f, config, &weights->layers[i]);
    }
    weights->last_norm = fill_norm(&f, config->D, bias);
    weights->head.w = tied ? weights->embedding : fill_matrix(&f, config->V, config->D);
    weights->bytes = weights->n_vectors * sizeof(float);
    return NIB_OK;
}
