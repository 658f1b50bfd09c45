/* Models: opening files, memory, random and custom ones, and what they say of themselves. */
#include "model/model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/memory.h"
#include "base/options.h"
#include "model/random_model.h"
#include "model/vocab_load.h"
#include "text/vocab.h"

/* A new model with one holder and nothing in it. */
static nib_model *new_model(void) {
    nib_model *model = nib_alloc_zero(1, sizeof *model);
    if (model != NULL) {
        atomic_init(&model->refs, 1);
        model->pad_id = model->start_id = -1;
    }
    return model;
}

void nib_model_retain(nib_model *model) {
    atomic_fetch_add(&model->refs, 1);
}

/* ---- Models that were opened by path: a second opening of the same file with the same options gets the first's. */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static nib_model *shared_models;

static bool same_file(const nib_file_id *a, const nib_file_id *b) {
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->changed_ns == b->changed_ns;
}

/* The open model of this file, with one more holder; NULL when there is none. The lock is held. */
static nib_model *find_shared(const nib_file_id *file, const nib_kernels *kernels, int compute) {
    for (nib_model *model = shared_models; model != NULL; model = model->next_shared) {
        if (same_file(&model->file, file) && model->kernels == kernels && model->compute == compute) {
            nib_model_retain(model);
            return model;
        }
    }
    return NULL;
}

/* The model to use for what was opened: another thread may have been first. */
static nib_model *share(nib_model *model, const nib_file_id *file) {
    pthread_mutex_lock(&shared_lock);
    /* It was opened. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    nib_model *first = find_shared(file, model->kernels, model->compute);
    if (first == NULL) {
        model->shared = true;
        model->file = *file;
        model->next_shared = shared_models;
        shared_models = model;
    }
    pthread_mutex_unlock(&shared_lock);
    return first;
}

/* One holder less; whether it was the last. A shared model leaves the list then, under the lock, so that nobody finds one
 * that is about to be freed. */
static bool release(nib_model *model) {
    if (!model->shared) {
        return atomic_fetch_sub(&model->refs, 1) == 1;
    }
    pthread_mutex_lock(&shared_lock);
    bool last = atomic_fetch_sub(&model->refs, 1) == 1;
    for (nib_model **at = &shared_models; last && *at != NULL; at = &(*at)->next_shared) {
        if (*at == model) {
            *at = model->next_shared;
            break;
        }
    }
    pthread_mutex_unlock(&shared_lock);
    return last;
}

void nib_model_free(nib_model *model) {
    if (model == NULL || !release(model)) {
        return;
    }
    nib_tokenizer_free(model->tokenizer);
    nib_weights_free(&model->weights);
    nib_gguf_free(model->gguf);
    nib_free(model->name);
    nib_free(model->chat_template);
    nib_free(model->end_ids);
    nib_free(model);
}

/* ", base, avx2": the rungs of this machine. */
static const char *names_here(char *text, size_t room) {
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        if (nib_kernels_find(nib_kernels_name(i)) != NULL && len < room) {
            len += (size_t)snprintf(text + len, room - len, ", %s", nib_kernels_name(i));
        }
    }
    return text;
}

/* The rung that the option names, else NIB_CPU, else the best. */
static nib_status choose_kernels(const nib_kernels **kernels, const nib_model_options *options, nib_error *err) {
    const char *name = "auto";
    const char *origin = "cpu";
    const char *wish = getenv("NIB_CPU");
    if (options->cpu != NIB_CPU_AUTO) {
        name = nib_kernels_name((size_t)options->cpu - 1);
    } else if (wish != NULL && wish[0] != '\0') {
        name = wish;
        origin = "NIB_CPU";
    }
    *kernels = nib_kernels_find(name);
    if (*kernels == NULL) {
        char there[128];
        return nib_fail(err, NIB_EINVAL, "%s: \"%s\", expected an instruction set that this machine has: auto%s",
                        origin, name, names_here(there, sizeof there));
    }
    if (!nib_kernels_selfcheck(*kernels)) {
        return nib_fail(err, NIB_ECHECK,
                        "cpu: \"%s\" gives other bits than the numeric contract: this build was "
                        "compiled with options that change floating-point results",
                        (*kernels)->name);
    }
    return NIB_OK;
}

/* Checked options, the defaults for NULL. */
static nib_status take_options(nib_model_options *taken, const nib_model_options *options, nib_error *err) {
    *taken = (nib_model_options)NIB_MODEL_OPTIONS_INIT;
    if (options == NULL) {
        return NIB_OK;
    }
    nib_status status = nib_options_check(options, NIB_SCOPE_MODEL, err);
    if (status == NIB_OK) {
        *taken = *options;
    }
    return status;
}

