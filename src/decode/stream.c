/* nib_stream: the loop handed out a token at a time, candidate after candidate. */
#include <string.h>

#include "base/memory.h"
#include "decode/loop.h"

struct nib_stream {
    nib_request request;
    nib_loop loop;
    int32_t *prompt; /* [n_prompt] */
    size_t n_prompt;
    size_t index; /* candidate that is running */
    int32_t *ids; /* copies of the lists of options */
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
    stream->prompt = nib_alloc(prompt->n, sizeof stream->prompt[0]);
    if (stream->prompt == NULL) {
        return nib_fail_memory(err, prompt->n * sizeof stream->prompt[0], "the prompt of a stream");
    }
    if (prompt->n > 0) {
        memcpy(stream->prompt, prompt->ids, prompt->n * sizeof stream->prompt[0]);
    }
    stream->n_prompt = prompt->n;
    return NIB_OK;
}

static nib_status begin(nib_stream *stream, nib_error *err) {
    nib_prompt prompt = {stream->prompt, stream->n_prompt};
    return nib_loop_begin(&stream->loop, prompt, 0, stream->index, err);
}

/* The request is checked with the caller's lists, then made again over the copies, with the same seed. */
static nib_status fill(nib_stream *stream, nib_session *session, const nib_prompt *prompt,
                       const nib_generate_options *options, nib_error *err) {
    nib_status status = nib_request_init(&stream->request, session, options, err);
    status = status != NIB_OK ? status : nib_request_check_prompt(session, prompt, 0, err);
    if (status != NIB_OK) {
        return status;
    }
    nib_generate_options copy = stream->request.options;
    status = copy_ids(stream, &copy, err);
    status = status != NIB_OK ? status : copy_stops(stream, &copy, err);
    status = status != NIB_OK ? status : copy_prompt(stream, prompt, err);
    status = status != NIB_OK ? status : nib_request_init(&stream->request, session, &copy, err);
    status = status != NIB_OK ? status : nib_loop_init(&stream->loop, session, &stream->request, err);
    return status != NIB_OK ? status : begin(stream, err);
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
    nib_status status = nib_loop_next(token, &stream->loop, err);
    if (status != NIB_OK || *token != NULL) {
        return status;
    }
    bool cancelled = stream->loop.token.finish == NIB_FINISH_CANCELLED;
    if (cancelled || stream->index + 1 >= (size_t)stream->request.options.num_return) {
        return NIB_OK;
    }
    stream->index++;
    status = begin(stream, err);
    return status != NIB_OK ? status : nib_loop_next(token, &stream->loop, err);
}

uint64_t nib_stream_seed(const nib_stream *stream) {
    return stream->request.options.seed;
}

void nib_stream_free(nib_stream *stream) {
    if (stream == NULL) {
        return;
    }
    nib_loop_free(&stream->loop);
    nib_free(stream->prompt);
    nib_free(stream->ids);
    nib_free(stream->stops);
    nib_free(stream->stop_bytes);
    nib_free(stream);
}
