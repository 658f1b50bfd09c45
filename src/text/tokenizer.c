/* A tokenizer: special tokens first, then what lies between them by one of the two kinds of BPE. */
#include "text/tokenizer_parts.h"

#include "base/memory.h"

static nib_status check_id(const nib_vocab *vocab, const char *what, int32_t id, nib_error *err) {
    if (id < -1 || (id >= 0 && (size_t)id >= vocab->n_tokens)) {
        return nib_fail(err, NIB_EFORMAT, "%s token is %d, expected -1 to %zu", what, (int)id, vocab->n_tokens - 1);
    }
    return NIB_OK;
}

static nib_status check_vocab(const nib_vocab *vocab, nib_error *err) {
    if (vocab->n_tokens == 0 || vocab->n_tokens > INT32_MAX || vocab->n_merges > INT32_MAX) {
        return nib_fail(err, NIB_EFORMAT,
                        "the vocabulary has %zu tokens and %zu merges, expected 1 to 2147483647 tokens",
                        vocab->n_tokens, vocab->n_merges);
    }
    nib_status status = check_id(vocab, "start", vocab->bos, err);
    if (status == NIB_OK) {
        status = check_id(vocab, "end", vocab->eos, err);
    }
    if (status == NIB_OK) {
        status = check_id(vocab, "unknown", vocab->unk, err);
    }
    return status;
}

nib_status nib_tokenizer_new(nib_tokenizer **out, const nib_vocab *vocab, nib_error *err) {
    *out = NULL;
    nib_status status = check_vocab(vocab, err);
    if (status != NIB_OK) {
        return status;
    }
    nib_tokenizer *tokenizer = nib_alloc_zero(1, sizeof *tokenizer);
    if (tokenizer == NULL) {
        return nib_fail_memory(err, sizeof *tokenizer, "the tokenizer");
    }
    tokenizer->kind = vocab->kind;
    tokenizer->bos = vocab->add_bos ? vocab->bos : -1;
    tokenizer->eos = vocab->add_eos ? vocab->eos : -1;
    status = nib_pieces_init(&tokenizer->pieces, vocab, err);
    if (status == NIB_OK) {
        status = nib_specials_init(&tokenizer->specials, &tokenizer->pieces, vocab->kind == NIB_VOCAB_SPM, err);
    }
    if (status == NIB_OK) {
        status = vocab->kind == NIB_VOCAB_BPE ? nib_bpe_init(&tokenizer->bpe, &tokenizer->pieces, vocab, err)
                                              : nib_spm_init(&tokenizer->spm, &tokenizer->pieces, vocab, err);
    }
    if (status != NIB_OK) {
        nib_tokenizer_free(tokenizer);
        return status;
    }
    *out = tokenizer;
    return NIB_OK;
}

void nib_tokenizer_free(nib_tokenizer *tokenizer) {
    if (tokenizer == NULL) {
        return;
    }
    nib_bpe_clear(&tokenizer->bpe);
    nib_spm_clear(&tokenizer->spm);
    nib_specials_clear(&tokenizer->specials);
    nib_pieces_clear(&tokenizer->pieces);
    nib_free(tokenizer);
}

/* Text without special tokens. */
static bool encode_plain(nib_encoding *encoding, const char *text, size_t len) {
    const nib_tokenizer *tokenizer = encoding->tokenizer;
    if (tokenizer->kind == NIB_VOCAB_SPM) {
        return nib_spm_encode(&encoding->ids, &encoding->merger, &tokenizer->spm, text, len);
    }
    return nib_bpe_encode(&encoding->ids, &encoding->merger, encoding->cutter, &tokenizer->bpe, text, len);
}

static bool encode_text(nib_encoding *encoding, const char *text, size_t len, bool with_control) {
    for (size_t from = 0; from < len;) {
        int32_t id;
        size_t id_len;
        size_t at = nib_specials_find(&id, &id_len, &encoding->steps, &encoding->tokenizer->specials, text, len, from,
                                      with_control);
        if (!encode_plain(encoding, text + from, at - from) || (id >= 0 && !nib_ids_add(&encoding->ids, id))) {
            return false;
        }
        from = at + id_len;
    }
    return true;
}