/* Everything after the file is read; takes gguf. */
static nib_status finish_file(nib_model **out, nib_gguf *gguf, const nib_model_options *options, nib_error *err) {
    nib_model *model = new_model();
    if (model == NULL) {
        nib_gguf_free(gguf);
        return nib_fail_memory(err, sizeof *model, "a model");
    }
    model->gguf = gguf;
    model->compute = options->compute;
    nib_status status = choose_kernels(&model->kernels, options, err);
    status = status != NIB_OK ? status : nib_config_read(&model->config, gguf, err);
    status = status != NIB_OK ? status : nib_weights_bind(&model->weights, &model->config, gguf, model->kernels, err);
    model->config.rope.divisors = model->weights.rope_divisors;
    if (status == NIB_OK && options->compute == NIB_COMPUTE_FAST) {
        status = nib_weights_pack(&model->weights, &model->config, nib_gguf_is_mapped(gguf), err);
    }
    status = status != NIB_OK ? status : nib_vocab_load(model, err);
    if (status != NIB_OK) {
        nib_model_free(model);
        return status;
    }
    *out = model;
    return NIB_OK;
}

/* "random:NAME[,key=value..]" */
static const char random_prefix[] = "random:";

static nib_status finish_random(nib_model **out, const nib_random_spec *spec, const nib_model_options *options,
                                nib_error *err) {
    nib_model *model = new_model();
    if (model == NULL) {
        return nib_fail_memory(err, sizeof *model, "a model");
    }
    model->config = spec->config;
    model->compute = options->compute;
    nib_status status = choose_kernels(&model->kernels, options, err);
    status =
        status != NIB_OK ? status : nib_weights_random(&model->weights, &model->config, spec->tied, spec->seed, err);
    if (status == NIB_OK) {
        model->name = nib_copy_text("random", 6);
        status = model->name == NULL ? nib_fail_memory(err, 7, "a name") : NIB_OK;
    }
    if (status != NIB_OK) {
        nib_model_free(model);
        return status;
    }
    *out = model;
    return NIB_OK;
}

static nib_status parse_random_path(nib_random_spec *spec, const char *text, nib_error *err) {
    size_t n_name = strcspn(text, ",");
    const char *rest = text[n_name] == ',' ? text + n_name + 1 : text + n_name;
    return nib_random_parse(spec, text, n_name, rest, strlen(rest), true, err);
}

static nib_status open_file(nib_model **out, const char *path, const nib_model_options *options, nib_error *err) {
    nib_gguf *gguf;
    nib_file_id file;
    const nib_kernels *kernels;
    nib_status status = choose_kernels(&kernels, options, err);
    if (status != NIB_OK) {
        return status;
    }
    bool known = nib_file_identify(&file, path);
    if (known) {
        pthread_mutex_lock(&shared_lock);
        *out = find_shared(&file, kernels, options->compute);
        pthread_mutex_unlock(&shared_lock);
        if (*out != NULL) {
            return NIB_OK;
        }
    }
    status = nib_gguf_open(&gguf, path, err);
    status = status == NIB_OK ? finish_file(out, gguf, options, err) : status;
    if (status == NIB_OK && known) {
        nib_model *first = share(*out, &file);
        if (first != NULL) {
            nib_model_free(*out);
            *out = first;
        }
    }
    return status;
}

static nib_status open_path(nib_model **out, const char *path, const nib_model_options *options, nib_error *err) {
    nib_model_options taken;
    nib_status status = take_options(&taken, options, err);
    if (status != NIB_OK) {
        return status;
    }
    if (path == NULL || path[0] == '\0') {
        return nib_fail(err, NIB_EINVAL, "model: no path, expected a file or random:NAME");
    }
    if (strncmp(path, random_prefix, sizeof random_prefix - 1) == 0) {
        nib_random_spec spec;
        status = parse_random_path(&spec, path + sizeof random_prefix - 1, err);
        return status == NIB_OK ? finish_random(out, &spec, &taken, err) : status;
    }
    return open_file(out, path, &taken, err);
}

nib_status nib_model_open(nib_model **out, const char *path, const nib_model_options *options, nib_error *err) {
    *out = NULL;
    uint64_t saved = nib_fp_enter(); /* the self-check and weights made or unpacked here are computed */
    nib_status status = open_path(out, path, options, err);
    nib_fp_leave(saved);
    return status;
}

static nib_status open_memory(nib_model **out, const void *data, size_t len, const nib_model_options *options,
                              nib_error *err) {
    nib_model_options taken;
    nib_gguf *gguf;
    nib_status status = take_options(&taken, options, err);
    status = status != NIB_OK ? status : nib_gguf_open_memory(&gguf, data, len, err);
    return status == NIB_OK ? finish_file(out, gguf, &taken, err) : status;
}

