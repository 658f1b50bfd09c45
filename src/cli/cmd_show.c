/* nib show: what is in a model file, as a table or as JSON Lines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/jsonl.h"

static const char usage[] =
    "usage: nib show [flags] FILE\n\n"
    "Prints what is in a model file: metadata, tensors, totals. Of a split one, FILE is the first part.\n\n"
    "flags\n";

static const nib_cli_flag flags[] = {
    {"--json", "", "print JSON Lines: one object for the file, then one for each metadata entry, then for each tensor",
     NULL},
    {"-h --help", "", "this text", NULL},
};

enum {
    N_FLAGS = sizeof flags / sizeof flags[0],
    N_TYPES = 64,    /* more than there are tensor types */
    KEY_WIDTH = 44,  /* of the widest column of names; longer ones push the rest to the right */
    TEXT_WIDTH = 64, /* bytes of a string that a table shows */
    ELEMENT_WIDTH = 20,
    N_ELEMENTS = 6 /* of an array that a table shows */
};

/* What models opened here compute with. */
typedef struct engine {
    char cpu[32];
    const char *compute, *cache_type;
    size_t n_compute, n_cache_type; /* bytes of these words */
} engine;

/* All tensors of one type. */
typedef struct total {
    const char *type;
    size_t n;
    uint64_t n_params, size_bytes;
} total;

/* Word i of an option that is one of several; "" when there is none. */
static const char *option_word(size_t *len, const char *name, int i) {
    size_t n;
    const nib_option *options = nib_option_list(&n);
    for (size_t k = 0; k < n; k++) {
        if (strcmp(options[k].name, name) != 0) {
            continue;
        }
        const char *at = options[k].words;
        for (; i > 0 && *at != '\0'; i--) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        *len = strcspn(at, " ");
        return at;
    }
    *len = 0;
    return "";
}

/* Asks a model of a few kilobytes, since the file may be one that this version cannot run. */
static int find_engine(engine *out) {
    nib_model *model;
    nib_error err;
    nib_model_info info = {.size = (uint32_t)sizeof info};
    if (nib_model_random(&model, "llama-tiny", NULL, 0, NULL, &err) != NIB_OK) {
        return nib_cli_fail_open(&err);
    }
    int code = NIB_EXIT_OK;
    if (nib_model_get_info(&info, model, &err) != NIB_OK) {
        code = nib_cli_fail(&err);
        goto free_model;
    }
    (void)snprintf(out->cpu, sizeof out->cpu, "%s", info.cpu);
    out->compute = option_word(&out->n_compute, "compute", info.compute);
    out->cache_type = option_word(&out->n_cache_type, "cache_type", info.cache_type);
free_model:
    nib_model_free(model);
    return code;
}

static uint64_t n_params_of(const nib_file_tensor *tensor) {
    return tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
}

/* Fills totals [N_TYPES] in the order in which the types first appear; returns their number. */
static size_t add_up(total *totals, total *all, const nib_file *file) {
    size_t n_types = 0;
    *all = (total){"all", 0, 0, 0};
    for (size_t i = 0; i < nib_file_n_tensors(file); i++) {
        nib_file_tensor tensor;
        size_t k = 0;
        (void)nib_file_get_tensor(&tensor, file, i, NULL);
        while (k < n_types && strcmp(totals[k].type, tensor.type) != 0) {
            k++;
        }
        if (k == n_types && n_types < N_TYPES) {
            totals[n_types++] = (total){tensor.type, 0, 0, 0};
        }
        total *const both[] = {&totals[k], all};
        for (size_t t = k < N_TYPES ? 0 : 1; t < 2; t++) {
            both[t]->n++;
            both[t]->n_params += n_params_of(&tensor);
            both[t]->size_bytes += tensor.size_bytes;
        }
    }
    return n_types;
}

/* Prints text from a file so that it stays on its line and cannot command a terminal: control characters as escapes, at
 * most cap bytes and then "..". Returns the columns used, taking a character for one. */
