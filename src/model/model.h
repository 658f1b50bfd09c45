/* The inside of a model, for decode/. */
#ifndef NIB_MODEL_MODEL_H
#define NIB_MODEL_MODEL_H

#include <stdatomic.h>

#include <nib/model.h>

#include "base/file.h"
#include "model/forward.h"

struct nib_model {
    atomic_size_t refs;
    nib_model *next_shared; /* of the list of models that were opened by path; see model.c */
    nib_file_id file;       /* of those, what was opened */
    bool shared;
    nib_gguf *gguf;           /* NULL of random and custom models */
    nib_tokenizer *tokenizer; /* NULL when the file has none */
    nib_config config;        /* of a custom model only V and context */
    nib_weights weights;
    const nib_kernels *kernels;
    int compute;             /* NIB_COMPUTE_* */
    nib_custom_model custom; /* forward and step NULL when it is none */
    char *name;
    char *chat_template; /* NULL: none */
    int32_t pad_id, start_id;
    int32_t *end_ids; /* [n_end_ids] */
    size_t n_end_ids;
    bool add_start;
};

/* The element type of a session's cache by its option: auto is f16 with compute fast, f32 with exact. */
nib_kv_type nib_model_kv_type(const nib_model *model, int cache_type);

bool nib_model_is_custom(const nib_model *model);

/* One more holder; nib_model_free gives it back. */
void nib_model_retain(nib_model *model);

#endif
