/* The table of options, setting a field from text, and the checks of a whole struct. All of it follows options.def. */
#include "base/options.h"

#include <math.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/number.h"

#define STRUCT_model    nib_model_options
#define STRUCT_session  nib_session_options
#define STRUCT_generate nib_generate_options
#define SCOPE_model     NIB_SCOPE_MODEL
#define SCOPE_session   NIB_SCOPE_SESSION
#define SCOPE_generate  NIB_SCOPE_GENERATE

#define ROW(scope, kind, field, offset_field, initial, low, high, real_low, real_high, words, there, flags, arg, zero, \
            help, source)                                                                                              \
    {#field,    SCOPE_##scope, kind,  offsetof(STRUCT_##scope, offset_field),                                          \
     initial,   low,           high,  real_low,                                                                        \
     real_high, words,         there, flags,                                                                           \
     arg,       zero,          help,  source},

#define NIB_OPTION_INT(scope, field, initial, low, high, flags, arg, zero, help, source)                               \
    ROW(scope, NIB_OPTION_KIND_INT, field, field, #initial, low, high, 0, 0, "", "", flags, arg, zero, help, source)
#define NIB_OPTION_REAL(scope, field, initial, low, high, flags, arg, zero, help, source)                              \
    ROW(scope, NIB_OPTION_KIND_REAL, field, field, #initial, 0, 0, low, high, "", "", flags, arg, zero, help, source)
#define NIB_OPTION_CHOICE(scope, field, initial, words, there, flags, arg, zero, help, source)                         \
    ROW(scope, NIB_OPTION_KIND_CHOICE, field, field, #initial, 0, 0, 0, 0, words, there, flags, arg, zero, help, source)
#define NIB_OPTION_SEED(scope, field, initial, low, high, flags, arg, zero, help, source)                              \
    ROW(scope, NIB_OPTION_KIND_SEED, field, has_##field, "random", 0, 0, 0, 0, "", "", flags, arg, zero, help, source)
#define NIB_OPTION_IDS(scope, field, initial, low, high, flags, arg, zero, help, source)                               \
    ROW(scope, NIB_OPTION_KIND_IDS, field, field, "none", 0, 0, 0, 0, "", "", flags, arg, zero, help, source)
#define NIB_OPTION_TEXTS(scope, field, initial, low, high, flags, arg, zero, help, source)                             \
    ROW(scope, NIB_OPTION_KIND_TEXTS, field, field, "none", 0, 0, 0, 0, "", "", flags, arg, zero, help, source)
#define NIB_OPTION_BIASES(scope, field, initial, low, high, flags, arg, zero, help, source)                            \
    ROW(scope, NIB_OPTION_KIND_BIASES, field, field, "none", 0, 0, 0, 0, "", "", flags, arg, zero, help, source)
#define NIB_OPTION_HOOK(scope, field, initial, low, high, flags, arg, zero, help, source)                              \
    ROW(scope, NIB_OPTION_KIND_HOOK, field, field, "none", 0, 0, 0, 0, "", "", flags, arg, zero, help, source)

static const nib_option options_table[] = {
#include "options.def"
};

enum { N_OPTIONS = sizeof options_table / sizeof options_table[0] };

const nib_option *nib_option_list(size_t *n) {
    *n = N_OPTIONS;
    return options_table;
}

/* Index of text among the words of a list; -1 when it is none of them. */
static int find_word(const char *words, const char *text, size_t len) {
    int index = 0;
    for (const char *at = words; *at != '\0'; index++) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, text, len) == 0) {
            return index;
        }
        at += n;
        at += strspn(at, " ");
    }
    return -1;
}

/* The number of words in a list. */
static int count_words(const char *words) {
    int n = 0;
    for (const char *at = words; *at != '\0'; n++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return n;
}

static nib_status check_there(const nib_option *option, int word, nib_error *err) {
    if (option->there[word] == 'y') {
        return NIB_OK;
    }
    const char *at = option->words;
    for (int i = 0; i < word; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return nib_fail(err, NIB_EUNSUPPORTED, "%s: \"%.*s\" comes in a later version", option->name, (int)strcspn(at, " "),
                    at);
}

static nib_status check_int(const nib_option *option, int64_t value, nib_error *err) {
    if (value < option->low || value > option->high) {
        return nib_fail(err, NIB_EINVAL, "%s: %lld, expected %lld to %lld", option->name, (long long)value,
                        (long long)option->low, (long long)option->high);
    }
    return NIB_OK;
}

static nib_status check_real(const nib_option *option, double value, nib_error *err) {
    if (value >= option->real_low && value <= option->real_high) {
        return NIB_OK;
    }
    char text[NIB_NUMBER_ROOM], low[NIB_NUMBER_ROOM], high[NIB_NUMBER_ROOM];
    return nib_fail(err, NIB_EINVAL, "%s: %s, expected %s to %s", option->name, nib_format_real(text, value, 9),
                    nib_format_real(low, option->real_low, 9), nib_format_real(high, option->real_high, 9));
}

static nib_status set_int(char *field, const nib_option *option, const char *text, size_t len, nib_error *err) {
    int64_t value;
    if (!nib_parse_int(&value, text, len)) {
        return nib_fail(err, NIB_EINVAL, "%s: \"%.*s\", expected a whole number from %lld to %lld", option->name,
                        (int)(len < 100 ? len : 100), text, (long long)option->low, (long long)option->high);
    }
    nib_status status = check_int(option, value, err);
    if (status == NIB_OK) {
        memcpy(field, &value, sizeof value);
    }
    return status;
}

static nib_status set_real(char *field, const nib_option *option, const char *text, size_t len, nib_error *err) {
    double value;
    uint64_t saved = nib_fp_enter(); /* the system's conversion rounds as the host does */
    bool number = nib_parse_real(&value, text, len);
    nib_fp_leave(saved);
    if (!number) {
        return nib_fail(err, NIB_EINVAL, "%s: \"%.*s\", expected a number", option->name, (int)(len < 100 ? len : 100),
                        text);
    }
    nib_status status = check_real(option, value, err);
    if (status == NIB_OK) {
        memcpy(field, &value, sizeof value);
    }
    return status;
}

static nib_status set_word(char *field, const nib_option *option, const char *text, size_t len, nib_error *err) {
    int word = find_word(option->words, text, len);
    if (word < 0) {
        return nib_fail(err, NIB_EINVAL, "%s: \"%.*s\", expected one of: %s", option->name,
                        (int)(len < 100 ? len : 100), text, option->words);
    }
    nib_status status = check_there(option, word, err);
    if (status != NIB_OK) {
        return status;
    }
    memcpy(field, &word, sizeof word);
    return NIB_OK;
}

static nib_status set_seed(void *options, const nib_option *option, const char *text, size_t len, nib_error *err) {
    nib_generate_options *generate = options;
    if (!nib_parse_uint(&generate->seed, text, len)) {
        return nib_fail(err, NIB_EINVAL, "%s: \"%.*s\", expected a whole number from 0 to 18446744073709551615",
                        option->name, (int)(len < 100 ? len : 100), text);
    }
    generate->has_seed = 1;
    return NIB_OK;
}

nib_status nib_option_set(void *options, const nib_option *option, const char *text, size_t len, nib_error *err) {
    char *field = (char *)options + option->offset;
    switch (option->kind) {
    case NIB_OPTION_KIND_INT: return set_int(field, option, text, len, err);
    case NIB_OPTION_KIND_REAL: return set_real(field, option, text, len, err);
    case NIB_OPTION_KIND_CHOICE: return set_word(field, option, text, len, err);
    case NIB_OPTION_KIND_SEED: return set_seed(options, option, text, len, err);
    case NIB_OPTION_KIND_IDS:
    case NIB_OPTION_KIND_TEXTS:
    case NIB_OPTION_KIND_BIASES: break;
    case NIB_OPTION_KIND_HOOK: return nib_fail(err, NIB_EINVAL, "%s: a function, set it in the struct", option->name);
    }
    return nib_fail(err, NIB_EINVAL, "%s: a list, set it in the struct", option->name);
}

/* The lists: a length without a pointer is a mistake that would crash later. */
static nib_status check_list(const char *field, const nib_option *option, nib_error *err) {
    const void *list;
    size_t n;
    memcpy(&list, field, sizeof list);
    memcpy(&n, field + sizeof list, sizeof n);
    if (list == NULL && n > 0) {
        return nib_fail(err, NIB_EINVAL, "%s: NULL with n_%s %zu, expected a list", option->name, option->name, n);
    }
    return NIB_OK;
}

static nib_status check_field(const char *field, const nib_option *option, nib_error *err) {
    int64_t whole;
    double real;
    int choice;
    switch (option->kind) {
    case NIB_OPTION_KIND_INT:
        memcpy(&whole, field, sizeof whole);
        return whole == NIB_UNSET && strcmp(option->initial, "NIB_UNSET") == 0 ? NIB_OK : check_int(option, whole, err);
    case NIB_OPTION_KIND_REAL: memcpy(&real, field, sizeof real); return check_real(option, real, err);
    case NIB_OPTION_KIND_CHOICE:
        memcpy(&choice, field, sizeof choice);
        if (choice < 0 || choice >= count_words(option->words)) {
            return nib_fail(err, NIB_EINVAL, "%s: %d, expected one of: %s", option->name, choice, option->words);
        }
        return check_there(option, choice, err);
    case NIB_OPTION_KIND_SEED:
    case NIB_OPTION_KIND_HOOK: return NIB_OK;
    case NIB_OPTION_KIND_IDS:
    case NIB_OPTION_KIND_TEXTS:
    case NIB_OPTION_KIND_BIASES: return check_list(field, option, err);
    }
    return NIB_OK;
}

static nib_status check_size(const void *options, nib_option_scope scope, nib_error *err) {
    static const uint32_t sizes[] = {sizeof(nib_model_options), sizeof(nib_session_options),
                                     sizeof(nib_generate_options)};
    static const char *const names[] = {"nib_model_options", "nib_session_options", "nib_generate_options"};
    uint32_t size;
    memcpy(&size, options, sizeof size);
    if (size != sizes[scope]) {
        return nib_fail(err, NIB_EINVAL, "%s.size: %u, expected %u, as its INIT macro sets it", names[scope], size,
                        sizes[scope]);
    }
    return NIB_OK;
}

static nib_status check_session(const nib_session_options *options, nib_error *err) {
    if (options->max_cache_len != NIB_UNSET && options->cache != NIB_CACHE_STATIC) {
        return nib_fail(err, NIB_EINVAL, "max_cache_len: %lld, expected only with cache static",
                        (long long)options->max_cache_len);
    }
    return NIB_OK;
}

static nib_status check_texts(const char *name, const nib_text *texts, size_t n, nib_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (texts[i].len == 0 || texts[i].bytes == NULL) {
            return nib_fail(err, NIB_EINVAL, "%s: text %zu is empty, expected at least one byte", name, i);
        }
    }
    return NIB_OK;
}

static nib_status check_biases(const nib_bias *biases, size_t n, nib_error *err) {
    char text[NIB_NUMBER_ROOM];
    for (size_t i = 0; i < n; i++) {
        if (biases[i].ids == NULL || biases[i].n == 0) {
            return nib_fail(err, NIB_EINVAL, "logit_bias: bias %zu has no ids, expected at least one", i);
        }
        if (!(biases[i].bias <= 1e30 && (biases[i].bias >= -1e30 || isinf(biases[i].bias)))) {
            return nib_fail(err, NIB_EINVAL, "logit_bias: %s (number %zu), expected -1e+30 to 1e+30, or -inf",
                            nib_format_real(text, biases[i].bias, 9), i);
        }
    }
    return NIB_OK;
}

static nib_status check_generate(const nib_generate_options *options, nib_error *err) {
    if (options->do_sample == NIB_DO_SAMPLE_YES && options->temperature <= 0) {
        return nib_fail(err, NIB_EINVAL, "do_sample: yes with temperature 0, expected a temperature above 0");
    }
    nib_status status = check_texts("stop", options->stop, options->n_stop, err);
    status = status != NIB_OK ? status : check_texts("bad_words", options->bad_words, options->n_bad_words, err);
    status = status != NIB_OK ? status : check_texts("dry_breaker", options->dry_breaker, options->n_dry_breaker, err);
    return status != NIB_OK ? status : check_biases(options->logit_bias, options->n_logit_bias, err);
}

nib_status nib_options_check(const void *options, nib_option_scope scope, nib_error *err) {
    nib_status status = check_size(options, scope, err);
    for (size_t i = 0; i < N_OPTIONS && status == NIB_OK; i++) {
        if (options_table[i].scope == scope) {
            status = check_field((const char *)options + options_table[i].offset, &options_table[i], err);
        }
    }
    if (status == NIB_OK && scope == NIB_SCOPE_SESSION) {
        status = check_session(options, err);
    }
    if (status == NIB_OK && scope == NIB_SCOPE_GENERATE) {
        status = check_generate(options, err);
    }
    return status;
}

static nib_status check_id(const char *name, size_t index, int64_t id, int64_t V, nib_error *err) {
    if (id < 0 || id >= V) {
        return nib_fail(err, NIB_EINVAL, "%s: id %lld (number %zu), expected 0 to %lld", name, (long long)id, index,
                        (long long)(V - 1));
    }
    return NIB_OK;
}

static nib_status check_ids(const char *name, const int32_t *ids, size_t n, int64_t V, nib_error *err) {
    nib_status status = NIB_OK;
    for (size_t i = 0; i < n && status == NIB_OK; i++) {
        status = check_id(name, i, ids[i], V, err);
    }
    return status;
}

nib_status nib_generate_options_check_ids(const nib_generate_options *options, int64_t V, nib_error *err) {
    nib_status status = NIB_OK;
    for (size_t i = 0; i < N_OPTIONS && status == NIB_OK; i++) {
        const nib_option *option = &options_table[i];
        if (option->kind == NIB_OPTION_KIND_IDS) {
            const char *field = (const char *)options + option->offset;
            const int32_t *ids;
            size_t n;
            memcpy(&ids, field, sizeof ids);
            memcpy(&n, field + sizeof ids, sizeof n);
            status = check_ids(option->name, ids, n, V, err);
        }
    }
    for (size_t i = 0; i < options->n_logit_bias && status == NIB_OK; i++) {
        status = check_ids("logit_bias", options->logit_bias[i].ids, options->logit_bias[i].n, V, err);
    }
    if (status == NIB_OK && options->pad_id != NIB_UNSET) {
        status = check_id("pad_id", 0, options->pad_id, V, err);
    }
    return status;
}
