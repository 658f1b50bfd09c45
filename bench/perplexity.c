/* Perplexity of a model on text files, in one or several modes of computing, and how the others differ from the first
 * on the same tokens. A developer's program: it is not installed and uses only the public headers.
 *
 *     perplexity -m MODEL [--mode COMPUTE:CACHE_TYPE].. [--tokens N] [--window N] [-t THREADS] [--json] FILE..
 *
 * The files are one text, in the order given; its first N tokens count. They are cut into windows that know nothing of
 * each other. Where prompts of the model begin with a start token, so does each window, and every token of the text is
 * scored; else the first of a window is not. Errors are standard errors over the windows: tokens that stand together
 * are hard or easy together. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nib/nib.h>

enum { MOST_MODES = 8, PIECE = 64 /* rows of logits at a time */ };

typedef struct mode {
    const char *name; /* "fast:f16" as given */
    nib_model_options model;
    nib_session_options session;
    double *nats; /* [n_scored] of each scored token, owned */
} mode;

typedef struct request {
    const char *model_path;
    mode modes[MOST_MODES];
    size_t n_modes;
    size_t n_tokens, window;
    int64_t threads;
    bool json;
    char **files; /* [n_files] */
    size_t n_files;
} request;

/* The text as tokens, and where its windows are. */
typedef struct corpus {
    int32_t *ids; /* [n] owned, by nib_free */
    size_t n;
    int32_t start_id; /* -1: windows have none */
    size_t step;      /* tokens of the text in a window */
    size_t n_windows, n_scored;
} corpus;

static int fail(const char *thing, const char *message) {
    fprintf(stderr, "perplexity: %s: %s\n", thing, message);
    return 1;
}

/* ---- arguments ---- */

static const nib_option *find_option(const char *name) {
    size_t n;
    const nib_option *options = nib_option_list(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(options[i].name, name) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

/* "exact", "fast:f16": the words of the options compute and cache_type. */
static int parse_mode(mode *m, const char *text) {
    nib_error err;
    const char *colon = strchr(text, ':');
    size_t len = colon == NULL ? strlen(text) : (size_t)(colon - text);
    *m = (mode){.name = text, .model = NIB_MODEL_OPTIONS_INIT, .session = NIB_SESSION_OPTIONS_INIT};
    if (nib_option_set(&m->model, find_option("compute"), text, len, &err) != NIB_OK) {
        return fail("--mode", err.message);
    }
    if (colon != NULL &&
        nib_option_set(&m->session, find_option("cache_type"), colon + 1, strlen(colon + 1), &err) != NIB_OK) {
        return fail("--mode", err.message);
    }
    return 0;
}

static int parse_count(size_t *count, const char *flag, const char *text, long low) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > INT32_MAX) {
        fprintf(stderr, "perplexity: %s: \"%s\", expected a number from %ld on\n", flag, text, low);
        return 2;
    }
    *count = (size_t)value;
    return 0;
}

static int take_flag(request *r, const char *flag, const char *value) {
    size_t threads = 0;
    int code = 0;
    if (value == NULL) {
        return fail(flag, "nothing follows, expected a value") + 1;
    }
    if (strcmp(flag, "-m") == 0) {
        r->model_path = value;
    } else if (strcmp(flag, "--tokens") == 0) {
        code = parse_count(&r->n_tokens, flag, value, 2);
    } else if (strcmp(flag, "--window") == 0) {
        code = parse_count(&r->window, flag, value, 2);
    } else if (strcmp(flag, "-t") == 0) {
        code = parse_count(&threads, flag, value, 1);
        r->threads = (int64_t)threads;
    } else if (strcmp(flag, "--mode") == 0) {
        code = r->n_modes == MOST_MODES ? fail(flag, "at most 8") : parse_mode(&r->modes[r->n_modes++], value);
    } else {
        return fail(flag, "unknown flag, expected -m, --mode, --tokens, --window, -t or --json") + 1;
    }
    return code;
}

static int parse_arguments(request *r, int argc, char **argv) {
    int code = 0;
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && code == 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
        } else {
            code = take_flag(r, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            i++;
        }
    }
    if (code == 0 && (r->model_path == NULL || i >= argc)) {
        fprintf(stderr, "usage: perplexity -m MODEL [--mode COMPUTE[:CACHE_TYPE]].. [--tokens N] [--window N] [-t N] "
                        "[--json] FILE..\n");
        return 2;
    }
    r->files = argv + i;
    r->n_files = (size_t)(argc - i);
    if (code == 0 && r->n_modes == 0) {
        (void)parse_mode(&r->modes[r->n_modes++], "exact");
        (void)parse_mode(&r->modes[r->n_modes++], "fast");
    }
    return code;
}

