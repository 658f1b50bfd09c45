/* nib_stream: the loop with one place, handed out a token at a time, so candidate after candidate. */
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "decode/loop.h"

struct nib_stream {
    nib_request request;
    const nib_request *each; /* &request: what the loop borrows */
    nib_prompt prompt;
    nib_loop loop;
    bool cancelled;  /* its last step was handed out */
    int32_t *tokens; /* [prompt.n] */
    void *lists;     /* copies of the options' */
};

static nib_status copy_prompt(nib_stream *stream, const nib_prompt *prompt, nib_error *err) {
    stream->tokens = nib_alloc(prompt->n, sizeof stream->tokens[0]);
    if (stream->tokens == NULL) {
        return nib_fail_memory(err, prompt->n * sizeof stream->tokens[0], "the prompt of a stream");
    }
    if (prompt->n > 0) {
        memcpy(stream->tokens, prompt->ids, prompt->n * sizeof stream->tokens[0]);
    }
    stream->prompt = (nib_prompt){stream->tokens, prompt->n};
    return NIB_OK;
}

/* The options are checked with the caller's lists, then the request is made over copies, with the same seed. */
static nib_status fill(nib_stream *stream, nib_session *session, const nib_prompt *prompt,
                       const nib_generate_options *options, nib_error *err) {
    nib_request checked;
    nib_generate_options copy;
    nib_status status = nib_request_init(&checked, session, options, err);
    status = status != NIB_OK ? status : nib_request_check_prompt(&checked, session, prompt, 0, err);
    status = status != NIB_OK ? status : nib_generate_options_copy(&copy, &stream->lists, &checked.options, err);
    nib_request_free(&checked);
    status = status != NIB_OK ? status : copy_prompt(stream, prompt, err);
    status = status != NIB_OK ? status : nib_request_init(&stream->request, session, &copy, err);
    stream->each = &stream->request;
    return status != NIB_OK ? status : nib_loop_init(&stream->loop, session, &stream->each, &stream->prompt, 1, 1, err);
}

nib_status nib_stream_open(nib_stream **out, nib_session *session, nib_prompt prompt,
                           const nib_generate_options *options, nib_error *err) {
    *out = NULL;
    nib_stream *stream = nib_alloc_zero(1, sizeof *stream);
    if (stream == NULL) {
        return nib_fail_memory(err, sizeof *stream, "a stream");
    }
    nib_status status = fill(stream, session, &prompt, options, err);
    if (status != NIB_OK) {
        nib_stream_free(stream);
        return status;
    }
    *out = stream;
    return NIB_OK;
}

nib_status nib_stream_next(const nib_token **token, nib_stream *stream, nib_error *err) {
    *token = NULL;
    if (stream->cancelled) { /* the candidates that were not begun have nothing to say */
        return NIB_OK;
    }
    nib_status status = nib_loop_next(token, &stream->loop, err);
    stream->cancelled = status == NIB_OK && *token != NULL && (*token)->finish == NIB_FINISH_CANCELLED;
    return status;
}

uint64_t nib_stream_seed(const nib_stream *stream) {
    return stream->request.options.seed;
}

void nib_stream_free(nib_stream *stream) {
    if (stream == NULL) {
        return;
    }
    nib_loop_free(&stream->loop);
    nib_request_free(&stream->request);
    nib_free(stream->tokens);
    nib_free(stream->lists);
    nib_free(stream);
}
