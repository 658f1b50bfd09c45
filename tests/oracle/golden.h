/* Golden files of greedy generations: reads the plain form that tools/oracle/golden_file.py describes and writes. For
 * tests: what cannot be read ends the program with a message. */
#ifndef NIB_TEST_GOLDEN_H
#define NIB_TEST_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

typedef struct golden_ids {
    int32_t *ids; /* [n] */
    size_t n;
} golden_ids;

typedef struct golden_text {
    char *bytes; /* [len], terminated */
    size_t len;
} golden_text;

/* One generation. */
typedef struct golden_case {
    char name[32];
    golden_text said, wrote; /* prompt and new text; of models with a vocabulary */
    golden_ids prompt, end, ids;
    double penalty;
    size_t limit;      /* most new tokens */
    double *logprobs;  /* [ids.n] raw, nats */
    double *processed; /* [ids.n] after the penalty; NULL without one */
    double *margins;   /* [ids.n] best less second best score */
} golden_case;

typedef struct golden {
    char file[64]; /* the model */
    char sha256[65];
    size_t V;
    golden_ids text;    /* of tiny models: what logits are given for */
    double max_logit;   /* set by golden_logits */
    golden_case *cases; /* [n_cases] */
    size_t n_cases;
} golden;

/* Read NAME.golden of a directory. */
golden golden_read(const char *directory, const char *name);

/* Read NAME.logits.f32 [text.n][V], and set max_logit. The caller frees them. */
float *golden_logits(golden *golden, const char *directory, const char *name);

/* The case of that name. */
const golden_case *golden_find(const golden *golden, const char *name);

void golden_free(golden *golden);

#endif
