/* The table of architectures, and the sizes of a model read from its file. */
#include "model/arch.h"

#include <string.h>

#include "base/number.h"
#include "model/rope.h"

/* A row says only what is not 0: RMSNorm before, rotation of pairs, a gated SiLU. */
static const nib_arch arch_table[] = {
    {.name = "llama", .rope_base = 10000.0},
    {.name = "gemma3",
     .place = NIB_NORM_AROUND,
     .position = NIB_POSITION_ROPE_HALVES,
     .ffn = NIB_FFN_GELU_TANH_GATED,
     .qk_norm = true,
     .scale_embedding = true,
     .window_period = 6,
     .rope_base = 1000000.0,
     .local_rope_base = 10000.0},
    {.name = "qwen2", .position = NIB_POSITION_ROPE_HALVES, .qkv_bias = true, .rope_base = 10000.0},
    {.name = "qwen3", .position = NIB_POSITION_ROPE_HALVES, .qk_norm = true, .rope_base = 10000.0},
    {.name = "gpt2",
     .norm = NIB_NORM_LAYER,
     .position = NIB_POSITION_LEARNED,
     .ffn = NIB_FFN_GELU_TANH,
     .qkv_bias = true,
     .fused_qkv = true},
};

const nib_arch *nib_arch_find(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof arch_table / sizeof arch_table[0]; i++) {
        if (strlen(arch_table[i].name) == len && memcmp(arch_table[i].name, name, len) == 0) {
            return &arch_table[i];
        }
    }
    return NULL;
}

const char *nib_arch_names(void) {
    return "llama, gemma3, qwen2, qwen3, gpt2";
}

bool nib_arch_is_gated(const nib_arch *arch) {
    return arch->ffn == NIB_FFN_SILU_GATED || arch->ffn == NIB_FFN_GELU_TANH_GATED;
}

bool nib_arch_is_rotary(const nib_arch *arch) {
    return arch->position == NIB_POSITION_ROPE_PAIRS || arch->position == NIB_POSITION_ROPE_HALVES;
}

bool nib_config_is_global(const nib_config *config, int64_t layer) {
    int period = config->arch->window_period;
    return period == 0 || config->window == 0 || (layer + 1) % period == 0;
}

size_t nib_config_kv_elements(const nib_config *config) {
    return (size_t)(config->L * config->K * config->E * 2);
}

/* Keys of an architecture are "<name>.<rest>". */
typedef struct reader {
    const nib_gguf *gguf;
    const nib_arch *arch;
    nib_error *err;
    nib_status status; /* of the first failure; later reads do nothing */
} reader;

static void make_key(char key[96], const reader *r, const char *rest) {
    size_t n = strlen(r->arch->name); /* arch was found. NOLINT(clang-analyzer-core.NullDereference) */
    memcpy(key, r->arch->name, n);
    key[n] = '.';
    memcpy(key + n + 1, rest, strlen(rest) + 1);
}

enum { SIZE_LIMIT = 1 << 30 };

/* A count; fallback -1 makes it required. */
static int64_t read_size(reader *r, const char *rest, int64_t fallback) {
    char key[96];
    make_key(key, r, rest);
    if (r->status != NIB_OK) {
        return 0;
    }
    if (nib_gguf_find(r->gguf, key) < 0) {
        if (fallback < 0) {
            r->status = nib_fail(r->err, NIB_EFORMAT, "%s: missing, expected a whole number", key);
        }
        return fallback;
    }
    uint64_t value = 0;
    r->status = nib_gguf_get_uint(&value, r->gguf, key, r->err);
    if (r->status == NIB_OK && value > SIZE_LIMIT) {
        r->status =
            nib_fail(r->err, NIB_EFORMAT, "%s: %llu, expected at most %d", key, (unsigned long long)value, SIZE_LIMIT);
    }
    return r->status == NIB_OK ? (int64_t)value : 0;
}

static double read_real(reader *r, const char *rest, double fallback) {
    char key[96];
    double value = fallback;
    make_key(key, r, rest);
    if (r->status == NIB_OK) {
        r->status = nib_gguf_get_real(&value, r->gguf, key, r->err);
    }
    return value;
}

static nib_status find_arch(const nib_arch **arch, const nib_gguf *gguf, nib_error *err) {
    const char *name = NULL;
    size_t len = 0;
    nib_status status = nib_gguf_get_string(&name, &len, gguf, "general.architecture", err);
    if (status != NIB_OK) {
        return status;
    }
    if (name == NULL) {
        return nib_fail(err, NIB_EFORMAT, "general.architecture: missing, expected one of: %s", nib_arch_names());
    }
    *arch = nib_arch_find(name, len);
    if (*arch == NULL) {
        return nib_fail(err, NIB_EUNSUPPORTED, "general.architecture: \"%.*s\", expected one of: %s",
                        (int)(len < 64 ? len : 64), name, nib_arch_names());
    }
    return NIB_OK;
}

