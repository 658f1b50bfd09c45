/* What the two halves of the bench share: the options of a session, as its caller would get them, and a clock. */
#ifndef NIB_DECODE_BENCH_H
#define NIB_DECODE_BENCH_H

#include <nib/bench.h>

/* options, or the defaults for NULL, checked. Returns NIB_OK; NIB_EINVAL; NIB_EUNSUPPORTED. */
nib_status nib_bench_options(nib_session_options *taken, const nib_session_options *options, nib_error *err);

/* Seconds of a clock that only goes forward. */
double nib_bench_now(void);

#endif
