/* The inside of a session, for the decode loop: its timelines with their cache, its threads, its work area. */
#ifndef NIB_DECODE_SESSION_H
#define NIB_DECODE_SESSION_H

#include <stdatomic.h>

#include "decode/timeline.h"
#include "model/model.h"

struct nib_session {
    nib_model *model;
    nib_session_options options;
    nib_kv_store store;
    nib_timeline **lines; /* [n_lines] busy and idle ones */
    size_t n_lines, cap_lines;
    uint64_t clock; /* counts timelines that were taken */
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

/* Whether a cancellation waits; it is cleared. */
bool nib_session_take_cancel(nib_session *session);

/* The longest text that a row may have: the context, or a static cache's room if that is less. */
size_t nib_session_room(const nib_session *session);

/* Take all the memory of a static cache for n_lines timelines of n tokens, or of max_cache_len if it is given; nothing for
 * other caches. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_session_fix(nib_session *session, size_t n_lines, size_t n, nib_error *err);

#endif