nib_status nib_model_open_memory(nib_model **out, const void *data, size_t len, const nib_model_options *options,
                                 nib_error *err) {
    *out = NULL;
    uint64_t saved = nib_fp_enter();
    nib_status status = open_memory(out, data, len, options, err);
    nib_fp_leave(saved);
    return status;
}

static nib_status make_random(nib_model **out, const char *name, const char *overrides, uint64_t seed,
                              const nib_model_options *options, nib_error *err) {
    nib_model_options taken;
    nib_random_spec spec;
    if (name == NULL) {
        return nib_fail(err, NIB_EINVAL, "random model: no name, expected llama-tiny or another one");
    }
    nib_status status = take_options(&taken, options, err);
    if (status == NIB_OK) {
        const char *text = overrides == NULL ? "" : overrides;
        status = nib_random_parse(&spec, name, strlen(name), text, strlen(text), false, err);
    }
    if (status != NIB_OK) {
        return status;
    }
    spec.seed = seed;
    return finish_random(out, &spec, &taken, err);
}

nib_status nib_model_random(nib_model **out, const char *name, const char *overrides, uint64_t seed,
                            const nib_model_options *options, nib_error *err) {
    *out = NULL;
    uint64_t saved = nib_fp_enter();
    nib_status status = make_random(out, name, overrides, seed, options, err);
    nib_fp_leave(saved);
    return status;
}

nib_kv_type nib_model_kv_type(const nib_model *model, int cache_type) {
    if (cache_type == NIB_CACHE_TYPE_AUTO) {
        return model->compute == NIB_COMPUTE_FAST ? NIB_KV_F16 : NIB_KV_F32;
    }
    return cache_type == NIB_CACHE_TYPE_F16 ? NIB_KV_F16 : NIB_KV_F32;
}

bool nib_model_is_custom(const nib_model *model) {
    return model->custom.forward != NULL || model->custom.step != NULL;
}

static nib_status check_custom(const nib_custom_model *custom, nib_error *err) {
    const struct {
        const char *name;
        int32_t id;
    } ids[] = {{"pad_id", custom->pad_id}, {"start_id", custom->start_id}, {"end_id", custom->end_id}};
    if (custom->size != sizeof *custom) {
        return nib_fail(err, NIB_EINVAL, "nib_custom_model.size: %u, expected %zu, as its INIT macro sets it",
                        custom->size, sizeof *custom);
    }
    if (custom->forward == NULL && custom->step == NULL) {
        return nib_fail(err, NIB_EINVAL, "custom model: no function, expected forward or step");
    }
    if (custom->V < 1 || custom->V > INT32_MAX || custom->context < 1 || custom->context > INT32_MAX) {
        return nib_fail(err, NIB_EINVAL, "custom model: V %lld, context %lld, expected 1 to %d each",
                        (long long)custom->V, (long long)custom->context, INT32_MAX);
    }
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (ids[i].id < -1 || ids[i].id >= custom->V) {
            return nib_fail(err, NIB_EINVAL, "custom model: %s %d, expected -1 to %lld", ids[i].name, ids[i].id,
                            (long long)(custom->V - 1));
        }
    }
    return NIB_OK;
}

static nib_status set_custom_end(nib_model *model, int32_t id, nib_error *err) {
    if (id < 0) {
        return NIB_OK;
    }
    model->end_ids = nib_alloc(1, sizeof model->end_ids[0]);
    if (model->end_ids == NULL) {
        return nib_fail_memory(err, sizeof id, "the end id");
    }
    model->end_ids[0] = id;
    model->n_end_ids = 1;
    return NIB_OK;
}

nib_status nib_model_custom(nib_model **out, const nib_custom_model *custom, nib_error *err) {
    *out = NULL;
    nib_status status = check_custom(custom, err);
    if (status != NIB_OK) {
        return status;
    }
    nib_model *model = new_model();
    if (model == NULL) {
        return nib_fail_memory(err, sizeof *model, "a model");
    }
    model->custom = *custom;
    model->config.V = custom->V;
    model->config.context = custom->context;
    model->pad_id = custom->pad_id;
    model->start_id = custom->start_id;
    static const nib_model_options defaults = NIB_MODEL_OPTIONS_INIT;
    uint64_t saved = nib_fp_enter();
    status = choose_kernels(&model->kernels, &defaults, err); /* for the sampler's log-sum-exp */
    nib_fp_leave(saved);
    status = status != NIB_OK ? status : set_custom_end(model, custom->end_id, err);
    if (status != NIB_OK) {
        nib_model_free(model);
        return status;
    }
    *out = model;
    return NIB_OK;
}

