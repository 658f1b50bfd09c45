/* Small GGUF models of any mixture of weight types, made in memory: every bit of a block is random but its scales, which
 * are such that activations stay near 1. Among the codes are all extreme ones; each block of Q8_0 has a -128, some blocks
 * are all 0. The same spec and seed give the same file. */
#ifndef NIB_TEST_QUANT_MODEL_H
#define NIB_TEST_QUANT_MODEL_H

#include <nib/nib.h>

enum { QUANT_MOST_TYPES = 8 };

typedef struct quant_spec {
    const char *name;
    const char *arch; /* "llama" or "gemma3" */
    uint32_t D, L, H, K, E, F, V;
    uint32_t context, window; /* window 0: the file names none */
    uint32_t n_types;
    int types
        [QUANT_MOST_TYPES]; /* [n_types] NIB_F32, ..: of the matrices in turn; Q8_0 or F32 where one does not fit */
    int tied;               /* 1: no matrix of its own for the head */
    uint64_t seed;
} quant_spec;

/* The file, an exact heap block to be freed with free(). */
unsigned char *quant_file(size_t *len, const quant_spec *spec);

/* The file as a model, or ends the test: compute and cpu as in nib_model_options. The file must outlive it. */
nib_model *quant_open(const unsigned char *file, size_t len, int compute, int cpu);

#endif
