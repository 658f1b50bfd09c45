/* Messages, exit codes, input and output of the subcommands. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

void nib_cli_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "nib: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

int nib_cli_fail_open(const nib_error *err) {
    nib_cli_say("%s", err->message);
    switch (err->code) {
    case NIB_EINVAL: return NIB_EXIT_USAGE;
    case NIB_ENOMEM: return NIB_EXIT_MEMORY;
    case NIB_ECHECK: return NIB_EXIT_UNCHECKED;
    default: return NIB_EXIT_MODEL;
    }
}

int nib_cli_fail(const nib_error *err) {
    nib_cli_say("%s", err->message);
    switch (err->code) {
    case NIB_EINVAL:
    case NIB_EFULL: return NIB_EXIT_INPUT;
    case NIB_EUNSUPPORTED: return NIB_EXIT_USAGE;
    case NIB_ENOMEM: return NIB_EXIT_MEMORY;
    case NIB_ECHECK: return NIB_EXIT_UNCHECKED;
    case NIB_ECANCELLED: return NIB_EXIT_INTERRUPTED;
    default: return NIB_EXIT_OTHER;
    }
}

static int read_all(char **text, size_t *len, FILE *file, const char *name) {
    char *bytes = NULL;
    size_t n = 0, cap = 0;
    for (;;) {
        if (n == cap) {
            cap = cap == 0 ? 65536 : cap * 2;
            char *grown = realloc(bytes, cap);
            if (grown == NULL) {
                free(bytes);
                nib_cli_say("%s: out of memory after %zu bytes", name, n);
                return NIB_EXIT_MEMORY;
            }
            bytes = grown;
        }
        size_t got = fread(bytes + n, 1, cap - n, file);
        if (got == 0) {
            break;
        }
        n += got;
    }
    if (ferror(file)) {
        nib_cli_say("%s: %s", name, strerror(errno));
        free(bytes);
        return NIB_EXIT_INPUT;
    }
    *text = bytes;
    *len = n;
    return NIB_EXIT_OK;
}

int nib_cli_read(char **text, size_t *len, const char *path) {
    *text = NULL;
    if (path == NULL) {
        return read_all(text, len, stdin, "standard input");
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        nib_cli_say("%s: %s", path, strerror(errno));
        return NIB_EXIT_INPUT;
    }
    int code = read_all(text, len, file, path);
    (void)fclose(file);
    return code;
}

static bool is_gap(char c) {
    return c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

int nib_cli_parse_ids(int32_t **ids, size_t *n, const char *text, size_t len, const char *what) {
    *n = 0;
    *ids = malloc((len / 2 + 1) * sizeof **ids);
    if (*ids == NULL) {
        nib_cli_say("%s: out of memory", what);
        return NIB_EXIT_MEMORY;
    }
    for (size_t i = 0; i < len;) {
        size_t digits = 0;
        while (i + digits < len && !is_gap(text[i + digits])) {
            digits++;
        }
        char word[24] = "";
        memcpy(word, text + i, digits < sizeof word ? digits : sizeof word - 1);
        char *end = word;
        errno = 0;
        long long id = strtoll(word, &end, 10);
        if (digits > 0 && (digits >= sizeof word || *end != '\0' || errno != 0 || id < 0 || id > INT32_MAX)) {
            nib_cli_say("%s: \"%.*s\", expected ids from 0 on, separated by commas", what,
                        (int)(digits < 40 ? digits : 40), text + i);
            free(*ids);
            *ids = NULL;
            return NIB_EXIT_INPUT;
        }
        if (digits > 0) {
            (*ids)[(*n)++] = (int32_t)id;
        }
        i += digits + 1;
    }
    return NIB_EXIT_OK;
}

int nib_cli_finish_output(int code) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        nib_cli_say("standard output: %s", strerror(errno));
        return code == NIB_EXIT_OK ? NIB_EXIT_OTHER : code;
    }
    return code;
}

double nib_cli_seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
