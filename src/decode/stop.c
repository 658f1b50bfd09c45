/* Stop strings. */
#include "decode/stop.h"

#include <string.h>

/* Whether some stop string is complete in held; *start where the earliest begins. */
static bool find(const nib_stop *stop, size_t *start) {
    bool found = false;
    *start = stop->held.len;
    if (stop->held.len == 0) {
        return false;
    }
    for (size_t i = 0; i < stop->n_texts; i++) {
        const char *at = memmem(stop->held.bytes, stop->held.len, stop->texts[i].bytes, stop->texts[i].len);
        if (at != NULL && (size_t)(at - stop->held.bytes) < *start) {
            *start = (size_t)(at - stop->held.bytes);
            found = true;
        }
    }
    return found;
}

/* Length of the longest end of held that a stop string begins with. */
static size_t waiting(const nib_stop *stop) {
    size_t longest = 0;
    for (size_t i = 0; i < stop->n_texts; i++) {
        size_t n = stop->texts[i].len - 1 < stop->held.len ? stop->texts[i].len - 1 : stop->held.len;
        for (; n > longest; n--) {
            if (memcmp(stop->held.bytes + stop->held.len - n, stop->texts[i].bytes, n) == 0) {
                longest = n;
            }
        }
    }
    return longest;
}

bool nib_stop_push(nib_stop *stop, nib_buffer *out, bool *found, const char *bytes, size_t len) {
    *found = false;
    if (stop->n_texts == 0) {
        return nib_buffer_add(out, bytes, len);
    }
    if (!nib_buffer_add(&stop->held, bytes, len)) {
        return false;
    }
    size_t certain;
    *found = find(stop, &certain);
    if (!*found) {
        certain = stop->held.len - waiting(stop);
    }
    if (!nib_buffer_add(out, stop->held.bytes, certain)) {
        return false;
    }
    stop->held.len -= certain;
    if (*found) {
        nib_buffer_clear(&stop->held);
    } else if (stop->held.len > 0) {
        memmove(stop->held.bytes, stop->held.bytes + certain, stop->held.len);
    }
    return true;
}

bool nib_stop_finish(nib_stop *stop, nib_buffer *out) {
    bool ok = nib_buffer_add(out, stop->held.bytes, stop->held.len);
    nib_buffer_clear(&stop->held);
    return ok;
}
