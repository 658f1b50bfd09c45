/* nib tokenize and nib detokenize. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/jsonl.h"

static const char tokenize_usage[] =
    "usage: nib tokenize -m MODEL [flags] [TEXT]\n\n"
    "Prints the token ids of TEXT, or of standard input byte for byte, as the model would get them.\n\nflags\n";

static const char detokenize_usage[] = "usage: nib detokenize -m MODEL [flags] [IDS]\n\n"
                                       "Prints the text of ids (5,17,33), given or from standard input.\n\nflags\n";

static const nib_cli_flag tokenize_flags[] = {
    {"-m --model", "MODEL", "a GGUF file", NULL},
    {"--no-bos", "", "do not add the start token that the model's file asks for", NULL},
    {"--no-special", "", "text that spells a control token stays text", NULL},
    {"--json", "", "print {\"ids\":[..]}", NULL},
    {"-h --help", "", "this text", NULL},
};

static const nib_cli_flag detokenize_flags[] = {
    {"-m --model", "MODEL", "a GGUF file", NULL},
    {"--no-special", "", "control tokens give no text", NULL},
    {"--json", "", "print {\"text\":\"..\"}", NULL},
    {"-h --help", "", "this text", NULL},
};

typedef struct request {
    const char *model_path, *argument;
    bool no_bos, no_special, json, help;
} request;

static int read_arguments(request *r, const char *usage, const nib_cli_flag *flags, size_t n_flags, int argc,
                          char **argv) {
    nib_cli_args args = {.argc = argc, .argv = argv, .i = 1, .flags = flags, .n_flags = n_flags};
    nib_cli_found found;
    while ((found = nib_cli_next(&args)) == NIB_CLI_FOUND) {
        if (args.flag == NULL) {
            if (r->argument != NULL) {
                nib_cli_say("\"%s\": a second argument, expected one", args.value);
                return NIB_EXIT_USAGE;
            }
            r->argument = args.value;
        }
        r->model_path = nib_cli_is(&args, "--model") ? args.value : r->model_path;
        r->no_bos = r->no_bos || nib_cli_is(&args, "--no-bos");
        r->no_special = r->no_special || nib_cli_is(&args, "--no-special");
        r->json = r->json || nib_cli_is(&args, "--json");
        if (nib_cli_is(&args, "--help")) {
            r->help = true;
            return nib_cli_help(usage, flags, n_flags);
        }
    }
    if (found == NIB_CLI_WRONG) {
        return NIB_EXIT_USAGE;
    }
    if (r->model_path == NULL) {
        nib_cli_say("-m: missing, expected a model file");
        return NIB_EXIT_USAGE;
    }
    return NIB_EXIT_OK;
}

static int open_model(nib_model **model, const request *r) {
    nib_error err;
    if (nib_model_open(model, r->model_path, NULL, &err) != NIB_OK) {
        return nib_cli_fail_open(&err);
    }
    if (nib_model_tokenizer(*model) == NULL) {
        nib_cli_say("%s: has no tokenizer, expected a model with one", r->model_path);
        nib_model_free(*model);
        return NIB_EXIT_MODEL;
    }
    return NIB_EXIT_OK;
}

/* The argument, or all of standard input. *owned is what to free. */
static int read_input(const char **text, size_t *len, char **owned, const request *r) {
    *owned = NULL;
    if (r->argument != NULL) {
        *text = r->argument;
        *len = strlen(r->argument);
        return NIB_EXIT_OK;
    }
    int code = nib_cli_read(owned, len, NULL);
    *text = *owned;
    return code;
}

static void print_ids(const int32_t *ids, size_t n, bool as_json) {
    nib_json json = {false};
    if (!as_json) {
        for (size_t i = 0; i < n; i++) {
            printf("%s%d", i == 0 ? "" : " ", ids[i]);
        }
        putchar('\n');
        return;
    }
    nib_json_open(&json, '{');
    nib_json_key(&json, "ids");
    nib_json_ids(&json, ids, n);
    nib_json_close(&json, '}');
    nib_json_end_line(&json);
}

static int tokenize(const request *r, const nib_model *model, const char *text, size_t len) {
    uint32_t flags = (r->no_bos ? 0 : NIB_TOKENIZE_ADD_BOS) | (r->no_special ? 0 : NIB_TOKENIZE_SPECIAL);
    nib_error err;
    int32_t *ids;
    size_t n;
    if (nib_tokenizer_encode(&ids, &n, nib_model_tokenizer(model), text, len, flags, &err) != NIB_OK) {
        return nib_cli_fail(&err);
    }
    print_ids(ids, n, r->json);
    nib_free(ids);
    return nib_cli_finish_output(NIB_EXIT_OK);
}

static int detokenize(const request *r, const nib_model *model, const char *text, size_t len) {
    uint32_t flags = r->no_special ? 0 : NIB_DETOKENIZE_SPECIAL;
    nib_error err;
    int32_t *ids;
    char *out;
    size_t n, n_out;
    int code = nib_cli_parse_ids(&ids, &n, text, len, "ids");
    if (code != NIB_EXIT_OK) {
        return code;
    }
    nib_status status = nib_tokenizer_decode(&out, &n_out, nib_model_tokenizer(model), ids, n, flags, &err);
    free(ids);
    if (status != NIB_OK) {
        return nib_cli_fail(&err);
    }
    if (r->json) {
        nib_json json = {false};
        nib_json_open(&json, '{');
        nib_json_key(&json, "text");
        nib_json_string(&json, out, n_out);
        nib_json_close(&json, '}');
        nib_json_end_line(&json);
    } else {
        (void)fwrite(out, 1, n_out, stdout);
    }
    nib_free(out);
    return nib_cli_finish_output(NIB_EXIT_OK);
}

static int run(const request *r, int (*work)(const request *, const nib_model *, const char *, size_t)) {
    nib_model *model;
    const char *text;
    char *owned;
    size_t len;
    int code = read_input(&text, &len, &owned, r);
    code = code != NIB_EXIT_OK ? code : open_model(&model, r);
    if (code == NIB_EXIT_OK) {
        code = work(r, model, text, len);
        nib_model_free(model);
    }
    free(owned);
    return code;
}

int nib_cli_tokenize(int argc, char **argv) {
    request r = {0};
    size_t n = sizeof tokenize_flags / sizeof tokenize_flags[0];
    int code = read_arguments(&r, tokenize_usage, tokenize_flags, n, argc, argv);
    return code != NIB_EXIT_OK || r.help ? code : run(&r, tokenize);
}

int nib_cli_detokenize(int argc, char **argv) {
    request r = {0};
    size_t n = sizeof detokenize_flags / sizeof detokenize_flags[0];
    int code = read_arguments(&r, detokenize_usage, detokenize_flags, n, argc, argv);
    return code != NIB_EXIT_OK || r.help ? code : run(&r, detokenize);
}
