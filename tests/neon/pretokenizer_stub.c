/* Stands for src/text/pretokenizer.c where there is no PCRE2: no vocabulary that needs a pre-tokenizer can be opened. */
#include "text/pretokenizer.h"

#include <stddef.h>

const nib_pretokenizer_kind *nib_pretokenizer_find(const char *name) {
    (void)name;
    return NULL;
}

nib_status nib_pretokenizer_new(nib_pretokenizer **out, const char *name, nib_error *err) {
    *out = NULL;
    return nib_fail(err, NIB_EUNSUPPORTED, "pre-tokenizer: \"%s\", expected none in a program without PCRE2",
                    name == NULL ? "" : name);
}

void nib_pretokenizer_free(nib_pretokenizer *pretokenizer) {
    (void)pretokenizer;
}

const nib_pretokenizer_kind *nib_pretokenizer_get_kind(const nib_pretokenizer *pretokenizer) {
    (void)pretokenizer;
    return NULL;
}

void nib_pretokenizer_interpret(nib_pretokenizer *pretokenizer) {
    (void)pretokenizer;
}

nib_cutter *nib_cutter_new(const nib_pretokenizer *pretokenizer) {
    (void)pretokenizer;
    return NULL;
}

void nib_cutter_free(nib_cutter *cutter) {
    (void)cutter;
}

bool nib_cutter_run(nib_cutter *cutter, const char *text, size_t len, nib_word_handler *handler, void *user) {
    (void)cutter;
    (void)text;
    (void)len;
    (void)handler;
    (void)user;
    return false;
}
