/* What the two halves of the bench share: the options of a session, as its caller would get them, and its threads. */
#ifndef NIB_DECODE_BENCH_H
#define NIB_DECODE_BENCH_H

#include <nib/bench.h>

#include "base/pool.h"

/* options, or the defaults for NULL, checked. Returns NIB_OK; NIB_EINVAL; NIB_EUNSUPPORTED. */
nib_status nib_bench_options(nib_session_options *taken, const nib_session_options *options, nib_error *err);

/* The threads of a session with these options; NULL: the caller's alone. Returns NIB_OK; NIB_ENOMEM. */
nib_status nib_bench_pool(nib_pool **pool, const nib_session_options *options, nib_error *err);

/* Seconds of a clock that only goes forward. */
double nib_bench_now(void);

#endif
