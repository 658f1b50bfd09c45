/* Walking over arguments, help made from the table of flags, and the nearest right name for a wrong one. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Whether text [len] is one of names. */
static bool has_name(const char *names, const char *text, size_t len) {
    for (const char *at = names; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, text, len) == 0) {
            return true;
        }
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

static const nib_cli_flag *find_flag(const nib_cli_args *args, const char *text, size_t len) {
    for (size_t i = 0; i < args->n_flags; i++) {
        if (has_name(args->flags[i].names, text, len)) {
            return &args->flags[i];
        }
    }
    return NULL;
}

enum { LONGEST = 64 };

/* Edit distance with swaps of neighbours (optimal string alignment); names longer than LONGEST are cut. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b) {
    size_t rows[3][LONGEST + 1];
    n_a = n_a < LONGEST ? n_a : LONGEST;
    n_b = n_b < LONGEST ? n_b : LONGEST;
    for (size_t j = 0; j <= n_b; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            now[j] = best;
        }
    }
    return rows[n_a % 3][n_b];
}

const char *nib_cli_nearest(size_t *len, const char *const *lists, size_t n_lists, const char *text, size_t n_text) {
    const char *best = "";
    size_t least = SIZE_MAX;
    *len = 0;
    for (size_t i = 0; i < n_lists; i++) {
        for (const char *at = lists[i]; *at != '\0';) {
            size_t n = strcspn(at, " ");
            size_t d = distance(at, n, text, n_text);
            if (d < least) {
                least = d;
                best = at;
                *len = n;
            }
            at += n;
            at += strspn(at, " ");
        }
    }
    return best;
}

static nib_cli_found say_unknown(const nib_cli_args *args) {
    const char *lists[128];
    size_t n = args->n_flags < 128 ? args->n_flags : 128;
    for (size_t i = 0; i < n; i++) {
        lists[i] = args->flags[i].names;
    }
    size_t len;
    const char *nearest = nib_cli_nearest(&len, lists, n, args->name, args->n_name);
    nib_cli_say("%.*s: unknown flag of nib %s, the nearest is %.*s; see nib %s --help", (int)args->n_name, args->name,
                args->argv[0], (int)len, nearest, args->argv[0]);
    return NIB_CLI_WRONG;
}

/* A short flag with its value in the same word: -n5. */
static bool split_short(nib_cli_args *args, const char *word) {
    if (word[1] == '-' || word[2] == '\0') {
        return false;
    }
    const nib_cli_flag *flag = find_flag(args, word, 2);
    if (flag == NULL || flag->arg[0] == '\0') {
        return false;
    }
    args->flag = flag;
    args->name = word;
    args->n_name = 2;
    args->value = word + 2;
    return true;
}

nib_cli_found nib_cli_next(nib_cli_args *args) {
    args->flag = NULL;
    args->value = NULL;
    if (args->i >= args->argc) {
        return NIB_CLI_END;
    }
    const char *word = args->argv[args->i++];
    if (!args->plain && strcmp(word, "--") == 0) {
        args->plain = true;
        return nib_cli_next(args);
    }
    if (args->plain || word[0] != '-' || word[1] == '\0') {
        args->value = word;
        return NIB_CLI_FOUND;
    }
    if (split_short(args, word)) {
        return NIB_CLI_FOUND;
    }
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    args->name = word;
    args->n_name = equals == NULL ? strlen(word) : (size_t)(equals - word);
    args->flag = find_flag(args, word, args->n_name);
    if (args->flag == NULL) {
        return say_unknown(args);
    }
    bool takes = args->flag->arg[0] != '\0';
    if (equals != NULL && !takes) {
        nib_cli_say("%.*s takes no value, \"%s\" given", (int)args->n_name, word, equals + 1);
        return NIB_CLI_WRONG;
    }
    if (takes && equals == NULL && args->i >= args->argc) {
        nib_cli_say("%s: nothing follows, expected %s", word, args->flag->arg);
        return NIB_CLI_WRONG;
    }
    if (takes) {
        args->value = equals != NULL ? equals + 1 : args->argv[args->i++];
    }
    return NIB_CLI_FOUND;
}

bool nib_cli_is(const nib_cli_args *args, const char *name) {
    return args->flag != NULL && has_name(args->flag->names, name, strlen(name));
}

nib_cli_flag *nib_cli_flags(size_t *n, const nib_cli_flag *own, size_t n_own, unsigned scopes) {
    size_t n_options;
    const nib_option *options = nib_option_list(&n_options);
    nib_cli_flag *flags = malloc((n_own + n_options) * sizeof *flags);
    if (flags == NULL) {
        return NULL;
    }
    memcpy(flags, own, n_own * sizeof *flags);
    *n = n_own;
    /* What is generated stands before how: it is what people look for in the help. */
    for (int scope = NIB_SCOPE_GENERATE; scope >= NIB_SCOPE_MODEL; scope--) {
        for (size_t i = 0; i < n_options; i++) {
            if ((int)options[i].scope == scope && (scopes >> scope & 1u) != 0 && options[i].flags[0] != '\0') {
                flags[(*n)++] = (nib_cli_flag){options[i].flags, options[i].arg, options[i].help, &options[i]};
            }
        }
    }
    return flags;
}

/* The last of a list of names: the long one of a flag. */
static const char *last_name(const char *names) {
    const char *space = strrchr(names, ' ');
    return space == NULL ? names : space + 1;
}

