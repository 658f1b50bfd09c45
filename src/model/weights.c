/* Binding the tensors of a file to the places that the block function reads, and packing them there. */
#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "kernel/pack.h"

typedef struct binder {
    nib_weights *weights;
    const nib_config *config;
    const nib_gguf *gguf;
    const nib_kernels *kernels;
    nib_error *err;
    nib_status status; /* of the first failure; later calls do nothing */
} binder;

static nib_status check_shape(const nib_tensor *tensor, int64_t rows, int64_t cols, nib_error *err) {
    bool vector = rows == 1;
    bool fits = vector ? tensor->dims[0] == (uint64_t)cols && tensor->dims[1] == 1
                       : tensor->dims[0] == (uint64_t)cols && tensor->dims[1] == (uint64_t)rows;
    if (!fits || tensor->dims[2] != 1 || tensor->dims[3] != 1) {
        return nib_fail(err, NIB_EFORMAT, "%s: shape %llu x %llu x %llu x %llu, expected %lld x %lld", tensor->name,
                        (unsigned long long)tensor->dims[0], (unsigned long long)tensor->dims[1],
                        (unsigned long long)tensor->dims[2], (unsigned long long)tensor->dims[3], (long long)cols,
                        (long long)rows);
    }
    return NIB_OK;
}

/* A tensor as a matrix. Absent: NIB_OK and data NULL when optional, else NIB_EFORMAT. */
static nib_matrix find_matrix(binder *b, const char *name, int64_t rows, int64_t cols, bool optional) {
    nib_matrix matrix = {0};
    if (b->status != NIB_OK) {
        return matrix;
    }
    const nib_tensor *tensor = nib_gguf_find_tensor(b->gguf, name);
    if (tensor == NULL) {
        if (!optional) {
            b->status = nib_fail(b->err, NIB_EFORMAT, "%s: missing, expected a tensor of %lld x %lld", name,
                                 (long long)cols, (long long)rows);
        }
        return matrix;
    }
    const nib_dtype_traits *traits = nib_dtype_find(tensor->type);
    if (traits == NULL || !traits->computes) {
        b->status = nib_fail(b->err, NIB_EUNSUPPORTED,
                             "%s: type %s, expected F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, "
                             "Q8_0, Q4_K, Q5_K or Q6_K",
                             name, traits == NULL ? "unknown" : traits->name);
        return matrix;
    }
    b->status = check_shape(tensor, rows, cols, b->err);
    if (b->status != NIB_OK) {
        return matrix;
    }
    matrix.data = tensor->data;
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.row_bytes = (size_t)cols / traits->block * traits->block_bytes;
    matrix.dtype = (nib_dtype)tensor->type;
    b->weights->n_params += rows * cols;
    b->weights->bytes += tensor->size_bytes;
    return matrix;
}

/* A vector as binary32, copied: files may store it as any type and align it as they like. */
static const float *find_vector(binder *b, const char *name, int64_t n, bool optional) {
    nib_matrix matrix = find_matrix(b, name, 1, n, optional);
    if (b->status != NIB_OK || matrix.data == NULL) {
        return NULL;
    }
    nib_weights *weights = b->weights;
    if (weights->cap_vectors - weights->n_vectors < (size_t)n) {
        b->status = nib_fail(b->err, NIB_EFORMAT, "%s: more vectors than the architecture has", name);
        return NULL;
    }
    float *vector = weights->vectors + weights->n_vectors;
    b->kernels->dequantize(vector, &matrix, 0);
    weights->n_vectors += (size_t)n;
    return vector;
}

static void layer_name(char name[96], int64_t layer, const char *part, const char *what) {
    (void)snprintf(name, 96, "blk.%lld.%s.%s", (long long)layer, part, what);
}

static nib_linear bind_linear(binder *b, int64_t layer, const char *part, int64_t rows, int64_t cols,
                              bool optional_bias) {
    char name[96];
    layer_name(name, layer, part, "weight");
    nib_linear linear = {find_matrix(b, name, rows, cols, false), NULL};
    layer_name(name, layer, part, "bias");
    linear.bias = find_vector(b, name, rows, optional_bias);
    return linear;
}

/* `rows` rows of a tensor from `first` on. */
static nib_linear rows_of(const nib_linear *all, int64_t first, int64_t rows) {
    nib_linear part = *all;
    part.w.rows = rows;
    if (all->w.data != NULL) {
        part.w.data = (const unsigned char *)all->w.data + (size_t)first * all->w.row_bytes;
    }
    if (all->bias != NULL) {
        part.bias = all->bias + first;
    }
    return part;
}

