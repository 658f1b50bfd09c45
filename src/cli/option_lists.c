/* Options that are lists: each time its flag stands there, one more element. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* A list in the struct of options: a pointer, and behind it the number of elements. */
typedef struct list {
    char *items;
    size_t n;
} list;

static list list_of(const void *options, const nib_option *option) {
    list l;
    memcpy(&l.items, (const char *)options + option->offset, sizeof l.items);
    memcpy(&l.n, (const char *)options + option->offset + sizeof l.items, sizeof l.n);
    return l;
}

static int append(void *options, const nib_option *option, const void *item, size_t size) {
    list l = list_of(options, option);
    char *grown = realloc(l.items, (l.n + 1) * size);
    if (grown == NULL) {
        nib_cli_say("out of memory while the arguments were read");
        return NIB_EXIT_MEMORY;
    }
    memcpy(grown + l.n * size, item, size);
    l.n++;
    memcpy((char *)options + option->offset, &grown, sizeof grown);
    memcpy((char *)options + option->offset + sizeof grown, &l.n, sizeof l.n);
    return NIB_EXIT_OK;
}

static int append_id(void *options, const nib_option *option, const char *name, const char *value) {
    int32_t id;
    if (!nib_cli_parse_id(&id, value, strlen(value))) {
        nib_cli_say("%s: \"%s\", expected a token id from 0 on", name, value);
        return NIB_EXIT_USAGE;
    }
    return append(options, option, &id, sizeof id);
}

/* IDS=X */
static int append_bias(void *options, const nib_option *option, const char *name, const char *value) {
    const char *equals = strrchr(value, '=');
    char *end = NULL;
    double x = equals == NULL ? 0 : strtod(equals + 1, &end);
    if (equals == NULL || end == equals + 1 || *end != '\0') {
        nib_cli_say("%s: \"%s\", expected IDS=X: token ids with commas between them, and a number", name, value);
        return NIB_EXIT_USAGE;
    }
    int32_t *ids;
    size_t n;
    int code = nib_cli_parse_ids(&ids, &n, value, (size_t)(equals - value), name);
    if (code != NIB_EXIT_OK) {
        return NIB_EXIT_USAGE;
    }
    nib_bias bias = {ids, n, x};
    code = append(options, option, &bias, sizeof bias);
    if (code != NIB_EXIT_OK) {
        free(ids);
    }
    return code;
}

int nib_cli_add_to_list(void *options, const nib_option *option, const char *name, const char *value) {
    if (option->kind == NIB_OPTION_KIND_IDS) {
        return append_id(options, option, name, value);
    }
    if (option->kind == NIB_OPTION_KIND_BIASES) {
        return append_bias(options, option, name, value);
    }
    nib_text text = {value, strlen(value)};
    return append(options, option, &text, sizeof text);
}

bool nib_cli_is_list(const nib_option *option) {
    return option->kind == NIB_OPTION_KIND_IDS || option->kind == NIB_OPTION_KIND_TEXTS ||
           option->kind == NIB_OPTION_KIND_BIASES;
}

void nib_cli_free_lists(nib_generate_options *generate) {
    size_t n;
    const nib_option *options = nib_option_list(&n);
    for (size_t i = 0; i < generate->n_logit_bias; i++) {
        free((void *)(uintptr_t)generate->logit_bias[i].ids);
    }
    for (size_t i = 0; i < n; i++) {
        if (options[i].scope == NIB_SCOPE_GENERATE && nib_cli_is_list(&options[i])) {
            free(list_of(generate, &options[i]).items);
        }
    }
}
