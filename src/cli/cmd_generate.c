/* nib generate: prompts from flags, a file or standard input; text streamed to standard output, or JSON Lines. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/jsonl.h"
#include "cli/rows.h"

static const char usage[] =
    "usage: nib generate -m MODEL [-p TEXT | --prompt-ids IDS | -f FILE] [flags]\n\n"
    "Writes what the model says after each prompt. Without -p, --prompt-ids and -f the prompt is read\n"
    "from standard input. Text goes to standard output, everything else to standard error.\n\n"
    "    nib generate -m model.gguf -p \"Once upon a time\" -n 50\n"
    "    nib generate -m model.gguf -f story.txt --num-return 3 --seed 7 --json\n"
    "    nib generate -m random:llama-tiny --prompt-ids 1,2,3 --greedy\n\nflags\n";

static const nib_cli_flag own_flags[] = {
    {"-m --model", "MODEL",
     "a GGUF file, or random:NAME[,seed=S][,key=value..] (llama-tiny, gpt-config, gpt-tiny, "
     "gpt2-small, gpt)",
     NULL},
    {"-p --prompt", "TEXT", "a prompt (repeatable)", NULL},
    {"--prompt-ids", "IDS", "a prompt of token ids, 5,17,33 (repeatable); needs no tokenizer", NULL},
    {"-f --file", "FILE", "a prompt, byte for byte from a file", NULL},
    {"--no-bos", "", "do not add the start token that the model's file asks for", NULL},
    {"--no-special", "", "text that spells a control token stays text", NULL},
    {"--json", "", "one JSON object for each row, and nothing else, on standard output", NULL},
    {"-h --help", "", "this text", NULL},
};

enum { N_OWN = sizeof own_flags / sizeof own_flags[0] };

/* A prompt as it was given: text, or ids. */
typedef struct source {
    char *text; /* [len] owned; NULL when ids were given */
    size_t len;
    int32_t *ids; /* [n] owned by free, or by nib_free when they came from text */
    size_t n;
} source;

typedef struct request {
    const char *model_path;
    nib_model_options model;
    nib_session_options session;
    nib_generate_options generate;
    source *sources; /* [n_sources] in the order given */
    size_t n_sources, cap_sources;
    bool no_bos, no_special, json, help;
} request;

static void free_request(request *r) {
    for (size_t i = 0; i < r->n_sources; i++) {
        if (r->sources[i].text != NULL) {
            nib_free(r->sources[i].ids);
        } else {
            free(r->sources[i].ids);
        }
        free(r->sources[i].text);
    }
    free(r->sources);
    nib_cli_free_lists(&r->generate);
}

static int out_of_memory(void) {
    nib_cli_say("out of memory while the arguments were read");
    return NIB_EXIT_MEMORY;
}

/* One more element at the end of a list. */
static bool grow(void *list_pointer, size_t n, size_t size) {
    void *list;
    memcpy(&list, list_pointer, sizeof list);
    void *grown = realloc(list, (n + 1) * size);
    if (grown == NULL) {
        return false;
    }
    memcpy(list_pointer, &grown, sizeof grown);
    return true;
}

static int add_source(request *r, char *text, size_t len, int32_t *ids, size_t n) {
    if (!grow(&r->sources, r->n_sources, sizeof r->sources[0])) {
        free(text);
        free(ids);
        return out_of_memory();
    }
    r->sources[r->n_sources++] = (source){text, len, ids, n};
    return NIB_EXIT_OK;
}

static int add_text(request *r, const char *value) {
    size_t len = strlen(value);
    char *copy = malloc(len + 1);
    if (copy == NULL) {
        return out_of_memory();
    }
    memcpy(copy, value, len + 1);
    return add_source(r, copy, len, NULL, 0);
}

static int add_ids(request *r, const char *value) {
    int32_t *ids;
    size_t n;
    int code = nib_cli_parse_ids(&ids, &n, value, strlen(value), "--prompt-ids");
    return code != NIB_EXIT_OK ? code : add_source(r, NULL, 0, ids, n);
}

static int add_file(request *r, const char *path) {
    char *text;
    size_t len;
    int code = nib_cli_read(&text, &len, path);
    return code != NIB_EXIT_OK ? code : add_source(r, text, len, NULL, 0);
}

/* Which of the flags of a choice without argument it was: the j-th sets word j + 1. */
static int choice_of_flag(const nib_cli_args *args) {
    int word = 1;
    for (const char *at = args->flag->names; *at != '\0'; word++) {
        size_t n = strcspn(at, " ");
        if (n == args->n_name && memcmp(at, args->name, n) == 0) {
            return word;
        }
        at += n;
        at += strspn(at, " ");
    }
    return word;
}

