/* UTF-8: lengths of characters, and a stream that gives out whole characters only. */
#ifndef NIB_BASE_UTF8_H
#define NIB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the valid character at text, 1 .. 4; 0 when it is invalid or cut off by len (no surrogates, no overlong
 * forms, nothing above U+10FFFF). */
size_t nib_utf8_len(const char *text, size_t len);

/* Length of the longest beginning of a character at text: n bytes that more bytes could complete. Only meaningful where
 * nib_utf8_len gives 0; at least 1 when len > 0 (an invalid byte stands alone). *complete_later tells whether the bytes
 * reach the end of text and could still become a character. This is Unicode's "maximal subpart" (chapter 3.9, U+FFFD
 * substitution): each such run is replaced by one U+FFFD. */
size_t nib_utf8_broken_len(const char *text, size_t len, bool *complete_later);

/* A growing text. */
typedef struct nib_buffer {
    char *bytes; /* [cap], len used, no terminator */
    size_t len, cap;
} nib_buffer;

/* Append; false when out of memory, the buffer as before. */
bool nib_buffer_add(nib_buffer *buffer, const char *bytes, size_t len);
void nib_buffer_clear(nib_buffer *buffer); /* empties, keeps the room */
void nib_buffer_free(nib_buffer *buffer);

/* Bytes in, whole valid characters out; what can never become a character comes as U+FFFD. */
typedef struct nib_utf8_stream {
    char tail[4]; /* the beginning of a character that waits */
    size_t n_tail;
} nib_utf8_stream;

/* Appends to out what is complete after bytes [len]. False when out of memory. */
bool nib_utf8_push(nib_utf8_stream *stream, nib_buffer *out, const char *bytes, size_t len);

/* Appends one U+FFFD if something waits, and begins anew. False when out of memory. */
bool nib_utf8_finish(nib_utf8_stream *stream, nib_buffer *out);

#endif