/* A real above 0. */
static double read_positive(reader *r, const char *rest, double fallback) {
    double value = read_real(r, rest, fallback);
    if (r->status == NIB_OK && !(value > 0 && value < 1e30)) {
        char key[96], text[NIB_NUMBER_ROOM];
        make_key(key, r, rest);
        r->status =
            nib_fail(r->err, NIB_EFORMAT, "%s: %s, expected a number above 0", key, nib_format_real(text, value, 9));
    }
    return value;
}

/* A key whose value changes the result in a way that is not there: refused unless it is `neutral`. */
static void refuse_real(reader *r, const char *rest, double neutral, const char *expected) {
    double value = read_real(r, rest, neutral);
    double distance = value > neutral ? value - neutral : neutral - value;
    if (r->status == NIB_OK && !(distance <= 1e-5)) {
        char key[96], text[NIB_NUMBER_ROOM];
        make_key(key, r, rest);
        r->status =
            nib_fail(r->err, NIB_EUNSUPPORTED, "%s: %s, expected %s", key, nib_format_real(text, value, 9), expected);
    }
}

static void read_yarn(reader *r, nib_config *config) {
    nib_rope_scaling *rope = &config->rope;
    rope->kind = NIB_ROPE_YARN;
    int64_t original = read_size(r, "rope.scaling.original_context_length", config->context);
    rope->original = (double)(original > 0 ? original : config->context);
    rope->beta_fast = read_positive(r, "rope.scaling.yarn_beta_fast", 32.0);
    rope->beta_slow = read_positive(r, "rope.scaling.yarn_beta_slow", 1.0);
    rope->attn_factor = read_positive(r, "rope.scaling.attn_factor", 1.0);
    refuse_real(r, "rope.scaling.yarn_ext_factor", 1.0, "1");
    refuse_real(r, "rope.scaling.yarn_log_multiplier", 0.0, "0");
    if (r->status == NIB_OK) {
        refuse_real(r, "rope.scaling.yarn_attn_factor", nib_rope_magnitude(rope), "what follows from the factor");
    }
}

/* A file that names no kind means linear if it has a factor. */
static void read_rope_scaling(reader *r, nib_config *config) {
    char key[96];
    const char *type = NULL;
    size_t len = 0;
    make_key(key, r, "rope.scaling.type");
    if (r->status != NIB_OK) {
        return;
    }
    r->status = nib_gguf_get_string(&type, &len, r->gguf, key, r->err);
    if (r->status != NIB_OK || (type != NULL && len == 4 && memcmp(type, "none", 4) == 0)) {
        return;
    }
    bool yarn = type != NULL && len == 4 && memcmp(type, "yarn", 4) == 0;
    if (type != NULL && !yarn && !(len == 6 && memcmp(type, "linear", 6) == 0)) {
        r->status = nib_fail(r->err, NIB_EUNSUPPORTED, "%s: \"%.*s\", expected none, linear or yarn", key,
                             (int)(len < 64 ? len : 64), type);
        return;
    }
    config->rope.factor = read_positive(r, "rope.scaling.factor", read_positive(r, "rope.scale_linear", 1.0));
    config->rope.kind = config->rope.factor != 1.0 ? NIB_ROPE_LINEAR : NIB_ROPE_PLAIN;
    if (yarn) {
        read_yarn(r, config);
    }
}

/* What would change the result and is not there yet is refused, never left out. */
static nib_status refuse_features(reader *r) {
    static const char *const tensors[] = {"rope_factors_long.weight", "rope_factors_short.weight"};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0] && r->status == NIB_OK; i++) {
        if (nib_gguf_find_tensor(r->gguf, tensors[i]) != NULL) {
            return nib_fail(r->err, NIB_EUNSUPPORTED, "%s: this kind of rope scaling comes in a later version",
                            tensors[i]);
        }
    }
    int64_t experts = read_size(r, "expert_count", 0);
    if (r->status == NIB_OK && experts != 0) {
        char key[96];
        make_key(key, r, "expert_count");
        return nib_fail(r->err, NIB_EUNSUPPORTED, "%s: %lld, expected 0: mixtures of experts come in a later version",
                        key, (long long)experts);
    }
    return r->status;
}

