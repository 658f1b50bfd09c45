/* The options of models, sessions and generations. Written by tools/options_gen.c from src/options.def: change
 * that file and run `make options`. */
/* clang-format off */
#ifndef NIB_OPTIONS_H
#define NIB_OPTIONS_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A whole number that was not given. */
#define NIB_UNSET INT64_MIN

/** Bytes with a length. */
typedef struct nib_text {
    const char *bytes;
    size_t len;
} nib_text;

/** A number that is added to the logit of the last of ids [n] where the others are the last tokens of the
 *  text; of one id always. -INFINITY bans it. */
typedef struct nib_bias {
    const int32_t *ids;
    size_t n; /* at least 1 */
    double bias;
} nib_bias;

/** Where logits belong. */
typedef struct nib_logits_place {
    size_t row, index;  /* prompt, and candidate of that prompt */
    const int32_t *ids; /* [n] prompt and output so far */
    size_t n, n_prompt;
} nib_logits_place;

/** Changes logits [V] in place, behind biases, penalties and bans and before the filters; -INFINITY bans a
 *  token, NaN and +infinity end the call with NIB_ENUMERIC. Returns 0; anything else ends it with
 *  NIB_ECALLBACK. */
typedef int (*nib_logits_fn)(float *logits, size_t V, const nib_logits_place *place, void *user);

enum { NIB_COMPUTE_EXACT = 0, NIB_COMPUTE_FAST = 1 };
enum { NIB_CPU_AUTO = 0, NIB_CPU_BASE = 1, NIB_CPU_AVX2 = 2, NIB_CPU_AVX512 = 3, NIB_CPU_AVX512VNNI = 4, NIB_CPU_NEON = 5, NIB_CPU_NEONDOT = 6 };

/** How a model is opened. */
typedef struct nib_model_options {
    uint32_t size; /* sizeof(nib_model_options), set by the INIT macro */
    /* Arithmetic of the products with quantised weights: exact (binary32 on the dequantised weights) or fast
       (activations rounded to int8 in blocks of 32); other weights are computed in binary32 in both. Default fast.
       Source: nib. */
    int compute;
    /* Instruction set of the kernels; the results are the same bits on each; auto takes NIB_CPU, else the best.
       Default auto. Source: nib. */
    int cpu;
} nib_model_options;

#define NIB_MODEL_OPTIONS_INIT { (uint32_t)sizeof(nib_model_options), 1, 0 }

enum { NIB_CACHE_DYNAMIC = 0, NIB_CACHE_STATIC = 1, NIB_CACHE_NONE = 2 };
enum { NIB_CACHE_TYPE_AUTO = 0, NIB_CACHE_TYPE_F32 = 1, NIB_CACHE_TYPE_F16 = 2, NIB_CACHE_TYPE_Q8_0 = 3 };

/** How a session computes. None of these changes a result but cache_type. */
typedef struct nib_session_options {
    uint32_t size; /* sizeof(nib_session_options), set by the INIT macro */
    /* Threads that compute; unset: as many as this process has processors, by affinity, cgroup quota and physical
       cores; the results are the same bits for each. Default unset, 1 to 256. Source: llama.cpp -t. */
    int64_t threads;
    /* KV cache: dynamic grows by pages, static takes max_cache_len at once, none encodes the whole text at each
       step. Default dynamic. Source: lucid use_cache, cache_implementation. */
    int cache;
    /* Element type of the KV cache; it changes the results; auto: f16 with compute fast, f32 with exact. Default
       auto. Source: llama.cpp --cache-type-k. */
    int cache_type;
    /* Room of the static cache in tokens of one row, prompt and new ones together; unset: what the longest row
       needs; refused with another kind of cache. Default unset, 1 to 2147483647. Source: lucid max_cache_len. */
    int64_t max_cache_len;
    /* Rows that go through the model together; others wait for one to end; the results are the same bits for each.
       Default 32, 1 to 65536. Source: vLLM max_num_seqs. */
    int64_t max_rows;
    /* Tokens of a prompt that are encoded in one pass; the results are the same bits for each. Default 256, 0 to
       2147483647. 0: the whole prompt at once. Source: vLLM chunked prefill. */
    int64_t prefill_chunk;
} nib_session_options;

#define NIB_SESSION_OPTIONS_INIT { (uint32_t)sizeof(nib_session_options), NIB_UNSET, 0, 0, NIB_UNSET, 32, 256 }