static void bind_qkv(binder *b, int64_t i, nib_layer *layer) {
    const nib_config *c = b->config;
    int64_t q_rows = c->H * c->E, k_rows = c->K * c->E;
    bool optional_bias = !c->arch->qkv_bias;
    if (c->arch->fused_qkv) {
        nib_linear all = bind_linear(b, i, "attn_qkv", q_rows + 2 * k_rows, c->D, optional_bias);
        layer->q = rows_of(&all, 0, q_rows);
        layer->k = rows_of(&all, q_rows, k_rows);
        layer->v = rows_of(&all, q_rows + k_rows, k_rows);
        return;
    }
    layer->q = bind_linear(b, i, "attn_q", q_rows, c->D, optional_bias);
    layer->k = bind_linear(b, i, "attn_k", k_rows, c->D, optional_bias);
    layer->v = bind_linear(b, i, "attn_v", k_rows, c->D, optional_bias);
}

/* The norm of one tensor's name and another's, which is there in LayerNorm only. */
static nib_norm bind_named_norm(binder *b, const char *weight, const char *bias, int64_t n) {
    nib_norm norm = {find_vector(b, weight, n, false), NULL};
    if (b->config->arch->norm == NIB_NORM_LAYER) {
        norm.bias = find_vector(b, bias, n, false);
    }
    return norm;
}

static nib_norm bind_norm(binder *b, int64_t layer, const char *part, int64_t n) {
    char weight[96], bias[96];
    layer_name(weight, layer, part, "weight");
    layer_name(bias, layer, part, "bias");
    return bind_named_norm(b, weight, bias, n);
}

static void bind_layer(binder *b, int64_t i) {
    const nib_config *c = b->config;
    nib_layer *layer = &b->weights->layers[i];
    bool optional = c->arch->norm == NIB_NORM_RMS; /* models with LayerNorm have a bias in every product */
    layer->attn_norm = bind_norm(b, i, "attn_norm", c->D);
    bind_qkv(b, i, layer);
    layer->o = bind_linear(b, i, "attn_output", c->D, c->H * c->E, optional);
    layer->ffn_norm = bind_norm(b, i, "ffn_norm", c->D);
    if (nib_arch_is_gated(c->arch)) {
        layer->gate = bind_linear(b, i, "ffn_gate", c->F, c->D, optional);
    }
    layer->up = bind_linear(b, i, "ffn_up", c->F, c->D, optional);
    layer->down = bind_linear(b, i, "ffn_down", c->D, c->F, optional);
    if (c->arch->qk_norm) {
        layer->q_norm = bind_norm(b, i, "attn_q_norm", c->E);
        layer->k_norm = bind_norm(b, i, "attn_k_norm", c->E);
    }
    if (c->arch->place == NIB_NORM_AROUND) {
        layer->attn_post_norm = bind_norm(b, i, "post_attention_norm", c->D);
        layer->ffn_post_norm = bind_norm(b, i, "post_ffw_norm", c->D);
    }
}

/* Room for every norm and bias that a layer can have. */
static size_t vector_room(const nib_config *c) {
    int64_t layer = 8 * c->D + 4 * c->E + c->H * c->E + 2 * c->K * c->E + c->D + 2 * c->F + c->D;
    return (size_t)(c->L * layer + 2 * c->D + c->V + c->rope_dim / 2);
}

size_t nib_weights_table_bytes(const nib_config *config) {
    return vector_room(config) * sizeof(float) + (size_t)config->L * sizeof(nib_layer);
}

static nib_status allocate(nib_weights *weights, const nib_config *config, size_t room, nib_error *err) {
    *weights = (nib_weights){0};
    weights->layers = nib_alloc_zero((size_t)config->L, sizeof weights->layers[0]);
    weights->vectors = nib_alloc(room, sizeof weights->vectors[0]);
    weights->cap_vectors = room;
    if (weights->layers == NULL || weights->vectors == NULL) {
        nib_weights_free(weights);
        return nib_fail_memory(err, room * sizeof(float), "norms, biases and the table of layers");
    }
    return NIB_OK;
}

static void bind_rope_divisors(binder *b) {
    const char *name = "rope_freqs.weight";
    int64_t n = b->config->rope_dim / 2;
    const float *divisors = n > 0 ? find_vector(b, name, n, true) : NULL;
    for (int64_t i = 0; divisors != NULL && i < n && b->status == NIB_OK; i++) {
        if (!(divisors[i] > 0.0f)) {
            b->status = nib_fail(b->err, NIB_EFORMAT, "%s: element %lld is not above 0", name, (long long)i);
        }
    }
    b->weights->rope_divisors = divisors;
}

