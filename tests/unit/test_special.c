/* Finding special tokens in text. */
#include "token_check.h"

#include "text/special.h"

/* All that is found in text, as "place:id+len " each. */
static void check_found(const small_vocab *small, const char *text, bool with_control, const char *want) {
    nib_pieces pieces;
    nib_specials specials;
    assert_int_equal(nib_pieces_init(&pieces, &small->vocab, NULL), NIB_OK);
    bool marks = small->vocab.kind == NIB_VOCAB_SPM;
    assert_int_equal(nib_specials_init(&specials, &pieces, marks, NULL), NIB_OK);
    char got[256] = "";
    size_t steps = 0;
    size_t len = strlen(text);
    for (size_t from = 0; from < len;) {
        int32_t id;
        size_t id_len;
        size_t at = nib_specials_find(&id, &id_len, &steps, &specials, text, len, from, with_control);
        assert_true(at >= from && at + id_len <= len);
        if (id >= 0) {
            (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%zu:%d+%zu ", at, (int)id, id_len);
        }
        from = at + id_len;
    }
    assert_string_equal(got, want);
    nib_specials_clear(&specials);
    nib_pieces_clear(&pieces);
}

static void find_the_leftmost_and_there_the_longest(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    (void)small_add(&small, "ab", NIB_TOKEN_USER_DEFINED, 0);
    (void)small_add(&small, "abc", NIB_TOKEN_USER_DEFINED, 0);
    (void)small_add(&small, "bcdef", NIB_TOKEN_USER_DEFINED, 0);
    (void)small_add(&small, "x", NIB_TOKEN_NORMAL, 0);
    (void)small_add(&small, "", NIB_TOKEN_USER_DEFINED, 0);
    check_found(&small, "abcdef", false, "0:1+3 ");
    check_found(&small, "abx bcdef", false, "0:0+2 4:2+5 ");
    check_found(&small, "aabbcabcabc", false, "1:0+2 5:1+3 8:1+3 ");
    check_found(&small, "bcde", false, "");
    check_found(&small, "xyz", false, "");
}

static void find_control_tokens_on_request(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    (void)small_add(&small, "<s>", NIB_TOKEN_CONTROL, 0);
    (void)small_add(&small, "<", NIB_TOKEN_USER_DEFINED, 0);
    (void)small_add(&small, "<unk>", NIB_TOKEN_UNKNOWN, 0);
    check_found(&small, "a<s><unk>", false, "1:1+1 4:1+1 ");
    check_found(&small, "a<s><unk>", true, "1:0+3 4:2+5 ");
}

static void find_the_first_of_equal_spellings(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    (void)small_add(&small, "ab", NIB_TOKEN_CONTROL, 0);
    (void)small_add(&small, "ab", NIB_TOKEN_CONTROL, 0);
    check_found(&small, "ab", true, "0:0+2 ");
    small_begin(&small, NIB_VOCAB_BPE);
    (void)small_add(&small, "<a>", NIB_TOKEN_CONTROL, 0);
    (void)small_add(&small, "<a>", NIB_TOKEN_USER_DEFINED, 0);
    check_found(&small, "<a>", false, "0:1+3 ");
    check_found(&small, "<a>", true, "0:1+3 ");
}

static void take_the_mark_for_a_space(void **state) {
    (void)state;
    small_vocab small;
    small_begin(&small, NIB_VOCAB_SPM);
    (void)small_add(&small, "\xe2\x96\x81\xe2\x96\x81", NIB_TOKEN_USER_DEFINED, 0);
    (void)small_add(&small, "<\xe2\x96\x81>", NIB_TOKEN_CONTROL, 0);
    check_found(&small, "a  b", false, "1:0+2 ");
    check_found(&small,
                "a \xe2\x96\x81"
                "b",
                false, "1:0+4 ");
    check_found(&small, "< ><\xe2\x96\x81>", true, "3:1+5 ");
    check_found(&small, "\xe2\x96", true, "");
}

static void find_many_in_any_order(void **state) {
    (void)state;
    static char texts[SMALL_MAX][8];
    small_vocab small;
    small_begin(&small, NIB_VOCAB_BPE);
    for (int i = 0; i < SMALL_MAX; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "<%d>", (i * 7) % SMALL_MAX);
        (void)small_add(&small, texts[i], NIB_TOKEN_CONTROL, 0);
    }
    for (int i = 0; i < SMALL_MAX; i++) {
        char want[32];
        (void)snprintf(want, sizeof want, "0:%d+%zu ", i, strlen(texts[i]));
        check_found(&small, texts[i], true, want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_the_leftmost_and_there_the_longest),
        cmocka_unit_test(find_control_tokens_on_request),
        cmocka_unit_test(find_the_first_of_equal_spellings),
        cmocka_unit_test(take_the_mark_for_a_space),
        cmocka_unit_test(find_many_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