/* ---- the text ---- */

/* Appends a file's bytes to *text [*len]. */
static int append_file(char **text, size_t *len, const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return fail(path, "cannot be opened");
    }
    size_t got = 1;
    while (got > 0) {
        char *grown = realloc(*text, *len + 65536);
        if (grown == NULL) {
            (void)fclose(file);
            return fail(path, "out of memory");
        }
        *text = grown;
        got = fread(*text + *len, 1, 65536, file);
        *len += got;
    }
    int bad = ferror(file);
    (void)fclose(file);
    return bad ? fail(path, "cannot be read") : 0;
}

static int read_text(char **text, size_t *len, const request *r) {
    int code = 0;
    for (size_t i = 0; i < r->n_files && code == 0; i++) {
        code = append_file(text, len, r->files[i]);
    }
    return code;
}

static int make_corpus(corpus *c, const request *r, const nib_model *model, const char *text, size_t len) {
    nib_error err;
    nib_model_info info = {.size = sizeof info};
    const nib_tokenizer *tokenizer = nib_model_tokenizer(model);
    if (tokenizer == NULL) {
        return fail(r->model_path, "has no tokenizer");
    }
    if (nib_model_get_info(&info, model, &err) != NIB_OK ||
        nib_tokenizer_encode(&c->ids, &c->n, tokenizer, text, len, 0, &err) != NIB_OK) {
        return fail(r->model_path, err.message);
    }
    if (c->n < r->n_tokens) {
        fprintf(stderr, "perplexity: the files are %zu tokens, expected at least %zu\n", c->n, r->n_tokens);
        return 1;
    }
    if (r->window > (size_t)info.context) {
        fprintf(stderr, "perplexity: --window: %zu, expected at most the context of %lld\n", r->window,
                (long long)info.context);
        return 1;
    }
    c->n = r->n_tokens;
    c->start_id = info.add_start ? info.start_id : -1;
    c->step = c->start_id >= 0 ? r->window - 1 : r->window;
    c->n_windows = (c->n + c->step - 1) / c->step;
    c->n_scored = c->start_id >= 0 ? c->n : c->n - c->n_windows;
    return 0;
}

/* Tokens of window w, its start token included; returns their number. *scored: of them. */
static size_t window_at(int32_t *tokens, size_t *scored, const corpus *c, size_t w) {
    size_t begin = w * c->step, n = c->n - begin < c->step ? c->n - begin : c->step, shift = c->start_id >= 0;
    tokens[0] = c->start_id;
    memcpy(tokens + shift, c->ids + begin, n * sizeof tokens[0]);
    *scored = n + shift - 1;
    return n + shift;
}

/* ---- scoring ---- */

/* -log softmax(l)[id], nats. */
static double surprise(const float *l, size_t V, int32_t id) {
    double max = (double)l[0], total = 0.0;
    for (size_t i = 1; i < V; i++) {
        max = (double)l[i] > max ? (double)l[i] : max;
    }
    for (size_t i = 0; i < V; i++) {
        total += exp((double)l[i] - max);
    }
    return log(total) + max - (double)l[id];
}

/* Of the tokens behind the first of a window, in pieces, so that the logits take little room: logits [PIECE][V]. */
static nib_status score_window(double *nats, nib_session *session, float *logits, size_t V, const int32_t *tokens,
                               size_t n, nib_error *err) {
    nib_status status = NIB_OK;
    for (size_t from = 0; from + 1 < n && status == NIB_OK;) {
        size_t end = n - 1 - from < PIECE ? n - 1 : from + PIECE;
        status = nib_session_logits(logits, session, tokens, end, from, err);
        for (size_t i = from; i < end && status == NIB_OK; i++) {
            nats[i] = surprise(logits + (i - from) * V, V, tokens[i + 1]);
        }
        from = end;
    }
    return status;
}

static nib_status score_all(double *nats, nib_session *session, size_t V, const corpus *c, nib_error *err) {
    float *logits = malloc(PIECE * V * sizeof *logits);
    int32_t *tokens = malloc((c->step + 1) * sizeof *tokens);
    nib_status status = NIB_OK;
    if (logits == NULL || tokens == NULL) {
        status = NIB_ENOMEM;
        (void)snprintf(err->message, sizeof err->message, "out of memory for logits");
    }
    for (size_t w = 0, at = 0, scored; w < c->n_windows && status == NIB_OK; w++, at += scored) {
        size_t n = window_at(tokens, &scored, c, w);
        status = score_window(nats + at, session, logits, V, tokens, n, err);
    }
    free(logits);
    free(tokens);
    return status;
}

