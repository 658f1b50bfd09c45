/* A custom model whose logits are known, and the little that the tests of decoding share. After n tokens it gives row
 * n - 1 of a table, the last row from there on; without a table the logits are a hash of the whole prefix, so that a
 * token that was lost, doubled or misplaced changes everything after it. It notes what it was asked. */
#ifndef NIB_TEST_TABLE_MODEL_H
#define NIB_TEST_TABLE_MODEL_H

#include <nib/nib.h>

enum { TABLE_ROOM = 256, TABLE_ROWS = 4 }; /* tokens that are noted, rows that a step can build */

typedef struct table_model {
    int64_t V;
    int64_t context;    /* 0: TABLE_ROOM */
    const float *table; /* [n_rows][V], or NULL: a hash of the prefix */
    size_t n_rows;
    int32_t pad_id, start_id, end_id;
    size_t fail_at;      /* the call that answers 7, from 1; 0: none */
    nib_session *cancel; /* cancelled in call cancel_at */
    size_t cancel_at;
    /* what was asked */
    size_t n_forward, n_step;
    size_t longest;             /* tokens of the longest prefix given to forward */
    int32_t tokens[TABLE_ROOM]; /* [n] the last prefix given to forward, or what the steps built in row 0 */
    size_t n;
    size_t positions[TABLE_ROOM], rows[TABLE_ROOM]; /* [n_step] of the steps, as far as there is room */
    size_t n_row[TABLE_ROWS];
    uint64_t hashes[TABLE_ROWS][TABLE_ROOM + 1]; /* [n_row + 1] of each prefix of a row */
} table_model;

/* No table, no special ids. */
#define TABLE_MODEL_INIT                                                                                               \
    { .V = 50, .pad_id = -1, .start_id = -1, .end_id = -1 }

typedef enum table_functions { TABLE_FORWARD = 1, TABLE_STEP = 2, TABLE_BOTH = 3 } table_functions;

/* A model with one or both functions; the table must outlive it. */
nib_model *table_model_open(table_model *table, table_functions functions);

/* Logits [V] after prefix [n], as the model gives them. */
void table_model_logits(float *logits, const table_model *table, const int32_t *prefix, size_t n);

/* Fails the test with the message when status is not NIB_OK. */
void must(nib_status status, const nib_error *err);

/* The status is the one expected, err says so, and its message holds each of the texts, separated by '|'. */
void must_fail(nib_status status, nib_status expected, const nib_error *err, const char *texts);

/* A session with the defaults, or ends the test. */
nib_session *new_session(nib_model *model);

/* Generates one row, or ends the test. */
nib_result *generate_one(nib_session *session, const int32_t *ids, size_t n, const nib_generate_options *options);

/* Both rows hold the same prompt, ids, text, finish and bits of log-probabilities. */
void check_same_row(const nib_row *a, const nib_row *b);

#endif
