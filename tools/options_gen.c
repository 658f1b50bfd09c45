/* Writes include/nib/options.h or docs/options.md from src/options.def: `options_gen header` or `options_gen manual`.
 * The files are committed; a test compares them with what this program writes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *kind, *scope, *field, *initial, *low, *high, *flags, *arg, *zero, *help, *source;
} row;

#define NIB_OPTION_INT(scope, field, initial, low, high, flags, arg, zero, help, source)                               \
    {"INT", #scope, #field, #initial, #low, #high, flags, arg, zero, help, source},
#define NIB_OPTION_REAL(scope, field, initial, low, high, flags, arg, zero, help, source)                              \
    {"REAL", #scope, #field, #initial, #low, #high, flags, arg, zero, help, source},
#define NIB_OPTION_CHOICE(scope, field, initial, words, there, flags, arg, zero, help, source)                         \
    {"CHOICE", #scope, #field, #initial, words, there, flags, arg, zero, help, source},
#define NIB_OPTION_SEED(scope, field, initial, low, high, flags, arg, zero, help, source)                              \
    {"SEED", #scope, #field, #initial, #low, #high, flags, arg, zero, help, source},
#define NIB_OPTION_IDS(scope, field, initial, low, high, flags, arg, zero, help, source)                               \
    {"IDS", #scope, #field, #initial, #low, #high, flags, arg, zero, help, source},
#define NIB_OPTION_TEXTS(scope, field, initial, low, high, flags, arg, zero, help, source)                             \
    {"TEXTS", #scope, #field, #initial, #low, #high, flags, arg, zero, help, source},
#define NIB_OPTION_BIASES(scope, field, initial, low, high, flags, arg, zero, help, source)                            \
    {"BIASES", #scope, #field, #initial, #low, #high, flags, arg, zero, help, source},
#define NIB_OPTION_HOOK(scope, field, initial, low, high, flags, arg, zero, help, source)                              \
    {"HOOK", #scope, #field, #initial, #low, #high, flags, arg, zero, help, source},

static const row rows[] = {
#include "options.def"
};

static const char *const scopes[] = {"model", "session", "generate"};
static const char *const scope_help[] = {
    "How a model is opened.",
    "How a session computes. None of these changes a result but cache_type.",
    "One generation.",
};

enum { N_ROWS = sizeof rows / sizeof rows[0], N_SCOPES = 3, WIDTH = 118 };

static int is(const row *r, const char *kind) {
    return strcmp(r->kind, kind) == 0;
}

/* The words of a list, one at a time; returns the rest, NULL at the end. */
static const char *next_word(char word[64], const char *list) {
    size_t n = 0;
    while (*list == ' ') {
        list++;
    }
    while (list[n] != '\0' && list[n] != ' ' && n < 63) {
        word[n] = list[n];
        n++;
    }
    word[n] = '\0';
    return n == 0 ? NULL : list + n;
}

static void put_upper(const char *text) {
    for (; *text != '\0'; text++) {
        putchar(toupper((unsigned char)*text));
    }
}

