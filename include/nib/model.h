/* Models: weights, tokenizer and configuration, loaded once, immutable, shared between sessions and threads. */
#ifndef NIB_MODEL_H
#define NIB_MODEL_H

#include "options.h"
#include "status.h"
#include "tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nib_model nib_model;

/** What a model is. Sizes are counts of elements; an id is -1 where the model has none. */
typedef struct nib_model_info {
    uint32_t size;            /* sizeof(nib_model_info), set by the caller */
    const char *architecture; /* "llama", "gemma3", "gpt2", "custom", ..; borrowed while the model lives */
    const char *name;         /* what the file calls it, or ""; borrowed */
    int64_t V, D, L, H, K;    /* vocabulary, width, layers, heads, kv heads; 0 for what a custom model does not have */
    int64_t head_dim;         /* width of one head */
    int64_t context;          /* tokens that one timeline can hold */
    int32_t pad_id, start_id, end_id;
    const int32_t *end_ids; /* [n_end_ids] the union of what the files say; borrowed while the model lives */
    size_t n_end_ids;
    int add_start;             /* 1: prompts of text begin with start_id */
    int has_chat_template;     /* 1: the file holds a chat template */
    const char *chat_template; /* the template, or NULL; borrowed */
    int64_t n_params;          /* weights */
    size_t weight_bytes;       /* bytes of the weights as stored */
    const char *cpu;           /* the instruction set in use */
    int compute;               /* NIB_COMPUTE_* */
    int cache_type;            /* NIB_CACHE_TYPE_*: what "auto" is for a session on this model */
} nib_model_info;

/** What opening a file and decoding would take, in bytes. */
typedef struct nib_model_memory {
    uint32_t size;       /* sizeof(nib_model_memory), set by the caller */
    size_t weights;      /* mapped from the file */
    size_t resident;     /* allocated by opening it: packed weights, tables and tokenizer, an upper bound */
    size_t kv_per_token; /* KV cache of one token */
    size_t session;      /* work area of one session without its KV cache */
} nib_model_memory;

/** Open a model file. While it is open, the same file with the same options gives the same model once more; each opening
 *  has its own nib_model_free.
 *
 *  path     a GGUF file (the first of a split one), or "random:NAME[,seed=S][,key=value..]" (see nib_model_random)
 *  options  NULL for the defaults
 *
 *  Returns NIB_OK; NIB_EIO; NIB_EFORMAT; NIB_EUNSUPPORTED (architecture, type, pre-tokenizer: named); NIB_EINVAL
 *          (an option, or an instruction set that this machine lacks); NIB_ENOMEM; NIB_ECHECK (this build does not keep
 *          the numeric contract).
 */
NIB_API nib_status nib_model_open(nib_model **out, const char *path, const nib_model_options *options, nib_error *err);

/** Open a GGUF file that lies in memory.
 *
 *  data [len]  borrowed until the model is freed
 *
 *  Returns as nib_model_open.
 */
NIB_API nib_status nib_model_open_memory(nib_model **out, const void *data, size_t len,
                                         const nib_model_options *options, nib_error *err);

/** A model with random weights: the same seed gives the same weights on every machine. It has no tokenizer.
 *
 *  name       llama-tiny  V 256 D 64 L 2 H 4 K 2, feed-forward 128, context 128, untied
 *             qwen2-tiny  the same, tied, biases of q, k and v
 *             qwen3-tiny  the same, tied, heads of 32 with norms of q and k
 *             gpt2-tiny   gpt2-small with V 256 D 64 L 2 H 4, context 128
 *             gpt-config  V 50257 D 768 L 12 H 12, feed-forward 4D, context 1024, tied, biases, LayerNorm before, GELU,
 *                         sinusoidal positions
 *             gpt-tiny    gpt-config with V 256 D 64 L 2 H 2, feed-forward 128, context 128
 *             gpt2-small  V 50257 D 768 L 12 H 12, context 1024, learned positions
 *             gpt         V 40478 D 768 L 12 H 12, context 512, learned positions, norms after, tanh GELU
 *  overrides  NULL, or "key=value[,key=value..]" with vocab_size, d_model, n_heads, n_kv_heads, n_layers,
 *             d_ff, max_seq_len
 *  seed       0 .. 2^64-1
 *
 *  Returns NIB_OK; NIB_EINVAL (unknown name or key, impossible size); NIB_ENOMEM.
 *  Source  the configurations of the lmxlab and lucid pages.
 */
NIB_API nib_status nib_model_random(nib_model **out, const char *name, const char *overrides, uint64_t seed,
                                    const nib_model_options *options, nib_error *err);

/** Fill logits [rows][V] with the model's logits after each prefix.
 *
 *  prefix [rows][n]  token ids
 *
 *  Returns 0, or anything else to end the call with NIB_ECALLBACK.
 */
typedef int (*nib_forward_fn)(float *logits, const int32_t *prefix, size_t rows, size_t n, void *user);

/** Fill logits [V] after one more token of a row whose earlier tokens were given before, position by position. Position
 *  0 begins the row anew; a position that was given before rewinds the row to it.
 *
 *  row  0 .. max_rows - 1 of the session: rows grow side by side, each with a cache of its own. A model that keeps one
 *       cache only is used with max_rows 1.
 *
 *  Returns 0, or anything else to end the call with NIB_ECALLBACK.
 */
typedef int (*nib_step_fn)(float *logits, int32_t token, size_t row, size_t position, void *user);

/** A forward function of the caller's. */
typedef struct nib_custom_model {
    uint32_t size; /* sizeof(nib_custom_model), set by NIB_CUSTOM_MODEL_INIT */
    int64_t V;
    int64_t context;
    int32_t pad_id, start_id, end_id; /* -1: none */
    nib_forward_fn forward;           /* needed unless step is given */
    nib_step_fn step;                 /* NULL: every step re-encodes the whole prefix with forward */
    void *user;
} nib_custom_model;

#define NIB_CUSTOM_MODEL_INIT                                                                                          \
    { (uint32_t)sizeof(nib_custom_model), 0, 0, -1, -1, -1, NULL, NULL, NULL }

/** Any model can generate: a session, the sampler and the stop rules run on the caller's function. It has no tokenizer.
 *
 *  custom  copied; its functions are called by the thread that uses the session, with the floating-point environment
 *          of the library: round to nearest, subnormal numbers kept
 *
 *  A model of this kind keeps its cache in `user`, so it serves one session at a time when step is given.
 *  Returns NIB_OK; NIB_EINVAL (V or context below 1, an id outside -1 .. V-1, no function); NIB_ENOMEM.
 *  Source  lucid page, CausalLMMixin.
 */
NIB_API nib_status nib_model_custom(nib_model **out, const nib_custom_model *custom, nib_error *err);

/** Read what a model is. Returns NIB_OK; NIB_EINVAL (info->size is not sizeof(nib_model_info)). */
NIB_API nib_status nib_model_get_info(nib_model_info *info, const nib_model *model, nib_error *err);

/** The model's tokenizer, borrowed while the model lives; NULL when it has none. */
NIB_API const nib_tokenizer *nib_model_tokenizer(const nib_model *model);

/** What opening `path` with the default options would take, without opening it: only the head of the file is read.
 *
 *  Returns as nib_model_open.
 */
NIB_API nib_status nib_model_estimate(nib_model_memory *memory, const char *path, nib_error *err);

/** Give a model back. It is freed when its last session is. NULL is accepted. */
NIB_API void nib_model_free(nib_model *model);

#ifdef __cplusplus
}
#endif
#endif
