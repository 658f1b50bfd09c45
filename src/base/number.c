/* Numbers to text and back, the same under every locale. */
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

const char *nib_format_real(char text[NIB_NUMBER_ROOM], double value, int digits) {
    if (isnan(value)) {
        return memcpy(text, "nan", sizeof "nan");
    }
    if (isinf(value)) {
        return value < 0 ? memcpy(text, "-inf", sizeof "-inf") : memcpy(text, "inf", sizeof "inf");
    }
    (void)snprintf(text, NIB_NUMBER_ROOM, "%.*g", digits, value);
    /* The decimal point of a locale may be any bytes: everything that is none of %g's own characters is it. */
    char *to = text;
    bool point = false;
    for (const char *from = text; *from != '\0'; from++) {
        if (strchr("0123456789+-e", *from) != NULL) {
            *to++ = *from;
        } else if (!point) {
            *to++ = '.';
            point = true;
        }
    }
    *to = '\0';
    return text;
}

bool nib_parse_uint(uint64_t *value, const char *text, size_t len) {
    uint64_t sum = 0;
    if (len == 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(sum, 10u, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(text[i] - '0'), &sum)) {
            return false;
        }
    }
    *value = sum;
    return true;
}

bool nib_parse_int(int64_t *value, const char *text, size_t len) {
    bool negative = len > 0 && text[0] == '-';
    uint64_t magnitude;
    if (!nib_parse_uint(&magnitude, text + negative, len - negative)) {
        return false;
    }
    if (magnitude > (uint64_t)INT64_MAX + negative) {
        return false;
    }
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

/* Whether text is [-+]digits[.digits][e[-+]digits] with a digit before the exponent: strtod takes more than that. */
static bool is_decimal(const char *text, size_t len) {
    size_t i = len > 0 && (text[0] == '-' || text[0] == '+');
    size_t digits = 0;
    for (; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
        digits++;
    }
    if (i < len && text[i] == '.') {
        for (i++; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
            digits++;
        }
    }
    if (digits == 0) {
        return false;
    }
    if (i == len) {
        return true;
    }
    if (text[i] != 'e' && text[i] != 'E') {
        return false;
    }
    i++;
    i += i < len && (text[i] == '-' || text[i] == '+');
    size_t first = i;
    for (; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
    }
    return i == len && i > first;
}

bool nib_parse_real(double *value, const char *text, size_t len) {
    char copy[400];
    if (len >= sizeof copy || !is_decimal(text, len)) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    (void)pthread_once(&c_locale_once, make_c_locale);
    if (c_locale == (locale_t)0) {
        return false;
    }
    *value = strtod_l(copy, NULL, c_locale);
    return isfinite(*value);
}
