/* The tokenizer and the special ids of a GGUF file, key by key. */
#include "model/vocab_load.h"

#include <string.h>

#include "base/memory.h"
#include "text/vocab.h"

typedef struct loader {
    nib_model *model;
    const nib_gguf *gguf;
    nib_vocab vocab;
    nib_vocab_text *tokens, *merges;
    float *scores;
    int32_t *types;
    char *pre;
} loader;

/* An array of texts, borrowed from the file. */
static nib_status load_texts(nib_vocab_text **texts, size_t *n, const loader *l, const char *key, nib_error *err) {
    int64_t entry;
    nib_status status = nib_gguf_get_array(&entry, n, l->gguf, key, NIB_VALUE_STRING, err);
    if (status != NIB_OK || entry < 0) {
        return status;
    }
    *texts = nib_alloc(*n, sizeof **texts);
    if (*texts == NULL) {
        return nib_fail_memory(err, *n * sizeof **texts, key);
    }
    for (size_t i = 0; i < *n; i++) {
        nib_value value;
        nib_gguf_value(&value, l->gguf, (size_t)entry, i);
        (*texts)[i] = (nib_vocab_text){value.text, value.len};
    }
    return NIB_OK;
}

/* An optional array that must be as long as the tokens. */
static nib_status find_parallel(int64_t *entry, const loader *l, const char *key, nib_value_kind kind, nib_error *err) {
    size_t n;
    nib_status status = nib_gguf_get_array(entry, &n, l->gguf, key, kind, err);
    if (status == NIB_OK && *entry >= 0 && n != l->vocab.n_tokens) {
        return nib_fail(err, NIB_EFORMAT, "%s: %zu elements, expected %zu, one for each token", key, n,
                        l->vocab.n_tokens);
    }
    return status;
}

static nib_status load_scores(loader *l, nib_error *err) {
    int64_t entry;
    nib_status status = find_parallel(&entry, l, "tokenizer.ggml.scores", NIB_VALUE_REAL, err);
    if (status != NIB_OK || entry < 0) {
        return status;
    }
    l->scores = nib_alloc(l->vocab.n_tokens, sizeof l->scores[0]);
    if (l->scores == NULL) {
        return nib_fail_memory(err, l->vocab.n_tokens * sizeof l->scores[0], "tokenizer.ggml.scores");
    }
    for (size_t i = 0; i < l->vocab.n_tokens; i++) {
        nib_value value;
        nib_gguf_value(&value, l->gguf, (size_t)entry, i);
        l->scores[i] = (float)value.r;
    }
    l->vocab.scores = l->scores;
    return NIB_OK;
}

static nib_status load_types(loader *l, nib_error *err) {
    int64_t entry;
    nib_status status = find_parallel(&entry, l, "tokenizer.ggml.token_type", NIB_VALUE_INT, err);
    if (status != NIB_OK || entry < 0) {
        return status;
    }
    l->types = nib_alloc(l->vocab.n_tokens, sizeof l->types[0]);
    if (l->types == NULL) {
        return nib_fail_memory(err, l->vocab.n_tokens * sizeof l->types[0], "tokenizer.ggml.token_type");
    }
    for (size_t i = 0; i < l->vocab.n_tokens; i++) {
        nib_value value;
        nib_gguf_value(&value, l->gguf, (size_t)entry, i);
        l->types[i] = value.i < INT32_MIN || value.i > INT32_MAX ? -1 : (int32_t)value.i;
    }
    l->vocab.types = l->types;
    return NIB_OK;
}

/* A special id; -1 when absent. Some files write 2^32 - 1 for "none". */
static nib_status load_id(int32_t *id, const nib_model *model, const char *key, nib_error *err) {
    uint64_t value = UINT64_MAX;
    nib_status status = nib_gguf_get_uint(&value, model->gguf, key, err);
    *id = -1;
    if (status != NIB_OK || value == UINT64_MAX || value == UINT32_MAX) {
        return status;
    }
    if (value >= (uint64_t)model->config.V) {
        return nib_fail(err, NIB_EFORMAT, "%s: %llu, expected 0 to %lld", key, (unsigned long long)value,
                        (long long)(model->config.V - 1));
    }
    *id = (int32_t)value;
    return NIB_OK;
}

