/* Text to token ids and back.
 *
 * A tokenizer belongs to its model (nib_model_tokenizer), is immutable and may be used from several threads at once.
 * Text is bytes: NUL is a byte like any other and invalid UTF-8 is encoded by the vocabulary's byte tokens. */
#ifndef NIB_TOKENIZER_H
#define NIB_TOKENIZER_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nib_tokenizer nib_tokenizer;

/** Turns ids into text piece by piece; used by one thread. */
typedef struct nib_decoder nib_decoder;

enum {
    NIB_TOKENIZE_ADD_BOS = 1u, /* add the start (and end) tokens that the model's file asks for */
    NIB_TOKENIZE_SPECIAL = 2u  /* text that spells a control token becomes that token */
};

enum {
    NIB_DETOKENIZE_SPECIAL = 1u, /* control tokens are written as they are spelled; else they give no text */
    NIB_DETOKENIZE_CONTINUE = 2u /* the text goes on from an earlier one: a space that the first token begins with is
                                    kept, which otherwise goes where encode puts a space before a text */
};

/** Encode text.
 *
 *  ids    [n]    yours, free with nib_free; NULL when n is 0
 *  n             number of ids
 *  text   [len]  bytes; may be NULL when len is 0
 *  flags         NIB_TOKENIZE_*; 0: no start token, control tokens are plain text
 *
 *  A start token is added once: text that already begins with it (parsed as special) gets no second one.
 *  Returns NIB_OK; NIB_ENOMEM; NIB_EINVAL (unknown flag; len above 2^31 - 2).
 *  Cost    len log len at most, whatever the text; the stack does not grow with it.
 *  See     docs/tokenizers.md: bytes that are no text, special tokens, which vocabularies change a text.
 */
NIB_API nib_status nib_tokenizer_encode(int32_t **ids, size_t *n, const nib_tokenizer *tokenizer, const char *text,
                                        size_t len, uint32_t flags, nib_error *err);

/** Decode ids to bytes, as the sum of what a decoder gives, with invalid bytes kept as they are.
 *
 *  text   [len]  yours, free with nib_free; terminated by a NUL that len does not count
 *
 *  Returns NIB_OK; NIB_ENOMEM; NIB_EINVAL (an id outside 0 .. V-1, named with its index; an unknown flag).
 */
NIB_API nib_status nib_tokenizer_decode(char **text, size_t *len, const nib_tokenizer *tokenizer, const int32_t *ids,
                                        size_t n, uint32_t flags, nib_error *err);

/** The number of ids, V. */
NIB_API int64_t nib_tokenizer_size(const nib_tokenizer *tokenizer);

/** The bytes of one token as decode writes them inside a text (a control token: its spelling); borrowed while the
 *  tokenizer lives; *len 0 and "" for an id outside 0 .. V-1. */
NIB_API const char *nib_tokenizer_piece(size_t *len, const nib_tokenizer *tokenizer, int32_t id);

/** Whether id is a control token (start, end, turn marks). 0 for an id outside 0 .. V-1. */
NIB_API int nib_tokenizer_is_control(const nib_tokenizer *tokenizer, int32_t id);

/** Start a decoder.
 *
 *  flags  NIB_DETOKENIZE_*
 *
 *  Returns NIB_OK; NIB_ENOMEM; NIB_EINVAL (unknown flag).
 */
NIB_API nib_status nib_decoder_new(nib_decoder **out, const nib_tokenizer *tokenizer, uint32_t flags, nib_error *err);

/** Add one token.
 *
 *  text   [len]  the characters that are now complete: always whole, valid UTF-8; an unfinished tail waits for the next
 *                token, bytes that can never become a character come as U+FFFD. Borrowed until the decoder is used again.
 *
 *  Returns NIB_OK; NIB_EINVAL (id outside 0 .. V-1); NIB_ENOMEM.
 */
NIB_API nib_status nib_decoder_push(const char **text, size_t *len, nib_decoder *decoder, int32_t id, nib_error *err);

/** What still waits at the end of the text: an unfinished character as one U+FFFD, or nothing. The decoder then begins
 *  anew. Never fails. Borrowed until the decoder is used again. */
NIB_API const char *nib_decoder_finish(size_t *len, nib_decoder *decoder);

/** Bytes as valid UTF-8: what is none comes as U+FFFD.
 *
 *  text   [len]    yours, free with nib_free; terminated by a NUL that len does not count
 *
 *  Returns NIB_OK; NIB_ENOMEM.
 */
NIB_API nib_status nib_text_to_utf8(char **text, size_t *len, const char *bytes, size_t n_bytes, nib_error *err);

/** Free a decoder. NULL is accepted. */
NIB_API void nib_decoder_free(nib_decoder *decoder);

#ifdef __cplusplus
}
#endif
#endif
