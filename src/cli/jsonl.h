/* JSON Lines on standard output: one object a line. A writer of our own because seeds take all of 0 .. 2^64-1 and
 * floats have a fixed number of digits. Errors of writing are found by nib_cli_finish_output. */
#ifndef NIB_CLI_JSONL_H
#define NIB_CLI_JSONL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nib_json {
    bool comma; /* the next value needs one before it */
} nib_json;

void nib_json_open(nib_json *json, char bracket);  /* '{' or '[' */
void nib_json_close(nib_json *json, char bracket); /* '}' or ']' */
void nib_json_key(nib_json *json, const char *key);
void nib_json_string(nib_json *json, const char *bytes, size_t len); /* what is no UTF-8 becomes U+FFFD */
void nib_json_int(nib_json *json, int64_t value);
void nib_json_uint(nib_json *json, uint64_t value);
void nib_json_float(nib_json *json, float value);   /* nine digits; -infinity is -9999, NaN null */
void nib_json_double(nib_json *json, double value); /* seventeen digits */
void nib_json_bool(nib_json *json, bool value);
void nib_json_null(nib_json *json);
void nib_json_ids(nib_json *json, const int32_t *ids, size_t n);
void nib_json_end_line(nib_json *json);

#endif