enum { NIB_DO_SAMPLE_UNSET = 0, NIB_DO_SAMPLE_NO = 1, NIB_DO_SAMPLE_YES = 2 };
enum { NIB_ORDER_HF = 0, NIB_ORDER_LLAMA = 1 };
enum { NIB_TOP_K_TIES_EXACT = 0, NIB_TOP_K_TIES_KEEP = 1 };
enum { NIB_PENALTY_SCOPE_ALL = 0, NIB_PENALTY_SCOPE_GENERATED = 1 };
enum { NIB_IGNORE_EOS_NO = 0, NIB_IGNORE_EOS_YES = 1, NIB_IGNORE_EOS_BAN = 2 };
enum { NIB_SAMPLER_NOISE = 0, NIB_SAMPLER_CDF = 1 };
enum { NIB_LOGPROBS_RAW = 0, NIB_LOGPROBS_PROCESSED = 1 };

/** One generation. */
typedef struct nib_generate_options {
    uint32_t size; /* sizeof(nib_generate_options), set by the INIT macro */
    /* Limit of new tokens for each row; wins over max_length; 100 when neither is given. Default unset, 0 to
       2147483647. 0: no new token. Source: lmxlab max_tokens, lucid max_new_tokens. */
    int64_t max_new_tokens;
    /* Limit of prompt and new tokens together; a prompt that long comes back unchanged; ignored when max_new_tokens
       is given. Default unset, 0 to 2147483647. 0: no new token. Source: lucid max_length. Differs: no default of
       20. */
    int64_t max_length;
    /* End ids and stop ids cannot be drawn, and stop texts are not looked for, before N new tokens are there.
       Default 0, 0 to 2147483647. 0: no least number. Source: transformers min_new_tokens, vLLM min_tokens. */
    int64_t min_new_tokens;
    /* Unset: draw when temperature is above 0; no: always the best token, whatever the temperature; yes: draw.
       Default unset. Source: lucid do_sample. Differs: unset draws. */
    int do_sample;
    /* Divisor of the logits before drawing: below 1 sharper, above 1 flatter. Default 1.0, 0.0 to 1e30. 0: the best
       token, as do_sample no. Source: lmxlab, lucid temperature. */
    double temperature;
    /* Temperature between temperature - X and temperature + X, the higher the more even the distribution; ignored
       when greedy. Default 0.0, 0.0 to 1e30. 0: the same temperature everywhere. Source: llama.cpp --dynatemp-range.
       */
    double dynatemp_range;
    /* Power of the evenness (entropy divided by the logarithm of the number of tokens) in dynatemp_range. Default
       1.0, 0.0 to 100.0. 0: always the upper end. Source: llama.cpp --dynatemp-exp. */
    double dynatemp_exponent;
    /* Order of the filters. hf: temperature, top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff,
       top_n_sigma, xtc. llama: top_n_sigma, top_k, typical_p, top_p, min_p, epsilon_cutoff, eta_cutoff, xtc,
       temperature; then frequency_penalty and presence_penalty count the prompt too, and repeat_last_n is 64 when
       unset. Default hf. Source: transformers; llama.cpp --samplers. */
    int order;
    /* Keep the N most probable tokens, exactly N; equal ones by lower id; ignored when greedy. Default 0, 0 to
       9223372036854775807. 0: no filter. Source: lmxlab, lucid top_k. */
    int64_t top_k;
    /* Of tokens as probable as the last that top_k keeps. exact: exactly N stay; keep: all of them stay. Default
       exact. Source: transformers: keep. */
    int top_k_ties;
    /* Keep the smallest set of the most probable tokens whose mass reaches X; 1 is no filter; ignored when greedy.
       Default 1.0, 0.0 to 1.0. 0: keep the best token. Source: lmxlab, lucid top_p. */
    double top_p;
    /* Keep the tokens at least X times as probable as the best; ignored when greedy. Default 0.0, 0.0 to 1.0. 0: no
       filter. Source: transformers min_p. */
    double min_p;
    /* Keep the smallest set of the tokens whose information is nearest to the entropy that reaches mass X; 1 is no
       filter; ignored when greedy. Default 1.0, 0.0 to 1.0. 0: keep the most typical token. Source: transformers
       typical_p. */
    double typical_p;
    /* Keep the tokens of probability X and more, and the best; ignored when greedy. Default 0.0, 0.0 to 1.0. 0: no
       filter. Source: transformers epsilon_cutoff. */
    double epsilon_cutoff;
    /* Keep the tokens of probability min(X, sqrt(X) exp(-entropy)) and more, and the best; ignored when greedy.
       Default 0.0, 0.0 to 1.0. 0: no filter. Source: transformers eta_cutoff. */
    double eta_cutoff;
    /* Keep the logits at most X standard deviations below the largest; ignored when greedy. Default 0.0, 0.0 to 1e6.
       0: no filter. Source: llama.cpp --top-n-sigma. */
    double top_n_sigma;
    /* Chance, at each token, that of the tokens of probability xtc_threshold and more all but the least likely are
       taken away; ignored when greedy. Default 0.0, 0.0 to 1.0. 0: off. Source: llama.cpp --xtc-probability. */
    double xtc_probability;
    /* See xtc_probability; above 0.5 it does nothing. Default 0.1, 0.0 to 1.0. Source: llama.cpp --xtc-threshold. */
    double xtc_threshold;
    /* Divide positive and multiply negative logits of every token of prompt and output by X, once each; 1 does
       nothing. Default 1.0, 1e-6 to 1e6. Source: lmxlab, lucid repetition_penalty. Differs: lmxlab leaves the prompt
       out. */
    double repetition_penalty;
    /* Subtract X from the logit of a token for each time it stands in the output; 0 does nothing. Default 0.0, -1e6
       to 1e6. Source: OpenAI frequency_penalty. */
    double frequency_penalty;
    /* Subtract X once from the logit of each token that stands in the output; 0 does nothing. Default 0.0, -1e6 to
       1e6. Source: OpenAI presence_penalty. */
    double presence_penalty;
    /* Tokens at the end of the text that repetition_penalty, frequency_penalty and presence_penalty look at; -1:
       all; unset: all, with order llama 64. Default unset, -1 to 2147483647. 0: no penalty. Source: llama.cpp
       --repeat-last-n. */
    int64_t repeat_last_n;
    /* What repetition_penalty looks at. all: prompt and output; generated: the output alone. Default all. Source:
       lmxlab: generated. */
    int penalty_scope;
    /* A token that would complete N tokens which stand in prompt or output already cannot be drawn. Default 0, 0 to
       2147483647. 0: off. Source: transformers no_repeat_ngram_size. */
    int64_t no_repeat_ngram_size;
    /* DRY: a token that would continue a repeat of L >= dry_allowed_length tokens loses X dry_base^(L -
       dry_allowed_length). Default 0.0, 0.0 to 1e6. 0: off. Source: llama.cpp --dry-multiplier. */
    double dry_multiplier;
    /* See dry_multiplier. Default 1.75, 1.0 to 1e6. Source: llama.cpp --dry-base. */
    double dry_base;
    /* Tokens that may repeat freely, see dry_multiplier. Default 2, 1 to 2147483647. Source: llama.cpp
       --dry-allowed-length. */
    int64_t dry_allowed_length;
    /* Tokens at the end of prompt and output in which DRY looks for repeats; -1: all. Default 64, -1 to 2147483647.
       0: no token. Source: llama.cpp --dry-penalty-last-n. */
    int64_t dry_last_n;
    /* Text across which DRY sees no repeat (repeatable); unset: the end of a line, :, " and *; none: there is none.
       Source: llama.cpp --dry-sequence-breaker. */
    const nib_text *dry_breaker; /* [n_dry_breaker] borrowed */
    size_t n_dry_breaker;
    /* Add X to the logit of an id (repeatable), -inf bans it; with several ids, 5,17,33=X, to that of the last where
       the others stand before it. Source: OpenAI logit_bias, transformers sequence_bias. */
    const nib_bias *logit_bias; /* [n_logit_bias] borrowed */
    size_t n_logit_bias;
    /* Text that is not to appear (repeatable): the last token of it cannot be drawn behind the others, both with and
       without a space in front. Source: vLLM bad_words, transformers bad_words_ids. */
    const nib_text *bad_words; /* [n_bad_words] borrowed */
    size_t n_bad_words;
    /* Token that cannot be drawn (repeatable). Source: transformers suppress_tokens. */
    const int32_t *suppress_id; /* [n_suppress_id] borrowed */
    size_t n_suppress_id;
    /* Tokens that can be drawn, and no other (repeatable); end ids are not excepted. Source: vLLM allowed_token_ids.
       */
    const int32_t *allowed_id; /* [n_allowed_id] borrowed */
    size_t n_allowed_id;
    /* Called on the thread of the caller for each row before the filters, may change the logits; NULL: none. Source:
       transformers logits_processor. */
    nib_logits_fn logits_callback;
    void *logits_callback_user;
    /* End before this text appears in the output (repeatable); found across token borders. Source: OpenAI stop. */
    const nib_text *stop; /* [n_stop] borrowed */
    size_t n_stop;
    /* End when this token is drawn (repeatable); it stays in the ids, not in the text. Source: lmxlab stop_tokens.
       */
    const int32_t *stop_id; /* [n_stop_id] borrowed */
    size_t n_stop_id;
    /* End tokens instead of the model's own (repeatable). Source: lucid eos_token_id. */
    const int32_t *eos_id; /* [n_eos_id] borrowed */
    size_t n_eos_id;
    /* Fills short rows of the result; the model's own when unset, else 0. Default unset, 0 to 2147483647. Source:
       lucid pad_token_id. */
    int64_t pad_id;
    /* Yes: end tokens may be drawn and do not end the row; ban: end tokens cannot be drawn. Default no. Source: vLLM
       ignore_eos; llama.cpp --ignore-eos. */
    int ignore_eos;
    /* 0 to 2^64-1; the same seed, prompt, options and file give the same tokens; random and reported when unset.
       Source: nib. */
    int has_seed;
    uint64_t seed;
    /* Candidates for each prompt; candidate 0 is the one of N = 1. Default 1, 1 to 65536. Source: transformers
       num_return_sequences. */
    int64_t num_return;
    /* How a token is drawn: noise (argmax of logit and shared Gumbel noise) or cdf (inverse CDF in id order); the
       distribution is the same. Default noise. Source: lucid inverse CDF; nib noise. */
    int sampler;
    /* Log-probabilities of the result: raw (the model's own) or processed (of the distribution drawn from). Default
       raw. Source: vLLM logprobs_mode. */
    int logprobs;
    /* The N most probable tokens at each place, with their log-probabilities, best first, equal ones by lower id;
       the chosen one is added when it is not among them. Default 0, 0 to 1048576. 0: none. Source: OpenAI
       top_logprobs. */
    int64_t top_logprobs;
} nib_generate_options;

