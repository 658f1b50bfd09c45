/* Filling the caller's nib_error. */
#ifndef NIB_BASE_ERROR_H
#define NIB_BASE_ERROR_H

#include <nib/status.h>

/* Writes code and message (cut to fit, always one terminated line) to err, which may be NULL, and returns code. Bytes
 * of the message that are no printable ASCII or valid UTF-8 are written as '?', since names come from files. Real
 * numbers are formatted by nib_format_real first: printf's depend on the locale. */
nib_status nib_fail(nib_error *err, nib_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* NIB_ENOMEM with the size that was asked for and what for. */
nib_status nib_fail_memory(nib_error *err, size_t size_bytes, const char *what);

#endif
