/* Messages, exit codes, input and output of the subcommands. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
    nib_cli_say_option(err->message, NULL, 0);
    switch (err->code) {
    case NIB_EINVAL: return NIB_EXIT_USAGE;
    case NIB_ENOMEM: return NIB_EXIT_MEMORY;
    case NIB_ECHECK: return NIB_EXIT_UNCHECKED;
    default: return NIB_EXIT_MODEL;
    }
}

int nib_cli_fail(const nib_error *err) {
    nib_cli_say_option(err->message, NULL, 0);
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

/* A prompt is smaller; without a limit an endless input would end in the death of some process. */
enum { INPUT_LIMIT = 1 << 30 };

static int read_all(char **text, size_t *len, FILE *file, const char *name) {
    char *bytes = NULL;
    size_t n = 0, cap = 0;
    for (;;) {
        if (n == cap) {
            /* One byte over the limit is enough to see that there is more. */
            cap = cap == 0 ? 65536 : cap < INPUT_LIMIT ? cap * 2 : (size_t)INPUT_LIMIT + 1;
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
        if (n > INPUT_LIMIT) {
            nib_cli_say("%s: more than %d bytes, expected at most as many", name, INPUT_LIMIT);
            free(bytes);
            return NIB_EXIT_INPUT;
        }
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
        if (isatty(STDIN_FILENO)) {
            nib_cli_say("reading standard input; Ctrl-D ends it");
        }
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

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool nib_cli_parse_id(int32_t *id, const char *text, size_t len) {
    int64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || value > INT32_MAX / 10) {
            return false;
        }
        value = value * 10 + (text[i] - '0');
    }
    *id = (int32_t)value;
    return len > 0 && value <= INT32_MAX;
}

static bool say_bad_id(const char *what, const char *text, size_t len) {
    nib_cli_say("%s: \"%.*s\", expected ids from 0 on, separated by commas", what, (int)(len < 40 ? len : 40), text);
    return false;
}

static bool parse_ids(int32_t *ids, size_t *n, const char *text, size_t len, const char *what) {
    bool has_id = false, open = false; /* before this place: an id; a comma that wants one */
    for (size_t i = 0; i < len;) {
        size_t n_word = 0;
        while (i + n_word < len && text[i + n_word] != ',' && !is_space(text[i + n_word])) {
            n_word++;
        }
        if (n_word > 0) {
            if (!nib_cli_parse_id(&ids[*n], text + i, n_word)) {
                return say_bad_id(what, text + i, n_word);
            }
            (*n)++;
            i += n_word;
            has_id = true;
            open = false;
        } else if (is_space(text[i])) {
            i++;
        } else if (!has_id) {
            return say_bad_id(what, text + i, len - i);
        } else {
            i++;
            has_id = false;
            open = true;
        }
    }
    return open ? say_bad_id(what, ",", 1) : true;
}

int nib_cli_parse_ids(int32_t **ids, size_t *n, const char *text, size_t len, const char *what) {
    *n = 0;
    *ids = malloc((len / 2 + 1) * sizeof **ids);
    if (*ids == NULL) {
        nib_cli_say("%s: out of memory", what);
        return NIB_EXIT_MEMORY;
    }
    if (!parse_ids(*ids, n, text, len, what)) {
        free(*ids);
        *ids = NULL;
        return NIB_EXIT_INPUT;
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
