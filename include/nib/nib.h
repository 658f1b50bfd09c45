/* libnib: load a language model, generate text from it, look at what it thinks of a text.
 *
 * The nouns
 *   nib_model    weights, tokenizer, configuration: opened once, immutable, shared by threads
 *   nib_session  a timeline of tokens with its cache: one thread at a time, as many as you like on one model
 *
 * An example (examples/hello.c)
 *   nib_model *model;  nib_session *session;  nib_result *result;  nib_error err;
 *   int32_t *ids;  size_t n;
 *   if (nib_model_open(&model, "model.gguf", NULL, &err) != NIB_OK) { puts(err.message); return 1; }
 *   nib_tokenizer_encode(&ids, &n, nib_model_tokenizer(model), "Once upon", 9, NIB_TOKENIZE_ADD_BOS, &err);
 *   nib_session_new(&session, model, NULL, &err);
 *   nib_generate(&result, session, &(nib_prompt){ids, n}, 1, NULL, NULL, NULL, &err);
 *   puts(result->rows[0].text);
 *   nib_result_free(result);  nib_session_free(session);  nib_free(ids);  nib_model_free(model);
 *
 * Ownership: what you get through `T **out` is yours, free it with nib_T_free (plain arrays: nib_free); what you get as
 * a return value is borrowed, its comment says until when. After a failure *out is NULL and nothing leaks.
 *
 * Threads: a model serves any number of threads; a session one at a time, but for nib_session_cancel.
 *
 * Structs with a `size` field are set up by their INIT macro (or size = sizeof) and only grow at the end. */
#ifndef NIB_NIB_H
#define NIB_NIB_H

#include "bench.h"
#include "file.h"
#include "generate.h"
#include "model.h"
#include "options.h"
#include "session.h"
#include "status.h"
#include "tokenizer.h"

#endif