/* Whether texts begin with the start token where the file does not say: SentencePiece's do, and two families of BPE, which
 * rely on their readers to know it. */
static bool adds_start(const nib_vocab *vocab) {
    static const char *const names[] = {"llama-bpe", "llama3", "llama-v3", "tekken"};
    if (vocab->kind == NIB_VOCAB_SPM) {
        return true;
    }
    for (size_t i = 0; vocab->pre != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], vocab->pre) == 0) {
            return true;
        }
    }
    return false;
}

static nib_status load_flags(loader *l, nib_error *err) {
    nib_vocab *vocab = &l->vocab;
    bool spm = vocab->kind == NIB_VOCAB_SPM;
    vocab->add_bos = adds_start(vocab);
    vocab->add_space_prefix = spm;
    nib_status status = nib_gguf_get_bool(&vocab->add_bos, l->gguf, "tokenizer.ggml.add_bos_token", err);
    if (status == NIB_OK) {
        status = nib_gguf_get_bool(&vocab->add_eos, l->gguf, "tokenizer.ggml.add_eos_token", err);
    }
    if (status == NIB_OK) {
        status = nib_gguf_get_bool(&vocab->add_space_prefix, l->gguf, "tokenizer.ggml.add_space_prefix", err);
    }
    return status;
}

static nib_status load_kind(loader *l, const char *kind, size_t len, nib_error *err) {
    if (len == 4 && memcmp(kind, "gpt2", 4) == 0) {
        const char *pre = NULL;
        size_t n = 0;
        nib_status status = nib_gguf_get_string(&pre, &n, l->gguf, "tokenizer.ggml.pre", err);
        l->pre = status == NIB_OK ? nib_copy_text(pre == NULL ? "" : pre, n) : NULL;
        l->vocab.kind = NIB_VOCAB_BPE;
        l->vocab.pre = l->pre;
        return status == NIB_OK && l->pre == NULL ? nib_fail_memory(err, n, "tokenizer.ggml.pre") : status;
    }
    if (len == 5 && memcmp(kind, "llama", 5) == 0) {
        l->vocab.kind = NIB_VOCAB_SPM;
        return NIB_OK;
    }
    return nib_fail(err, NIB_EUNSUPPORTED, "tokenizer.ggml.model: \"%.*s\", expected gpt2 or llama",
                    (int)(len < 64 ? len : 64), kind);
}

static nib_status load_tables(loader *l, nib_error *err) {
    nib_status status = load_texts(&l->tokens, &l->vocab.n_tokens, l, "tokenizer.ggml.tokens", err);
    if (status != NIB_OK) {
        return status;
    }
    if (l->vocab.n_tokens == 0 || l->vocab.n_tokens > (size_t)l->model->config.V) {
        return nib_fail(err, NIB_EFORMAT,
                        "tokenizer.ggml.tokens: %zu tokens, expected 1 to %lld, the rows of the "
                        "embedding",
                        l->vocab.n_tokens, (long long)l->model->config.V);
    }
    l->vocab.tokens = l->tokens;
    status = load_types(l, err);
    status = status != NIB_OK ? status : load_scores(l, err);
    status = status != NIB_OK ? status : load_texts(&l->merges, &l->vocab.n_merges, l, "tokenizer.ggml.merges", err);
    l->vocab.merges = l->merges;
    return status;
}

static nib_status load_tokenizer(loader *l, nib_error *err) {
    const char *kind = NULL;
    size_t len = 0;
    nib_status status = nib_gguf_get_string(&kind, &len, l->gguf, "tokenizer.ggml.model", err);
    if (status != NIB_OK || kind == NULL || (len == 4 && memcmp(kind, "none", 4) == 0)) {
        return status;
    }
    nib_model *model = l->model;
    status = load_kind(l, kind, len, err);
    status = status != NIB_OK ? status : load_flags(l, err);
    status = status != NIB_OK ? status : load_tables(l, err);
    status = status != NIB_OK ? status : load_id(&l->vocab.bos, model, "tokenizer.ggml.bos_token_id", err);
    status = status != NIB_OK ? status : load_id(&l->vocab.eos, model, "tokenizer.ggml.eos_token_id", err);
    status = status != NIB_OK ? status : load_id(&l->vocab.unk, model, "tokenizer.ggml.unknown_token_id", err);
    if (status == NIB_OK) {
        model->add_start = l->vocab.add_bos && l->vocab.bos >= 0;
        status = nib_tokenizer_new(&model->tokenizer, &l->vocab, err);
    }
    return status;
}

