/* Ids to text, whole and a token at a time. */
#include "token_check.h"

#include "base/utf8.h"

enum { HI = 256, WORLD, LONE_SPACE, CONTROL, USER, UNKNOWN };

static void make_vocab(small_vocab *small, bool prefix) {
    small_begin(small, NIB_VOCAB_SPM);
    small_add_bytes(small);
    (void)small_add(small, "\xe2\x96\x81hi", NIB_TOKEN_NORMAL, 0);
    (void)small_add(small, "world", NIB_TOKEN_NORMAL, 0);
    (void)small_add(small, "\xe2\x96\x81", NIB_TOKEN_NORMAL, 0);
    (void)small_add(small, "<s>", NIB_TOKEN_CONTROL, 0);
    (void)small_add(small, "<u>", NIB_TOKEN_USER_DEFINED, 0);
    (void)small_add(small, "<unk>", NIB_TOKEN_UNKNOWN, 0);
    small->vocab.add_space_prefix = prefix;
}

static void check_text(const nib_tokenizer *tokenizer, const int32_t *ids, size_t n, uint32_t flags, const char *want,
                       size_t want_len) {
    char *text;
    size_t len;
    assert_int_equal(nib_tokenizer_decode(&text, &len, tokenizer, ids, n, flags, NULL), NIB_OK);
    assert_int_equal(len, want_len);
    assert_memory_equal(text, want, len + 1);
    nib_free(text);
}

#define CHECK_TEXT(tokenizer, flags, want, ...)                                                                        \
    check_text(tokenizer, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t),    \
               flags, want, sizeof(want) - 1)

static void take_the_space_before_a_text_away(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, true);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_TEXT(tokenizer, 0, "hi hiworld", HI, HI, WORLD);
    CHECK_TEXT(tokenizer, NIB_DETOKENIZE_CONTINUE, " hi hi", HI, HI);
    CHECK_TEXT(tokenizer, 0, " hi", LONE_SPACE, HI);
    CHECK_TEXT(tokenizer, 0, " hi", ' ', HI);
    CHECK_TEXT(tokenizer, 0, "hi hi", CONTROL, HI, CONTROL, HI);
    CHECK_TEXT(tokenizer, NIB_DETOKENIZE_SPECIAL, "<s>hi<s>hi hi", CONTROL, HI, CONTROL, HI, HI);
    CHECK_TEXT(tokenizer, 0, "hi<u>hi<u>world", HI, USER, HI, USER, WORLD);
    nib_tokenizer_free(tokenizer);
    make_vocab(&small, false);
    tokenizer = make_tokenizer(&small);
    CHECK_TEXT(tokenizer, 0, " hi hi", HI, HI);
    nib_tokenizer_free(tokenizer);
}

static void hide_control_tokens_unless_asked(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, false);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_TEXT(tokenizer, 0, "world<u>", CONTROL, WORLD, UNKNOWN, USER, CONTROL);
    CHECK_TEXT(tokenizer, NIB_DETOKENIZE_SPECIAL, "<s>world<unk><u>", CONTROL, WORLD, UNKNOWN, USER);
    CHECK_TEXT(tokenizer, 0, "", CONTROL);
    check_text(tokenizer, NULL, 0, 0, "", 0);
    nib_tokenizer_free(tokenizer);
}

static void keep_invalid_bytes_in_a_whole_text(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, false);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_TEXT(tokenizer, 0, "\xff\xe2\x82\0x", 0xff, 0xe2, 0x82, 0, 'x');
    nib_tokenizer_free(tokenizer);
}

/* Pushes ids and appends all deltas, each of which must be whole, valid UTF-8. */
static void push_all(nib_buffer *out, nib_decoder *decoder, const int32_t *ids, size_t n) {
    for (size_t i = 0; i <= n; i++) {
        const char *text;
        size_t len;
        if (i < n) {
            assert_int_equal(nib_decoder_push(&text, &len, decoder, ids[i], NULL), NIB_OK);
        } else {
            text = nib_decoder_finish(&len, decoder);
        }
        for (size_t at = 0; at < len;) {
            size_t width = nib_utf8_len(text + at, len - at);
            assert_true(width > 0);
            at += width;
        }
        assert_true(nib_buffer_add(out, text, len));
    }
}

