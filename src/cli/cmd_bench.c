/* nib bench: how fast a model computes here, beside what this machine can do at most. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/jsonl.h"

static const char usage[] =
    "usage: nib bench -m MODEL [flags]\n\n"
    "Times the forward pass on fixed tokens; nothing is sampled. prefill: the tokens of one prompt. decode:\n"
    "one token of each sequence of a batch at a time, with logits for every one. Each run is done once\n"
    "untimed and then --repeat times; tokens/s is the median, of all sequences together. GB/s and GFLOP/s\n"
    "are the least that must be read and computed for that; beside them stands the part of this machine's\n"
    "limit, measured at the end with as many threads, that binds: reading, or computing. The weights of a\n"
    "very small model stay in the caches, which can be read faster than that.\n\n"
    "    nib bench -m model.gguf\n"
    "    nib bench -m model.gguf -t 2 --depth 4000 --batch 1,8 --json\n\nflags\n";

static const nib_cli_flag own_flags[] = {
    {"-m --model", "MODEL", "a GGUF file, or random:NAME[,seed=S][,key=value..]", NULL},
    {"--prefill", "N", "tokens of the prefill. Default 512, or what the context holds; 0 to 2147483647; 0: no prefill",
     NULL},
    {"--depth", "LIST",
     "tokens that a sequence holds before decoding: each of the list with the first batch. Default 0,1024, as far "
     "as the context goes",
     NULL},
    {"--batch", "LIST",
     "sequences that decode together, 1 to 65536: each of the list with the first depth. Default 1,4,16", NULL},
    {"--tokens", "N", "tokens that each sequence decodes. Default 32; 0 to 2147483647; 0: no decode", NULL},
    {"--repeat", "N", "times that each run is timed. Default 3; 1 to 1000", NULL},
    {"--json", "", "one JSON object, and nothing else, on standard output", NULL},
    {"-h --help", "", "this text", NULL},
};

enum { N_OWN = sizeof own_flags / sizeof own_flags[0], MOST_LISTED = 64, MOST_RUNS = 2 * MOST_LISTED };

/* What the command line says. */
typedef struct request {
    const char *model_path;
    nib_model_options model;
    nib_session_options session;
    int32_t prefill, tokens, repeat;
    int32_t depths[MOST_LISTED], batches[MOST_LISTED];
    size_t n_depths, n_batches;
    bool has_prefill, has_depths; /* given: what the context cannot hold is refused, not left out */
    bool json, help;
} request;

/* One measurement. */
typedef struct run {
    nib_bench_work work;
    nib_bench_cost cost;
    double *seconds; /* [work.repeat] ascending after it ran; a part of the report's */
} run;

/* All of them, and what is told beside. */
typedef struct report {
    run runs[MOST_RUNS + 1];
    size_t n_runs;
    double *seconds; /* [MOST_RUNS + 1][repeat] owned */
    nib_model_info info;
    nib_bench_limits limits;
    double load_seconds;
    uint64_t peak_bytes;     /* 0: not known */
    const char *peak_source; /* where peak_bytes comes from */
} report;

/* ---- arguments ---- */

static int say_bad(const nib_cli_args *args, int32_t low, int32_t high) {
    nib_cli_say("%.*s: \"%s\", expected %d to %d", (int)args->n_name, args->name, args->value, low, high);
    return NIB_EXIT_USAGE;
}

static int take_number(int32_t *number, const nib_cli_args *args, int32_t low, int32_t high) {
    int32_t value;
    if (!nib_cli_parse_id(&value, args->value, strlen(args->value)) || value < low || value > high) {
        return say_bad(args, low, high);
    }
    *number = value;
    return NIB_EXIT_OK;
}

/* Numbers from low to high, a comma between two. */
static int take_list(int32_t *list, size_t *n, const nib_cli_args *args, int32_t low, int32_t high) {
    const char *at = args->value;
    *n = 0;
    for (;;) {
        size_t len = strcspn(at, ",");
        if (*n == MOST_LISTED || !nib_cli_parse_id(&list[*n], at, len) || list[*n] < low || list[*n] > high) {
            nib_cli_say("%.*s: \"%s\", expected 1 to %d numbers from %d to %d, separated by commas", (int)args->n_name,
                        args->name, args->value, MOST_LISTED, low, high);
            return NIB_EXIT_USAGE;
        }
        ++*n;
        if (at[len] == '\0') {
            return NIB_EXIT_OK;
        }
        at += len + 1;
    }
}

static int take_option(request *r, const nib_cli_args *args) {
    const nib_option *option = args->flag->option;
    void *options = option->scope == NIB_SCOPE_MODEL ? (void *)&r->model : (void *)&r->session;
    nib_error err;
    if (nib_option_set(options, option, args->value, strlen(args->value), &err) != NIB_OK) {
        nib_cli_say_option(err.message, args->name, args->n_name);
        return NIB_EXIT_USAGE;
    }
    return NIB_EXIT_OK;
}

