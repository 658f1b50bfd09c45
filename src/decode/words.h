/* Texts of the options as tokens: bad words, and the breakers of DRY. */
#ifndef NIB_DECODE_WORDS_H
#define NIB_DECODE_WORDS_H

#include "decode/sample.h"
#include "model/model.h"

typedef struct nib_words {
    nib_bias *bad; /* [n_bad] */
    size_t n_bad, cap_bad;
    nib_breaker *breakers; /* [n_breakers] by head */
    size_t n_breakers, cap_breakers;
    int32_t **ids; /* [n_ids] what they point to */
    size_t n_ids, cap_ids;
} nib_words;

/* ends [n_ends]: ids that are no bad word by themselves. Returns NIB_OK; NIB_EUNSUPPORTED (texts, and the model has no
 * tokenizer); NIB_ENOMEM. Free it in any case. */
nib_status nib_words_init(nib_words *words, const nib_model *model, const nib_generate_options *options,
                          const int32_t *ends, size_t n_ends, nib_error *err);
void nib_words_free(nib_words *words);

#endif
