/* Normalisation form C: characters are taken apart, marks put in order by their combining class, and what composes is put
 * together again. Definition: Unicode Standard Annex 15; Hangul: The Unicode Standard, chapter 3.12. */
#include "text/nfc.h"

#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "text/nfc_table.h"

enum {
    N_PAIRS = sizeof nfc_pairs / sizeof *nfc_pairs,
    N_COMPOSITIONS = sizeof nfc_compositions / sizeof *nfc_compositions,
    N_CLASSES = sizeof nfc_classes / sizeof *nfc_classes,
    HANGUL = 0xac00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11a7, /* the first of each */
    N_L = 19,
    N_V = 21,
    N_T = 28,
    FIRST_MARK = 0x300,
    INVALID = 0x110000, /* plus a byte that is no part of a character */
    MAX_PARTS = 4       /* of one character, taken apart */
};

typedef struct nfc_text {
    uint32_t *codes;        /* [n] */
    unsigned char *classes; /* [n] */
    size_t n, cap;
} nfc_text;

static unsigned char class_of(uint32_t code) {
    size_t low = 0;
    size_t high = code < FIRST_MARK ? 0 : N_CLASSES;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (nfc_classes[middle].last < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return code >= FIRST_MARK && low < N_CLASSES && nfc_classes[low].first <= code ? nfc_classes[low].value : 0;
}

/* The canonical decomposition of code; NULL: none. */
static const nib_nfc_pair *find_pair(uint32_t code) {
    size_t low = 0;
    size_t high = N_PAIRS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (nfc_pairs[middle].code < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < N_PAIRS && nfc_pairs[low].code == code ? &nfc_pairs[low] : NULL;
}

/* What first and second compose to; 0: nothing. */
static uint32_t compose(uint32_t first, uint32_t second) {
    if (first - HANGUL_L < N_L && second - HANGUL_V < N_V) {
        return HANGUL + ((first - HANGUL_L) * N_V + (second - HANGUL_V)) * N_T;
    }
    if (first - HANGUL < N_L * N_V * N_T && (first - HANGUL) % N_T == 0 && second - HANGUL_T - 1 < N_T - 1) {
        return first + (second - HANGUL_T);
    }
    uint64_t want = (uint64_t)first << 32 | second;
    size_t low = 0;
    size_t high = N_COMPOSITIONS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const nib_nfc_pair *pair = &nfc_pairs[nfc_compositions[middle]];
        uint64_t have = (uint64_t)pair->first << 32 | pair->second;
        if (have == want) {
            return pair->code;
        }
        if (have < want) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

/* Takes code apart. Returns the number of parts. The first part of a decomposition may come apart again, the second never
 * does. */
static size_t decompose(uint32_t parts[MAX_PARTS], uint32_t code) {
    if (code - HANGUL < N_L * N_V * N_T) {
        uint32_t i = code - HANGUL;
        parts[0] = HANGUL_L + i / (N_V * N_T);
        parts[1] = HANGUL_V + i % (N_V * N_T) / N_T;
        parts[2] = HANGUL_T + i % N_T;
        return i % N_T == 0 ? 2 : 3;
    }
    uint32_t reversed[MAX_PARTS];
    size_t n = 0;
    for (const nib_nfc_pair *pair; n + 1 < MAX_PARTS && (pair = find_pair(code)) != NULL; code = pair->first) {
        if (pair->second != 0) {
            reversed[n++] = pair->second;
        }
    }
    reversed[n++] = code;
    for (size_t i = 0; i < n; i++) {
        parts[i] = reversed[n - 1 - i];
    }
    return n;
}

static bool add_code(nfc_text *text, uint32_t code) {
    uint32_t parts[MAX_PARTS] = {code};
    size_t n = code < 0xc0 || code >= INVALID ? 1 : decompose(parts, code);
    if (text->n + n > text->cap) {
        size_t cap = text->cap;
        if (!nib_reserve(&text->codes, &cap, text->n + n, sizeof *text->codes) ||
            !nib_reserve(&text->classes, &text->cap, cap, 1)) {
            return false;
        }
        text->cap = cap;
    }
    for (size_t i = 0; i < n; i++) {
        text->codes[text->n] = parts[i];
        text->classes[text->n++] = class_of(parts[i]);
    }
    return true;
}

static uint32_t decode_character(const char *text, size_t width) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (width == 1) {
        return bytes[0];
    }
    uint32_t code = bytes[0] & (0x7fu >> width);
    for (size_t i = 1; i < width; i++) {
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    return code;
}

static bool take_apart(nfc_text *out, const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        size_t width = nib_utf8_len(text + i, len - i);
        uint32_t code = width == 0 ? (uint32_t)INVALID + (unsigned char)text[i] : decode_character(text + i, width);
        if (!add_code(out, code)) {
            return false;
        }
        i += width == 0 ? 1 : width;
    }
    return true;
}

/* Sorts n marks by class, equal ones as they are; by counting, since a text may hold nothing but marks. copy has room for
 * n codes. */
static void sort_marks(uint32_t *codes, unsigned char *classes, uint32_t *copy, size_t n) {
    size_t begins[257] = {0};
    for (size_t i = 0; i < n; i++) {
        begins[classes[i] + 1]++;
    }
    for (size_t c = 0; c < 256; c++) {
        begins[c + 1] += begins[c];
    }
    memcpy(copy, codes, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        codes[begins[classes[i]]++] = copy[i];
    }
    for (size_t i = 0; i < n; i++) {
        classes[i] = class_of(codes[i]);
    }
}

static void put_in_order(nfc_text *text, uint32_t *copy) {
    for (size_t i = 0; i < text->n;) {
        size_t end = i;
        bool ordered = true;
        for (; end < text->n && text->classes[end] != 0; end++) {
            ordered &= end == i || text->classes[end - 1] <= text->classes[end];
        }
        if (!ordered) {
            sort_marks(text->codes + i, text->classes + i, copy, end - i);
        }
        i = end > i ? end : i + 1;
    }
}

static void put_together(nfc_text *text) {
    size_t n = 0;
    size_t starter = (size_t)-1;
    for (size_t i = 0; i < text->n; i++) {
        unsigned char class = text->classes[i];
        /* A mark is blocked by one of its class or above between it and the starter; a starter by anything. */
        bool adjacent = starter != (size_t)-1 && n == starter + 1;
        bool open = adjacent || (starter != (size_t)-1 && class != 0 && text->classes[n - 1] < class);
        uint32_t both = open ? compose(text->codes[starter], text->codes[i]) : 0;
        if (both != 0) {
            text->codes[starter] = both;
            continue;
        }
        starter = class == 0 ? n : starter;
        text->codes[n] = text->codes[i];
        text->classes[n++] = class;
    }
    text->n = n;
}

/* Writes code as UTF-8. Returns the bytes. */
static size_t encode_character(char *out, uint32_t code) {
    if (code < 0x80 || code >= INVALID) {
        out[0] = (char)(unsigned char)code; /* INVALID's low byte is 0 */
        return 1;
    }
    size_t width = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = width - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(0xf00u >> width | code);
    return width;
}

static char *write_text(size_t *len, const nfc_text *text) {
    char *out = nib_alloc(text->n, 4);
    *len = 0;
    for (size_t i = 0; out != NULL && i < text->n; i++) {
        *len += encode_character(out + *len, text->codes[i]);
    }
    return out;
}

bool nib_nfc_needed(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] >= 0xcc) { /* the first byte of U+0300 */
            return true;
        }
    }
    return false;
}

char *nib_nfc(size_t *out_len, const char *text, size_t len) {
    nfc_text parts = {0};
    char *out = NULL;
    uint32_t *copy = NULL;
    *out_len = 0;
    if (take_apart(&parts, text, len)) {
        copy = nib_alloc(parts.n, sizeof *copy);
    }
    if (copy != NULL) {
        put_in_order(&parts, copy);
        put_together(&parts);
        out = write_text(out_len, &parts);
    }
    nib_free(copy);
    nib_free(parts.codes);
    nib_free(parts.classes);
    return out;
}
