/* Small vocabularies made by hand, for tests of tokenizers. */
#ifndef NIB_TESTS_SMALL_VOCAB_H
#define NIB_TESTS_SMALL_VOCAB_H

#include <stdio.h>
#include <string.h>

#include "text/vocab.h"

enum { SMALL_MAX = 600 };

typedef struct small_vocab {
    nib_vocab vocab;
    nib_vocab_text tokens[SMALL_MAX];
    int32_t types[SMALL_MAX];
    float scores[SMALL_MAX];
    nib_vocab_text merges[64];
    char spellings[256][8]; /* of the byte tokens */
} small_vocab;

/* Appends a token; returns its id. */
static inline int32_t small_add(small_vocab *small, const char *text, int32_t type, float score) {
    size_t id = small->vocab.n_tokens++;
    small->tokens[id] = (nib_vocab_text){text, strlen(text)};
    small->types[id] = type;
    small->scores[id] = score;
    return (int32_t)id;
}

static inline void small_begin(small_vocab *small, nib_vocab_kind kind) {
    memset(small, 0, sizeof *small);
    small->vocab = (nib_vocab){.kind = kind, .pre = "gpt-2", .bos = -1, .eos = -1, .unk = -1};
    small->vocab.tokens = small->tokens;
    small->vocab.types = small->types;
    small->vocab.scores = small->scores;
    small->vocab.merges = small->merges;
}

/* Adds the 256 byte tokens as ids 0 .. 255, spelled by GPT-2's letters or as <0xNN>. */
static inline void small_add_bytes(small_vocab *small) {
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        char *spelling = small->spellings[byte];
        int plain = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        unsigned letter = plain ? byte : next++;
        if (small->vocab.kind == NIB_VOCAB_SPM) {
            (void)snprintf(spelling, 8, "<0x%02X>", byte);
        } else if (letter < 0x80) {
            spelling[0] = (char)letter;
        } else {
            spelling[0] = (char)(0xc0 | letter >> 6);
            spelling[1] = (char)(0x80 | (letter & 0x3f));
        }
        (void)small_add(small, spelling, small->vocab.kind == NIB_VOCAB_SPM ? NIB_TOKEN_BYTE : NIB_TOKEN_NORMAL, 0);
    }
}

/* Appends the token left + right, given joined, and the merge "left right"; returns the token's id. */
static inline int32_t small_merge(small_vocab *small, const char *merge, const char *joined) {
    small->merges[small->vocab.n_merges++] = (nib_vocab_text){merge, strlen(merge)};
    return small_add(small, joined, NIB_TOKEN_NORMAL, 0);
}

#endif
