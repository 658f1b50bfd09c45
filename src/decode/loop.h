/* The one decode loop: rows of any length go through the model together, each chooses its own token, ends by its own rules
 * and makes place for the next. nib_generate and nib_stream are this loop, handed out a token at a time. */
#ifndef NIB_DECODE_LOOP_H
#define NIB_DECODE_LOOP_H

#include "decode/row.h"

typedef struct nib_loop {
    nib_session *session;
    const nib_request *const *requests; /* [n_prompts] */
    const nib_prompt *prompts;          /* [n_prompts] checked */
    size_t n_prompts, prompt, index;    /* the next row to begin: candidate `index` of `prompt` */
    nib_growing *rows;                  /* [n_places] */
    nib_growing **live;                 /* [n_places] the first n_live are in the order in which they began */
    size_t n_places, n_live;
    size_t next;            /* of live: the first whose step was not handed out */
    nib_feed *feeds;        /* [n_places] */
    float *logits;          /* [n_places][V] */
    nib_sampler **samplers; /* [n_samplers] one for each thread that chooses */
    size_t n_samplers;
    bool cancelled;
    const nib_growing *current; /* whose step was handed out last */
} nib_loop;

/* Work areas for at most max_rows rows at once. requests and prompts are borrowed until nib_loop_free. Returns NIB_OK;
 * NIB_ENOMEM, and the loop holds nothing. */
nib_status nib_loop_init(nib_loop *loop, nib_session *session, const nib_request *const *requests,
                         const nib_prompt *prompts, size_t n_prompts, size_t max_rows, nib_error *err);
void nib_loop_free(nib_loop *loop);

/* The next step of a row, in rounds over the live ones; *token is NULL when all are over. Returns NIB_OK; NIB_ENUMERIC;
 * NIB_ECALLBACK; NIB_ENOMEM. */
nib_status nib_loop_next(const nib_token **token, nib_loop *loop, nib_error *err);

/* End all rows, those too that were not begun: each has one more step, without a token. */
void nib_loop_cancel(nib_loop *loop);

#endif
