/* Filling the caller's nib_error, names of the codes, versions. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* One line of valid UTF-8: control bytes and broken sequences become '?'. */
static void clean(char *text) {
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        size_t n = nib_utf8_len(text + i, len - i);
        unsigned char byte = (unsigned char)text[i];
        if (n == 0 || byte < 0x20 || byte == 0x7f) {
            text[i] = '?';
            n = 1;
        }
        i += n;
    }
}

nib_status nib_fail(nib_error *err, nib_status code, const char *format, ...) {
    if (err == NULL) {
        return code;
    }
    err->code = code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    clean(err->message);
    return code;
}

nib_status nib_fail_memory(nib_error *err, size_t size_bytes, const char *what) {
    return nib_fail(err, NIB_ENOMEM, "out of memory: %zu bytes for %s", size_bytes, what);
}

const char *nib_status_name(nib_status status) {
    switch (status) {
    case NIB_OK: return "NIB_OK";
    case NIB_EINVAL: return "NIB_EINVAL";
    case NIB_ENOMEM: return "NIB_ENOMEM";
    case NIB_EIO: return "NIB_EIO";
    case NIB_EFORMAT: return "NIB_EFORMAT";
    case NIB_EUNSUPPORTED: return "NIB_EUNSUPPORTED";
    case NIB_EFULL: return "NIB_EFULL";
    case NIB_ECANCELLED: return "NIB_ECANCELLED";
    case NIB_ENUMERIC: return "NIB_ENUMERIC";
    case NIB_ECALLBACK: return "NIB_ECALLBACK";
    case NIB_ECHECK: return "NIB_ECHECK";
    }
    return "unknown status";
}

const char *nib_version(void) {
    return NIB_VERSION;
}

int nib_contract_version(void) {
    return 1;
}