/* V by the embedding, since a vocabulary may be absent. */
static nib_status read_vocab_size(nib_config *config, const reader *r) {
    const nib_tensor *embedding = nib_gguf_find_tensor(r->gguf, "token_embd.weight");
    if (embedding == NULL) {
        return nib_fail(r->err, NIB_EFORMAT, "token_embd.weight: missing, expected a tensor of %lld x V",
                        (long long)config->D);
    }
    if (embedding->n_dims != 2 || embedding->dims[1] > SIZE_LIMIT) {
        return nib_fail(r->err, NIB_EFORMAT, "token_embd.weight: %u dimensions, last %llu, expected 2 and at most %d",
                        embedding->n_dims, (unsigned long long)embedding->dims[1], SIZE_LIMIT);
    }
    config->V = (int64_t)embedding->dims[1];
    return NIB_OK;
}

/* 1/sqrt(E); the 62-layer Gemma 3 scales by D/H instead. */
static float q_scale_of(const nib_config *config) {
    int64_t width = config->arch->scale_embedding && config->L == 62 ? config->D / config->H : config->E;
    float root = __builtin_sqrtf((float)width);
    return 1.0f / root;
}

nib_status nib_config_read(nib_config *config, const nib_gguf *gguf, nib_error *err) {
    reader r = {gguf, NULL, err, NIB_OK};
    *config = (nib_config){0};
    nib_status status = find_arch(&r.arch, gguf, err);
    if (status != NIB_OK) {
        return status;
    }
    config->arch = r.arch;
    config->context = read_size(&r, "context_length", -1);
    config->D = read_size(&r, "embedding_length", -1);
    config->L = read_size(&r, "block_count", -1);
    config->F = read_size(&r, "feed_forward_length", -1);
    config->H = read_size(&r, "attention.head_count", -1);
    config->K = read_size(&r, "attention.head_count_kv", config->H);
    config->E = read_size(&r, "attention.key_length", config->H > 0 ? config->D / config->H : 0);
    int64_t value_length = read_size(&r, "attention.value_length", config->E);
    config->window = r.arch->window_period > 0 ? read_size(&r, "attention.sliding_window", 0) : 0;
    if (nib_arch_is_rotary(r.arch)) {
        config->rope_dim = read_size(&r, "rope.dimension_count", config->E);
        config->rope_base = read_real(&r, "rope.freq_base", r.arch->rope_base);
        read_rope_scaling(&r, config);
    }
    bool rms = r.arch->norm == NIB_NORM_RMS;
    config->eps = (float)read_real(&r, rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5);
    if (r.status != NIB_OK) {
        return r.status;
    }
    if (value_length != config->E) {
        return nib_fail(err, NIB_EUNSUPPORTED, "%s.attention.value_length: %lld, expected key_length %lld",
                        r.arch->name, (long long)value_length, (long long)config->E);
    }
    status = refuse_features(&r);
    status = status != NIB_OK ? status : read_vocab_size(config, &r);
    status = status != NIB_OK ? status : nib_config_check(config, NIB_EFORMAT, err);
    if (status == NIB_OK) {
        config->q_scale = q_scale_of(config);
    }
    return status;
}

static nib_status check_size(const char *name, int64_t value, int64_t low, int64_t high, nib_status code,
                             nib_error *err) {
    if (value < low || value > high) {
        return nib_fail(err, code, "%s: %lld, expected %lld to %lld", name, (long long)value, (long long)low,
                        (long long)high);
    }
    return NIB_OK;
}

nib_status nib_config_check(const nib_config *config, nib_status code, nib_error *err) {
    const struct {
        const char *name;
        int64_t value, high;
    } sizes[] = {
        {"vocabulary", config->V, 1 << 28},          {"embedding length", config->D, 1 << 20},
        {"block count", config->L, 1 << 12},         {"head count", config->H, 1 << 14},
        {"kv head count", config->K, 1 << 14},       {"head width", config->E, 1 << 14},
        {"feed-forward length", config->F, 1 << 22}, {"context length", config->context, 1 << 30},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        nib_status status = check_size(sizes[i].name, sizes[i].value, 1, sizes[i].high, code, err);
        if (status != NIB_OK) {
            return status;
        }
    }
    if (config->H % config->K != 0) {
        return nib_fail(err, code, "kv head count: %lld, expected a divisor of the head count %lld",
                        (long long)config->K, (long long)config->H);
    }
    if (config->rope_dim > config->E || config->rope_dim % 2 != 0) {
        return nib_fail(err, code, "rope dimension count: %lld, expected an even number up to the head width %lld",
                        (long long)config->rope_dim, (long long)config->E);
    }
    if ((config->rope_dim > 0 && !(config->rope_base > 0)) || !(config->eps >= 0 && config->eps < 1)) {
        char base[NIB_NUMBER_ROOM], eps[NIB_NUMBER_ROOM];
        return nib_fail(err, code, "rope base %s, norm epsilon %s: expected above 0, and 0 to 1",
                        nib_format_real(base, config->rope_base, 9), nib_format_real(eps, (double)config->eps, 9));
    }
    return NIB_OK;
}
