/* Options and prompts of a generation, checked and completed. */
#include "decode/request.h"

#include "base/fpenv.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"

enum { DEFAULT_NEW_TOKENS = 100, LLAMA_LAST_N = 64 };

/* Which ids end a row, and when they may be drawn. */
static void choose_ends(nib_request *request, const nib_model *model) {
    const nib_generate_options *options = &request->options;
    if (options->ignore_eos == NIB_IGNORE_EOS_YES) {
        return;
    }
    bool replaced = options->n_eos_id > 0;
    request->end_ids = replaced ? options->eos_id : model->end_ids;
    request->n_end_ids = replaced ? options->n_eos_id : model->n_end_ids;
}

/* The fields of params that are the options' own. */
static nib_sample_params copy_params(const nib_generate_options *options) {
    return (nib_sample_params){
        .greedy = options->do_sample == NIB_DO_SAMPLE_NO || options->temperature == 0,
        .llama_order = options->order == NIB_ORDER_LLAMA,
        .temperature = options->temperature,
        .dynatemp_range = options->dynatemp_range,
        .dynatemp_exponent = options->dynatemp_exponent,
        .top_k = options->top_k,
        .top_k_ties = options->top_k_ties == NIB_TOP_K_TIES_KEEP,
        .top_p = options->top_p,
        .min_p = options->min_p,
        .typical_p = options->typical_p,
        .epsilon_cutoff = options->epsilon_cutoff,
        .eta_cutoff = options->eta_cutoff,
        .top_n_sigma = options->top_n_sigma,
        .xtc_probability = options->xtc_probability,
        .xtc_threshold = options->xtc_threshold,
        .repetition_penalty = options->repetition_penalty,
        .frequency_penalty = options->frequency_penalty,
        .presence_penalty = options->presence_penalty,
        .repeat_last_n = options->repeat_last_n,
        .penalise_generated = options->penalty_scope == NIB_PENALTY_SCOPE_GENERATED,
        .no_repeat_ngram_size = options->no_repeat_ngram_size,
        .dry_multiplier = options->dry_multiplier,
        .dry_base = options->dry_base,
        .dry_allowed_length = options->dry_allowed_length,
        .dry_last_n = options->dry_last_n,
        .biases = options->logit_bias,
        .n_biases = options->n_logit_bias,
        .banned = options->suppress_id,
        .n_banned = options->n_suppress_id,
        .allowed = options->allowed_id,
        .n_allowed = options->n_allowed_id,
        .hook = options->logits_callback,
        .hook_user = options->logits_callback_user,
        .cdf = options->sampler == NIB_SAMPLER_CDF,
        .processed_logprobs = options->logprobs == NIB_LOGPROBS_PROCESSED,
        .top_logprobs = options->top_logprobs,
        .seed = options->seed,
    };
}

static void choose_params(nib_request *request) {
    nib_generate_options *options = &request->options;
    if (!options->has_seed) {
        options->seed = nib_random_seed();
        options->has_seed = 1;
    }
    nib_sample_params *params = &request->params;
    *params = copy_params(options);
    if (params->repeat_last_n == NIB_UNSET) {
        params->repeat_last_n = params->llama_order ? LLAMA_LAST_N : -1;
    }
    params->breakers = request->words.breakers;
    params->n_breakers = request->words.n_breakers;
    params->bad = request->words.bad;
    params->n_bad = request->words.n_bad;
    bool ban = options->ignore_eos == NIB_IGNORE_EOS_BAN;
    params->late[0].ids = request->end_ids;
    params->late[0].n = request->n_end_ids;
    params->late[0].min_new = ban ? INT64_MAX : options->min_new_tokens;
    params->late[1].ids = options->stop_id;
    params->late[1].n = options->n_stop_id;
    params->late[1].min_new = options->min_new_tokens;
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
    request->options = *taken;
    choose_ends(request, model);
    status = nib_words_init(&request->words, model, taken, request->end_ids, request->n_end_ids, err);
    if (status != NIB_OK) {
        return status;
    }
    choose_params(request);
    int32_t own = model->pad_id >= 0 ? model->pad_id : 0;
    request->pad_id = taken->pad_id != NIB_UNSET ? (int32_t)taken->pad_id : own;
    return NIB_OK;
}

nib_status nib_request_init(nib_request *request, const nib_session *session, const nib_generate_options *options,
                            nib_error *err) {
    *request = (nib_request){0};
    uint64_t saved = nib_fp_enter(); /* a host that flushes subnormals would take a tiny temperature for 0 */
    nib_status status = check_request(request, session, options, err);
    nib_fp_leave(saved);
    return status;
}

void nib_request_free(nib_request *request) {
    nib_words_free(&request->words);
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

size_t nib_request_top(const nib_request *request, const nib_model *model) {
    int64_t n = request->options.top_logprobs, V = model->config.V;
    return n == 0 ? 0 : (size_t)(n < V ? n : V) + 1;
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
