/* The one decode loop: prefill, choose, append, stop; a token at a time. nib_generate and nib_stream are this loop. */
#ifndef NIB_DECODE_LOOP_H
#define NIB_DECODE_LOOP_H

#include <nib/generate.h>

#include "decode/sample.h"
#include "decode/session.h"
#include "decode/stop.h"
#include "text/tokenizer_parts.h"

/* A request with its options checked and completed: what every row shares. */
typedef struct nib_request {
    nib_generate_options options; /* lists borrowed from the caller */
    nib_sample_params params;
    const int32_t *end_ids; /* [n_end_ids] that end a row; borrowed from the model or the options */
    size_t n_end_ids;
    int32_t pad_id;
} nib_request;

/* Check options against the session's model. Returns NIB_OK; NIB_EINVAL; NIB_EUNSUPPORTED. */
nib_status nib_request_init(nib_request *request, const nib_session *session, const nib_generate_options *options,
                            nib_error *err);

/* Check one prompt: its ids, its length, a start token for an empty one. Returns NIB_OK; NIB_EINVAL, NIB_EFULL with row
 * and index. */
nib_status nib_request_check_prompt(const nib_session *session, const nib_prompt *prompt, size_t row, nib_error *err);

/* One row as it grows. */
typedef struct nib_loop {
    nib_session *session;
    const nib_request *request;
    nib_sampler *sampler;
    float *logits; /* [V] after the last token */
    int32_t *ids;  /* [n] prompt and new tokens */
    size_t n, cap, n_prompt;
    size_t limit; /* of new tokens */
    size_t row, index;
    nib_detokenizer detokenizer; /* of the new tokens: their text continues the prompt */
    nib_stop stop;
    nib_utf8_stream utf8;
    nib_buffer raw;  /* bytes of one token that no stop string holds back */
    nib_buffer text; /* what the current step gives out */
    nib_token token; /* the current step */
    bool begun, done;
} nib_loop;

/* Work areas for rows of this request. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_loop_init(nib_loop *loop, nib_session *session, const nib_request *request, nib_error *err);
void nib_loop_free(nib_loop *loop);

/* Begin a row: candidate `index` of prompt `row`, which was checked. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_loop_begin(nib_loop *loop, nib_prompt prompt, size_t row, size_t index, nib_error *err);

/* The next step of the row; *token is NULL when it is over. Returns NIB_OK; NIB_ENUMERIC; NIB_ECALLBACK; NIB_ENOMEM. */
nib_status nib_loop_next(const nib_token **token, nib_loop *loop, nib_error *err);

/* End the row now, as cancelled: the last step, with the text that was held back. */
nib_status nib_loop_cancel(const nib_token **token, nib_loop *loop, nib_error *err);

#endif
