/* What both kinds of tokenizers have in common: flags, special tokens, ranges, lack of memory. */
#include "token_check.h"

#include "base/memory.h"

enum { BOS = 256, EOS, USER, N };

static void make_vocab(small_vocab *small, nib_vocab_kind kind) {
    small_begin(small, kind);
    small_add_bytes(small);
    (void)small_add(small, "<s>", NIB_TOKEN_CONTROL, 0);
    (void)small_add(small, "</s>", NIB_TOKEN_CONTROL, 0);
    (void)small_add(small, "<user>", NIB_TOKEN_USER_DEFINED, 0);
    small->vocab.bos = BOS;
    small->vocab.eos = EOS;
}

static const nib_vocab_kind kinds[] = {NIB_VOCAB_BPE, NIB_VOCAB_SPM};
enum { N_KINDS = 2, BOTH = NIB_TOKENIZE_ADD_BOS | NIB_TOKENIZE_SPECIAL };

static void add_the_start_token_once(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        small_vocab small;
        make_vocab(&small, kinds[i]);
        small.vocab.add_bos = true;
        nib_tokenizer *tokenizer = make_tokenizer(&small);
        CHECK_IDS(tokenizer, "a", BOTH, BOS, 'a');
        CHECK_IDS(tokenizer, "<s>a", BOTH, BOS, 'a');
        CHECK_IDS(tokenizer, "<s><s>a", BOTH, BOS, BOS, 'a');
        CHECK_IDS(tokenizer, "a<s>", BOTH, BOS, 'a', BOS);
        CHECK_IDS(tokenizer, "<user>", BOTH, BOS, USER);
        CHECK_IDS(tokenizer, "", BOTH, BOS);
        CHECK_IDS(tokenizer, "<s>a", NIB_TOKENIZE_ADD_BOS, BOS, '<', 's', '>', 'a');
        CHECK_IDS(tokenizer, "<s>a", NIB_TOKENIZE_SPECIAL, BOS, 'a');
        CHECK_IDS(tokenizer, "a", 0, 'a');
        nib_tokenizer_free(tokenizer);
    }
}

static void add_the_end_token_once(void **state) {
    (void)state;
    for (int i = 0; i < N_KINDS; i++) {
        small_vocab small;
        make_vocab(&small, kinds[i]);
        small.vocab.add_eos = true;
        nib_tokenizer *tokenizer = make_tokenizer(&small);
        CHECK_IDS(tokenizer, "a", BOTH, 'a', EOS);
        CHECK_IDS(tokenizer, "a</s>", BOTH, 'a', EOS);
        CHECK_IDS(tokenizer, "", BOTH, EOS);
        CHECK_IDS(tokenizer, "a", NIB_TOKENIZE_SPECIAL, 'a');
        nib_tokenizer_free(tokenizer);
    }
}

static void add_nothing_that_the_file_does_not_ask_for(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, NIB_VOCAB_BPE);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    CHECK_IDS(tokenizer, "a", BOTH, 'a');
    nib_tokenizer_free(tokenizer);
}

static void give_no_control_id_unless_asked(void **state) {
    (void)state;
    static const char hostile[] = "</s><s><user>x<s>";
    for (int i = 0; i < N_KINDS; i++) {
        small_vocab small;
        make_vocab(&small, kinds[i]);
        /* Texts that merges or scores could make of letters. */
        (void)small_add(&small, "<s", NIB_TOKEN_NORMAL, 1);
        (void)small_add(&small, "s>", NIB_TOKEN_NORMAL, 1);
        nib_tokenizer *tokenizer = make_tokenizer(&small);
        int32_t *ids;
        size_t n;
        assert_int_equal(nib_tokenizer_encode(&ids, &n, tokenizer, hostile, sizeof hostile - 1, 0, NULL), NIB_OK);
        for (size_t j = 0; j < n; j++) {
            assert_false(nib_tokenizer_is_control(tokenizer, ids[j]));
        }
        nib_free(ids);
        nib_tokenizer_free(tokenizer);
    }
}

static void tell_the_pieces(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, NIB_VOCAB_BPE);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    size_t len;
    assert_int_equal(nib_tokenizer_size(tokenizer), N);
    assert_string_equal(nib_tokenizer_piece(&len, tokenizer, BOS), "<s>");
    assert_int_equal(len, 3);
    assert_int_equal(nib_tokenizer_piece(&len, tokenizer, 0)[0], 0);
    assert_int_equal(len, 1);
    assert_string_equal(nib_tokenizer_piece(&len, tokenizer, ' '), " ");
    static const int32_t outside[] = {-1, N, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(nib_tokenizer_piece(&len, tokenizer, outside[i]), "");
        assert_int_equal(len, 0);
        assert_int_equal(nib_tokenizer_is_control(tokenizer, outside[i]), 0);
    }
    assert_int_equal(nib_tokenizer_is_control(tokenizer, EOS), 1);
    assert_int_equal(nib_tokenizer_is_control(tokenizer, USER), 0);
    nib_tokenizer_free(tokenizer);
}

