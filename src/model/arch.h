/* Architectures as data: one row of a table for each, read by the one block function (forward.c), and the sizes of one
 * model. */
#ifndef NIB_MODEL_ARCH_H
#define NIB_MODEL_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "format/gguf.h"

typedef enum nib_norm_kind { NIB_NORM_RMS, NIB_NORM_LAYER } nib_norm_kind;

typedef enum nib_norm_place {
    NIB_NORM_BEFORE, /* x += f(norm(x)); a last norm before the head */
    NIB_NORM_AFTER,  /* x = norm(x + f(x)); no last norm */
    NIB_NORM_AROUND  /* x += norm(f(norm(x))); a last norm before the head */
} nib_norm_place;

typedef enum nib_position_kind {
    NIB_POSITION_ROPE_PAIRS,  /* rotary, elements (2i, 2i+1) */
    NIB_POSITION_ROPE_HALVES, /* rotary, elements (i, i + half) */
    NIB_POSITION_LEARNED,     /* a row of a table is added to the embedding */
    NIB_POSITION_SINUSOIDAL   /* sin and cos in turn are added to the embedding */
} nib_position_kind;

typedef enum nib_ffn_kind {
    NIB_FFN_SILU_GATED, /* down(silu(gate(x)) * up(x)) */
    NIB_FFN_GELU_TANH_GATED,
    NIB_FFN_GELU_TANH, /* down(gelu(up(x))) */
    NIB_FFN_GELU_ERF
} nib_ffn_kind;

typedef struct nib_arch {
    const char *name; /* general.architecture, and the prefix of the keys */
    nib_norm_kind norm;
    nib_norm_place place;
    nib_position_kind position;
    nib_ffn_kind ffn;
    bool qkv_bias;          /* q, k and v must have biases; elsewhere a bias is taken where there is one */
    bool fused_qkv;         /* q, k and v are the rows of one tensor, attn_qkv */
    bool qk_norm;           /* q and k of each head are normed before the rotation */
    bool scale_embedding;   /* embeddings are multiplied by sqrt(D) */
    int window_period;      /* 0: no windows; n: every n-th layer sees all, the others a window */
    double rope_base;       /* when the file names none */
    double local_rope_base; /* of the layers with a window */
} nib_arch;

/* The row of an architecture that files may name; NULL when there is none. */
const nib_arch *nib_arch_find(const char *name, size_t len);

/* "llama, gemma3 ..", for messages. */
const char *nib_arch_names(void);

typedef enum nib_rope_kind { NIB_ROPE_PLAIN, NIB_ROPE_LINEAR, NIB_ROPE_YARN } nib_rope_kind;

/* How rotary frequencies are stretched for texts longer than those of the training. */
typedef struct nib_rope_scaling {
    nib_rope_kind kind;
    double factor;   /* linear, YaRN: how much longer */
    double original; /* YaRN: tokens of the training's context */
    double beta_fast,
        beta_slow;         /* YaRN: turns within it above and below which a frequency is kept or stretched whole */
    double attn_factor;    /* YaRN: multiplies the magnitude, which follows from factor */
    const float *divisors; /* [rope_dim / 2] of each frequency (llama3), of the weights; NULL: none */
} nib_rope_scaling;

/* The sizes of one model. Filled by nib_config_read or by a random model, then checked by nib_config_check. */
typedef struct nib_config {
    const nib_arch *arch;
    int64_t V, D, L, H, K;
    int64_t E;        /* width of a head */
    int64_t F;        /* width of the feed-forward */
    int64_t context;  /* tokens of a timeline */
    int64_t window;   /* keys a windowed layer sees, itself included; 0: all */
    int64_t rope_dim; /* elements of a head that turn; 0 without rotary positions */
    double rope_base;
    nib_rope_scaling rope; /* not of windowed layers that have a base of their own */
    float eps;
    float q_scale; /* of the scores: once on q after rotation and norm */
} nib_config;

/* Read the sizes of a file. V comes from the embedding's shape. Returns NIB_OK; NIB_EFORMAT (a key is missing, of another
 * type or impossible); NIB_EUNSUPPORTED (architecture, kind of rope scaling, experts: named). */
nib_status nib_config_read(nib_config *config, const nib_gguf *gguf, nib_error *err);

/* Every size within bounds and fitting the others. Returns NIB_OK, or code with the size named. */
nib_status nib_config_check(const nib_config *config, nib_status code, nib_error *err);

/* Whether the feed-forward has a gate, and whether positions turn q and k. */
bool nib_arch_is_gated(const nib_arch *arch);
bool nib_arch_is_rotary(const nib_arch *arch);

/* Whether layer i sees all keys. */
bool nib_config_is_global(const nib_config *config, int64_t layer);

/* Elements of K and V for one token. */
size_t nib_config_kv_elements(const nib_config *config);

#endif
