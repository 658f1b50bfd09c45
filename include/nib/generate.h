/* Generation: rows of prompts to rows of tokens; whole (nib_generate), with a callback for each token, or a token at a
 * time (nib_stream). All three are one loop. Rows of any length go through the model together, at most max_rows of the
 * session at a time; none depends on the others. */
#ifndef NIB_GENERATE_H
#define NIB_GENERATE_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One prompt: ids [n], borrowed for the call. An empty one begins with the model's start token, if it has one. */
typedef struct nib_prompt {
    const int32_t *ids;
    size_t n;
} nib_prompt;

/** Why a row ended. */
typedef enum nib_finish {
    NIB_FINISH_NONE = 0, /* it has not */
    NIB_FINISH_STOP,     /* an end id, a stop id or a stop string */
    NIB_FINISH_LENGTH,   /* the limit of tokens or the context */
    NIB_FINISH_CANCELLED /* nib_session_cancel or the callback */
} nib_finish;

/** A token that might have been drawn, with its log-probability in nats; -INFINITY: it could not. */
typedef struct nib_alternative {
    int32_t id;
    float logprob;
} nib_alternative;

/** One step of a row. Pointers are borrowed until the next step. */
typedef struct nib_token {
    size_t row;                 /* index of the prompt */
    size_t index;               /* candidate of that prompt */
    size_t pos;                 /* position in the timeline */
    int32_t id;                 /* -1: no token, only the text that was held back and the reason */
    float logprob;              /* nats; raw: of the model's own distribution; processed: of the one drawn from */
    const nib_alternative *top; /* [n_top] the most probable tokens, best first, the chosen one among them; NULL when
                                   top_logprobs is 0 */
    size_t n_top;
    const char *text; /* [text_len] text that is now certain, whole UTF-8 characters; NULL without a tokenizer */
    size_t text_len;
    nib_finish finish; /* NIB_FINISH_NONE until the row's last step */
} nib_token;

/** Called after each token, in rounds: one token of every row that is running, in the order of the rows. Returns 0 to go
 *  on; anything else ends all rows that have not ended as cancelled, and it is not called again. */
typedef int (*nib_token_fn)(const nib_token *token, void *user);

/** One finished row. */
typedef struct nib_row {
    size_t row, index;          /* prompt, and candidate of that prompt */
    size_t n_prompt;            /* tokens that were fed, start token included */
    size_t n;                   /* new tokens; the end or stop id and a stop string's tokens included */
    const int32_t *ids;         /* [n_prompt + n] */
    const float *logprobs;      /* [n] nats */
    const nib_alternative *top; /* [n][stride_top] of each token its alternatives, the first n_top[t] of them; NULL when
                                   top_logprobs is 0 */
    const size_t *n_top;        /* [n] */
    size_t stride_top;          /* min(top_logprobs, V) + 1 */
    const char *text; /* [text_len] the new text without end or stop id and stop string, terminated; NULL without
                              a tokenizer */
    size_t text_len;
    nib_finish finish;
    uint64_t seed; /* the one used */
} nib_row;

/** What nib_generate gives. B = prompts x candidates; rows in the order of the prompts, candidates within a prompt. */
typedef struct nib_result {
    size_t B, T;
    const int32_t *ids;    /* [B][T] prompt and new tokens, then pad */
    const size_t *lengths; /* [B] tokens of each row before the pad */
    const nib_row *rows;   /* [B] */
    uint64_t seed;         /* the one of the first row */
} nib_result;

/** Generate.
 *
 *  out                 yours, free with nib_result_free; NULL on failure
 *  prompts [n_prompts] ids, fed as they are but for a row without ids
 *  options             NULL for the defaults
 *  callback, user      NULL, or called after each token
 *
 *  A cancelled call returns NIB_OK; rows that had not ended are NIB_FINISH_CANCELLED with the tokens they had.
 *  Returns NIB_OK; NIB_EINVAL (no prompts; an empty row without start token; an id outside 0 .. V-1, named with row and
 *          index; an option); NIB_EFULL (a prompt as long as the context or longer; a row longer than max_cache_len of a
 *          static cache); NIB_EUNSUPPORTED (texts in the options without a tokenizer); NIB_ENUMERIC; NIB_ECALLBACK; NIB_ENOMEM.
 *  Source  lmxlab generate, lucid CausalLMMixin.generate. Differs: see docs/options.md.
 */
NIB_API nib_status nib_generate(nib_result **out, nib_session *session, const nib_prompt *prompts, size_t n_prompts,
                                const nib_generate_options *options, nib_token_fn callback, void *user, nib_error *err);

/** Generate with options for each prompt: stop rules, limits, seed, candidates, all but what belongs to the session.
 *
 *  options [n_prompts]  each NULL for the defaults
 *
 *  Otherwise as nib_generate.
 */
NIB_API nib_status nib_generate_each(nib_result **out, nib_session *session, const nib_prompt *prompts,
                                     size_t n_prompts, const nib_generate_options *const *options,
                                     nib_token_fn callback, void *user, nib_error *err);

/** Free a result. NULL is accepted. */
NIB_API void nib_result_free(nib_result *result);

typedef struct nib_stream nib_stream;

/** Begin a generation of one prompt that is taken a token at a time. n candidates follow each other.
 *
 *  prompt, options  copied
 *
 *  The session belongs to the stream until nib_stream_free.
 *  Returns as nib_generate.
 */
NIB_API nib_status nib_stream_open(nib_stream **out, nib_session *session, nib_prompt prompt,
                                   const nib_generate_options *options, nib_error *err);

/** The next token.
 *
 *  token  borrowed until the next call; NULL when the generation is over
 *
 *  Returns NIB_OK; NIB_ENUMERIC; NIB_ECALLBACK; NIB_ENOMEM. After a failure only nib_stream_free is left.
 */
NIB_API nib_status nib_stream_next(const nib_token **token, nib_stream *stream, nib_error *err);

/** The seed in use. */
NIB_API uint64_t nib_stream_seed(const nib_stream *stream);

/** End a stream, at any point. NULL is accepted. */
NIB_API void nib_stream_free(nib_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
