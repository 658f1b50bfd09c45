/* Ids to text: whole at once as bytes, or a token at a time as whole characters. */
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "text/tokenizer_parts.h"

struct nib_decoder {
    nib_detokenizer detokenizer;
    nib_utf8_stream stream;
    nib_buffer out; /* what the last call gave; always room for a U+FFFD */
};

enum { REPLACEMENT_LEN = 3 };

void nib_detokenizer_begin(nib_detokenizer *detokenizer, const nib_tokenizer *tokenizer, uint32_t flags) {
    *detokenizer = (nib_detokenizer){.tokenizer = tokenizer, .flags = flags};
    detokenizer->strip = tokenizer->spm.space_prefix && !(flags & NIB_DETOKENIZE_CONTINUE);
}

/* encode puts a space before the text and behind every special token; where the special token is shown, that space goes
 * again. Behind one that is not shown it stays, to keep the words apart. */
const char *nib_detokenizer_next(size_t *len, nib_detokenizer *detokenizer, int32_t id) {
    const nib_tokenizer *tokenizer = detokenizer->tokenizer;
    const char *text = nib_pieces_text(len, &tokenizer->pieces, id);
    bool strip = detokenizer->strip;
    switch (tokenizer->pieces.types[id]) {
    case NIB_TOKEN_CONTROL:
    case NIB_TOKEN_UNKNOWN:
        if (!(detokenizer->flags & NIB_DETOKENIZE_SPECIAL)) {
            *len = 0;
            return "";
        }
        detokenizer->strip = tokenizer->spm.space_prefix;
        return text;
    case NIB_TOKEN_USER_DEFINED: detokenizer->strip = tokenizer->spm.space_prefix; return text;
    case NIB_TOKEN_NORMAL:
    case NIB_TOKEN_BYTE:
        if (strip && *len > 0 && text[0] == ' ') {
            --*len;
            text++;
        }
        break;
    default: break;
    }
    detokenizer->strip = false;
    return text;
}

static nib_status check_flags(uint32_t flags, nib_error *err) {
    if (flags & ~(uint32_t)(NIB_DETOKENIZE_SPECIAL | NIB_DETOKENIZE_CONTINUE)) {
        return nib_fail(err, NIB_EINVAL, "flags of decode are 0x%x, expected NIB_DETOKENIZE_*", (unsigned)flags);
    }
    return NIB_OK;
}

static bool in_range(const nib_tokenizer *tokenizer, int32_t id) {
    return id >= 0 && (size_t)id < tokenizer->pieces.n;
}

static nib_status check_ids(const nib_tokenizer *tokenizer, const int32_t *ids, size_t n, nib_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!in_range(tokenizer, ids[i])) {
            return nib_fail(err, NIB_EINVAL, "id %zu is %d, expected 0 to %zu", i, (int)ids[i],
                            tokenizer->pieces.n - 1);
        }
    }
    return NIB_OK;
}

nib_status nib_tokenizer_decode(char **text, size_t *len, const nib_tokenizer *tokenizer, const int32_t *ids, size_t n,
                                uint32_t flags, nib_error *err) {
    *text = NULL;
    *len = 0;
    nib_status status = check_flags(flags, err);
    if (status == NIB_OK) {
        status = check_ids(tokenizer, ids, n, err);
    }
    if (status != NIB_OK) {
        return status;
    }
    nib_buffer out = {0};
    nib_detokenizer detokenizer;
    nib_detokenizer_begin(&detokenizer, tokenizer, flags);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        size_t piece_len;
        const char *piece = nib_detokenizer_next(&piece_len, &detokenizer, ids[i]);
        ok = nib_buffer_add(&out, piece, piece_len);
    }
    if (!ok || !nib_buffer_add(&out, "", 1)) {
        nib_buffer_free(&out);
        return nib_fail(err, NIB_ENOMEM, "no memory to decode %zu ids", n);
    }
    *text = out.bytes;
    *len = out.len - 1;
    return NIB_OK;
}

nib_status nib_decoder_new(nib_decoder **out, const nib_tokenizer *tokenizer, uint32_t flags, nib_error *err) {
    *out = NULL;
    nib_status status = check_flags(flags, err);
    if (status != NIB_OK) {
        return status;
    }
    nib_decoder *decoder = nib_alloc_zero(1, sizeof *decoder);
    if (decoder == NULL || !nib_reserve(&decoder->out.bytes, &decoder->out.cap, REPLACEMENT_LEN, 1)) {
        nib_free(decoder);
        return nib_fail_memory(err, sizeof *decoder, "a decoder");
    }
    nib_detokenizer_begin(&decoder->detokenizer, tokenizer, flags);
    *out = decoder;
    return NIB_OK;
}

nib_status nib_decoder_push(const char **text, size_t *len, nib_decoder *decoder, int32_t id, nib_error *err) {
    *text = "";
    *len = 0;
    const nib_tokenizer *tokenizer = decoder->detokenizer.tokenizer;
    if (!in_range(tokenizer, id)) {
        return nib_fail(err, NIB_EINVAL, "id is %d, expected 0 to %zu", (int)id, tokenizer->pieces.n - 1);
    }
    size_t piece_len;
    const char *piece = nib_detokenizer_next(&piece_len, &decoder->detokenizer, id);
    nib_buffer_clear(&decoder->out);
    if (!nib_utf8_push(&decoder->stream, &decoder->out, piece, piece_len)) {
        return nib_fail_memory(err, piece_len, "the text of a token");
    }
    *text = decoder->out.bytes;
    *len = decoder->out.len;
    return NIB_OK;
}

const char *nib_decoder_finish(size_t *len, nib_decoder *decoder) {
    nib_buffer_clear(&decoder->out);
    (void)nib_utf8_finish(&decoder->stream, &decoder->out);
    nib_detokenizer_begin(&decoder->detokenizer, decoder->detokenizer.tokenizer, decoder->detokenizer.flags);
    *len = decoder->out.len;
    return decoder->out.bytes;
}

void nib_decoder_free(nib_decoder *decoder) {
    if (decoder == NULL) {
        return;
    }
    nib_buffer_free(&decoder->out);
    nib_free(decoder);
}

nib_status nib_text_to_utf8(char **text, size_t *len, const char *bytes, size_t n_bytes, nib_error *err) {
    nib_utf8_stream stream = {0};
    nib_buffer out = {0};
    *text = NULL;
    if (!nib_utf8_push(&stream, &out, bytes, n_bytes) || !nib_utf8_finish(&stream, &out) ||
        !nib_buffer_add(&out, "", 1)) {
        nib_buffer_free(&out);
        return nib_fail_memory(err, n_bytes, "a text");
    }
    *text = out.bytes;
    *len = out.len - 1;
    return NIB_OK;
}
