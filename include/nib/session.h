/* Sessions: timelines of tokens with their KV cache and logits, used by one thread at a time. What a call leaves in the
 * cache, the next one reuses if its text begins alike. */
#ifndef NIB_SESSION_H
#define NIB_SESSION_H

#include "model.h"
#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nib_session nib_session;

/** What a session has done, in counts. */
typedef struct nib_session_stats {
    uint32_t size;           /* sizeof(nib_session_stats), set by the caller */
    uint64_t tokens_encoded; /* tokens that went through the model */
    uint64_t tokens_reused;  /* tokens of a prompt that were still in the cache */
    uint64_t forward_passes; /* calls of the model */
    uint64_t tokens_again;   /* tokens of a prompt that had been in the cache, but whose windowed layers had given back
                                what lies behind: encoded again */
    size_t cache_bytes;      /* memory of the KV cache now; pages that rows share count once */
    size_t cache_peak_bytes; /* the most it was */
    uint64_t cache_read_bytes; /* that attention read of the cache; a page once for the rows that share it */
} nib_session_stats;

/** Start a session on a model. The model stays alive as long as the session. It starts the threads that options->threads
 *  asks for, less the caller's own; they sleep between calls and end with the session.
 *
 *  options  NULL for the defaults
 *
 *  Returns NIB_OK; NIB_EINVAL (an option); NIB_EUNSUPPORTED (an option of a later version); NIB_ENOMEM (memory or threads).
 */
NIB_API nib_status nib_session_new(nib_session **out, nib_model *model, const nib_session_options *options,
                                   nib_error *err);

/** The logits of a text's positions.
 *
 *  logits [n - first][V]  row i: the logits after tokens 0 .. first + i; untouched on NIB_EINVAL and NIB_EFULL
 *  tokens [n]             the whole text; what it shares with the session's timeline is not encoded again
 *  first                  0 <= first < n
 *
 *  Returns NIB_OK; NIB_EINVAL (no tokens, first, an id outside 0 .. V-1, named with its index); NIB_EFULL (n exceeds the
 *          context); NIB_ENUMERIC; NIB_ECALLBACK; NIB_ECANCELLED; NIB_ENOMEM.
 *  Cost    one forward pass over the tokens that are new or whose logits are asked for.
 */
NIB_API nib_status nib_session_logits(float *logits, nib_session *session, const int32_t *tokens, size_t n,
                                      size_t first, nib_error *err);

/** Forget all texts and give the memory of the cache back; a static cache keeps its own. */
NIB_API void nib_session_clear(nib_session *session);

/** Make the call that is running on the session, or the next one, end soon. From another thread or a signal handler;
 *  nothing but an atomic store. A generation ends with what it has (NIB_FINISH_CANCELLED), any other call with
 *  NIB_ECANCELLED; the session can be used again afterwards. */
NIB_API void nib_session_cancel(nib_session *session);

/** Read the counts. Returns NIB_OK; NIB_EINVAL (stats->size). */
NIB_API nib_status nib_session_get_stats(nib_session_stats *stats, const nib_session *session, nib_error *err);

/** Free a session and what it holds. NULL is accepted. */
NIB_API void nib_session_free(nib_session *session);

#ifdef __cplusplus
}
#endif
#endif
