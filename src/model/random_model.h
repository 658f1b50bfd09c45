/* The named configurations of nib_model_random, and how their text is read. */
#ifndef NIB_MODEL_RANDOM_MODEL_H
#define NIB_MODEL_RANDOM_MODEL_H

#include "model/arch.h"

/* "random:NAME[,key=value..]" in parts. */
typedef struct nib_random_spec {
    nib_config config;
    bool tied;
    uint64_t seed; /* 0 unless the text has seed=S */
} nib_random_spec;

/* The configuration `name` [name_len] with the overrides "key=value[,key=value..]" [len]; seed=S is taken when with_seed.
 * Returns NIB_OK; NIB_EINVAL (unknown name or key, a value that is no number or makes an impossible model). */
nib_status nib_random_parse(nib_random_spec *spec, const char *name, size_t name_len, const char *overrides, size_t len,
                            bool with_seed, nib_error *err);

#endif