static int take_flag(request *r, const nib_cli_args *args) {
    if (args->flag == NULL) {
        nib_cli_say("\"%s\": no flag; see nib bench --help", args->value);
        return NIB_EXIT_USAGE;
    }
    if (args->flag->option != NULL) {
        return take_option(r, args);
    }
    if (nib_cli_is(args, "--model")) {
        r->model_path = args->value;
    } else if (nib_cli_is(args, "--prefill")) {
        r->has_prefill = true;
        return take_number(&r->prefill, args, 0, INT32_MAX);
    } else if (nib_cli_is(args, "--depth")) {
        r->has_depths = true;
        return take_list(r->depths, &r->n_depths, args, 0, INT32_MAX);
    } else if (nib_cli_is(args, "--batch")) {
        return take_list(r->batches, &r->n_batches, args, 1, 65536);
    } else if (nib_cli_is(args, "--tokens")) {
        return take_number(&r->tokens, args, 0, INT32_MAX);
    } else if (nib_cli_is(args, "--repeat")) {
        return take_number(&r->repeat, args, 1, 1000);
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
    if (r->prefill == 0 && r->tokens == 0) {
        nib_cli_say("--prefill 0 with --tokens 0: nothing to measure, expected one of them above 0");
        return NIB_EXIT_USAGE;
    }
    if (nib_options_check(&r->model, NIB_SCOPE_MODEL, &err) != NIB_OK ||
        nib_options_check(&r->session, NIB_SCOPE_SESSION, &err) != NIB_OK) {
        nib_cli_say_option(err.message, NULL, 0);
        return NIB_EXIT_USAGE;
    }
    return NIB_EXIT_OK;
}

static int read_arguments(request *r, int argc, char **argv) {
    nib_cli_args args = {.argc = argc, .argv = argv, .i = 1};
    nib_cli_flag *flags =
        nib_cli_flags(&args.n_flags, own_flags, N_OWN, 1u << NIB_SCOPE_MODEL | 1u << NIB_SCOPE_SESSION);
    if (flags == NULL) {
        nib_cli_say("out of memory while the arguments were read");
        return NIB_EXIT_MEMORY;
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

/* ---- what is measured ---- */

static void add_run(report *all, const request *r, int what, int32_t batch, int32_t depth, int32_t tokens) {
    run *one = &all->runs[all->n_runs];
    *one = (run){.work = NIB_BENCH_WORK_INIT, .cost = {.size = sizeof one->cost}};
    one->seconds = all->seconds + all->n_runs * (size_t)r->repeat;
    one->work.what = what;
    one->work.batch = (size_t)batch;
    one->work.depth = (size_t)depth;
    one->work.tokens = (size_t)tokens;
    one->work.repeat = (size_t)r->repeat;
    all->n_runs++;
}

static int say_full(const char *what, int64_t tokens, int64_t context) {
    nib_cli_say("%s: %lld tokens, expected at most the model's context of %lld", what, (long long)tokens,
                (long long)context);
    return NIB_EXIT_INPUT;
}

static int plan_prefill(report *all, const request *r) {
    int64_t context = all->info.context;
    int32_t n = r->prefill;
    if (n > context && r->has_prefill) {
        return say_full("--prefill", n, context);
    }
    n = n > context ? (int32_t)context : n;
    if (n > 0) {
        add_run(all, r, NIB_BENCH_PREFILL, 1, 0, n);
    }
    return NIB_EXIT_OK;
}

/* Each depth with the first batch, then each other batch with the first depth. */
static int plan_decode(report *all, const request *r) {
    int64_t context = all->info.context;
    for (size_t i = 0; i < r->n_depths; i++) {
        int64_t end = (int64_t)r->depths[i] + r->tokens;
        if (end <= context) {
            add_run(all, r, NIB_BENCH_DECODE, r->batches[0], r->depths[i], r->tokens);
        } else if (r->has_depths || i == 0) {
            return say_full("--depth and --tokens together", end, context);
        }
    }
    for (size_t i = 1; i < r->n_batches; i++) {
        add_run(all, r, NIB_BENCH_DECODE, r->batches[i], r->depths[0], r->tokens);
    }
    return NIB_EXIT_OK;
}

static int plan(report *all, const request *r, const nib_model *model) {
    nib_error err;
    all->info.size = sizeof all->info;
    all->seconds = malloc((MOST_RUNS + 1) * (size_t)r->repeat * sizeof all->seconds[0]);
    if (all->seconds == NULL) {
        nib_cli_say("out of memory for the times of the runs");
        return NIB_EXIT_MEMORY;
    }
    if (nib_model_get_info(&all->info, model, &err) != NIB_OK) {
        return nib_cli_fail(&err);
    }
    int code = plan_prefill(all, r);
    return code != NIB_EXIT_OK || r->tokens == 0 ? code : plan_decode(all, r);
}

static int by_value(const void *a, const void *b) {
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double median(const run *one) {
    size_t n = one->work.repeat;
    const double *s = one->seconds;
    return n % 2 == 1 ? s[n / 2] : 0.5 * (s[n / 2 - 1] + s[n / 2]);
}

/* The most memory that lay in RAM at any time. getrusage's figure may be that of the program which started this one. */
static void read_peak(report *all) {
    char line[128];
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && all->peak_bytes == 0 && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) { /* in kB */
            all->peak_bytes = 1024 * (uint64_t)strtoull(line + 6, NULL, 10);
            all->peak_source = "VmHWM";
        }
    }
    if (status != NULL) {
        (void)fclose(status);
    }
    struct rusage use;
    if (all->peak_bytes == 0 && getrusage(RUSAGE_SELF, &use) == 0) {
        all->peak_bytes = 1024 * (uint64_t)use.ru_maxrss;
        all->peak_source = "ru_maxrss";
    }
}

static int measure(report *all, const request *r, const nib_model *model) {
    nib_error err;
    for (size_t i = 0; i < all->n_runs; i++) {
        run *one = &all->runs[i];
        if (isatty(STDERR_FILENO)) {
            nib_cli_say("run %zu of %zu ..", i + 1, all->n_runs);
        }
        if (nib_bench_run(one->seconds, &one->cost, model, &r->session, &one->work, &err) != NIB_OK) {
            return nib_cli_fail(&err);
        }
        qsort(one->seconds, one->work.repeat, sizeof one->seconds[0], by_value);
    }
    read_peak(all); /* before the limits, which take memory of their own */
    all->limits.size = sizeof all->limits;
    return nib_bench_measure_limits(&all->limits, model, &r->session, &err) != NIB_OK ? nib_cli_fail(&err)
                                                                                      : NIB_EXIT_OK;
}

/* ---- what is written ---- */

static const char *const whats[] = {"prefill", "decode"}; /* NIB_BENCH_* */

/* What follows from a run's median. */
typedef struct rates {
    double tokens_s, bytes_s, operations_s;
    double part;       /* of the limit: the time that the machine needs at least, by the time that was needed */
    const char *bound; /* what that least time goes to */
} rates;

static rates rate(const report *all, const run *one) {
    const nib_bench_cost *cost = &one->cost;
    const nib_bench_limits *limits = &all->limits;
    double seconds = median(one);
    double reading = cost->read_bytes / limits->read_bytes_s;
    double computing =
        cost->f32_operations / limits->f32_operations_s + cost->int8_operations / limits->int8_operations_s;
    return (rates){
        .tokens_s = (double)one->work.batch * (double)one->work.tokens / seconds,
        .bytes_s = cost->read_bytes / seconds,
        .operations_s = (cost->f32_operations + cost->int8_operations) / seconds,
        .part = (reading > computing ? reading : computing) / seconds,
        .bound = reading > computing ? "reading" : "computing",
    };
}

static const char *compute_word(const report *all) {
    return all->info.compute == NIB_COMPUTE_FAST ? "fast" : "exact";
}

static const char *cache_word(const report *all) {
    return all->runs[0].cost.cache_type == NIB_CACHE_TYPE_F16 ? "f16" : "f32";
}

static void print_table(const report *all, const request *r) {
    const nib_bench_limits *limits = &all->limits;
    printf("%s: %.1f MB of weights\n", r->model_path, 1e-6 * (double)all->info.weight_bytes);
    printf("nib %s, numeric contract %d, instruction set %s, compute %s, cache type %s, threads %d\n", nib_version(),
           nib_contract_version(), all->info.cpu, compute_word(all), cache_word(all), limits->threads);
    printf("load %.3f s, peak memory %.1f MB (%s: pages of mapped files count)\n", all->load_seconds,
           1e-6 * (double)all->peak_bytes, all->peak_bytes > 0 ? all->peak_source : "not known");
    printf("limits of this machine: reading %.1f GB/s (over %.0f MB), f32 %.1f GFLOP/s, int8 %.1f GOP/s\n\n",
           1e-9 * limits->read_bytes_s, 1e-6 * (double)limits->span_bytes, 1e-9 * limits->f32_operations_s,
           1e-9 * limits->int8_operations_s);
    printf("          batch    depth   tokens     tokens/s     GB/s   GFLOP/s   of the limit\n");
    for (size_t i = 0; i < all->n_runs; i++) {
        const nib_bench_work *work = &all->runs[i].work;
        rates x = rate(all, &all->runs[i]);
        printf("%-7s  %6zu %8zu %8zu %12.2f %8.2f %9.2f   %.0f %% of %s\n", whats[work->what], work->batch, work->depth,
               work->tokens, x.tokens_s, 1e-9 * x.bytes_s, 1e-9 * x.operations_s, 100.0 * x.part, x.bound);
    }
}

static void put_double(nib_json *json, const char *key, double value) {
    nib_json_key(json, key);
    nib_json_double(json, value);
}

static void put_size(nib_json *json, const char *key, uint64_t value) {
    nib_json_key(json, key);
    nib_json_uint(json, value);
}

static void put_text(nib_json *json, const char *key, const char *text) {
    nib_json_key(json, key);
    nib_json_string(json, text, strlen(text));
}

static void put_run(nib_json *json, const report *all, const run *one) {
    rates x = rate(all, one);
    nib_json_open(json, '{');
    put_text(json, "what", whats[one->work.what]);
    put_size(json, "batch", one->work.batch);
    put_size(json, "depth", one->work.depth);
    put_size(json, "tokens", one->work.tokens);
    nib_json_key(json, "seconds");
    nib_json_open(json, '[');
    for (size_t i = 0; i < one->work.repeat; i++) {
        nib_json_double(json, one->seconds[i]);
    }
    nib_json_close(json, ']');
    put_double(json, "tok_s", x.tokens_s);
    put_double(json, "gb_s", 1e-9 * x.bytes_s);
    put_double(json, "gflop_s", 1e-9 * x.operations_s);
    put_double(json, "part_of_limit", x.part);
    put_text(json, "bound", x.bound);
    nib_json_close(json, '}');
}

static void print_json(const report *all, const request *r) {
    nib_json json = {false};
    nib_json_open(&json, '{');
    put_text(&json, "model", r->model_path);
    put_text(&json, "version", nib_version());
    nib_json_key(&json, "contract");
    nib_json_int(&json, nib_contract_version());
    put_text(&json, "cpu", all->info.cpu);
    put_text(&json, "compute", compute_word(all));
    put_text(&json, "cache_type", cache_word(all));
    put_size(&json, "threads", (uint64_t)all->limits.threads);
    put_size(&json, "weight_bytes", all->info.weight_bytes);
    put_double(&json, "load_seconds", all->load_seconds);
    put_size(&json, "peak_bytes", all->peak_bytes);
    nib_json_key(&json, "limits");
    nib_json_open(&json, '{');
    put_double(&json, "read_gb_s", 1e-9 * all->limits.read_bytes_s);
    put_double(&json, "f32_gflop_s", 1e-9 * all->limits.f32_operations_s);
    put_double(&json, "int8_gop_s", 1e-9 * all->limits.int8_operations_s);
    put_size(&json, "read_span_bytes", all->limits.span_bytes);
    nib_json_close(&json, '}');
    nib_json_key(&json, "runs");
    nib_json_open(&json, '[');
    for (size_t i = 0; i < all->n_runs; i++) {
        put_run(&json, all, &all->runs[i]);
    }
    nib_json_close(&json, ']');
    nib_json_close(&json, '}');
    nib_json_end_line(&json);
}

static int with_model(report *all, const request *r, const nib_model *model) {
    int code = plan(all, r, model);
    code = code != NIB_EXIT_OK ? code : measure(all, r, model);
    if (code != NIB_EXIT_OK) {
        return code;
    }
    if (r->json) {
        print_json(all, r);
    } else {
        print_table(all, r);
    }
    return nib_cli_finish_output(NIB_EXIT_OK);
}

int nib_cli_bench(int argc, char **argv) {
    request r = {.model = NIB_MODEL_OPTIONS_INIT,
                 .session = NIB_SESSION_OPTIONS_INIT,
                 .prefill = 512,
                 .tokens = 32,
                 .repeat = 3,
                 .depths = {0, 1024},
                 .n_depths = 2,
                 .batches = {1, 4, 16},
                 .n_batches = 3};
    report all = {.n_runs = 0};
    nib_model *model;
    nib_error err;
    int code = read_arguments(&r, argc, argv);
    if (code != NIB_EXIT_OK || r.help) {
        return code;
    }
    double begin = nib_cli_seconds();
    if (nib_model_open(&model, r.model_path, &r.model, &err) != NIB_OK) {
        return nib_cli_fail_open(&err);
    }
    all.load_seconds = nib_cli_seconds() - begin;
    code = with_model(&all, &r, model);
    free(all.seconds);
    nib_model_free(model);
    return code;
}