/* The option called name [len]; NULL: there is none. */
static const nib_option *find_option(const char *name, size_t len) {
    size_t n;
    const nib_option *options = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

void nib_cli_say_option(const char *message, const char *name, size_t n_name) {
    size_t len = strcspn(message, ":");
    const nib_option *option = find_option(message, len);
    if (option == NULL) {
        nib_cli_say("%s", message);
        return;
    }
    const char *flag = name != NULL ? name : last_name(option->flags);
    nib_cli_say("%.*s%s", (int)(name != NULL ? n_name : strlen(flag)), flag, message + len);
}

/* Adds a word [n] to help, an option's name as its flag: "max_length;" as "--max-length;". */
static void add_word(char *text, size_t cap, const char *word, size_t n) {
    size_t len = strlen(text), n_name = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
    const nib_option *option = memchr(word, '_', n_name) == NULL ? NULL : find_option(word, n_name);
    const char *space = len == 0 ? "" : " ";
    if (option == NULL) {
        (void)snprintf(text + len, cap - len, "%s%.*s", space, (int)n, word);
    } else {
        (void)snprintf(text + len, cap - len, "%s%s%.*s", space, last_name(option->flags), (int)(n - n_name),
                       word + n_name);
    }
}

/* Adds words to help. */
static void add_text(char *text, size_t cap, const char *words, size_t len) {
    for (size_t i = 0; i < len;) {
        size_t n = strcspn(words + i, " ");
        n = n < len - i ? n : len - i;
        add_word(text, cap, words + i, n);
        i += n;
        i += i < len ? strspn(words + i, " ") : 0;
    }
}

/* Text wrapped at 100 columns, indented by eight. */
static void print_wrapped(const char *text) {
    size_t column = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (column > 0 && column + n > 92) {
            printf("\n");
            column = 0;
        }
        printf("%s%.*s", column == 0 ? "        " : " ", (int)n, text);
        column += n + 1;
        text += n;
        text += strspn(text, " ");
    }
    printf("\n");
}

/* What the help of an option without argument, "no: ..; yes: ..", says of a word; *len 0 when nothing. */
static const char *find_clause(size_t *len, const char *help, const char *word, size_t n_word) {
    for (const char *at = help;; at += 2) {
        size_t n = strcspn(at, ";");
        if (strncmp(at, word, n_word) == 0 && strncmp(at + n_word, ": ", 2) == 0) {
            *len = n - n_word - 2;
            return at + n_word + 2;
        }
        at += n;
        if (*at == '\0') {
            *len = 0;
            return at;
        }
    }
}

/* An option without argument: each of its names stands for one of its words, from the second on. */
static void print_switches(const nib_option *option) {
    size_t len;
    const char *word = option->words;
    size_t n_word = strcspn(word, " ");
    const char *otherwise = find_clause(&len, option->help, word, n_word);
    size_t n_otherwise = len;
    for (const char *at = option->flags; *at != '\0';) {
        char text[2048] = "";
        size_t n = strcspn(at, " ");
        word += n_word;
        word += strspn(word, " ");
        n_word = strcspn(word, " ");
        const char *clause = find_clause(&len, option->help, word, n_word);
        add_text(text, sizeof text, clause, len);
        printf("    %.*s\n", (int)n, at);
        at += n;
        at += strspn(at, " ");
        if (*at == '\0' && n_otherwise > 0) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "; without these flags: ");
            add_text(text, sizeof text, otherwise, n_otherwise);
        }
        print_wrapped(text);
    }
}

/* "[exact (default); not yet: fast]" */
static void add_words(char *text, size_t cap, const nib_option *option) {
    for (int later = 0; later < 2; later++) {
        const char *before = later ? "; not yet: " : " [";
        const char *at = option->words;
        for (size_t i = 0; *at != '\0'; i++) {
            size_t n = strcspn(at, " "), len = strlen(text);
            if ((option->there[i] != 'y') == later) {
                bool is_default = (long)i == strtol(option->initial, NULL, 10);
                (void)snprintf(text + len, cap - len, "%s%.*s%s", before, (int)n, at, is_default ? " (default)" : "");
                before = ", ";
            }
            at += n;
            at += strspn(at, " ");
        }
    }
    (void)snprintf(text + strlen(text), cap - strlen(text), "]");
}

/* "[default 256; 0: the whole prompt at once]"; of what 0 means the first clause. */
static void add_default(char *text, size_t cap, const nib_option *option) {
    bool is_set = strcmp(option->initial, "NIB_UNSET") != 0, has_zero = option->zero[0] != '\0';
    size_t len = strlen(text);
    if (is_set || has_zero) {
        (void)snprintf(text + len, cap - len, " [%s%s%s%s%.*s]", is_set ? "default " : "",
                       is_set ? option->initial : "", is_set && has_zero ? "; " : "", has_zero ? "0: " : "",
                       (int)strcspn(option->zero, ","), option->zero);
    }
}

static void print_flag(const nib_cli_flag *flag) {
    char text[2048] = "";
    const nib_option *option = flag->option;
    if (option != NULL && flag->arg[0] == '\0') {
        print_switches(option);
        return;
    }
    printf("    ");
    for (const char *at = flag->names; *at != '\0'; at++) {
        printf("%s", *at == ' ' ? ", " : (char[2]){*at, '\0'});
    }
    printf("%s%s\n", flag->arg[0] != '\0' ? " " : "", flag->arg);
    add_text(text, sizeof text, flag->help, strlen(flag->help));
    if (option != NULL && option->kind == NIB_OPTION_KIND_CHOICE) {
        add_words(text, sizeof text, option);
    } else if (option != NULL && (option->kind == NIB_OPTION_KIND_INT || option->kind == NIB_OPTION_KIND_REAL)) {
        add_default(text, sizeof text, option);
    }
    print_wrapped(text);
}

int nib_cli_help(const char *usage, const nib_cli_flag *flags, size_t n_flags) {
    printf("%s", usage);
    for (size_t i = 0; i < n_flags; i++) {
        print_flag(&flags[i]);
    }
    return nib_cli_finish_output(NIB_EXIT_OK);
}
