/* The inside of a session, for the decode loop: one timeline, its cache, its work area. */
#ifndef NIB_DECODE_SESSION_H
#define NIB_DECODE_SESSION_H

#include <stdatomic.h>

#include <nib/session.h>

#include "model/model.h"

struct nib_session {
    nib_model *model;
    nib_session_options options;
    int32_t *tokens; /* [n] the timeline, as far as the cache holds it */
    size_t n, cap;
    nib_kv kv;
    nib_pool *pool; /* NULL: the caller's thread alone */
    nib_work work;
    nib_forward_row *rows; /* [cap_rows] of one pass */
    size_t cap_rows;
    float *unwanted;   /* [V] of custom models: logits nobody asked for */
    atomic_int cancel; /* set by nib_session_cancel, cleared when a call ends by it */
    nib_session_stats stats;
};

/* The threads that the option asks for; *pool is NULL when that is the caller's alone. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_session_pool(nib_pool **pool, const nib_session_options *options, nib_error *err);

/* Make the timeline tokens [n] and give the logits after each of tokens first .. n-1, logits [n - first][V]. What is
 * shared with the timeline before `first` is not encoded again. Ids and length are checked by the caller. Returns NIB_OK;
 * NIB_ECANCELLED; NIB_ECALLBACK; NIB_ENOMEM. */
nib_status nib_session_sync(float *logits, nib_session *session, const int32_t *tokens, size_t n, size_t first,
                            nib_error *err);

/* Add one token to the timeline and give the logits [V] after it. Returns as nib_session_sync. */
nib_status nib_session_step(float *logits, nib_session *session, int32_t token, nib_error *err);

/* Whether a cancellation waits; it is cleared. */
bool nib_session_take_cancel(nib_session *session);

#endif
