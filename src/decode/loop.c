/* The one decode loop. */
#include "decode/loop.h"

#include <string.h>

#include "base/fpenv.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"

enum { DEFAULT_NEW_TOKENS = 100 };

/* Which ids end a row, and which may not be drawn. */
static void choose_ends(nib_request *request, const nib_model *model) {
    const nib_generate_options *options = &request->options;
    if (options->ignore_eos == NIB_IGNORE_EOS_YES) {
        return;
    }
    bool replaced = options->n_eos_id > 0;
    request->end_ids = replaced ? options->eos_id : model->end_ids;
    request->n_end_ids = replaced ? options->n_eos_id : model->n_end_ids;
}

static void choose_params(nib_request *request) {
    nib_generate_options *options = &request->options;
    if (!options->has_seed) {
        options->seed = nib_random_seed();
        options->has_seed = 1;
    }
    request->params = (nib_sample_params){
        .greedy = options->do_sample == NIB_DO_SAMPLE_NO || options->temperature == 0,
        .temperature = options->temperature,
        .top_k = options->top_k,
        .top_p = options->top_p,
        .min_p = options->min_p,
        .repetition_penalty = options->repetition_penalty,
        .cdf = options->sampler == NIB_SAMPLER_CDF,
        .processed_logprobs = options->logprobs == NIB_LOGPROBS_PROCESSED,
        .seed = options->seed,
    };
}

static nib_status check_request(nib_request *request, const nib_session *session, const nib_generate_options *options,
                                nib_error *err) {
    static const nib_generate_options defaults = NIB_GENERATE_OPTIONS_INIT;
    const nib_model *model = session->model;
    const nib_generate_options *taken = options == NULL ? &defaults : options;
    nib_status status = nib_options_check(taken, NIB_SCOPE_GENERATE, err);
    status = status != NIB_OK ? status : nib_generate_options_check_ids(taken, model->config.V, err);
    if (status != NIB_OK) {
        return status;
    }
    if (taken->n_stop > 0 && model->tokenizer == NULL) {
        return nib_fail(err, NIB_EUNSUPPORTED, "stop: %zu texts given, expected none: the model has no tokenizer",
                        taken->n_stop);
    }
    *request = (nib_request){.options = *taken};
    choose_ends(request, model);
    choose_params(request);
    int32_t own = model->pad_id >= 0 ? model->pad_id : 0;
    request->pad_id = taken->pad_id != NIB_UNSET ? (int32_t)taken->pad_id : own;
    return NIB_OK;
}

nib_status nib_request_init(nib_request *request, const nib_session *session, const nib_generate_options *options,
                            nib_error *err) {
    uint64_t saved = nib_fp_enter(); /* a host that flushes subnormals would take a tiny temperature for 0 */
    nib_status status = check_request(request, session, options, err);
    nib_fp_leave(saved);
    return status;
}

nib_status nib_request_check_prompt(const nib_session *session, const nib_prompt *prompt, size_t row, nib_error *err) {
    const nib_config *config = &session->model->config;
    if (prompt->n > 0 && prompt->ids == NULL) {
        return nib_fail(err, NIB_EINVAL, "prompt %zu: NULL with n %zu, expected ids", row, prompt->n);
    }
    if (prompt->n == 0 && session->model->start_id < 0) {
        return nib_fail(err, NIB_EINVAL, "prompt %zu: empty, expected at least one token: the model has no start token",
                        row);
    }
    for (size_t i = 0; i < prompt->n; i++) {
        if (prompt->ids[i] < 0 || prompt->ids[i] >= config->V) {
            return nib_fail(err, NIB_EINVAL, "prompt %zu: id %d at index %zu, expected 0 to %lld", row, prompt->ids[i],
                            i, (long long)(config->V - 1));
        }
    }
    size_t n = prompt->n > 0 ? prompt->n : 1;
    if (n >= (size_t)config->context) {
        return nib_fail(err, NIB_EFULL, "prompt %zu: %zu tokens, expected fewer than the context of %lld", row, n,
                        (long long)config->context);
    }
    return NIB_OK;
}

