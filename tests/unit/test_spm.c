/* SentencePiece's BPE on vocabularies made by hand. */
#include <math.h>

#include "token_check.h"

enum { UNK = 256, SPACE, A, B, AB, BC, ABC, SPACE_A, C, TABLE, CONTROL, UNUSED };

static void make_vocab(small_vocab *small) {
    small_begin(small, NIB_VOCAB_SPM);
    small_add_bytes(small);
    (void)small_add(small, "<unk>", NIB_TOKEN_UNKNOWN, 0);
    (void)small_add(small, "\xe2\x96\x81", NIB_TOKEN_NORMAL, -20);
    (void)small_add(small, "a", NIB_TOKEN_NORMAL, -21);
    (void)small_add(small, "b", NIB_TOKEN_NORMAL, -22);
    (void)small_add(small, "ab", NIB_TOKEN_NORMAL, -3);
    (void)small_add(small, "bc", NIB_TOKEN_NORMAL, -2);
    (void)small_add(small, "abc", NIB_TOKEN_NORMAL, -5);
    (void)small_add(small,
                    "\xe2\x96\x81"
                    "a",
                    NIB_TOKEN_NORMAL, -4);
    (void)small_add(small, "c", NIB_TOKEN_NORMAL, -23);
    (void)small_add(small,
                    "\xe2\x96\x81"
                    "b"
                    "\xe2\x96\x81",
                    NIB_TOKEN_USER_DEFINED, 0);
    (void)small_add(small, "<s>", NIB_TOKEN_CONTROL, 0);
    (void)small_add(small, "ca", NIB_TOKEN_UNUSED, 0);
    small->vocab.unk = UNK;
}

static void join_by_the_score_of_the_result(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "abc", 0, ABC);
    CHECK_IDS(tokenizer, "abab", 0, AB, AB);
    CHECK_IDS(tokenizer, " a", 0, SPACE_A);
    CHECK_IDS(tokenizer, " ab", 0, SPACE, AB);
    CHECK_IDS(tokenizer, "ca", 0, C, A);
    small.scores[AB] = -1;
    nib_tokenizer_free(tokenizer);
    tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "abcbc", 0, ABC, BC);
    nib_tokenizer_free(tokenizer);
}

static void order_scores_of_both_signs(void **state) {
    (void)state;
    static const float pairs[][2] = {{1, -1}, {2, 1}, {0, -0.5f}, {-1, -INFINITY}, {INFINITY, 3e38f}, {-1e-40f, -1}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        small_vocab small;
        make_vocab(&small);
        small.types[ABC] = NIB_TOKEN_UNUSED;
        small.scores[AB] = pairs[i][0];
        small.scores[BC] = pairs[i][1];
        nib_tokenizer *tokenizer = make_tokenizer(&small);
        CHECK_IDS(tokenizer, "abc", 0, AB, C);
        nib_tokenizer_free(tokenizer);
        small.scores[AB] = pairs[i][1];
        small.scores[BC] = pairs[i][0];
        tokenizer = make_tokenizer(&small);
        CHECK_IDS(tokenizer, "abc", 0, A, BC);
        nib_tokenizer_free(tokenizer);
    }
}

static void join_the_leftmost_of_equal_scores(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    small.types[ABC] = NIB_TOKEN_UNUSED;
    small.scores[AB] = -0.0f;
    small.scores[BC] = 0.0f;
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "abc", 0, AB, C);
    nib_tokenizer_free(tokenizer);
}

static void write_unknown_characters_as_bytes(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "a\xc3\xa9", 0, A, 0xc3, 0xa9);
    CHECK_IDS(tokenizer, "\0\xff", 0, 0, 0xff);
    char bytes[256];
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)(255 - i);
    }
    check_round_trip(tokenizer, bytes, sizeof bytes);
    nib_tokenizer_free(tokenizer);
}

static void write_one_unknown_token_for_a_run_without_bytes(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    for (int i = 0; i < 256; i++) {
        small.types[i] = NIB_TOKEN_UNUSED;
    }
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "xy", 0, UNK);
    CHECK_IDS(tokenizer, "xya\xc3\xa9z", 0, UNK, A, UNK);
    nib_tokenizer_free(tokenizer);
    small.vocab.unk = -1;
    check_refused(&small, NIB_EFORMAT, "neither byte tokens nor an unknown token");
}

static void put_a_space_before_each_text(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    small.vocab.add_space_prefix = true;
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "a", 0, SPACE_A);
    CHECK_IDS(tokenizer, " a", 0, SPACE, SPACE_A);
    CHECK_IDS(tokenizer, "a<s>a", NIB_TOKENIZE_SPECIAL, SPACE_A, CONTROL, SPACE_A);
    CHECK_IDS(tokenizer, "<s> a", NIB_TOKENIZE_SPECIAL, CONTROL, SPACE, SPACE_A);
    CHECK_IDS(tokenizer, "<s>", NIB_TOKENIZE_SPECIAL, CONTROL);
    int32_t *ids;
    size_t n;
    assert_int_equal(nib_tokenizer_encode(&ids, &n, tokenizer, "", 0, 0, NULL), NIB_OK);
    assert_int_equal(n, 0);
    assert_null(ids);
    static const char *const texts[] = {"a", " a", "  ", "<s>", "a<s> a", "<s>a<s><s>  b", "x b  b y", "\n a"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_round_trip(tokenizer, texts[i], strlen(texts[i]));
    }
    nib_tokenizer_free(tokenizer);
}

static void take_the_mark_for_a_space(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer,
              "\xe2\x96\x81"
              "a",
              0, SPACE_A);
    CHECK_IDS(tokenizer, "\xe2\x96", 0, 0xe2, 0x96);
    size_t len;
    assert_string_equal(nib_tokenizer_piece(&len, tokenizer, SPACE_A), " a");
    assert_int_equal(len, 2);
    nib_tokenizer_free(tokenizer);
}

static void match_user_defined_tokens_before_merging(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "a b a", 0, A, TABLE, A);
    CHECK_IDS(tokenizer, "a ba", 0, A, SPACE, B, A);
    nib_tokenizer_free(tokenizer);
}

static void refuse_scores_and_bytes_that_are_none(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small);
    small.scores[A] = NAN;
    check_refused(&small, NIB_EFORMAT, "score of token 258 is nan");
    make_vocab(&small);
    small.vocab.scores = NULL;
    check_refused(&small, NIB_EFORMAT, "no scores");
    static const char *const spellings[] = {"<0x4>", "<0xg0>", "<0x0g>", "<0x00", "a", "", "<0x000>"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        make_vocab(&small);
        small.tokens[7] = (nib_vocab_text){spellings[i], strlen(spellings[i])};
        check_refused(&small, NIB_EFORMAT, "byte token 7 is spelled");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_by_the_score_of_the_result),
        cmocka_unit_test(order_scores_of_both_signs),
        cmocka_unit_test(join_the_leftmost_of_equal_scores),
        cmocka_unit_test(write_unknown_characters_as_bytes),
        cmocka_unit_test(write_one_unknown_token_for_a_run_without_bytes),
        cmocka_unit_test(put_a_space_before_each_text),
        cmocka_unit_test(take_the_mark_for_a_space),
        cmocka_unit_test(match_user_defined_tokens_before_merging),
        cmocka_unit_test(refuse_scores_and_bytes_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
