/* Numbers to text and back, the same under every locale. */
#ifndef NIB_BASE_NUMBER_H
#define NIB_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for any number that nib_format_real writes. */
enum { NIB_NUMBER_ROOM = 40 };

/* Writes value with the given number of significant digits (1 .. 17), as %g does, with a point; "nan", "inf", "-inf".
 * Returns text. */
const char *nib_format_real(char text[NIB_NUMBER_ROOM], double value, int digits);

/* A whole decimal number in text [len], nothing else around it. False: not a number, or out of the type's range. */
bool nib_parse_int(int64_t *value, const char *text, size_t len);
bool nib_parse_uint(uint64_t *value, const char *text, size_t len);

/* A decimal number, with optional fraction and exponent; no "nan", "inf" or hexadecimal, which are refused. */
bool nib_parse_real(double *value, const char *text, size_t len);

#endif