static int print_text(const char *bytes, size_t len, size_t cap) {
    char *text;
    size_t n;
    size_t shown = len < cap ? len : cap;
    while (shown < len && shown > 0 && ((unsigned char)bytes[shown] & 0xc0) == 0x80) {
        shown--; /* not within a character */
    }
    if (nib_text_to_utf8(&text, &n, bytes, shown, NULL) != NIB_OK) {
        return printf("(out of memory)");
    }
    int columns = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_c1 = c == 0xc2 && i + 1 < n && (unsigned char)text[i + 1] < 0xa0;
        if (c == '\n') {
            columns += printf("\\n");
        } else if (c < 0x20 || c == 0x7f) {
            columns += printf("\\x%02x", c);
        } else if (is_c1) {
            columns += printf("\\u%04x", (unsigned char)text[++i]);
        } else {
            putchar(c);
            columns += (c & 0xc0) != 0x80;
        }
    }
    nib_free(text);
    return shown < len ? columns + printf("..") : columns;
}

static void print_value(const nib_value *value, size_t cap) {
    switch (value->kind) {
    case NIB_VALUE_UINT: printf("%llu", (unsigned long long)value->u); break;
    case NIB_VALUE_INT: printf("%lld", (long long)value->i); break;
    case NIB_VALUE_REAL: printf("%.*g", value->is_float32 ? 9 : 17, value->r); break;
    case NIB_VALUE_BOOL: printf("%s", value->u != 0 ? "true" : "false"); break;
    case NIB_VALUE_STRING: (void)print_text(value->text, value->len, cap); break;
    }
}

/* One line of metadata: key, type with an array's length, value or an array's first elements. */
static void print_entry(const nib_file *file, size_t i, int width) {
    nib_file_entry entry;
    nib_value value;
    char type[48];
    (void)nib_file_get_entry(&entry, file, i, NULL);
    printf("  ");
    int columns = print_text(entry.key, strlen(entry.key), TEXT_WIDTH);
    (void)snprintf(type, sizeof type, entry.is_array ? "%s[%zu]" : "%s", entry.type, entry.n);
    printf("%*s  %-14s  ", columns < width ? width - columns : 0, "", type);
    size_t n = entry.n < N_ELEMENTS ? entry.n : N_ELEMENTS;
    for (size_t j = 0; j < n; j++) {
        (void)nib_file_get_value(&value, file, i, j, NULL);
        printf("%s", j > 0 ? ", " : "");
        print_value(&value, entry.is_array ? ELEMENT_WIDTH : TEXT_WIDTH);
    }
    printf("%s\n", entry.n > n ? ", .." : "");
}

static void print_tensor(const nib_file *file, size_t i, int width) {
    nib_file_tensor tensor;
    (void)nib_file_get_tensor(&tensor, file, i, NULL);
    printf("  ");
    int columns = print_text(tensor.name, strlen(tensor.name), TEXT_WIDTH);
    printf("%*s  %-8s  %12zu  ", columns < width ? width - columns : 0, "", tensor.type, tensor.size_bytes);
    for (uint32_t d = 0; d < tensor.n_dims; d++) {
        printf("%s%llu", d > 0 ? " x " : "", (unsigned long long)tensor.dims[d]);
    }
    printf("\n");
}

/* The width of the longest name, within bounds. */
static int widen(int width, const char *name) {
    size_t len = strlen(name);
    return len > (size_t)width ? (int)(len < KEY_WIDTH ? len : KEY_WIDTH) : width;
}

static void print_metadata(const nib_file *file) {
    int width = 8;
    nib_file_entry entry;
    for (size_t i = 0; i < nib_file_n_entries(file); i++) {
        (void)nib_file_get_entry(&entry, file, i, NULL);
        width = widen(width, entry.key);
    }
    printf("\nmetadata\n");
    for (size_t i = 0; i < nib_file_n_entries(file); i++) {
        print_entry(file, i, width);
    }
}