/* Texts that end a turn or a text in some family; they count only as control tokens. */
static const char *const end_texts[] = {
    "<|im_end|>",    "<|eot_id|>",      "<|eom_id|>",         "<|end|>", "<|end_of_text|>", "<|endoftext|>",
    "<end_of_turn>", "<|end_of_turn|>", "<end_of_utterance>", "<EOT>",   "_<EOT>",          "<|eot|>",
};

static bool is_end_text(const nib_tokenizer *tokenizer, int32_t id) {
    size_t len;
    const char *piece = nib_tokenizer_piece(&len, tokenizer, id);
    for (size_t i = 0; i < sizeof end_texts / sizeof end_texts[0]; i++) {
        if (strlen(end_texts[i]) == len && memcmp(end_texts[i], piece, len) == 0) {
            return true;
        }
    }
    return false;
}

static nib_status add_end(nib_model *model, size_t *cap, int32_t id, nib_error *err) {
    for (size_t i = 0; i < model->n_end_ids; i++) {
        if (model->end_ids[i] == id) {
            return NIB_OK;
        }
    }
    if (id < 0) {
        return NIB_OK;
    }
    if (!nib_reserve(&model->end_ids, cap, model->n_end_ids + 1, sizeof model->end_ids[0])) {
        return nib_fail_memory(err, sizeof(int32_t), "the end ids");
    }
    model->end_ids[model->n_end_ids++] = id;
    return NIB_OK;
}

/* The union of all that the file calls an end; its eos first. */
static nib_status load_ends(nib_model *model, nib_error *err) {
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    size_t cap = 0;
    nib_status status = NIB_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && status == NIB_OK; i++) {
        int32_t id;
        status = load_id(&id, model, keys[i], err);
        status = status != NIB_OK ? status : add_end(model, &cap, id, err);
    }
    int64_t n = model->tokenizer == NULL ? 0 : nib_tokenizer_size(model->tokenizer);
    for (int32_t id = 0; id < n && status == NIB_OK; id++) {
        if (nib_tokenizer_is_control(model->tokenizer, id) && is_end_text(model->tokenizer, id)) {
            status = add_end(model, &cap, id, err);
        }
    }
    return status;
}

static nib_status copy_string(char **out, const nib_gguf *gguf, const char *key, bool needed, nib_error *err) {
    const char *text = NULL;
    size_t len = 0;
    nib_status status = nib_gguf_get_string(&text, &len, gguf, key, err);
    if (status != NIB_OK || (text == NULL && !needed)) {
        return status;
    }
    *out = nib_copy_text(text == NULL ? "" : text, len);
    return *out == NULL ? nib_fail_memory(err, len, key) : NIB_OK;
}

nib_status nib_vocab_load(nib_model *model, nib_error *err) {
    loader l = {.model = model, .gguf = model->gguf, .vocab = {.bos = -1, .eos = -1, .unk = -1}};
    nib_status status = load_tokenizer(&l, err);
    nib_free(l.tokens);
    nib_free(l.merges);
    nib_free(l.scores);
    nib_free(l.types);
    nib_free(l.pre);
    status = status != NIB_OK ? status : load_id(&model->pad_id, model, "tokenizer.ggml.padding_token_id", err);
    status = status != NIB_OK ? status : load_id(&model->start_id, model, "tokenizer.ggml.bos_token_id", err);
    status = status != NIB_OK ? status : load_ends(model, err);
    status = status != NIB_OK ? status : copy_string(&model->name, model->gguf, "general.name", true, err);
    status = status != NIB_OK ? status
                              : copy_string(&model->chat_template, model->gguf, "tokenizer.chat_template", false, err);
    return status;
}
