/* One row of a generation as it grows. */
#include "decode/row.h"

#include <string.h>

#include "base/memory.h"

nib_status nib_growing_begin(nib_growing *growing, const nib_model *model, const nib_request *request,
                             nib_prompt prompt, size_t row, size_t index, size_t limit, nib_error *err) {
    nib_prompt fed = prompt.n > 0 ? prompt : (nib_prompt){&model->start_id, 1};
    size_t n_top = nib_request_top(request, model);
    if (n_top > 0 && !nib_reserve(&growing->choice.top, &growing->cap_top, n_top, sizeof(nib_alternative))) {
        return nib_fail_memory(err, n_top * sizeof(nib_alternative), "the alternatives of a row");
    }
    if (!nib_reserve(&growing->ids, &growing->cap, fed.n, sizeof growing->ids[0])) {
        return nib_fail_memory(err, fed.n * sizeof growing->ids[0], "the ids of a row");
    }
    memcpy(growing->ids, fed.ids, fed.n * sizeof growing->ids[0]);
    growing->n = growing->n_prompt = fed.n;
    growing->model = model;
    growing->request = request;
    growing->row = row;
    growing->index = index;
    growing->limit = limit;
    growing->line = NULL;
    growing->utf8 = (nib_utf8_stream){0};
    growing->stop.texts = request->options.stop;
    growing->stop.n_texts = request->options.n_stop;
    nib_buffer_clear(&growing->stop.held);
    if (model->tokenizer != NULL) {
        nib_detokenizer_begin(&growing->detokenizer, model->tokenizer, NIB_DETOKENIZE_CONTINUE);
    }
    growing->status = NIB_OK;
    growing->fed = growing->done = false;
    return NIB_OK;
}

void nib_growing_free(nib_growing *growing) {
    nib_free(growing->ids);
    nib_free(growing->choice.top);
    nib_buffer_free(&growing->stop.held);
    nib_buffer_free(&growing->raw);
    nib_buffer_free(&growing->text);
}

static bool contains(const int32_t *ids, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* A new step without a token. */
static void clear_step(nib_growing *growing) {
    nib_buffer_clear(&growing->text);
    growing->token = (nib_token){.row = growing->row, .index = growing->index, .pos = growing->n, .id = -1};
}

/* Publish the step's text and, at the end of the row, all that was held back. */
static nib_status finish_step(const nib_token **token, nib_growing *growing, nib_finish finish, nib_error *err) {
    bool ok = true;
    if (finish != NIB_FINISH_NONE) {
        nib_buffer_clear(&growing->raw);
        ok = nib_stop_finish(&growing->stop, &growing->raw) &&
             nib_utf8_push(&growing->utf8, &growing->text, growing->raw.bytes, growing->raw.len) &&
             nib_utf8_finish(&growing->utf8, &growing->text);
        growing->done = true;
    }
    if (!ok) {
        return nib_fail_memory(err, growing->raw.len, "the text of a row");
    }
    if (growing->model->tokenizer != NULL) {
        growing->token.text = growing->text.len > 0 ? growing->text.bytes : "";
        growing->token.text_len = growing->text.len;
    }
    growing->token.finish = finish;
    *token = &growing->token;
    return NIB_OK;
}

nib_status nib_growing_end(const nib_token **token, nib_growing *growing, nib_finish finish, nib_error *err) {
    clear_step(growing);
    return finish_step(token, growing, finish, err);
}

/* The text of a drawn token; *stopped when it completes a stop string. Control tokens, and rows of the embedding that
 * stand for no token, have none. */
static nib_status add_text(nib_growing *growing, bool *stopped, int32_t id, nib_error *err) {
    const nib_tokenizer *tokenizer = growing->model->tokenizer;
    *stopped = false;
    if (tokenizer == NULL || id >= nib_tokenizer_size(tokenizer)) {
        return NIB_OK;
    }
    size_t len;
    const char *piece = nib_detokenizer_next(&len, &growing->detokenizer, id);
    nib_buffer_clear(&growing->raw);
    bool early = (int64_t)(growing->n - growing->n_prompt) < growing->request->options.min_new_tokens;
    bool ok = early ? nib_buffer_add(&growing->raw, piece, len)
                    : nib_stop_push(&growing->stop, &growing->raw, stopped, piece, len);
    if (!ok || !nib_utf8_push(&growing->utf8, &growing->text, growing->raw.bytes, growing->raw.len)) {
        return nib_fail_memory(err, len, "the text of a row");
    }
    return NIB_OK;
}

/* Take the chosen token into the row and see whether it ends it. */
static nib_status append(nib_finish *finish, nib_growing *growing, const nib_choice *choice, nib_error *err) {
    const nib_request *request = growing->request;
    if (!nib_reserve(&growing->ids, &growing->cap, growing->n + 1, sizeof growing->ids[0])) {
        return nib_fail_memory(err, (growing->n + 1) * sizeof growing->ids[0], "the ids of a row");
    }
    growing->ids[growing->n++] = choice->id;
    growing->token.id = choice->id;
    growing->token.logprob = choice->logprob;
    growing->token.top = choice->n_top > 0 ? choice->top : NULL;
    growing->token.n_top = choice->n_top;
    *finish = NIB_FINISH_STOP;
    if (contains(request->end_ids, request->n_end_ids, choice->id) ||
        contains(request->options.stop_id, request->options.n_stop_id, choice->id)) {
        return NIB_OK;
    }
    bool stopped;
    nib_status status = add_text(growing, &stopped, choice->id, err);
    if (!stopped) {
        *finish = growing->n - growing->n_prompt >= growing->limit ? NIB_FINISH_LENGTH : NIB_FINISH_NONE;
    }
    return status;
}

nib_status nib_growing_take(const nib_token **token, nib_growing *growing, nib_error *err) {
    nib_finish finish = NIB_FINISH_NONE;
    clear_step(growing);
    nib_status status = append(&finish, growing, &growing->choice, err);
    return status != NIB_OK ? status : finish_step(token, growing, finish, err);
}
