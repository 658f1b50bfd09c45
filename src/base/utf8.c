/* UTF-8: lengths of characters, and a stream that gives out whole characters only. Definitions: The Unicode Standard,
 * table 3-7 (well-formed sequences) and chapter 3.9 (substitution of maximal subparts). */
#include "base/utf8.h"

#include <string.h>

#include "base/memory.h"

/* The length that a lead byte announces (0: no lead byte) and the range of its second byte. */
static size_t lead(unsigned char byte, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xbf;
    if (byte < 0x80) {
        return 1;
    }
    if (byte >= 0xc2 && byte <= 0xdf) {
        return 2;
    }
    if (byte >= 0xe0 && byte <= 0xef) {
        *low = byte == 0xe0 ? 0xa0 : 0x80;
        *high = byte == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (byte >= 0xf0 && byte <= 0xf4) {
        *low = byte == 0xf0 ? 0x90 : 0x80;
        *high = byte == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

/* Valid bytes at text, up to the announced length, which goes to *want. */
static size_t valid_prefix(const char *text, size_t len, size_t *want) {
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char low, high;
    *want = len == 0 ? 0 : lead(bytes[0], &low, &high);
    if (*want == 0) {
        return 0;
    }
    size_t n = 1;
    while (n < *want && n < len && bytes[n] >= low && bytes[n] <= high) {
        low = 0x80;
        high = 0xbf;
        n++;
    }
    return n;
}

size_t nib_utf8_len(const char *text, size_t len) {
    size_t want;
    size_t n = valid_prefix(text, len, &want);
    return n > 0 && n == want ? n : 0;
}

size_t nib_utf8_broken_len(const char *text, size_t len, bool *complete_later) {
    size_t want;
    size_t n = valid_prefix(text, len, &want);
    *complete_later = n > 0 && n < want && n == len;
    return n == 0 && len > 0 ? 1 : n;
}

bool nib_buffer_add(nib_buffer *buffer, const char *bytes, size_t len) {
    size_t want;
    if (!nib_add_size(&want, buffer->len, len) || !nib_reserve(&buffer->bytes, &buffer->cap, want, 1)) {
        return false;
    }
    if (len > 0) {
        memcpy(buffer->bytes + buffer->len, bytes, len);
    }
    buffer->len = want;
    return true;
}

void nib_buffer_clear(nib_buffer *buffer) {
    buffer->len = 0;
}

void nib_buffer_free(nib_buffer *buffer) {
    nib_free(buffer->bytes);
    *buffer = (nib_buffer){0};
}

static const char replacement[] = "\xef\xbf\xbd";

/* Appends the complete part of bytes; returns how many bytes at the end still wait, SIZE_MAX when out of memory. */
static size_t add_complete(nib_buffer *out, const char *bytes, size_t len) {
    size_t i = 0;
    while (i < len) {
        size_t run = i;
        for (size_t n; run < len && (n = nib_utf8_len(bytes + run, len - run)) > 0;) {
            run += n;
        }
        if (run > i && !nib_buffer_add(out, bytes + i, run - i)) {
            return (size_t)-1;
        }
        i = run;
        if (i == len) {
            break;
        }
        bool complete_later;
        size_t broken = nib_utf8_broken_len(bytes + i, len - i, &complete_later);
        if (complete_later) {
            return broken;
        }
        if (!nib_buffer_add(out, replacement, 3)) {
            return (size_t)-1;
        }
        i += broken;
    }
    return 0;
}

bool nib_utf8_push(nib_utf8_stream *stream, nib_buffer *out, const char *bytes, size_t len) {
    /* A waiting tail takes bytes one at a time until it is decided; then the rest goes through in one piece. */
    while (stream->n_tail > 0 && len > 0) {
        char joined[5];
        memcpy(joined, stream->tail, stream->n_tail);
        joined[stream->n_tail] = *bytes++;
        len--;
        size_t n = stream->n_tail + 1;
        size_t rest = add_complete(out, joined, n);
        if (rest == (size_t)-1) {
            return false;
        }
        memmove(stream->tail, joined + n - rest, rest);
        stream->n_tail = rest;
    }
    if (len == 0) {
        return true;
    }
    size_t rest = add_complete(out, bytes, len);
    if (rest == (size_t)-1) {
        return false;
    }
    memcpy(stream->tail, bytes + len - rest, rest);
    stream->n_tail = rest;
    return true;
}

bool nib_utf8_finish(nib_utf8_stream *stream, nib_buffer *out) {
    bool waiting = stream->n_tail > 0;
    stream->n_tail = 0;
    return !waiting || nib_buffer_add(out, replacement, 3);
}