/* A text wrapped into lines, each with the prefix, words kept whole. */
static void put_wrapped(const char *prefix, const char *text) {
    size_t column = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (column > 0 && column + 1 + n > WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column == 0) {
            printf("%s%.*s", prefix, (int)n, text);
            column = strlen(prefix) + n;
        } else {
            printf(" %.*s", (int)n, text);
            column += n + 1;
        }
        text += n;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void put_enum(const row *r) {
    char word[64];
    printf("enum {");
    int value = 0;
    for (const char *list = r->low; (list = next_word(word, list)) != NULL; value++) {
        printf("%s NIB_", value == 0 ? "" : ",");
        put_upper(r->field);
        putchar('_');
        put_upper(word);
        printf(" = %d", value);
    }
    printf(" };\n");
}

/* What the reader of the header wants to know beyond the sentence. */
static void put_bounds(char *text, size_t room, const row *r) {
    char part[256] = "";
    if (is(r, "INT") || is(r, "REAL")) {
        int unset = strcmp(r->initial, "NIB_UNSET") == 0;
        (void)snprintf(part, sizeof part, " Default %s, %s to %s.", unset ? "unset" : r->initial, r->low, r->high);
    } else if (is(r, "CHOICE")) {
        const char *word = r->low;
        for (int i = atoi(r->initial); i > 0; i--) {
            word += strcspn(word, " ") + 1;
        }
        (void)snprintf(part, sizeof part, " Default %.*s.", (int)strcspn(word, " "), word);
    }
    (void)snprintf(text, room, "%s.%s%s%s%s Source: %s.", r->help, part, r->zero[0] ? " 0: " : "", r->zero,
                   r->zero[0] ? "." : "", r->source);
    text[0] = (char)toupper((unsigned char)text[0]);
}

static void put_field(const row *r) {
    char text[2048];
    put_bounds(text, sizeof text, r);
    strncat(text, " */", sizeof text - strlen(text) - 1);
    printf("    /* ");
    char first[2048];
    (void)snprintf(first, sizeof first, "%s", text);
    /* The first line carries the opening, the others are aligned below it. */
    size_t column = 7, n;
    for (const char *at = first; *at != '\0'; at += n, at += strspn(at, " ")) {
        n = strcspn(at, " ");
        if (column + 1 + n > WIDTH) {
            printf("\n       ");
            column = 7;
        }
        printf("%s%.*s", column == 7 ? "" : " ", (int)n, at);
        column += n + 1;
    }
    putchar('\n');
    if (is(r, "INT")) {
        printf("    int64_t %s;\n", r->field);
    } else if (is(r, "REAL")) {
        printf("    double %s;\n", r->field);
    } else if (is(r, "CHOICE")) {
        printf("    int %s;\n", r->field);
    } else if (is(r, "SEED")) {
        printf("    int has_%s;\n    uint64_t %s;\n", r->field, r->field);
    } else if (is(r, "IDS")) {
        printf("    const int32_t *%s; /* [n_%s] borrowed */\n    size_t n_%s;\n", r->field, r->field, r->field);
    } else if (is(r, "BIASES")) {
        printf("    const nib_bias *%s; /* [n_%s] borrowed */\n    size_t n_%s;\n", r->field, r->field, r->field);
    } else if (is(r, "HOOK")) {
        printf("    nib_logits_fn %s;\n    void *%s_user;\n", r->field, r->field);
    } else {
        printf("    const nib_text *%s; /* [n_%s] borrowed */\n    size_t n_%s;\n", r->field, r->field, r->field);
    }
}

static void put_struct(size_t scope) {
    const char *name = scopes[scope];
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].scope, name) == 0 && is(&rows[i], "CHOICE")) {
            put_enum(&rows[i]);
        }
    }
    printf("\n/** %s */\ntypedef struct nib_%s_options {\n", scope_help[scope], name);
    printf("    uint32_t size; /* sizeof(nib_%s_options), set by the INIT macro */\n", name);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].scope, name) == 0) {
            put_field(&rows[i]);
        }
    }
    printf("} nib_%s_options;\n\n#define NIB_", name);
    put_upper(name);
    printf("_OPTIONS_INIT { (uint32_t)sizeof(nib_%s_options)", name);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].scope, name) == 0) {
            int list = is(&rows[i], "IDS") || is(&rows[i], "TEXTS") || is(&rows[i], "BIASES");
            const char *second = is(&rows[i], "HOOK") ? ", NULL" : list || is(&rows[i], "SEED") ? ", 0" : "";
            printf(", %s%s", rows[i].initial, second);
        }
    }
    printf(" }\n\n");
}

