/* Options and prompts of a generation, checked and completed. */
#include "decode/request.h"

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

size_t nib_request_limit(const nib_request *request, const nib_session *session, size_t n_prompt) {
    const nib_generate_options *options = &request->options;
    int64_t limit = DEFAULT_NEW_TOKENS;
    if (options->max_new_tokens != NIB_UNSET) {
        limit = options->max_new_tokens;
    } else if (options->max_length != NIB_UNSET) {
        limit = options->max_length - (int64_t)n_prompt;
    }
    int64_t room = session->model->config.context - (int64_t)n_prompt;
    limit = limit < room ? limit : room;
    return limit > 0 ? (size_t)limit : 0;
}

nib_status nib_request_check_prompt(const nib_request *request, const nib_session *session, const nib_prompt *prompt,
                                    size_t row, nib_error *err) {
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
    size_t room = nib_session_room(session), limit = nib_request_limit(request, session, n);
    if (n + limit > room && room < (size_t)config->context) {
        return nib_fail(err, NIB_EFULL,
                        "prompt %zu: %zu tokens and %zu new ones are %zu, expected at most max_cache_len %zu", row, n,
                        limit, n + limit, room);
    }
    return NIB_OK;
}