nib_status nib_weights_bind(nib_weights *weights, const nib_config *config, const nib_gguf *gguf,
                            const nib_kernels *kernels, nib_error *err) {
    nib_status status = allocate(weights, config, vector_room(config), err);
    if (status != NIB_OK) {
        return status;
    }
    binder b = {weights, config, gguf, kernels, err, NIB_OK};
    weights->embedding = find_matrix(&b, "token_embd.weight", config->V, config->D, false);
    if (config->arch->position == NIB_POSITION_LEARNED) {
        weights->positions = find_matrix(&b, "position_embd.weight", config->context, config->D, false);
    }
    for (int64_t i = 0; i < config->L && b.status == NIB_OK; i++) {
        bind_layer(&b, i);
    }
    bind_rope_divisors(&b);
    weights->last_norm = bind_named_norm(&b, "output_norm.weight", "output_norm.bias", config->D);
    weights->head.w = find_matrix(&b, "output.weight", config->V, config->D, true);
    if (weights->head.w.data == NULL) {
        weights->head.w = weights->embedding;
    } else {
        weights->head.bias = find_vector(&b, "output.bias", config->V, true);
    }
    if (b.status != NIB_OK) {
        nib_weights_free(weights);
    }
    return b.status;
}

/* ---- Packing. */

enum { LINEARS = 7 };

static void linears_of(nib_linear *linears[LINEARS], nib_layer *layer) {
    nib_linear *all[LINEARS] = {&layer->q, &layer->k, &layer->v, &layer->o, &layer->gate, &layer->up, &layer->down};
    memcpy(linears, all, sizeof all);
}

size_t nib_weights_tile_bytes(nib_dtype dtype, int64_t rows, int64_t cols) {
    size_t bytes = nib_packs(dtype) ? nib_strip_bytes(dtype, cols) * (size_t)nib_strips(rows) : 0;
    return (bytes + 63) / 64 * 64;
}

/* Bytes of the tiles of a matrix, a multiple of 64; 0 when it is not packed. */
static size_t tile_bytes(const nib_matrix *w) {
    return w->data == NULL ? 0 : nib_weights_tile_bytes(w->dtype, w->rows, w->cols);
}

static size_t all_tile_bytes(const nib_weights *weights, const nib_config *config) {
    bool tied = weights->head.w.data == weights->embedding.data;
    size_t bytes = tile_bytes(&weights->embedding) + (tied ? 0 : tile_bytes(&weights->head.w));
    for (int64_t i = 0; i < config->L; i++) {
        nib_linear *linears[LINEARS];
        linears_of(linears, &weights->layers[i]);
        for (int j = 0; j < LINEARS; j++) {
            bytes += tile_bytes(&linears[j]->w);
        }
    }
    return bytes;
}

/* Packs w into the tiles at *at and moves *at behind them. In steps, so that the file's pages and the tiles made from them
 * are not both there at once. */
static void pack_matrix(nib_matrix *w, unsigned char **at, bool mapped) {
    enum { STEP_BYTES = 8 << 20 };
    size_t bytes = tile_bytes(w), strip_bytes = nib_strip_bytes(w->dtype, w->cols), done = 0;
    if (bytes == 0) {
        return;
    }
    const unsigned char *source = w->data;
    for (int64_t strip = 0; strip < nib_strips(w->rows); strip++) {
        nib_pack_strip(*at + (size_t)strip * strip_bytes, w, strip);
        int64_t rows = (strip + 1) * NIB_STRIP < w->rows ? (strip + 1) * NIB_STRIP : w->rows;
        size_t read = (size_t)rows * w->row_bytes;
        if (mapped && (read - done >= STEP_BYTES || rows == w->rows)) {
            nib_mapping_drop(source + done, read - done);
            done = read;
        }
    }
    w->data = *at;
    w->packed = true;
    *at += bytes;
}

nib_status nib_weights_pack(nib_weights *weights, const nib_config *config, bool mapped, nib_error *err) {
    size_t bytes = all_tile_bytes(weights, config);
    if (bytes == 0) {
        return NIB_OK;
    }
    weights->tiles = nib_alloc_large(bytes);
    if (weights->tiles == NULL) {
        return nib_fail_memory(err, bytes, "packed weights");
    }
    weights->tiles_bytes = bytes;
    unsigned char *at = weights->tiles;
    bool tied = weights->head.w.data == weights->embedding.data;
    for (int64_t i = 0; i < config->L; i++) {
        nib_linear *linears[LINEARS];
        linears_of(linears, &weights->layers[i]);
        for (int j = 0; j < LINEARS; j++) {
            pack_matrix(&linears[j]->w, &at, mapped);
        }
    }
    pack_matrix(&weights->embedding, &at, mapped);
    if (tied) {
        weights->head.w = weights->embedding;
    } else {
        pack_matrix(&weights->head.w, &at, mapped);
    }
    return NIB_OK;
}

void nib_weights_free(nib_weights *weights) {
    nib_free(weights->tiles);
    nib_free(weights->layers);
    nib_free(weights->vectors);
    *weights = (nib_weights){0};
}
