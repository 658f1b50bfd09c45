/* Status codes, the error a call can fill, versions and the one deallocator of plain arrays.
 *
 * Every function that can fail returns a nib_status and takes a nib_error *err last. The error may be NULL; when it is
 * not, a failing call writes its code and one line that names the thing, the value and what was expected. A call that
 * succeeds leaves it alone. The library never prints, never exits and keeps no hidden last error. */
#ifndef NIB_STATUS_H
#define NIB_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NIB_API __attribute__((visibility("default")))
#else
#define NIB_API
#endif

/** What a call answers. The numbers are never changed; new codes are added at the end. */
typedef enum nib_status {
    NIB_OK = 0,
    NIB_EINVAL = -1,       /* an argument, an option or a token id is out of its range */
    NIB_ENOMEM = -2,       /* memory could not be allocated */
    NIB_EIO = -3,          /* the file could not be read; the message holds the system's reason */
    NIB_EFORMAT = -4,      /* the model file is damaged, truncated, of foreign byte order or not a model file */
    NIB_EUNSUPPORTED = -5, /* well formed, but this build does not know the architecture, type or feature */
    NIB_EFULL = -6,        /* more tokens than the context holds */
    NIB_ECANCELLED = -7,   /* nib_session_cancel was called */
    NIB_ENUMERIC = -8,     /* NaN or +infinity in the logits, or no token left to choose */
    NIB_ECALLBACK = -9,    /* a callback of the caller reported failure */
    NIB_ECHECK = -10       /* a result could not be checked */
} nib_status;

/** Details of a failure. */
typedef struct nib_error {
    nib_status code;
    char message[512]; /* one line, lower case, UTF-8, always terminated */
} nib_error;

/** The name of a status, "NIB_EINVAL" for NIB_EINVAL; "unknown status" for a number that is none. Static storage. */
NIB_API const char *nib_status_name(nib_status status);

/** The version of the library, "0.1.0". Static storage. */
NIB_API const char *nib_version(void);

/** The version of the numeric contract (docs/numerics.md): two libraries with the same number give the same bits. */
NIB_API int nib_contract_version(void);

/** Frees a plain array that a call of this library gave (`T **out` of a type without a nib_T_free). NULL is accepted. */
NIB_API void nib_free(void *array);

#ifdef __cplusplus
}
#endif
#endif
