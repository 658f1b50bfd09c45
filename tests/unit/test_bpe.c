/* Byte-level BPE on vocabularies made by hand. */
#include "token_check.h"

#include "text/pieces.h"

static void join_pairs_in_the_order_of_the_merges(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    int32_t bc = small_merge(&small, "b c", "bc");
    int32_t ab = small_merge(&small, "a b", "ab");
    int32_t abc = small_merge(&small, "a bc", "abc");
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "abc", 0, abc);
    CHECK_IDS(tokenizer, "abd", 0, ab, 'd');
    CHECK_IDS(tokenizer, "abcabbc", 0, abc, ab, bc);
    nib_tokenizer_free(tokenizer);
}

static void join_the_leftmost_of_equal_pairs_first(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    int32_t aa = small_merge(&small, "a a", "aa");
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "aaaaa", 0, aa, aa, 'a');
    nib_tokenizer_free(tokenizer);
}

static void take_the_first_of_equal_merges_and_tokens(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    int32_t ab = small_merge(&small, "a b", "ab");
    int32_t bc = small_merge(&small, "b c", "bc");
    (void)small_merge(&small, "a b", "ab");
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "abc", 0, ab, 'c');
    CHECK_IDS(tokenizer, "bc", 0, bc);
    nib_tokenizer_free(tokenizer);
}

static void never_join_across_words(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    int32_t ab = small_merge(&small, "a b", "ab");
    int32_t space_a = small_merge(&small, "\xc4\xa0 a",
                                  "\xc4\xa0"
                                  "a");
    (void)small_merge(&small,
                      "b \xc4\xa0"
                      "a",
                      "b\xc4\xa0"
                      "a");
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "ab ab", 0, ab, ' ', ab);
    CHECK_IDS(tokenizer, "b ac", 0, 'b', space_a, 'c');
    nib_tokenizer_free(tokenizer);
}

static void take_a_whole_word_where_the_family_does(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    int32_t abc = small_add(&small, "abc", NIB_TOKEN_NORMAL, 0);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "abc", 0, 'a', 'b', 'c');
    nib_tokenizer_free(tokenizer);
    small.vocab.pre = "llama-bpe";
    tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "abc", 0, abc);
    CHECK_IDS(tokenizer, "abcd", 0, 'a', 'b', 'c', 'd');
    nib_tokenizer_free(tokenizer);
}

static void keep_every_byte(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    (void)small_merge(&small, "\xc3\xa2 \xc4\xa4", "\xc3\xa2\xc4\xa4"); /* bytes e2 82 */
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    char bytes[512];
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        bytes[511 - i] = (char)i;
    }
    check_round_trip(tokenizer, bytes, sizeof bytes);
    CHECK_IDS(tokenizer, "a\0b", 0, 'a', 0, 'b');
    /* Bytes that are no character stand alone, whatever the merges say. */
    CHECK_IDS(tokenizer, "\xe2\x82", 0, 0xe2, 0x82);
    CHECK_IDS(tokenizer, "\xe2\x82\xac", 0, 256, 0xac);
    CHECK_IDS(tokenizer, "a\xff\xfe b", 0, 'a', 0xff, 0xfe, ' ', 'b');
    nib_tokenizer_free(tokenizer);
}

static void write_what_the_vocabulary_lacks_as_documented(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    small.types[1] = NIB_TOKEN_UNUSED;
    small.types[0xff] = NIB_TOKEN_UNUSED;
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "a\001b", 0, 'a', 'b');
    CHECK_IDS(tokenizer, "a\xff", 0, 'a', 0xef, 0xbf, 0xbd);
    nib_tokenizer_free(tokenizer);
}

static void refuse_a_merge_of_unknown_texts(void **state) {
    (void)state;
    static const char *const wrong[] = {"a b", "a zz", "zz a", "ab", "", " a", "a  b", "a\x01 b", "\xff a", "a "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        small_vocab small;
        small_begin(&small, NIB_VOCAB_BPE);
        small_add_bytes(&small);
        (void)small_merge(&small, "c d", "cd");
        small.merges[small.vocab.n_merges++] = (nib_vocab_text){wrong[i], strlen(wrong[i])};
        check_refused(&small, NIB_EFORMAT, "merge 1 is");
    }
}

static void refuse_a_vocabulary_without_bytes(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    (void)small_add(&small, "ab", NIB_TOKEN_NORMAL, 0);
    check_refused(&small, NIB_EFORMAT, "single byte");
}

static void refuse_an_unknown_pretokenizer_by_name(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    small_add_bytes(&small);
    small.vocab.pre = "gpt-9";
    check_refused(&small, NIB_EUNSUPPORTED, "'gpt-9' is not known, expected one of gpt-2, llama-bpe");
    check_refused(&small, NIB_EUNSUPPORTED, "deepseek-coder");
    small.vocab.pre = NULL;
    check_refused(&small, NIB_EUNSUPPORTED, "'' is not known");
}

static void read_the_stand_in_letters(void **state) {
    (void)state;
    char out[8];
    assert_int_equal(nib_bytes_from_letters(out, "a\xc4\xa0\xc4\x8a\xc5\x83", 7), 4);
    assert_memory_equal(out, "a \n\xad", 4);
    assert_int_equal(nib_bytes_from_letters(out, "\xc5\x84", 2), (size_t)-1); /* U+0144, one too far */
    assert_int_equal(nib_bytes_from_letters(out, " ", 1), (size_t)-1);
    assert_int_equal(nib_bytes_from_letters(out, "\xe2\x96\x81", 3), (size_t)-1);
    assert_int_equal(nib_bytes_from_letters(out, "\xc4", 1), (size_t)-1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_pairs_in_the_order_of_the_merges),
        cmocka_unit_test(join_the_leftmost_of_equal_pairs_first),
        cmocka_unit_test(take_the_first_of_equal_merges_and_tokens),
        cmocka_unit_test(never_join_across_words),
        cmocka_unit_test(take_a_whole_word_where_the_family_does),
        cmocka_unit_test(keep_every_byte),
        cmocka_unit_test(write_what_the_vocabulary_lacks_as_documented),
        cmocka_unit_test(refuse_a_merge_of_unknown_texts),
        cmocka_unit_test(refuse_a_vocabulary_without_bytes),
        cmocka_unit_test(refuse_an_unknown_pretokenizer_by_name),
        cmocka_unit_test(read_the_stand_in_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
