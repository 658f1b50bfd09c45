/* A tiny llama file, made in memory, that writes what it is told: after each token comes the one that its script names,
 * with a probability that rounds to 1. It goes through the real reader, tokenizer, forward pass and decode loop.
 *
 * How: one-hot embeddings, sub-blocks that add 0, a head with one large weight for each token. Ids: 0 "!", then <start>,
 * <end> (the file's eos), then the pieces, each followed by the next, the last one by <end>. Pieces may hold any bytes, and
 * the same ones. */
#ifndef NIB_TEST_SCRIPT_MODEL_H
#define NIB_TEST_SCRIPT_MODEL_H

#include <nib/nib.h>

enum { SCRIPT_OTHER = 0, SCRIPT_START = 1, SCRIPT_END = 2, SCRIPT_FIRST = 3, SCRIPT_MOST = 200 };

typedef struct script_piece {
    const char *bytes;
    size_t len;
} script_piece;

typedef struct script_spec {
    const script_piece *pieces; /* [n] */
    size_t n;
    const char *spelling[8]; /* [n_control] control tokens behind the pieces, ids SCRIPT_FIRST + n and on */
    size_t n_control;
    size_t n_extra;                 /* rows of the embedding behind them that stand for no token */
    int32_t eot_id, eom_id, pad_id; /* -1: the file names none */
    int64_t context;                /* 0: 256 */
    const char *pre;                /* the pre-tokenizer; NULL: gpt-2 */
    int silent_on_start;            /* the file does not say whether to add the start token; else it says so */
    int32_t after[SCRIPT_MOST];     /* what follows token t where it is not 0, which is then no token of the script */
} script_spec;

#define SCRIPT_INIT                                                                                                    \
    { .eot_id = -1, .eom_id = -1, .pad_id = -1 }

/* The file, an exact heap block to be freed with free(). */
unsigned char *script_file(size_t *len, const script_spec *script);

/* A model with its file. */
typedef struct script_model {
    nib_model *model;
    unsigned char *file;
} script_model;

script_model script_model_open(const script_spec *script);
void script_model_close(script_model *opened);

#endif