static void put_header(void) {
    puts("/* The options of models, sessions and generations. Written by tools/options_gen.c from src/options.def: "
         "change\n"
         " * that file and run `make options`. */\n"
         "/* clang-format off */\n"
         "#ifndef NIB_OPTIONS_H\n#define NIB_OPTIONS_H\n\n#include \"status.h\"\n\n"
         "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
         "/** A whole number that was not given. */\n#define NIB_UNSET INT64_MIN\n\n"
         "/** Bytes with a length. */\ntypedef struct nib_text {\n    const char *bytes;\n    size_t len;\n} "
         "nib_text;\n\n"
         "/** A number that is added to the logit of the last of ids [n] where the others are the last tokens of the\n"
         " *  text; of one id always. -INFINITY bans it. */\n"
         "typedef struct nib_bias {\n    const int32_t *ids;\n    size_t n; /* at least 1 */\n    double bias;\n"
         "} nib_bias;\n\n"
         "/** Where logits belong. */\n"
         "typedef struct nib_logits_place {\n    size_t row, index;  /* prompt, and candidate of that prompt */\n"
         "    const int32_t *ids; /* [n] prompt and output so far */\n    size_t n, n_prompt;\n"
         "} nib_logits_place;\n\n"
         "/** Changes logits [V] in place, behind biases, penalties and bans and before the filters; -INFINITY bans a\n"
         " *  token, NaN and +infinity end the call with NIB_ENUMERIC. Returns 0; anything else ends it with\n"
         " *  NIB_ECALLBACK. */\n"
         "typedef int (*nib_logits_fn)(float *logits, size_t V, const nib_logits_place *place, void *user);\n");
    for (size_t i = 0; i < N_SCOPES; i++) {
        put_struct(i);
    }
    puts(
        "typedef enum nib_option_scope {\n    NIB_SCOPE_MODEL = 0,\n    NIB_SCOPE_SESSION,\n    NIB_SCOPE_GENERATE\n"
        "} nib_option_scope;\n\n"
        "typedef enum nib_option_kind {\n"
        "    NIB_OPTION_KIND_INT = 0, /* int64_t */\n"
        "    NIB_OPTION_KIND_REAL,    /* double */\n"
        "    NIB_OPTION_KIND_CHOICE,  /* int; one of words */\n"
        "    NIB_OPTION_KIND_SEED,    /* uint64_t, after an int that says it is set */\n"
        "    NIB_OPTION_KIND_IDS,     /* const int32_t *, and a size_t */\n"
        "    NIB_OPTION_KIND_TEXTS,   /* const nib_text *, and a size_t */\n"
        "    NIB_OPTION_KIND_BIASES,  /* const nib_bias *, and a size_t */\n"
        "    NIB_OPTION_KIND_HOOK     /* nib_logits_fn, and a void * */\n"
        "} nib_option_kind;\n\n"
        "/** What is known of an option: for bindings, servers and commands that offer them all. Static storage. */\n"
        "typedef struct nib_option {\n"
        "    const char *name; /* of the field */\n"
        "    nib_option_scope scope;\n"
        "    nib_option_kind kind;\n"
        "    size_t offset;           /* of the field in its struct */\n"
        "    const char *initial;     /* the default, as text */\n"
        "    int64_t low, high;       /* bounds of an INT */\n"
        "    double real_low, real_high; /* bounds of a REAL */\n"
        "    const char *words;       /* of a CHOICE, separated by spaces */\n"
        "    const char *there;       /* for each word 'y', or 'n': comes in a later version */\n"
        "    const char *flags;       /* of the command, separated by spaces; of a CHOICE without arg, flag j sets "
        "word j + 1 */\n"
        "    const char *arg;         /* what the flag takes, or \"\" */\n"
        "    const char *zero;        /* what 0 means, or \"\" */\n"
        "    const char *help;        /* one sentence */\n"
        "    const char *source;      /* where the option comes from */\n"
        "} nib_option;\n\n"
        "/** All options, in the order of options.def. */\n"
        "NIB_API const nib_option *nib_option_list(size_t *n);\n\n"
        "/** Set a field from text [len]: a number, or a word of a choice.\n"
        " *\n"
        " *  options  the struct of option->scope\n"
        " *\n"
        " *  Returns NIB_OK; NIB_EINVAL (no such value; names the value and what was expected; lists and "
        "functions\n"
        " *          are set in the struct); NIB_EUNSUPPORTED (a word that comes in a later version).\n"
        " */\n"
        "NIB_API nib_status nib_option_set(void *options, const nib_option *option, const char *text, size_t len,\n"
        "                                  nib_error *err);\n\n"
        "/** Check a whole struct, as every call that takes one does.\n"
        " *\n"
        " *  Returns NIB_OK; NIB_EINVAL (a value out of its range, NaN, or against another option); NIB_EUNSUPPORTED.\n"
        " */\n"
        "NIB_API nib_status nib_options_check(const void *options, nib_option_scope scope, nib_error *err);\n\n"
        "#ifdef __cplusplus\n}\n#endif\n/* clang-format on */\n#endif");
}

/* A word of a choice, with what it is in this version. */
static void put_words(const row *r) {
    char word[64];
    size_t i = 0;
    printf("\n  Values:");
    for (const char *list = r->low; (list = next_word(word, list)) != NULL; i++) {
        printf("%s `%s`%s", i == 0 ? "" : ",", word, r->high[i] == 'n' ? " (later)" : "");
    }
    putchar('.');
}

static void put_manual(void) {
    puts("# Options\n\nWritten from `src/options.def` by `make options`; the same rows make the C structs, the checks "
         "and the "
         "flags.\nA value out of its range is refused; nothing is corrected silently.");
    for (size_t s = 0; s < N_SCOPES; s++) {
        printf("\n## nib_%s_options\n\n%s\n", scopes[s], scope_help[s]);
        for (size_t i = 0; i < N_ROWS; i++) {
            const row *r = &rows[i];
            char text[2048];
            if (strcmp(r->scope, scopes[s]) != 0) {
                continue;
            }
            put_bounds(text, sizeof text, r);
            if (r->flags[0] != '\0') {
                printf("\n- `%s`, `%s%s%s`\n", r->field, r->flags, r->arg[0] ? " " : "", r->arg);
            } else {
                printf("\n- `%s`, in C\n", r->field);
            }
            put_wrapped("  ", text);
            if (is(r, "CHOICE")) {
                put_words(r);
                putchar('\n');
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "header") == 0) {
        put_header();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "manual") == 0) {
        put_manual();
        return 0;
    }
    fprintf(stderr, "usage: options_gen header|manual\n");
    return 2;
}