static void print_tensors(const nib_file *file) {
    int width = 8;
    nib_file_tensor tensor;
    for (size_t i = 0; i < nib_file_n_tensors(file); i++) {
        (void)nib_file_get_tensor(&tensor, file, i, NULL);
        width = widen(width, tensor.name);
    }
    printf("\n%-*s  %-8s  %12s  dimensions, the contiguous one first\n", width + 2, "tensors", "type", "bytes");
    for (size_t i = 0; i < nib_file_n_tensors(file); i++) {
        print_tensor(file, i, width);
    }
}

static void print_total(const total *t) {
    printf("%-10s  %8zu  %14llu  %14llu\n", t->type, t->n, (unsigned long long)t->n_params,
           (unsigned long long)t->size_bytes);
}

static void print_table(const nib_file *file, const char *path, const engine *here) {
    total totals[N_TYPES], all;
    uint32_t version = 0;
    const char *format = nib_file_format(&version, file);
    size_t n_types = add_up(totals, &all, file);
    printf("%s: %s version %u, %zu part%s, %zu bytes\n", path, format, version, nib_file_n_parts(file),
           nib_file_n_parts(file) == 1 ? "" : "s", nib_file_size_bytes(file));
    print_metadata(file);
    print_tensors(file);
    printf("\n%-10s  %8s  %14s  %14s\n", "by type", "tensors", "parameters", "bytes");
    for (size_t k = 0; k < n_types; k++) {
        print_total(&totals[k]);
    }
    print_total(&all);
    printf("\nmodels opened here: numeric contract %d, instruction set %s, compute %.*s, cache type %.*s\n",
           nib_contract_version(), here->cpu, (int)here->n_compute, here->compute, (int)here->n_cache_type,
           here->cache_type);
}

static void put_uint(nib_json *json, const char *key, uint64_t value) {
    nib_json_key(json, key);
    nib_json_uint(json, value);
}

static void put_string(nib_json *json, const char *key, const char *text, size_t len) {
    nib_json_key(json, key);
    nib_json_string(json, text, len);
}

static void put_file(const nib_file *file, const engine *here) {
    nib_json json = {false};
    total totals[N_TYPES], all;
    uint32_t version = 0;
    const char *format = nib_file_format(&version, file);
    (void)add_up(totals, &all, file);
    nib_json_open(&json, '{');
    put_string(&json, "format", format, strlen(format));
    put_uint(&json, "version", version);
    put_uint(&json, "parts", nib_file_n_parts(file));
    put_uint(&json, "bytes", nib_file_size_bytes(file));
    put_uint(&json, "metadata", nib_file_n_entries(file));
    put_uint(&json, "tensors", all.n);
    put_uint(&json, "parameters", all.n_params);
    put_uint(&json, "tensor_bytes", all.size_bytes);
    put_uint(&json, "contract", (uint64_t)nib_contract_version());
    put_string(&json, "cpu", here->cpu, strlen(here->cpu));
    put_string(&json, "compute", here->compute, here->n_compute);
    put_string(&json, "cache_type", here->cache_type, here->n_cache_type);
    nib_json_close(&json, '}');
    nib_json_end_line(&json);
}

/* JSON has no infinities and no NaN: they come as strings. */
static void put_real(nib_json *json, const nib_value *value) {
    if (isfinite(value->r)) {
        if (value->is_float32) {
            nib_json_float(json, (float)value->r);
        } else {
            nib_json_double(json, value->r);
        }
        return;
    }
    const char *word = isnan(value->r) ? "nan" : value->r > 0 ? "inf" : "-inf";
    nib_json_string(json, word, strlen(word));
}

static void put_value(nib_json *json, const nib_value *value) {
    switch (value->kind) {
    case NIB_VALUE_UINT: nib_json_uint(json, value->u); break;
    case NIB_VALUE_INT: nib_json_int(json, value->i); break;
    case NIB_VALUE_REAL: put_real(json, value); break;
    case NIB_VALUE_BOOL: nib_json_bool(json, value->u != 0); break;
    case NIB_VALUE_STRING: nib_json_string(json, value->text, value->len); break;
    }
}