/* The text, with the start token before and the end token behind it where the text does not spell them itself. */
static bool encode_framed(nib_encoding *encoding, const char *text, size_t len, uint32_t flags) {
    const nib_tokenizer *tokenizer = encoding->tokenizer;
    nib_ids *ids = &encoding->ids;
    bool special = (flags & NIB_TOKENIZE_SPECIAL) != 0;
    bool frame = (flags & NIB_TOKENIZE_ADD_BOS) != 0;
    bool bos = frame && tokenizer->bos >= 0;
    if (bos && special && len > 0) {
        int32_t id;
        size_t id_len;
        bos = nib_specials_find(&id, &id_len, &encoding->steps, &tokenizer->specials, text, len, 0, true) != 0 ||
              id != tokenizer->bos;
    }
    if ((bos && !nib_ids_add(ids, tokenizer->bos)) || !encode_text(encoding, text, len, special)) {
        return false;
    }
    bool ended = special && ids->n > 0 && ids->ids[ids->n - 1] == tokenizer->eos;
    return !frame || tokenizer->eos < 0 || ended || nib_ids_add(ids, tokenizer->eos);
}

nib_status nib_encoding_run(nib_encoding *encoding, const nib_tokenizer *tokenizer, const char *text, size_t len,
                            uint32_t flags, nib_error *err) {
    *encoding = (nib_encoding){.tokenizer = tokenizer};
    if (flags & ~(uint32_t)(NIB_TOKENIZE_ADD_BOS | NIB_TOKENIZE_SPECIAL)) {
        return nib_fail(err, NIB_EINVAL, "flags of encode are 0x%x, expected NIB_TOKENIZE_*", (unsigned)flags);
    }
    /* Symbols are counted and placed in 31 bits; one more for a space before the text. */
    if (len >= INT32_MAX) {
        return nib_fail(err, NIB_EINVAL, "the text has %zu bytes, expected at most %d", len, INT32_MAX - 1);
    }
    bool ok = true;
    if (tokenizer->kind == NIB_VOCAB_BPE) {
        encoding->cutter = nib_cutter_new(tokenizer->bpe.pretokenizer);
        ok = encoding->cutter != NULL;
    }
    if (!ok || !encode_framed(encoding, text, len, flags)) {
        return nib_fail(err, NIB_ENOMEM, "no memory to encode a text of %zu bytes", len);
    }
    return NIB_OK;
}

void nib_encoding_clear(nib_encoding *encoding) {
    nib_merger_clear(&encoding->merger);
    nib_cutter_free(encoding->cutter);
    nib_free(encoding->ids.ids);
    *encoding = (nib_encoding){0};
}

nib_status nib_tokenizer_encode(int32_t **ids, size_t *n, const nib_tokenizer *tokenizer, const char *text, size_t len,
                                uint32_t flags, nib_error *err) {
    nib_encoding encoding;
    *ids = NULL;
    *n = 0;
    nib_status status = nib_encoding_run(&encoding, tokenizer, text, len, flags, err);
    if (status == NIB_OK && encoding.ids.n > 0) {
        *ids = encoding.ids.ids;
        *n = encoding.ids.n;
        encoding.ids.ids = NULL;
    }
    nib_encoding_clear(&encoding);
    return status;
}

int64_t nib_tokenizer_size(const nib_tokenizer *tokenizer) {
    return (int64_t)tokenizer->pieces.n;
}

static bool in_range(const nib_tokenizer *tokenizer, int32_t id) {
    return id >= 0 && (size_t)id < tokenizer->pieces.n;
}

const char *nib_tokenizer_piece(size_t *len, const nib_tokenizer *tokenizer, int32_t id) {
    *len = 0;
    return in_range(tokenizer, id) ? nib_pieces_text(len, &tokenizer->pieces, id) : "";
}

int nib_tokenizer_is_control(const nib_tokenizer *tokenizer, int32_t id) {
    return in_range(tokenizer, id) && tokenizer->pieces.types[id] == NIB_TOKEN_CONTROL;
}
