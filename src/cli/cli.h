/* What the subcommands share: exit codes, flags, opening a model, reading input. Uses only the public headers. */
#ifndef NIB_CLI_CLI_H
#define NIB_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include <nib/nib.h>

enum {
    NIB_EXIT_OK = 0,
    NIB_EXIT_OTHER = 1,
    NIB_EXIT_USAGE = 2, /* usage, or an impossible option */
    NIB_EXIT_MODEL = 3, /* the model file */
    NIB_EXIT_INPUT = 4, /* too long, empty, a bad id */
    NIB_EXIT_MEMORY = 5,
    NIB_EXIT_REFUSED = 6,
    NIB_EXIT_UNCHECKED = 7,
    NIB_EXIT_INTERRUPTED = 130
};

/* The subcommands; argv[0] is the command's name. Each returns an exit code. */
int nib_cli_generate(int argc, char **argv);
int nib_cli_tokenize(int argc, char **argv);
int nib_cli_detokenize(int argc, char **argv);
int nib_cli_show(int argc, char **argv);
int nib_cli_bench(int argc, char **argv);

/* One flag of a command. */
typedef struct nib_cli_flag {
    const char *names; /* "-p --prompt" */
    const char *arg;   /* what it takes, "TEXT"; "" when nothing */
    const char *help;
    const nib_option *option; /* NULL: the command's own */
} nib_cli_flag;

/* A walk over the arguments. */
typedef struct nib_cli_args {
    int argc;
    char **argv;
    int i;                     /* the next to look at, from 1 */
    bool plain;                /* "--" was seen: all that follow are no flags */
    const nib_cli_flag *flags; /* [n_flags] */
    size_t n_flags;
    const nib_cli_flag *flag; /* what nib_cli_next found; NULL: value is no flag */
    const char *name;         /* as it was written, without "=value" */
    size_t n_name;
    const char *value; /* NULL: the flag takes none */
} nib_cli_args;

typedef enum nib_cli_found { NIB_CLI_END, NIB_CLI_FOUND, NIB_CLI_WRONG } nib_cli_found;

/* The next argument. NIB_CLI_WRONG: a message with the nearest right flag was printed. */
nib_cli_found nib_cli_next(nib_cli_args *args);

/* Whether the flag just found has this name. */
bool nib_cli_is(const nib_cli_args *args, const char *name);

/* Own flags [n_own], then those of the options of the scopes (a bit for each); NULL when out of memory. *n counts them;
 * free with free. */
nib_cli_flag *nib_cli_flags(size_t *n, const nib_cli_flag *own, size_t n_own, unsigned scopes);

bool nib_cli_is_list(const nib_option *option);

/* Adds a flag's value to an option that is a list; it borrows the value. Returns an exit code. */
int nib_cli_add_to_list(void *options, const nib_option *option, const char *name, const char *value);
void nib_cli_free_lists(nib_generate_options *generate);

/* Prints usage and flags to standard output. Returns NIB_EXIT_OK. */
int nib_cli_help(const char *usage, const nib_cli_flag *flags, size_t n_flags);

/* The name among `names` (separated by spaces) nearest to text; *len its length. */
const char *nib_cli_nearest(size_t *len, const char *const *lists, size_t n_lists, const char *text, size_t n_text);

/* Prints "nib: message" to standard error. */
void nib_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints an error of the library about an option, "top_p: 2, expected ..", with the flag in place of the option's name:
 * name [n_name] as it was written, or, when NULL, the option's long flag. Other messages are printed as they are. */
void nib_cli_say_option(const char *message, const char *name, size_t n_name);

/* Prints the error and returns the exit code of its status; what happened while the model was opened, or later. */
int nib_cli_fail_open(const nib_error *err);
int nib_cli_fail(const nib_error *err);

/* All bytes of a file, or of standard input when path is NULL, as they are; at most 1 GiB. Returns an exit code;
 * *text is freed with free. */
int nib_cli_read(char **text, size_t *len, const char *path);

/* An id written as digits; false when it is none or beyond 2^31-1. */
bool nib_cli_parse_id(int32_t *id, const char *text, size_t len);

/* Ids "5,17,33" (one comma, or white space, between two); returns an exit code, on failure *ids is NULL. *ids is freed
 * with free. */
int nib_cli_parse_ids(int32_t **ids, size_t *n, const char *text, size_t len, const char *what);

/* Flushes standard output; an exit code: what could not be written is an error. */
int nib_cli_finish_output(int code);

/* Seconds of a clock that only goes forward. */
double nib_cli_seconds(void);

#endif