static int score_mode(mode *m, const request *r, corpus *c, const char *text, size_t len) {
    nib_error err;
    nib_model *model;
    nib_session *session = NULL;
    int code = 0;
    if (nib_model_open(&model, r->model_path, &m->model, &err) != NIB_OK) {
        return fail(r->model_path, err.message);
    }
    if (c->ids == NULL) {
        code = make_corpus(c, r, model, text, len);
    }
    m->session.threads = r->threads;
    m->nats = code == 0 ? malloc((c->n_scored + 1) * sizeof *m->nats) : NULL;
    if (code == 0 && m->nats == NULL) {
        code = fail(m->name, "out of memory");
    }
    if (code == 0 &&
        (nib_session_new(&session, model, &m->session, &err) != NIB_OK ||
         score_all(m->nats, session, (size_t)nib_tokenizer_size(nib_model_tokenizer(model)), c, &err) != NIB_OK)) {
        code = fail(m->name, err.message);
    }
    nib_session_free(session);
    nib_model_free(model);
    return code;
}

/* ---- figures ---- */

typedef struct estimate {
    double mean, error; /* of all tokens; standard error over windows */
} estimate;

/* The mean of a - b over the tokens; b may be NULL. Windows may differ in length: the error is that of a ratio. */
static estimate mean_of(const double *a, const double *b, const corpus *c) {
    size_t n_full = c->start_id >= 0 ? c->step : c->step - 1;
    double total = 0.0, squares = 0.0, k = (double)c->n_windows, n = (double)c->n_scored;
    for (size_t i = 0; i < c->n_scored; i++) {
        total += a[i] - (b == NULL ? 0.0 : b[i]);
    }
    for (size_t from = 0; from < c->n_scored; from += n_full) {
        size_t end = c->n_scored - from < n_full ? c->n_scored : from + n_full;
        double sum = 0.0;
        for (size_t i = from; i < end; i++) {
            sum += a[i] - (b == NULL ? 0.0 : b[i]) - total / n;
        }
        squares += sum * sum;
    }
    return (estimate){total / n, k > 1 ? sqrt(squares * k / (k - 1)) / n : NAN};
}

static void print_text(const request *r, const corpus *c) {
    printf("%s: %zu tokens scored, %zu windows of %zu\n", r->model_path, c->n_scored, c->n_windows, r->window);
    for (size_t i = 0; i < r->n_modes; i++) {
        estimate x = mean_of(r->modes[i].nats, NULL, c);
        printf("%-12s perplexity %.4f +- %.4f", r->modes[i].name, exp(x.mean), exp(x.mean) * x.error);
        if (i > 0) {
            estimate d = mean_of(r->modes[i].nats, r->modes[0].nats, c);
            printf(", against %s %+.3f %% +- %.3f %%", r->modes[0].name, 100.0 * expm1(d.mean),
                   100.0 * exp(d.mean) * d.error);
        }
        printf("\n");
    }
}

static void print_json(const request *r, const corpus *c) {
    printf("{\"scored\":%zu,\"windows\":%zu,\"window\":%zu,\"modes\":[", c->n_scored, c->n_windows, r->window);
    for (size_t i = 0; i < r->n_modes; i++) {
        estimate x = mean_of(r->modes[i].nats, NULL, c), d = mean_of(r->modes[i].nats, r->modes[0].nats, c);
        printf("%s{\"mode\":\"%s\",\"perplexity\":%.9g,\"error\":%.6g,\"relative\":%.9g,\"relative_error\":%.6g}",
               i > 0 ? "," : "", r->modes[i].name, exp(x.mean), exp(x.mean) * x.error, expm1(d.mean),
               exp(d.mean) * d.error);
    }
    printf("]}\n");
}

int main(int argc, char **argv) {
    request r = {.n_tokens = 20000, .window = 512, .threads = NIB_UNSET};
    corpus c = {0};
    char *text = NULL;
    size_t len = 0;
    int code = parse_arguments(&r, argc, argv);
    code = code != 0 ? code : read_text(&text, &len, &r);
    for (size_t i = 0; i < r.n_modes && code == 0; i++) {
        code = score_mode(&r.modes[i], &r, &c, text, len);
    }
    if (code == 0 && r.json) {
        print_json(&r, &c);
    } else if (code == 0) {
        print_text(&r, &c);
    }
    for (size_t i = 0; i < r.n_modes; i++) {
        free(r.modes[i].nats);
    }
    nib_free(c.ids);
    free(text);
    return code;
}