#define NIB_GENERATE_OPTIONS_INIT { (uint32_t)sizeof(nib_generate_options), NIB_UNSET, NIB_UNSET, 0, 0, 1.0, 0.0, 1.0, 0, 0, 0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.1, 1.0, 0.0, 0.0, NIB_UNSET, 0, 0, 0.0, 1.75, 2, 64, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NIB_UNSET, 0, 0, 0, 1, 0, 0, 0 }

typedef enum nib_option_scope {
    NIB_SCOPE_MODEL = 0,
    NIB_SCOPE_SESSION,
    NIB_SCOPE_GENERATE
} nib_option_scope;

typedef enum nib_option_kind {
    NIB_OPTION_KIND_INT = 0, /* int64_t */
    NIB_OPTION_KIND_REAL,    /* double */
    NIB_OPTION_KIND_CHOICE,  /* int; one of words */
    NIB_OPTION_KIND_SEED,    /* uint64_t, after an int that says it is set */
    NIB_OPTION_KIND_IDS,     /* const int32_t *, and a size_t */
    NIB_OPTION_KIND_TEXTS,   /* const nib_text *, and a size_t */
    NIB_OPTION_KIND_BIASES,  /* const nib_bias *, and a size_t */
    NIB_OPTION_KIND_HOOK     /* nib_logits_fn, and a void * */
} nib_option_kind;

