/* nib_stream: the loop with one place, handed out a token at a time, so candidate after candidate. */
#include <string.h>

#include "base/memory.h"
#include "decode/loop.h"

struct nib_stream {
    nib_request request;
    const nib_request *each; /* &request: what the loop borrows */
    nib_prompt prompt;
    nib_loop loop;
    bool cancelled;  /* its last step was handed out */
    int32_t *tokens; /* [prompt.n] */
    int32_t *ids;    /* copies of the lists of options */
    nib_text *stops;
    char *stop_bytes;
};

/* Copies of the id lists, one after the other. */
static nib_status copy_ids(nib_stream *stream, nib_generate_options *options, nib_error *err) {
    size_t n = options->n_stop_id + options->n_eos_id;
    if (n == 0) {
        return NIB_OK;
    }
    stream->ids = nib_alloc(n, sizeof stream->ids[0]);
    if (stream->ids == NULL) {
        return nib_fail_memory(err, n * sizeof stream->ids[0], "the options of a stream");
    }
    if (options->n_stop_id > 0) {
        memcpy(stream->ids, options->stop_id, options->n_stop_id * sizeof stream->ids[0]);
    }
    if (options->n_eos_id > 0) {
        memcpy(stream->ids + options->n_stop_id, options->eos_id, options->n_eos_id * sizeof stream->ids[0]);
    }
    options->stop_id = stream->ids;
    options->eos_id = stream->ids + options->n_stop_id;
    return NIB_OK;
}

static nib_status copy_stops(nib_stream *stream, nib_generate_options *options, nib_error *err) {
    size_t bytes = 0;
    for (size_t i = 0; i < options->n_stop; i++) {
        bytes += options->stop[i].len;
    }
    stream->stops = nib_alloc(options->n_stop, sizeof stream->stops[0]);
    stream->stop_bytes = nib_alloc(bytes, 1);
    if (stream->stops == NULL || stream->stop_bytes == NULL) {
        return nib_fail_memory(err, bytes, "the stop texts of a stream");
    }
    char *at = stream->stop_bytes;
    for (size_t i = 0; i < options->n_stop; i++) {
        memcpy(at, options->stop[i].bytes, options->stop[i].len);
        stream->stops[i] = (nib_text){at, options->stop[i].len};
        at += options->stop[i].len;
    }
    options->stop = stream->stops;
    return NIB_OK;
}

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

/* The request is checked with the caller's lists, then made again over the copies, with the same seed. */
static nib_status fill(nib_stream *stream, nib_session *session, const nib_prompt *prompt,
                       const nib_generate_options *options, nib_error *err) {
    nib_status status = nib_request_init(&stream->request, session, options, err);
    status = status != NIB_OK ? status : nib_request_check_prompt(&stream->request, session, prompt, 0, err);
    if (status != NIB_OK) {
        return status;
    }
    nib_generate_options copy = stream->request.options;
    status = copy_ids(stream, &copy, err);
    status = status != NIB_OK ? status : copy_stops(stream, &copy, err);
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
    nib_free(stream->tokens);
    nib_free(stream->ids);
    nib_free(stream->stops);
    nib_free(stream->stop_bytes);
    nib_free(stream);
}
