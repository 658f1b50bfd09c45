/* Cutting text into the words that byte-level BPE works on, by the patterns that a vocabulary was trained with. */
#ifndef NIB_TEXT_PRETOKENIZER_H
#define NIB_TEXT_PRETOKENIZER_H

#include <stdbool.h>

#include "base/error.h"

typedef struct nib_pretokenizer nib_pretokenizer;

/* What one thread needs while it cuts. */
typedef struct nib_cutter nib_cutter;

enum { NIB_MAX_PATTERNS = 6 };

/* What is known about a name. */
typedef struct nib_pretokenizer_kind {
    const char *name;                       /* as in tokenizer.ggml.pre */
    const char *patterns[NIB_MAX_PATTERNS]; /* PCRE2, in order; NULL behind the last */
    bool whole_words;                       /* a word that is a token becomes it, whatever the merges say */
    bool nfc;                               /* the text is brought to normalisation form C first */
} nib_pretokenizer_kind;

/* The kind with this name; NULL: not known. */
const nib_pretokenizer_kind *nib_pretokenizer_find(const char *name);

/* Compile. name "" or NULL is not known either.
 * Returns NIB_OK; NIB_EUNSUPPORTED (the name is not known; the message lists those that are); NIB_ENOMEM. */
nib_status nib_pretokenizer_new(nib_pretokenizer **out, const char *name, nib_error *err);
void nib_pretokenizer_free(nib_pretokenizer *pretokenizer);
const nib_pretokenizer_kind *nib_pretokenizer_get_kind(const nib_pretokenizer *pretokenizer);

/* Interpret the patterns from now on, as where the processor or the system refuses compiled ones. For tests. */
void nib_pretokenizer_interpret(nib_pretokenizer *pretokenizer);

/* Takes the next word, never an empty one. False: stop. */
typedef bool nib_word_handler(void *user, const char *word, size_t len);

/* NULL: out of memory. */
nib_cutter *nib_cutter_new(const nib_pretokenizer *pretokenizer);
void nib_cutter_free(nib_cutter *cutter);

/* Hands out the words of text, which must be valid UTF-8, in order; joined they are the text. False when the handler
 * said so or memory ran out. */
bool nib_cutter_run(nib_cutter *cutter, const char *text, size_t len, nib_word_handler *handler, void *user);

#endif
