/* The tokenizer and the special ids of a GGUF file. */
#ifndef NIB_MODEL_VOCAB_LOAD_H
#define NIB_MODEL_VOCAB_LOAD_H

#include "format/gguf.h"
#include "model/model.h"

/* Fill tokenizer, pad, start and end ids, chat template and name. A file without tokenizer.ggml.model, or with "none", has
 * no tokenizer. Returns NIB_OK; NIB_EFORMAT; NIB_EUNSUPPORTED (a kind or pre-tokenizer that is not known); NIB_ENOMEM. */
nib_status nib_vocab_load(nib_model *model, nib_error *err);

#endif