static int take_option(request *r, const nib_cli_args *args) {
    const nib_option *option = args->flag->option;
    void *structs[] = {&r->model, &r->session, &r->generate};
    nib_error err;
    if (nib_cli_is_list(option)) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)args->n_name, args->name);
        return nib_cli_add_to_list(structs[option->scope], option, name, args->value);
    }
    if (args->value == NULL) {
        int word = choice_of_flag(args);
        memcpy((char *)structs[option->scope] + option->offset, &word, sizeof word);
        return NIB_EXIT_OK;
    }
    if (nib_option_set(structs[option->scope], option, args->value, strlen(args->value), &err) != NIB_OK) {
        nib_cli_say_option(err.message, args->name, args->n_name);
        return NIB_EXIT_USAGE;
    }
    return NIB_EXIT_OK;
}

static int take_flag(request *r, const nib_cli_args *args) {
    if (args->flag == NULL) {
        nib_cli_say("\"%s\": no flag, expected -p TEXT for a prompt; see nib generate --help", args->value);
        return NIB_EXIT_USAGE;
    }
    if (args->flag->option != NULL) {
        return take_option(r, args);
    }
    if (nib_cli_is(args, "--model")) {
        r->model_path = args->value;
    } else if (nib_cli_is(args, "--prompt")) {
        return add_text(r, args->value);
    } else if (nib_cli_is(args, "--prompt-ids")) {
        return add_ids(r, args->value);
    } else if (nib_cli_is(args, "--file")) {
        return add_file(r, args->value);
    } else if (nib_cli_is(args, "--no-bos")) {
        r->no_bos = true;
    } else if (nib_cli_is(args, "--no-special")) {
        r->no_special = true;
    } else if (nib_cli_is(args, "--json")) {
        r->json = true;
    } else {
        r->help = true;
    }
    return NIB_EXIT_OK;
}

/* Options that cannot be, before any file is touched. */
static int check_options(const request *r) {
    nib_error err;
    if (r->model_path == NULL) {
        nib_cli_say("-m: missing, expected a model file or random:NAME");
        return NIB_EXIT_USAGE;
    }
    if (nib_options_check(&r->model, NIB_SCOPE_MODEL, &err) != NIB_OK ||
        nib_options_check(&r->session, NIB_SCOPE_SESSION, &err) != NIB_OK ||
        nib_options_check(&r->generate, NIB_SCOPE_GENERATE, &err) != NIB_OK) {
        nib_cli_say_option(err.message, NULL, 0);
        return NIB_EXIT_USAGE;
    }
    return NIB_EXIT_OK;
}

static int read_arguments(request *r, int argc, char **argv) {
    nib_cli_args args = {.argc = argc, .argv = argv, .i = 1};
    unsigned scopes = 1u << NIB_SCOPE_MODEL | 1u << NIB_SCOPE_SESSION | 1u << NIB_SCOPE_GENERATE;
    nib_cli_flag *flags = nib_cli_flags(&args.n_flags, own_flags, N_OWN, scopes);
    if (flags == NULL) {
        return out_of_memory();
    }
    args.flags = flags;
    int code = NIB_EXIT_OK;
    nib_cli_found found = NIB_CLI_FOUND;
    while (code == NIB_EXIT_OK && !r->help && (found = nib_cli_next(&args)) == NIB_CLI_FOUND) {
        code = take_flag(r, &args);
    }
    if (found == NIB_CLI_WRONG) {
        code = NIB_EXIT_USAGE;
    }
    if (r->help) {
        code = nib_cli_help(usage, flags, args.n_flags);
    } else if (code == NIB_EXIT_OK) {
        code = check_options(r);
    }
    free(flags);
    return code;
}

/* Standard input as the prompt when there is no other. */
static int read_input(request *r) {
    return r->n_sources > 0 ? NIB_EXIT_OK : add_file(r, NULL);
}

/* Ids of the prompts that are text. */
static int tokenize(request *r, const nib_model *model) {
    const nib_tokenizer *tokenizer = nib_model_tokenizer(model);
    uint32_t flags = (r->no_bos ? 0 : NIB_TOKENIZE_ADD_BOS) | (r->no_special ? 0 : NIB_TOKENIZE_SPECIAL);
    nib_error err;
    for (size_t i = 0; i < r->n_sources; i++) {
        source *s = &r->sources[i];
        if (s->text == NULL) {
            continue;
        }
        if (tokenizer == NULL) {
            nib_cli_say("prompt %zu: text, expected --prompt-ids: the model has no tokenizer", i);
            return NIB_EXIT_INPUT;
        }
        if (nib_tokenizer_encode(&s->ids, &s->n, tokenizer, s->text, s->len, flags, &err) != NIB_OK) {
            return nib_cli_fail(&err);
        }
        if (s->n == 0 && r->no_bos) {
            nib_cli_say("prompt %zu: empty, expected text: --no-bos leaves the start token out", i);
            return NIB_EXIT_INPUT;
        }
    }
    return NIB_EXIT_OK;
}