/* Every way to cut text into tokens of neighbouring bytes: bit i of cuts is a border behind byte i. */
static void check_cuts(const char *text, size_t len) {
    for (unsigned cuts = 0; cuts < 1u << (len - 1); cuts++) {
        small_vocab small;
        char pieces[8][8] = {{0}};
        int32_t ids[8];
        size_t n = 0;
        small_begin(&small, NIB_VOCAB_SPM);
        (void)small_add(&small, "<unk>", NIB_TOKEN_UNKNOWN, 0);
        small.vocab.unk = 0;
        for (size_t begin = 0, end = 1; begin < len; begin = end++) {
            while (end < len && !(cuts >> (end - 1) & 1)) {
                end++;
            }
            memcpy(pieces[n], text + begin, end - begin);
            ids[n] = small_add(&small, pieces[n], NIB_TOKEN_NORMAL, 0);
            n++;
        }
        nib_tokenizer *tokenizer = make_tokenizer(&small);
        nib_decoder *decoder;
        nib_buffer out = {0};
        assert_int_equal(nib_decoder_new(&decoder, tokenizer, 0, NULL), NIB_OK);
        push_all(&out, decoder, ids, n);
        assert_int_equal(out.len, len);
        assert_memory_equal(out.bytes, text, len);
        nib_buffer_free(&out);
        nib_decoder_free(decoder);
        nib_tokenizer_free(tokenizer);
    }
}

static void hold_characters_back_until_they_are_whole(void **state) {
    (void)state;
    check_cuts("\xc3\xa9", 2);
    check_cuts("\xe2\x82\xac", 3);
    check_cuts("\xf0\x9f\x98\x80", 4);
    check_cuts(" \xe2\x82\xac!", 5);
    check_cuts("\xf0\x9f\x98\x80\xc3\xa9", 6);
}

static void replace_what_never_becomes_a_character(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, false);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    nib_decoder *decoder;
    nib_buffer out = {0};
    assert_int_equal(nib_decoder_new(&decoder, tokenizer, 0, NULL), NIB_OK);
    push_all(&out, decoder, (const int32_t[]){0xe2, 0x82, WORLD, 0xff, 'a', 0xf0, 0x9f}, 7);
    static const char want[] = "\xef\xbf\xbdworld\xef\xbf\xbd"
                               "a\xef\xbf\xbd";
    assert_int_equal(out.len, sizeof want - 1);
    assert_memory_equal(out.bytes, want, out.len);
    nib_buffer_free(&out);
    nib_decoder_free(decoder);
    nib_tokenizer_free(tokenizer);
}

static void begin_anew_after_the_end(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, true);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    nib_decoder *decoder;
    assert_int_equal(nib_decoder_new(&decoder, tokenizer, 0, NULL), NIB_OK);
    for (int round = 0; round < 2; round++) {
        nib_buffer out = {0};
        push_all(&out, decoder, (const int32_t[]){HI, HI}, 2);
        assert_int_equal(out.len, 5);
        assert_memory_equal(out.bytes, "hi hi", 5);
        nib_buffer_free(&out);
    }
    nib_decoder_free(decoder);
    nib_decoder_free(NULL);
    nib_tokenizer_free(tokenizer);
}

static void refuse_ids_and_flags_out_of_range(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, false);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    nib_error err;
    char *text;
    const char *delta;
    size_t len;
    nib_decoder *decoder;
    int32_t ids[] = {0, UNKNOWN + 1};
    assert_int_equal(nib_tokenizer_decode(&text, &len, tokenizer, ids, 2, 0, &err), NIB_EINVAL);
    assert_string_equal(err.message, "id 1 is 262, expected 0 to 261");
    assert_null(text);
    ids[1] = -1;
    assert_int_equal(nib_tokenizer_decode(&text, &len, tokenizer, ids, 2, 0, &err), NIB_EINVAL);
    assert_int_equal(nib_tokenizer_decode(&text, &len, tokenizer, ids, 1, 4, &err), NIB_EINVAL);
    assert_int_equal(nib_decoder_new(&decoder, tokenizer, 4, &err), NIB_EINVAL);
    assert_null(decoder);
    assert_int_equal(nib_decoder_new(&decoder, tokenizer, 3, &err), NIB_OK);
    assert_int_equal(nib_decoder_push(&delta, &len, decoder, INT32_MIN, &err), NIB_EINVAL);
    assert_int_equal(nib_decoder_push(&delta, &len, decoder, UNKNOWN + 1, &err), NIB_EINVAL);
    assert_int_equal(len, 0);
    nib_decoder_free(decoder);
    nib_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_the_space_before_a_text_away),
        cmocka_unit_test(hide_control_tokens_unless_asked),
        cmocka_unit_test(keep_invalid_bytes_in_a_whole_text),
        cmocka_unit_test(hold_characters_back_until_they_are_whole),
        cmocka_unit_test(replace_what_never_becomes_a_character),
        cmocka_unit_test(begin_anew_after_the_end),
        cmocka_unit_test(refuse_ids_and_flags_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
