/* Stop strings: found in the bytes of the generated text, across token borders; what could be the beginning of one is
 * held back. */
#ifndef NIB_DECODE_STOP_H
#define NIB_DECODE_STOP_H

#include <nib/options.h>

#include "base/utf8.h"

typedef struct nib_stop {
    const nib_text *texts; /* [n_texts], borrowed, none empty */
    size_t n_texts;
    nib_buffer held; /* bytes not given out yet */
} nib_stop;

/* Add bytes; appends to out what is now certain. When a stop string is complete, *found is true, out has all before the
 * earliest one (of those that begin there the longest) and the rest is dropped. False when out of memory. */
bool nib_stop_push(nib_stop *stop, nib_buffer *out, bool *found, const char *bytes, size_t len);

/* Appends what is held back. False when out of memory. */
bool nib_stop_finish(nib_stop *stop, nib_buffer *out);

#endif
