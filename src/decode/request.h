/* What the rows of a prompt share: its options, checked and completed with what the model says. */
#ifndef NIB_DECODE_REQUEST_H
#define NIB_DECODE_REQUEST_H

#include <nib/generate.h>

#include "decode/sample.h"
#include "decode/session.h"
#include "decode/words.h"

typedef struct nib_request {
    nib_generate_options options; /* lists borrowed from the caller */
    nib_sample_params params;
    nib_words words;        /* params point into it */
    const int32_t *end_ids; /* [n_end_ids] that end a row; borrowed from the model or the options */
    size_t n_end_ids;
    int32_t pad_id;
} nib_request;

/* Check options against the session's model. Free the request in any case. Returns NIB_OK; NIB_EINVAL;
 * NIB_EUNSUPPORTED; NIB_ENOMEM. */
nib_status nib_request_init(nib_request *request, const nib_session *session, const nib_generate_options *options,
                            nib_error *err);

void nib_request_free(nib_request *request);

/* New tokens that the options and the context allow behind a prompt of n_prompt tokens. */
size_t nib_request_limit(const nib_request *request, const nib_session *session, size_t n_prompt);

/* Room for the alternatives of a token, the chosen one included; 0 when none are asked for. */
size_t nib_request_top(const nib_request *request, const nib_model *model);

/* Check one prompt: its ids, its length, the room of a static cache, a start token for an empty one. Returns NIB_OK;
 * NIB_EINVAL, NIB_EFULL with row and index. */
nib_status nib_request_check_prompt(const nib_request *request, const nib_session *session, const nib_prompt *prompt,
                                    size_t row, nib_error *err);

#endif
