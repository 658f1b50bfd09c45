/* What the oracle tests share: opening models and sessions, and generating as a golden case says. Only the public
 * interface of the library is used; what fails, fails the test that runs. */
#ifndef NIB_TEST_ORACLE_RUN_H
#define NIB_TEST_ORACLE_RUN_H

#include <nib/nib.h>

#include "golden.h"

/* The model with compute=exact, on an instruction set (NIB_CPU_*). NULL when this machine does not have it. */
nib_model *oracle_open(const char *path, int cpu);

/* The same in a mode of computing (NIB_COMPUTE_*). */
nib_model *oracle_open_in_mode(const char *path, int compute, int cpu);

/* A session that takes a prompt in chunks of so many tokens. */
nib_session *oracle_session(nib_model *model, int64_t prefill_chunk);

/* The same by so many threads. */
nib_session *oracle_session_of_threads(nib_model *model, int64_t threads, int64_t prefill_chunk);

typedef enum oracle_end {
    ORACLE_END_GIVEN, /* end ids are given as options */
    ORACLE_END_OWN    /* the model's file names them */
} oracle_end;

/* Generate greedily as the case says. logprobs: NIB_LOGPROBS_*. */
nib_result *oracle_generate(nib_session *session, const golden_case *c, oracle_end end, int logprobs);

/* The row's ids are the case's, its end too; its log-probabilities differ from those given, raw or processed, by no
 * more than bound. Prints the largest difference. */
void oracle_check(const nib_result *result, const golden_case *c, const double *logprobs, double bound);

/* The case's text becomes its prompt, start token included, control tokens parsed. */
void oracle_check_prompt(const nib_model *model, const golden_case *c);

/* Both results hold the same bits: ids and log-probabilities. */
void oracle_check_same(const nib_result *a, const nib_result *b, const char *what);

#endif