nib_status nib_loop_init(nib_loop *loop, nib_session *session, const nib_request *request, nib_error *err) {
    size_t V = (size_t)session->model->config.V;
    *loop = (nib_loop){.session = session, .request = request, .done = true};
    loop->stop.texts = request->options.stop;
    loop->stop.n_texts = request->options.n_stop;
    loop->logits = nib_alloc(V, sizeof(float));
    if (loop->logits == NULL) {
        return nib_fail_memory(err, V * sizeof(float), "logits");
    }
    nib_status status = nib_sampler_new(&loop->sampler, session->model->config.V, session->model->kernels, err);
    if (status != NIB_OK) {
        nib_loop_free(loop);
    }
    return status;
}

void nib_loop_free(nib_loop *loop) {
    nib_sampler_free(loop->sampler);
    nib_free(loop->logits);
    nib_free(loop->ids);
    nib_buffer_free(&loop->stop.held);
    nib_buffer_free(&loop->raw);
    nib_buffer_free(&loop->text);
    *loop = (nib_loop){.done = true};
}

/* New tokens that the options and the context allow. */
static size_t token_limit(const nib_generate_options *options, size_t n_prompt, int64_t context) {
    int64_t limit = DEFAULT_NEW_TOKENS;
    if (options->max_new_tokens != NIB_UNSET) {
        limit = options->max_new_tokens;
    } else if (options->max_length != NIB_UNSET) {
        limit = options->max_length - (int64_t)n_prompt;
    }
    int64_t room = context - (int64_t)n_prompt;
    limit = limit < room ? limit : room;
    return limit > 0 ? (size_t)limit : 0;
}

