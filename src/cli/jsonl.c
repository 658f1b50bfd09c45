/* JSON Lines on standard output. The command never sets a locale, so printf's point is a point. */
#include "cli/jsonl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <nib/nib.h>

static void put_comma(nib_json *json) {
    if (json->comma) {
        putchar(',');
    }
    json->comma = true;
}

void nib_json_open(nib_json *json, char bracket) {
    put_comma(json);
    putchar(bracket);
    json->comma = false;
}

void nib_json_close(nib_json *json, char bracket) {
    putchar(bracket);
    json->comma = true;
}

/* Valid UTF-8 as a JSON string. */
static void put_string(const char *text, size_t len) {
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c == '\n') {
            fputs("\\n", stdout);
        } else if (c == '\t') {
            fputs("\\t", stdout);
        } else if (c == '\r') {
            fputs("\\r", stdout);
        } else if (c < 0x20 || c == 0x7f) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

void nib_json_key(nib_json *json, const char *key) {
    put_comma(json);
    put_string(key, strlen(key));
    putchar(':');
    json->comma = false;
}

void nib_json_string(nib_json *json, const char *bytes, size_t len) {
    char *text;
    size_t n;
    put_comma(json);
    if (nib_text_to_utf8(&text, &n, bytes, len, NULL) != NIB_OK) {
        fputs("null", stdout);
        return;
    }
    put_string(text, n);
    nib_free(text);
}

void nib_json_int(nib_json *json, int64_t value) {
    put_comma(json);
    printf("%lld", (long long)value);
}

void nib_json_uint(nib_json *json, uint64_t value) {
    put_comma(json);
    printf("%llu", (unsigned long long)value);
}

static void put_real(double value, int digits) {
    if (isnan(value)) {
        fputs("null", stdout);
    } else if (isinf(value)) {
        fputs(value < 0 ? "-9999" : "null", stdout);
    } else {
        printf("%.*g", digits, value);
    }
}

void nib_json_float(nib_json *json, float value) {
    put_comma(json);
    put_real((double)value, 9);
}

void nib_json_double(nib_json *json, double value) {
    put_comma(json);
    put_real(value, 17);
}

void nib_json_bool(nib_json *json, bool value) {
    put_comma(json);
    fputs(value ? "true" : "false", stdout);
}

void nib_json_null(nib_json *json) {
    put_comma(json);
    fputs("null", stdout);
}

void nib_json_ids(nib_json *json, const int32_t *ids, size_t n) {
    nib_json_open(json, '[');
    for (size_t i = 0; i < n; i++) {
        nib_json_int(json, ids[i]);
    }
    nib_json_close(json, ']');
}

void nib_json_end_line(nib_json *json) {
    putchar('\n');
    json->comma = false;
}