nib_status nib_model_get_info(nib_model_info *info, const nib_model *model, nib_error *err) {
    if (info->size != sizeof *info) {
        return nib_fail(err, NIB_EINVAL, "nib_model_info.size: %u, expected %zu", info->size, sizeof *info);
    }
    const nib_config *c = &model->config;
    *info = (nib_model_info){
        .size = sizeof *info,
        .architecture = nib_model_is_custom(model) ? "custom" : c->arch->name,
        .name = model->name == NULL ? "" : model->name,
        .V = c->V,
        .D = c->D,
        .L = c->L,
        .H = c->H,
        .K = c->K,
        .head_dim = c->E,
        .context = c->context,
        .pad_id = model->pad_id,
        .start_id = model->start_id,
        .end_id = model->n_end_ids > 0 ? model->end_ids[0] : -1,
        .end_ids = model->end_ids,
        .n_end_ids = model->n_end_ids,
        .add_start = model->add_start,
        .has_chat_template = model->chat_template != NULL,
        .chat_template = model->chat_template,
        .n_params = model->weights.n_params,
        .weight_bytes = model->weights.bytes,
        .cpu = model->kernels->name,
        .compute = model->compute,
        .cache_type =
            nib_model_kv_type(model, NIB_CACHE_TYPE_AUTO) == NIB_KV_F16 ? NIB_CACHE_TYPE_F16 : NIB_CACHE_TYPE_F32,
    };
    return NIB_OK;
}

const nib_tokenizer *nib_model_tokenizer(const nib_model *model) {
    return model->tokenizer;
}

/* Rows that the default prefill_chunk makes; room for what does not grow with the file. */
enum { DEFAULT_CHUNK = 256, OBJECT_BYTES = 16384, ALIGNMENT = 4 << 20 };

static void estimate_config(nib_model_memory *memory, const nib_config *config) {
    size_t logits = (size_t)config->V * sizeof(float);
    memory->kv_per_token = nib_config_kv_elements(config) * nib_kv_type_bytes(NIB_KV_F16);
    (void)nib_work_bytes(&memory->session, config, DEFAULT_CHUNK);
    memory->session += 4 * logits + nib_work_group_floats(config) * sizeof(float);
}

/* What the file's tables become: texts, types, scores and merges with their hashes, about twice their size. */
static size_t table_bytes(const nib_gguf *gguf) {
    size_t bytes = 0;
    for (size_t i = 0; i < nib_gguf_n_entries(gguf); i++) {
        nib_file_entry entry;
        nib_gguf_entry(&entry, gguf, i);
        bytes += entry.n * 96;
    }
    return bytes + nib_gguf_n_tensors(gguf) * 512;
}

static nib_status estimate_file(nib_model_memory *memory, const char *path, nib_error *err) {
    nib_gguf *gguf;
    nib_config config;
    nib_status status = nib_gguf_open(&gguf, path, err);
    if (status != NIB_OK) {
        return status;
    }
    status = nib_config_read(&config, gguf, err);
    if (status == NIB_OK) {
        size_t tiles = ALIGNMENT;
        for (size_t i = 0; i < nib_gguf_n_tensors(gguf); i++) {
            const nib_tensor *tensor = nib_gguf_tensor(gguf, i);
            memory->weights += tensor->size_bytes;
            tiles +=
                nib_weights_tile_bytes((nib_dtype)tensor->type, (int64_t)tensor->dims[1], (int64_t)tensor->dims[0]);
        }
        memory->resident = tiles + table_bytes(gguf) + nib_weights_table_bytes(&config) + OBJECT_BYTES;
        estimate_config(memory, &config);
    }
    nib_gguf_free(gguf);
    return status;
}

static nib_status estimate_random(nib_model_memory *memory, const char *text, nib_error *err) {
    nib_random_spec spec;
    nib_status status = parse_random_path(&spec, text, err);
    if (status == NIB_OK && !nib_weights_random_bytes(&memory->weights, &spec.config, spec.tied)) {
        return nib_fail(err, NIB_ENOMEM, "random model: its weights do not fit the address space");
    }
    if (status == NIB_OK) {
        memory->resident = memory->weights + nib_weights_table_bytes(&spec.config) + OBJECT_BYTES;
        estimate_config(memory, &spec.config);
    }
    return status;
}

nib_status nib_model_estimate(nib_model_memory *memory, const char *path, nib_error *err) {
    if (memory->size != sizeof *memory) {
        return nib_fail(err, NIB_EINVAL, "nib_model_memory.size: %u, expected %zu", memory->size, sizeof *memory);
    }
    if (path == NULL || path[0] == '\0') {
        return nib_fail(err, NIB_EINVAL, "model: no path, expected a file or random:NAME");
    }
    nib_model_memory found = {.size = sizeof found};
    bool random = strncmp(path, random_prefix, sizeof random_prefix - 1) == 0;
    nib_status status =
        random ? estimate_random(&found, path + sizeof random_prefix - 1, err) : estimate_file(&found, path, err);
    if (status == NIB_OK) {
        *memory = found;
    }
    return status;
}