/* One line when a chat model gets a prompt that is no conversation. */
static void advise(const request *r, const nib_model *model) {
    const nib_tokenizer *tokenizer = nib_model_tokenizer(model);
    nib_model_info info = {.size = sizeof info};
    if (tokenizer == NULL || nib_model_get_info(&info, model, NULL) != NIB_OK || !info.has_chat_template) {
        return;
    }
    for (size_t i = 0; i < r->n_sources; i++) {
        bool control = false;
        for (size_t t = 0; t < r->sources[i].n; t++) {
            int32_t id = r->sources[i].ids[t];
            control = control || (id != info.start_id && nib_tokenizer_is_control(tokenizer, id));
            control = control || (t > 0 && id == info.start_id);
        }
        if (!control) {
            nib_cli_say("advice: this model was trained on conversations (nib show --json prints its chat template); a "
                        "prompt without its turn marks is continued as plain text");
            return;
        }
    }
}

static _Atomic(nib_session *) interrupted_session;

static void on_interrupt(int number) {
    nib_session *session = atomic_load(&interrupted_session);
    if (session != NULL) {
        nib_session_cancel(session);
    }
    (void)number;
}

/* The first Ctrl-C ends the generation cleanly, a second one the process. */
static void catch_interrupt(nib_session *session) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    atomic_store(&interrupted_session, session);
    if (session != NULL) {
        (void)sigaction(SIGINT, &action, NULL);
    }
}

/* What the callback keeps from token to token. */
typedef struct progress {
    bool json, has_text;
    size_t num_return;
    nib_cli_rows rows;
    double begun, first; /* seconds; first: when the first token came, 0 before */
    size_t n;
} progress;

static int on_token(const nib_token *token, void *user) {
    progress *p = user;
    char id[16];
    const char *text = token->text;
    size_t len = token->text_len, row = token->row * p->num_return + token->index;
    if (token->id >= 0) {
        p->first = p->n == 0 ? nib_cli_seconds() : p->first;
        p->n++;
    }
    if (p->json) {
        return 0;
    }
    if (!p->has_text) {
        int n = token->id < 0 ? 0 : snprintf(id, sizeof id, "%s%d", p->rows.rows[row].begun ? " " : "", token->id);
        text = id;
        len = (size_t)n;
    }
    return nib_cli_rows_add(&p->rows, row, text, len, token->finish != NIB_FINISH_NONE) ? 0 : 1;
}

/* "top_logprobs":[[{"id":..,"logprob":..},..],..] */
static void print_top(nib_json *json, const nib_row *row) {
    nib_json_key(json, "top_logprobs");
    nib_json_open(json, '[');
    for (size_t t = 0; t < row->n; t++) {
        nib_json_open(json, '[');
        for (size_t i = 0; i < row->n_top[t]; i++) {
            nib_alternative top = row->top[t * row->stride_top + i];
            nib_json_open(json, '{');
            nib_json_key(json, "id");
            nib_json_uint(json, (uint64_t)top.id);
            nib_json_key(json, "logprob");
            nib_json_float(json, top.logprob);
            nib_json_close(json, '}');
        }
        nib_json_close(json, ']');
    }
    nib_json_close(json, ']');
}

static void print_row(const nib_row *row, uint64_t seed) {
    static const char *const reasons[] = {"", "stop", "length", "cancelled"};
    nib_json json = {false};
    nib_json_open(&json, '{');
    nib_json_key(&json, "row");
    nib_json_uint(&json, row->row);
    nib_json_key(&json, "index");
    nib_json_uint(&json, row->index);
    nib_json_key(&json, "prompt_ids");
    nib_json_ids(&json, row->ids, row->n_prompt);
    nib_json_key(&json, "ids");
    nib_json_ids(&json, row->ids + row->n_prompt, row->n);
    nib_json_key(&json, "text");
    if (row->text == NULL) {
        nib_json_null(&json);
    } else {
        nib_json_string(&json, row->text, row->text_len);
    }
    nib_json_key(&json, "logprobs");
    nib_json_open(&json, '[');
    for (size_t i = 0; i < row->n; i++) {
        nib_json_float(&json, row->logprobs[i]);
    }
    nib_json_close(&json, ']');
    if (row->stride_top > 0) {
        print_top(&json, row);
    }
    nib_json_key(&json, "finish_reason");
    nib_json_string(&json, reasons[row->finish], strlen(reasons[row->finish]));
    nib_json_key(&json, "seed");
    nib_json_uint(&json, seed);
    nib_json_close(&json, '}');
    nib_json_end_line(&json);
}