static void put_entry(const nib_file *file, size_t i) {
    nib_json json = {false};
    nib_file_entry entry;
    nib_value value;
    char type[16];
    (void)nib_file_get_entry(&entry, file, i, NULL);
    (void)snprintf(type, sizeof type, "%s%s", entry.type, entry.is_array ? "[]" : "");
    nib_json_open(&json, '{');
    put_string(&json, "key", entry.key, strlen(entry.key));
    put_string(&json, "type", type, strlen(type));
    nib_json_key(&json, "value");
    if (entry.is_array) {
        nib_json_open(&json, '[');
    }
    for (size_t j = 0; j < entry.n; j++) {
        (void)nib_file_get_value(&value, file, i, j, NULL);
        put_value(&json, &value);
    }
    if (entry.is_array) {
        nib_json_close(&json, ']');
    }
    nib_json_close(&json, '}');
    nib_json_end_line(&json);
}

static void put_tensor(const nib_file *file, size_t i) {
    nib_json json = {false};
    nib_file_tensor tensor;
    (void)nib_file_get_tensor(&tensor, file, i, NULL);
    nib_json_open(&json, '{');
    put_string(&json, "tensor", tensor.name, strlen(tensor.name));
    put_string(&json, "type", tensor.type, strlen(tensor.type));
    nib_json_key(&json, "dims");
    nib_json_open(&json, '[');
    for (uint32_t d = 0; d < tensor.n_dims; d++) {
        nib_json_uint(&json, tensor.dims[d]);
    }
    nib_json_close(&json, ']');
    put_uint(&json, "bytes", tensor.size_bytes);
    put_uint(&json, "part", tensor.part);
    put_uint(&json, "offset", tensor.offset);
    nib_json_close(&json, '}');
    nib_json_end_line(&json);
}

static void put_all(const nib_file *file, const engine *here) {
    put_file(file, here);
    for (size_t i = 0; i < nib_file_n_entries(file); i++) {
        put_entry(file, i);
    }
    for (size_t i = 0; i < nib_file_n_tensors(file); i++) {
        put_tensor(file, i);
    }
}

static int show(const char *path, bool as_json) {
    nib_file *file;
    nib_error err;
    engine here = {"", "", "", 0, 0};
    int code = find_engine(&here);
    if (code != NIB_EXIT_OK) {
        return code;
    }
    if (nib_file_open(&file, path, &err) != NIB_OK) {
        return nib_cli_fail_open(&err);
    }
    if (as_json) {
        put_all(file, &here);
    } else {
        print_table(file, path, &here);
    }
    nib_file_free(file);
    return nib_cli_finish_output(NIB_EXIT_OK);
}

int nib_cli_show(int argc, char **argv) {
    nib_cli_args args = {.argc = argc, .argv = argv, .i = 1, .flags = flags, .n_flags = N_FLAGS};
    const char *path = NULL;
    bool as_json = false;
    nib_cli_found found;
    while ((found = nib_cli_next(&args)) == NIB_CLI_FOUND) {
        if (nib_cli_is(&args, "--help")) {
            return nib_cli_help(usage, flags, N_FLAGS);
        }
        as_json = as_json || nib_cli_is(&args, "--json");
        if (args.flag == NULL && path != NULL) {
            nib_cli_say("\"%s\": a second argument, expected one file", args.value);
            return NIB_EXIT_USAGE;
        }
        path = args.flag == NULL ? args.value : path;
    }
    if (found == NIB_CLI_WRONG) {
        return NIB_EXIT_USAGE;
    }
    if (path == NULL) {
        nib_cli_say("no file, expected a model file; see nib show --help");
        return NIB_EXIT_USAGE;
    }
    return show(path, as_json);
}