/** What is known of an option: for bindings, servers and commands that offer them all. Static storage. */
typedef struct nib_option {
    const char *name; /* of the field */
    nib_option_scope scope;
    nib_option_kind kind;
    size_t offset;           /* of the field in its struct */
    const char *initial;     /* the default, as text */
    int64_t low, high;       /* bounds of an INT */
    double real_low, real_high; /* bounds of a REAL */
    const char *words;       /* of a CHOICE, separated by spaces */
    const char *there;       /* for each word 'y', or 'n': comes in a later version */
    const char *flags;       /* of the command, separated by spaces; of a CHOICE without arg, flag j sets word j + 1 */
    const char *arg;         /* what the flag takes, or "" */
    const char *zero;        /* what 0 means, or "" */
    const char *help;        /* one sentence */
    const char *source;      /* where the option comes from */
} nib_option;

/** All options, in the order of options.def. */
NIB_API const nib_option *nib_option_list(size_t *n);

/** Set a field from text [len]: a number, or a word of a choice.
 *
 *  options  the struct of option->scope
 *
 *  Returns NIB_OK; NIB_EINVAL (no such value; names the value and what was expected; lists and functions
 *          are set in the struct); NIB_EUNSUPPORTED (a word that comes in a later version).
 */
NIB_API nib_status nib_option_set(void *options, const nib_option *option, const char *text, size_t len,
                                  nib_error *err);

/** Check a whole struct, as every call that takes one does.
 *
 *  Returns NIB_OK; NIB_EINVAL (a value out of its range, NaN, or against another option); NIB_EUNSUPPORTED.
 */
NIB_API nib_status nib_options_check(const void *options, nib_option_scope scope, nib_error *err);

#ifdef __cplusplus
}
#endif
/* clang-format on */
#endif
