/* The weights of a model, found by name and checked by shape. Matrices stay where they are (mapped), or are packed into
 * tiles; vectors (norms and biases) are copied to binary32. */
#ifndef NIB_MODEL_WEIGHTS_H
#define NIB_MODEL_WEIGHTS_H

#include "kernel/kernel.h"
#include "model/arch.h"

/* A matrix and its bias [rows], or NULL. */
typedef struct nib_linear {
    nib_matrix w;
    const float *bias;
} nib_linear;

/* A norm: weight [n]; bias [n], of LayerNorm only. */
typedef struct nib_norm {
    const float *weight, *bias;
} nib_norm;

typedef struct nib_layer {
    nib_norm attn_norm, attn_post_norm; /* [D] before (or after) attention; after it in models with norms around */
    nib_norm ffn_norm, ffn_post_norm;   /* [D] */
    nib_norm q_norm, k_norm;            /* [E] */
    nib_linear q, k, v, o;              /* [H*E][D], [K*E][D], [K*E][D], [D][H*E] */
    nib_linear gate, up, down;          /* [F][D], [F][D], [D][F] */
} nib_layer;

typedef struct nib_weights {
    nib_matrix embedding;       /* [V][D] */
    nib_matrix positions;       /* [context][D]; rows 0 when the model has none */
    nib_norm last_norm;         /* [D] */
    nib_linear head;            /* [V][D]; the embedding when tied */
    nib_layer *layers;          /* [L] */
    const float *rope_divisors; /* [rope_dim / 2], or NULL: for the config */
    float *vectors;             /* all norms and biases, and of a random model the matrices */
    size_t n_vectors, cap_vectors;
    unsigned char *tiles; /* of all packed matrices; NULL: none is */
    size_t tiles_bytes;
    int64_t n_params;
    size_t bytes; /* of all tensors as stored */
} nib_weights;

/* Find every tensor that the architecture needs. Returns NIB_OK; NIB_EFORMAT (missing, or of another shape: named);
 * NIB_EUNSUPPORTED (a type without kernels); NIB_ENOMEM. */
nib_status nib_weights_bind(nib_weights *weights, const nib_config *config, const nib_gguf *gguf,
                            const nib_kernels *kernels, nib_error *err);

/* Pack every quantised matrix that products read, for compute=fast; what is packed is no longer read where it was.
 * mapped: the matrices lie in mapped files, whose memory is given back on the way. Returns NIB_OK; NIB_ENOMEM: nothing is
 * packed. */
nib_status nib_weights_pack(nib_weights *weights, const nib_config *config, bool mapped, nib_error *err);

/* What packing a tensor of `rows` rows takes, 0 when it is not packed. */
size_t nib_weights_tile_bytes(nib_dtype dtype, int64_t rows, int64_t cols);

/* Bytes that binding allocates: norms, biases and the table of layers. */
size_t nib_weights_table_bytes(const nib_config *config);

/* Random weights; the same on every machine. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_weights_random(nib_weights *weights, const nib_config *config, bool tied, uint64_t seed, nib_error *err);

/* Bytes of a random model's weights, an upper bound; false when they do not fit a size. */
bool nib_weights_random_bytes(size_t *bytes, const nib_config *config, bool tied);

void nib_weights_free(nib_weights *weights);

#endif