static void refuse_unknown_flags(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, NIB_VOCAB_BPE);
    nib_tokenizer *tokenizer = make_tokenizer(&small);
    int32_t *ids = (int32_t *)1;
    size_t n = 1;
    nib_error err;
    assert_int_equal(nib_tokenizer_encode(&ids, &n, tokenizer, "a", 1, 4, &err), NIB_EINVAL);
    assert_null(ids);
    assert_int_equal(n, 0);
    assert_int_equal(nib_tokenizer_encode(&ids, &n, tokenizer, "a", (size_t)INT32_MAX, 0, &err), NIB_EINVAL);
    assert_non_null(strstr(err.message, "2147483647 bytes"));
    assert_int_equal(nib_tokenizer_encode(&ids, &n, tokenizer, NULL, 0, 0, &err), NIB_OK);
    nib_tokenizer_free(tokenizer);
}

static void refuse_ids_and_types_out_of_range(void **state) {
    (void)state;
    small_vocab small;
    make_vocab(&small, NIB_VOCAB_BPE);
    small.vocab.bos = N;
    check_refused(&small, NIB_EFORMAT, "start token is 259, expected -1 to 258");
    make_vocab(&small, NIB_VOCAB_BPE);
    small.vocab.eos = -2;
    check_refused(&small, NIB_EFORMAT, "end token is -2");
    make_vocab(&small, NIB_VOCAB_SPM);
    small.vocab.unk = N;
    check_refused(&small, NIB_EFORMAT, "unknown token is 259");
    make_vocab(&small, NIB_VOCAB_SPM);
    small.types[9] = 7;
    check_refused(&small, NIB_EFORMAT, "type of token 9 is 7, expected 1 to 6");
    small.types[9] = 0;
    check_refused(&small, NIB_EFORMAT, "type of token 9 is 0");
    small.vocab.n_tokens = 0;
    check_refused(&small, NIB_EFORMAT, "0 tokens");
}

/* new, encode and decode with the n-th allocation failing, for n = 1, 2, .. until all succeed. */
static void survive_a_lack_of_memory(void **state) {
    (void)state;
    static const char text[] = "ab ab <s>\xff<user>\xe2\x96\x81 b\xc3\xa9";
    for (int i = 0; i < N_KINDS; i++) {
        small_vocab small;
        make_vocab(&small, kinds[i]);
        (void)small_merge(&small, "a b", "ab");
        nib_tokenizer *tokenizer = NULL;
        nib_error err = {0};
        for (size_t n = 1; tokenizer == NULL; n++) {
            nib_alloc_fail_at(n);
            nib_status status = nib_tokenizer_new(&tokenizer, &small.vocab, &err);
            nib_alloc_fail_at(0);
            assert_true(tokenizer != NULL ? status == NIB_OK : status == NIB_ENOMEM && err.code == NIB_ENOMEM);
        }
        int32_t *ids = NULL;
        size_t n_ids = 0;
        for (size_t n = 1; ids == NULL; n++) {
            nib_alloc_fail_at(n);
            nib_status status = nib_tokenizer_encode(&ids, &n_ids, tokenizer, text, sizeof text - 1, BOTH, &err);
            nib_alloc_fail_at(0);
            assert_true(ids != NULL ? status == NIB_OK : status == NIB_ENOMEM && n_ids == 0);
        }
        char *back = NULL;
        size_t len;
        for (size_t n = 1; back == NULL; n++) {
            nib_alloc_fail_at(n);
            nib_status status = nib_tokenizer_decode(&back, &len, tokenizer, ids, n_ids, NIB_DETOKENIZE_SPECIAL, &err);
            nib_alloc_fail_at(0);
            assert_true(back != NULL ? status == NIB_OK : status == NIB_ENOMEM);
        }
        nib_decoder *decoder = NULL;
        for (size_t n = 1; decoder == NULL; n++) {
            nib_alloc_fail_at(n);
            (void)nib_decoder_new(&decoder, tokenizer, 0, &err);
            nib_alloc_fail_at(0);
        }
        nib_alloc_fail_at(1);
        (void)nib_decoder_finish(&len, decoder);
        assert_int_equal(len, 0);
        nib_alloc_fail_at(0);
        nib_decoder_free(decoder);
        nib_free(back);
        nib_free(ids);
        nib_tokenizer_free(tokenizer);
    }
    nib_tokenizer_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_the_start_token_once),
        cmocka_unit_test(add_the_end_token_once),
        cmocka_unit_test(add_nothing_that_the_file_does_not_ask_for),
        cmocka_unit_test(give_no_control_id_unless_asked),
        cmocka_unit_test(tell_the_pieces),
        cmocka_unit_test(refuse_unknown_flags),
        cmocka_unit_test(refuse_ids_and_types_out_of_range),
        cmocka_unit_test(survive_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
