/* Timelines of a session: what tokens a KV cache holds, which of them the next text goes on from, and encoding several
 * of them in one pass. */
#ifndef NIB_DECODE_TIMELINE_H
#define NIB_DECODE_TIMELINE_H

#include <nib/session.h>

#include "model/kv.h"

typedef struct nib_timeline {
    int32_t *tokens; /* [n] as far as the cache holds them */
    size_t n, cap;
    nib_kv kv;       /* of no use for a custom model */
    size_t sequence; /* what a custom model's step calls the row */
    uint64_t used;   /* when it was taken last, by the session's clock */
    bool busy;       /* a row of the running call has it */
    bool hold;       /* another will go on from its beginning: windowed layers give nothing back */
} nib_timeline;

/* Take a timeline for a text of which tokens [most] at the beginning need no encoding if they are there. It is the one that
 * shares the longest beginning, or a fork of it, or a new one; n tells how much it holds. There will be no more than
 * max_lines of them if idle ones can be used. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_timeline_take(nib_timeline **out, nib_session *session, const int32_t *tokens, size_t most,
                             size_t max_lines, nib_error *err);

/* Give it back: it stays for texts with the same beginning. NULL is accepted. */
void nib_timeline_give(nib_timeline *line);

/* How much of tokens [most] a timeline holds and can go on from. */
size_t nib_timeline_shared(const nib_session *session, const nib_timeline *line, const int32_t *tokens, size_t most);

/* Forget idle timelines, the oldest first, until there are max_lines at most. */
void nib_timeline_prune(nib_session *session, size_t max_lines);

/* One timeline of a call of nib_timeline_feed. */
typedef struct nib_feed {
    nib_timeline *line;
    const int32_t *tokens; /* [n] the whole text; it begins with what the timeline holds */
    size_t n;
    float *logits; /* [n - first][V] after each token from `first` on; line->n <= first < n */
    size_t first;
} nib_feed;

/* Encode what is missing, all feeds together, in passes of prefill_chunk tokens or as many as there are feeds. Returns
 * NIB_OK; NIB_ECANCELLED; NIB_ECALLBACK; NIB_ENOMEM: the timelines then hold what was encoded before. */
nib_status nib_timeline_feed(nib_session *session, const nib_feed *feeds, size_t n, nib_error *err);

#endif
