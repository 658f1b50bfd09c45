/* One row of a generation as it grows: its ids, the text that is certain, and what ends it. Where its logits come from is
 * the loop's business. */
#ifndef NIB_DECODE_ROW_H
#define NIB_DECODE_ROW_H

#include "decode/request.h"
#include "decode/stop.h"
#include "text/tokenizer_parts.h"

typedef struct nib_growing {
    const nib_model *model;
    const nib_request *request;
    size_t row, index; /* prompt, and candidate of that prompt */
    int32_t *ids;      /* [n] prompt and new tokens */
    size_t n, cap, n_prompt;
    size_t limit;                /* of new tokens */
    nib_timeline *line;          /* NULL: not encoded yet */
    nib_detokenizer detokenizer; /* of the new tokens: their text continues the prompt */
    nib_stop stop;
    nib_utf8_stream utf8;
    nib_buffer raw;    /* bytes of one token that no stop string holds back */
    nib_buffer text;   /* what the current step gives out */
    nib_token token;   /* the current step */
    nib_choice choice; /* of this step, if status says so */
    size_t cap_top;    /* of choice.top */
    nib_status status;
    nib_error error;
    bool fed, done; /* encoded in this step; ended */
} nib_growing;

/* Begin candidate `index` of prompt `row`, which was checked, with `limit` new tokens at most. What it holds of an earlier
 * row is used again. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_growing_begin(nib_growing *growing, const nib_model *model, const nib_request *request,
                             nib_prompt prompt, size_t row, size_t index, size_t limit, nib_error *err);

/* Take the chosen token: the next step of the row. *token is borrowed until its next step. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_growing_take(const nib_token **token, nib_growing *growing, nib_error *err);

/* End the row without a token, with the text that was held back. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_growing_end(const nib_token **token, nib_growing *growing, nib_finish finish, nib_error *err);

void nib_growing_free(nib_growing *growing);

#endif