nib_status nib_loop_begin(nib_loop *loop, nib_prompt prompt, size_t row, size_t index, nib_error *err) {
    int32_t start = loop->session->model->start_id;
    nib_prompt fed = prompt.n > 0 ? prompt : (nib_prompt){&start, 1};
    if (!nib_reserve(&loop->ids, &loop->cap, fed.n, sizeof loop->ids[0])) {
        return nib_fail_memory(err, fed.n * sizeof loop->ids[0], "the ids of a row");
    }
    memcpy(loop->ids, fed.ids, fed.n * sizeof loop->ids[0]);
    loop->n = loop->n_prompt = fed.n;
    loop->limit = token_limit(&loop->request->options, fed.n, loop->session->model->config.context);
    loop->row = row;
    loop->index = index;
    loop->utf8 = (nib_utf8_stream){0};
    if (loop->session->model->tokenizer != NULL) {
        nib_detokenizer_begin(&loop->detokenizer, loop->session->model->tokenizer, NIB_DETOKENIZE_CONTINUE);
    }
    nib_buffer_clear(&loop->stop.held);
    loop->begun = loop->done = false;
    return NIB_OK;
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
static void clear_step(nib_loop *loop) {
    nib_buffer_clear(&loop->text);
    loop->token = (nib_token){.row = loop->row, .index = loop->index, .pos = loop->n, .id = -1};
}

/* Publish the step's text and, at the end of the row, all that was held back. */
static nib_status finish_step(const nib_token **token, nib_loop *loop, nib_finish finish, nib_error *err) {
    bool ok = true;
    if (finish != NIB_FINISH_NONE) {
        nib_buffer_clear(&loop->raw);
        ok = nib_stop_finish(&loop->stop, &loop->raw) &&
             nib_utf8_push(&loop->utf8, &loop->text, loop->raw.bytes, loop->raw.len) &&
             nib_utf8_finish(&loop->utf8, &loop->text);
        loop->done = true;
    }
    if (!ok) {
        return nib_fail_memory(err, loop->raw.len, "the text of a row");
    }
    if (loop->session->model->tokenizer != NULL) {
        loop->token.text = loop->text.len > 0 ? loop->text.bytes : "";
        loop->token.text_len = loop->text.len;
    }
    loop->token.finish = finish;
    *token = &loop->token;
    return NIB_OK;
}

nib_status nib_loop_cancel(const nib_token **token, nib_loop *loop, nib_error *err) {
    clear_step(loop);
    return finish_step(token, loop, NIB_FINISH_CANCELLED, err);
}

/* Logits after all ids of the row. */
static nib_status encode(nib_loop *loop, nib_error *err) {
    if (loop->begun) {
        return nib_session_step(loop->logits, loop->session, loop->ids[loop->n - 1], err);
    }
    nib_status status = nib_session_sync(loop->logits, loop->session, loop->ids, loop->n, loop->n - 1, err);
    loop->begun = status == NIB_OK;
    return status;
}

static nib_status choose(nib_choice *choice, nib_loop *loop, nib_error *err) {
    nib_sample_place place = {loop->ids, loop->n, (uint32_t)loop->n, (uint32_t)loop->index, loop->row};
    uint64_t saved = nib_fp_enter();
    nib_status status = nib_sampler_choose(choice, loop->sampler, &loop->request->params, &place, loop->logits, err);
    nib_fp_leave(saved);
    return status;
}

/* The text of a drawn token; *stopped when it completes a stop string. Control tokens, and rows of the embedding that
 * stand for no token, have none. */
static nib_status add_text(nib_loop *loop, bool *stopped, int32_t id, nib_error *err) {
    const nib_tokenizer *tokenizer = loop->session->model->tokenizer;
    *stopped = false;
    if (tokenizer == NULL || id >= nib_tokenizer_size(tokenizer)) {
        return NIB_OK;
    }
    size_t len;
    const char *piece = nib_detokenizer_next(&len, &loop->detokenizer, id);
    nib_buffer_clear(&loop->raw);
    if (!nib_stop_push(&loop->stop, &loop->raw, stopped, piece, len) ||
        !nib_utf8_push(&loop->utf8, &loop->text, loop->raw.bytes, loop->raw.len)) {
        return nib_fail_memory(err, len, "the text of a row");
    }
    return NIB_OK;
}

/* Take the chosen token into the row and see whether it ends it. */
static nib_status append(nib_finish *finish, nib_loop *loop, const nib_choice *choice, nib_error *err) {
    const nib_request *request = loop->request;
    if (!nib_reserve(&loop->ids, &loop->cap, loop->n + 1, sizeof loop->ids[0])) {
        return nib_fail_memory(err, (loop->n + 1) * sizeof loop->ids[0], "the ids of a row");
    }
    loop->ids[loop->n++] = choice->id;
    loop->token.id = choice->id;
    loop->token.logprob = choice->logprob;
    *finish = NIB_FINISH_STOP;
    if (contains(request->end_ids, request->n_end_ids, choice->id) ||
        contains(request->options.stop_id, request->options.n_stop_id, choice->id)) {
        return NIB_OK;
    }
    bool stopped;
    nib_status status = add_text(loop, &stopped, choice->id, err);
    if (!stopped) {
        *finish = loop->n - loop->n_prompt >= loop->limit ? NIB_FINISH_LENGTH : NIB_FINISH_NONE;
    }
    return status;
}

nib_status nib_loop_next(const nib_token **token, nib_loop *loop, nib_error *err) {
    *token = NULL;
    if (loop->done) {
        return NIB_OK;
    }
    clear_step(loop);
    if (loop->limit == 0) {
        return finish_step(token, loop, NIB_FINISH_LENGTH, err);
    }
    if (nib_session_take_cancel(loop->session)) {
        return nib_loop_cancel(token, loop, err);
    }
    nib_status status = encode(loop, err);
    if (status == NIB_ECANCELLED) {
        return nib_loop_cancel(token, loop, err);
    }
    nib_choice choice;
    nib_finish finish = NIB_FINISH_NONE;
    status = status != NIB_OK ? status : choose(&choice, loop, err);
    status = status != NIB_OK ? status : append(&finish, loop, &choice, err);
    return status != NIB_OK ? status : finish_step(token, loop, finish, err);
}