/* One line: prompts, time to the first token, tokens, their speed from the second on, and the seed. */
static void print_timings(const nib_result *result, const progress *p) {
    double end = nib_cli_seconds();
    double first = p->n > 0 ? p->first : end;
    size_t n_prompts = 0, n_fed = 0;
    char prompts[48] = "prompt", speed[48] = "";
    for (size_t i = 0; i < result->B; i++) {
        n_prompts += result->rows[i].index == 0;
        n_fed += result->rows[i].index == 0 ? result->rows[i].n_prompt : 0;
    }
    if (n_prompts > 1) {
        (void)snprintf(prompts, sizeof prompts, "%zu prompts,", n_prompts);
    }
    if (p->n > 1 && end > first) {
        (void)snprintf(speed, sizeof speed, ", %.2f tokens/s", (double)(p->n - 1) / (end - first));
    }
    nib_cli_say("%s %zu token%s, first token after %.2f s, %zu token%s%s, seed %llu", prompts, n_fed,
                n_fed == 1 ? "" : "s", first - p->begun, p->n, p->n == 1 ? "" : "s", speed,
                (unsigned long long)result->seed);
}

/* Prints what is still to be printed. Returns an exit code. */
static int finish(const request *r, const nib_result *result, const progress *p) {
    bool cancelled = false;
    for (size_t i = 0; i < result->B; i++) {
        cancelled = cancelled || result->rows[i].finish == NIB_FINISH_CANCELLED;
        if (r->json) {
            print_row(&result->rows[i], result->rows[i].seed);
        }
    }
    print_timings(result, p);
    if (p->rows.no_memory) {
        nib_cli_say("out of memory while the text of the rows was kept");
        return NIB_EXIT_MEMORY;
    }
    /* A reader that went away cancels too; that is no Ctrl-C. */
    return nib_cli_finish_output(cancelled && !ferror(stdout) ? NIB_EXIT_INTERRUPTED : NIB_EXIT_OK);
}

static int run_prompts(const request *r, nib_session *session, const nib_prompt *prompts, progress *p) {
    nib_error err;
    nib_result *result;
    catch_interrupt(session);
    nib_status status = nib_generate(&result, session, prompts, r->n_sources, &r->generate, on_token, p, &err);
    catch_interrupt(NULL);
    if (status != NIB_OK) {
        (void)nib_cli_finish_output(NIB_EXIT_OK);
        return nib_cli_fail(&err);
    }
    int code = finish(r, result, p);
    nib_result_free(result);
    return code;
}

static int run(const request *r, nib_session *session, const nib_model *model) {
    size_t num_return = (size_t)r->generate.num_return;
    progress p = {.json = r->json,
                  .has_text = nib_model_tokenizer(model) != NULL,
                  .num_return = num_return,
                  .begun = nib_cli_seconds()};
    nib_prompt *prompts = malloc(r->n_sources * sizeof *prompts);
    if (prompts == NULL || !nib_cli_rows_init(&p.rows, r->n_sources * num_return)) {
        free(prompts);
        return out_of_memory();
    }
    for (size_t i = 0; i < r->n_sources; i++) {
        prompts[i] = (nib_prompt){r->sources[i].ids, r->sources[i].n};
    }
    int code = run_prompts(r, session, prompts, &p);
    nib_cli_rows_free(&p.rows);
    free(prompts);
    return code;
}

/* The model is open: prompts to ids, a session, the run. */
static int with_model(request *r, nib_model *model) {
    nib_error err;
    nib_session *session;
    int code = tokenize(r, model);
    if (code != NIB_EXIT_OK) {
        return code;
    }
    advise(r, model);
    if (nib_session_new(&session, model, &r->session, &err) != NIB_OK) {
        return nib_cli_fail(&err);
    }
    code = run(r, session, model);
    nib_session_free(session);
    return code;
}

int nib_cli_generate(int argc, char **argv) {
    request r = {
        .model = NIB_MODEL_OPTIONS_INIT, .session = NIB_SESSION_OPTIONS_INIT, .generate = NIB_GENERATE_OPTIONS_INIT};
    nib_model *model;
    nib_error err;
    int code = read_arguments(&r, argc, argv);
    if (code == NIB_EXIT_OK && !r.help) {
        code = read_input(&r);
        if (code == NIB_EXIT_OK && nib_model_open(&model, r.model_path, &r.model, &err) != NIB_OK) {
            code = nib_cli_fail_open(&err);
        } else if (code == NIB_EXIT_OK) {
            code = with_model(&r, model);
            nib_model_free(model);
        }
    }
    free_request(&r);
    return code;
}
