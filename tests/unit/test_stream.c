/* Text as it streams: stop strings over token borders, whole characters only, the pieces joined are the whole text,
 * whichever of the three ways of generating gives them; and what a stream copies, refuses and ends with. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/utf8.h"
#include "script_model.h"
#include "table_model.h"

#define PIECE(text)                                                                                                    \
    { text, sizeof(text) - 1 }

static const int32_t start[] = {SCRIPT_START};

/* What the tokens of a generation said, joined. */
typedef struct heard {
    char text[4096];
    size_t len, n, lasts;
    int32_t ids[512];
    float logprobs[512];
    nib_finish finish;
} heard;

/* Every piece is whole UTF-8 by itself. */
static void check_utf8(const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        size_t n = nib_utf8_len(text + i, len - i);
        assert_true(n > 0);
        i += n;
    }
}

static int hear(const nib_token *token, void *user) {
    heard *h = user;
    check_utf8(token->text, token->text_len);
    assert_true(h->len + token->text_len <= sizeof h->text && h->n < 512);
    memcpy(h->text + h->len, token->text, token->text_len);
    h->len += token->text_len;
    if (token->id >= 0) {
        h->ids[h->n] = token->id;
        h->logprobs[h->n++] = token->logprob;
    }
    h->lasts += token->finish != NIB_FINISH_NONE;
    h->finish = token->finish;
    return 0;
}

static nib_stream *open_stream(nib_session *session, nib_prompt prompt, const nib_generate_options *options) {
    nib_stream *stream;
    nib_error err;
    must(nib_stream_open(&stream, session, prompt, options, &err), &err);
    return stream;
}

static const nib_token *next(nib_stream *stream) {
    const nib_token *token;
    nib_error err;
    must(nib_stream_next(&token, stream, &err), &err);
    return token;
}

static void check_heard(const heard *h, const nib_row *row) {
    assert_int_equal(h->lasts, 1);
    assert_int_equal(h->finish, row->finish);
    assert_int_equal(h->n, row->n);
    assert_memory_equal(h->ids, row->ids + row->n_prompt, h->n * sizeof h->ids[0]);
    assert_memory_equal(h->logprobs, row->logprobs, h->n * sizeof h->logprobs[0]);
    assert_int_equal(h->len, row->text_len);
    assert_memory_equal(h->text, row->text, h->len);
    assert_int_equal(row->text[row->text_len], '\0');
}

/* The row, generated in all three ways, which must agree. */
static nib_result *run(nib_session *session, nib_prompt prompt, const nib_generate_options *options) {
    static heard by_callback, by_stream;
    nib_result *result;
    nib_error err;
    by_callback = by_stream = (heard){0};
    must(nib_generate(&result, session, &prompt, 1, options, hear, &by_callback, &err), &err);
    nib_stream *stream = open_stream(session, prompt, options);
    assert_true(nib_stream_seed(stream) == result->seed);
    for (const nib_token *token; (token = next(stream)) != NULL;) {
        (void)hear(token, &by_stream);
    }
    assert_null(next(stream));
    nib_stream_free(stream);
    check_heard(&by_callback, &result->rows[0]);
    check_heard(&by_stream, &result->rows[0]);
    return result;
}

static nib_generate_options greedy(void) {
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.do_sample = NIB_DO_SAMPLE_NO;
    options.has_seed = 1;
    options.max_new_tokens = 40;
    return options;
}

static void check_run(const script_spec *script, const nib_generate_options *options, const char *text, size_t n,
                      nib_finish finish) {
    script_model opened = script_model_open(script);
    nib_session *session = new_session(opened.model);
    nib_result *result = run(session, (nib_prompt){start, 1}, options);
    assert_string_equal(result->rows[0].text, text);
    assert_int_equal(result->rows[0].n, n);
    assert_int_equal(result->rows[0].finish, finish);
    nib_result_free(result);
    nib_session_free(session);
    script_model_close(&opened);
}

/* ---- stop strings ---- */

static const script_piece letters[] = {PIECE("A"),  PIECE(" B"), PIECE(" C"), PIECE(" L M"), PIECE(" N"),
                                       PIECE(" O"), PIECE(" P"), PIECE(" Q"), PIECE(" R")};

static void a_stop_string_is_found_over_token_borders(void **state) {
    (void)state;
    script_spec script = SCRIPT_INIT;
    script.pieces = letters;
    script.n = 9;
    const nib_text stop = {" O P Q", 6}, shorter = {"O P Q", 5}, inner = {"M", 1};
    nib_generate_options options = greedy();
    check_run(&script, &options, "A B C L M N O P Q R", 10, NIB_FINISH_STOP);
    options.stop = &stop;
    options.n_stop = 1;
    check_run(&script, &options, "A B C L M N", 8, NIB_FINISH_STOP);
    options.stop = &shorter;
    check_run(&script, &options, "A B C L M N ", 8, NIB_FINISH_STOP);
    options.stop = &inner;
    check_run(&script, &options, "A B C L ", 4, NIB_FINISH_STOP);
}

static void a_stop_string_in_the_prompt_stops_nothing(void **state) {
    (void)state;
    script_spec script = SCRIPT_INIT;
    script.pieces = letters;
    script.n = 9;
    script_model opened = script_model_open(&script);
    nib_session *session = new_session(opened.model);
    const int32_t prompt[] = {SCRIPT_START, 3, 4, 5, 6, 7}; /* A B C L M N */
    const nib_text stops[] = {{" N", 2}, {"M N", 3}, {"N O", 3}};
    nib_generate_options options = greedy();
    options.stop = stops;
    options.n_stop = 3;
    nib_result *result = run(session, (nib_prompt){prompt, 6}, &options);
    assert_string_equal(result->rows[0].text, " O P Q R");
    nib_result_free(result);
    nib_session_free(session);
    script_model_close(&opened);
}

static void a_near_miss_is_sent_once_and_at_the_limit_too(void **state) {
    (void)state;
    static const script_piece pieces[] = {PIECE(" Al"), PIECE("ice"), PIECE("!"), PIECE("\n")};
    const nib_text stops[] = {{"\n", 1}, {"Alice:", 6}};
    script_spec script = SCRIPT_INIT;
    script.pieces = pieces;
    script.n = 4;
    nib_generate_options options = greedy();
    options.stop = stops;
    options.n_stop = 2;
    check_run(&script, &options, " Alice!", 4, NIB_FINISH_STOP);
    options.max_new_tokens = 2; /* " Alice" is held back when the row ends */
    check_run(&script, &options, " Alice", 2, NIB_FINISH_LENGTH);
    options.n_stop = 0;
    options.stop_id = (const int32_t[]){4};
    options.n_stop_id = 1;
    options.max_new_tokens = 40;
    check_run(&script, &options, " Al", 2, NIB_FINISH_STOP);
    options.stop = stops;
    options.n_stop = 2; /* the stop id's own text is not there, what was held back is */
    check_run(&script, &options, " Al", 2, NIB_FINISH_STOP);
}

/* ---- characters ---- */

/* Every way to cut `text` [len] into two or more pieces, between two ordinary ones. */
static void check_all_cuts(const char *text, size_t len, const char *expected) {
    for (unsigned cuts = 0; cuts < 1u << (len - 1); cuts++) {
        script_piece pieces[8] = {PIECE("a ")};
        size_t n = 1, begin = 0;
        for (size_t i = 1; i <= len; i++) {
            if (i == len || (cuts >> (i - 1) & 1u) != 0) {
                pieces[n++] = (script_piece){text + begin, i - begin};
                begin = i;
            }
        }
        pieces[n++] = (script_piece)PIECE("z");
        script_spec script = SCRIPT_INIT;
        script.pieces = pieces;
        script.n = n;
        nib_generate_options options = greedy();
        check_run(&script, &options, expected, n + 1, NIB_FINISH_STOP);
    }
}

static void characters_cut_anywhere_come_whole(void **state) {
    (void)state;
    check_all_cuts("\xc3\xa9", 2, "a \xc3\xa9z");
    check_all_cuts("\xe2\x82\xac", 3, "a \xe2\x82\xacz");
    check_all_cuts(" \xe6\xbc\xa2", 4, "a  \xe6\xbc\xa2z");
    check_all_cuts("\xf0\x9f\x98\x80", 4, "a \xf0\x9f\x98\x80z");
    check_all_cuts("\xf0\x9f\x98\x80\xc3\xa9", 6, "a \xf0\x9f\x98\x80\xc3\xa9z");
}

static void bytes_that_are_no_text_come_as_one_replacement(void **state) {
    (void)state;
    check_all_cuts("\xff", 1, "a \xef\xbf\xbdz");
    check_all_cuts("\xf0\x9f\x98", 3, "a \xef\xbf\xbdz"); /* broken off by an ordinary letter */
    check_all_cuts("\xe2\x82\xc3\xa9", 4, "a \xef\xbf\xbd\xc3\xa9z");
    check_all_cuts("\xed\xa0\x80", 3, "a \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"); /* half of a UTF-16 pair */
}

static void an_unfinished_character_at_the_end_is_one_replacement(void **state) {
    (void)state;
    static const script_piece pieces[] = {PIECE("a"), PIECE("\xf0\x9f"), PIECE("\x98"), PIECE("\x80")};
    script_spec script = SCRIPT_INIT;
    script.pieces = pieces;
    script.n = 4;
    nib_generate_options options = greedy();
    options.max_new_tokens = 3;
    check_run(&script, &options, "a\xef\xbf\xbd", 3, NIB_FINISH_LENGTH);
    options.max_new_tokens = 4;
    check_run(&script, &options, "a\xf0\x9f\x98\x80", 4, NIB_FINISH_LENGTH);
}

static void a_stop_string_may_begin_within_a_character(void **state) {
    (void)state;
    static const script_piece pieces[] = {PIECE("a"), PIECE("\xf0\x9f"), PIECE("\x98\x80"), PIECE("b")};
    const nib_text stops[] = {{"\x98\x80", 2}}, whole[] = {{"\xf0\x9f\x98\x80", 4}};
    script_spec script = SCRIPT_INIT;
    script.pieces = pieces;
    script.n = 4;
    nib_generate_options options = greedy();
    options.stop = stops;
    options.n_stop = 1;
    check_run(&script, &options, "a\xef\xbf\xbd", 3, NIB_FINISH_STOP);
    options.stop = whole;
    check_run(&script, &options, "a", 3, NIB_FINISH_STOP);
}

/* ---- ends ---- */

static void an_end_id_is_in_the_ids_and_not_in_the_text(void **state) {
    (void)state;
    static const script_piece pieces[] = {PIECE("one"), PIECE(" two")};
    script_spec script = SCRIPT_INIT;
    script.pieces = pieces;
    script.n = 2;
    script.spelling[0] = "<|im_end|>";
    script.spelling[1] = "<|turn|>";
    script.n_control = 2;
    nib_generate_options options = greedy();
    check_run(&script, &options, "one two", 3, NIB_FINISH_STOP);
    options.ignore_eos = NIB_IGNORE_EOS_YES; /* after <end> comes <end>, which has no text */
    check_run(&script, &options, "one two", 40, NIB_FINISH_LENGTH);
    options.ignore_eos = NIB_IGNORE_EOS_NO;
    script.after[3] = 5; /* <|im_end|>, an end by its text */
    check_run(&script, &options, "one", 2, NIB_FINISH_STOP);
    script.after[3] = 6; /* <|turn|>, a control token like any other */
    script.after[6] = 4;
    check_run(&script, &options, "one two", 4, NIB_FINISH_STOP);
    options.eos_id = (const int32_t[]){6};
    options.n_eos_id = 1;
    check_run(&script, &options, "one", 2, NIB_FINISH_STOP);
}

static void a_row_that_stands_for_no_token_has_no_text(void **state) {
    (void)state;
    static const script_piece pieces[] = {PIECE("one"), PIECE(" two")};
    script_spec script = SCRIPT_INIT;
    script.pieces = pieces;
    script.n = 2;
    script.n_extra = 4;
    script.after[3] = 8; /* the last row */
    script.after[8] = 4;
    nib_generate_options options = greedy();
    check_run(&script, &options, "one two", 4, NIB_FINISH_STOP);
}

/* ---- the tiny model that says anything ---- */

static nib_model *open_text_model(void) {
    nib_model *model;
    nib_error err;
    must(nib_model_open(&model, NIB_TEST_GOLDEN "/tiny/llama-text.gguf", NULL, &err), &err);
    return model;
}

/* Where text [len] ends: the earliest stop string in it; len when there is none. */
static size_t plain_end(const nib_generate_options *options, const char *text, size_t len) {
    for (size_t at = 0; at < len; at++) {
        for (size_t i = 0; i < options->n_stop; i++) {
            size_t n = options->stop[i].len;
            if (n <= len - at && memcmp(text + at, options->stop[i].bytes, n) == 0) {
                return at;
            }
        }
    }
    return len;
}

/* What a row says when it stops by the options' list, token after token of the row without one. Returns the number of
 * tokens; bytes [*len] is the text before a stop string. */
static size_t plain_stop(char *bytes, size_t *len, const nib_tokenizer *tokenizer, const nib_row *row,
                         const nib_generate_options *options) {
    *len = 0;
    for (size_t i = 0; i < row->n; i++) {
        int32_t id = row->ids[row->n_prompt + i];
        size_t n;
        const char *piece = nib_tokenizer_piece(&n, tokenizer, id);
        n = nib_tokenizer_is_control(tokenizer, id) ? 0 : n;
        memcpy(bytes + *len, piece, n);
        *len += n;
        size_t end = plain_end(options, bytes, *len);
        if (end < *len) {
            *len = end;
            return i + 1;
        }
    }
    return row->n;
}

/* A list of one to three stop strings from text [len], every second one with a spoilt last byte. */
static size_t make_stops(nib_text stops[3], char bytes[3][16], const char *text, size_t len, uint64_t seed) {
    size_t n_stops = 1 + (size_t)(nib_mix64(seed, 0) % 3);
    for (size_t i = 0; i < n_stops; i++) {
        size_t n = 1 + (size_t)(nib_mix64(seed, 3 * i + 1) % 12);
        n = n < len ? n : len;
        size_t from = (size_t)(nib_mix64(seed, 3 * i + 2) % (len - n + 1));
        memcpy(bytes[i], text + from, n);
        bytes[i][n - 1] = (char)(bytes[i][n - 1] ^ (nib_mix64(seed, 3 * i + 3) % 2 == 0 ? 0x01 : 0));
        stops[i] = (nib_text){bytes[i], n};
    }
    return n_stops;
}

/* One run without stop strings, and one with a list made of what it said. Returns whether that one stopped earlier. */
static bool check_stop_list(nib_session *session, const nib_tokenizer *tokenizer, nib_prompt prompt, uint64_t seed) {
    char stop_bytes[3][16], bytes[2048], *text;
    nib_text stops[3];
    size_t len, text_len;
    nib_error err;
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.has_seed = 1;
    options.seed = seed / 10;
    options.max_new_tokens = 24;
    nib_result *plain = run(session, prompt, &options);
    (void)plain_stop(bytes, &len, tokenizer, &plain->rows[0], &options);
    options.n_stop = len > 0 ? make_stops(stops, stop_bytes, bytes, len, seed) : 0;
    options.stop = stops;
    size_t n = plain_stop(bytes, &len, tokenizer, &plain->rows[0], &options);
    nib_result *result = run(session, prompt, &options);
    must(nib_text_to_utf8(&text, &text_len, bytes, len, &err), &err);
    assert_int_equal(result->rows[0].n, n);
    assert_memory_equal(result->rows[0].ids, plain->rows[0].ids, (prompt.n + n) * sizeof(int32_t));
    assert_string_equal(result->rows[0].text, text);
    bool earlier = n < plain->rows[0].n;
    nib_free(text);
    nib_result_free(result);
    nib_result_free(plain);
    return earlier;
}

static void any_stop_list_gives_the_same_text_streamed_and_whole(void **state) {
    (void)state;
    nib_model *model = open_text_model();
    nib_session *session = new_session(model);
    const nib_tokenizer *tokenizer = nib_model_tokenizer(model);
    int32_t *ids;
    size_t n_ids, earlier = 0;
    nib_error err;
    must(nib_tokenizer_encode(&ids, &n_ids, tokenizer, "The river", 9, NIB_TOKENIZE_ADD_BOS, &err), &err);
    for (uint64_t seed = 0; seed < 200; seed++) {
        earlier += check_stop_list(session, tokenizer, (nib_prompt){ids, n_ids}, seed);
    }
    assert_true(earlier > 50 && earlier < 200);
    nib_free(ids);
    nib_session_free(session);
    nib_model_free(model);
}

/* ---- streams ---- */

static void a_stream_copies_its_prompt_and_options(void **state) {
    (void)state;
    script_spec script = SCRIPT_INIT;
    script.pieces = letters;
    script.n = 9;
    script_model opened = script_model_open(&script);
    nib_session *session = new_session(opened.model);
    int32_t prompt[] = {SCRIPT_START}, stop_ids[] = {9}, ends[] = {10};
    char bytes[] = " O P";
    nib_text stops[] = {{bytes, 4}};
    nib_generate_options options = greedy();
    options.stop = stops;
    options.n_stop = 1;
    options.stop_id = stop_ids;
    options.eos_id = ends;
    options.n_stop_id = options.n_eos_id = 1;
    nib_stream *stream = open_stream(session, (nib_prompt){prompt, 1}, &options);
    prompt[0] = 0;
    stop_ids[0] = ends[0] = 3;
    stops[0] = (nib_text){"A", 1};
    memcpy(bytes, "AAAA", 4);
    heard h = {0};
    for (const nib_token *token; (token = next(stream)) != NULL;) {
        (void)hear(token, &h);
    }
    nib_stream_free(stream);
    assert_int_equal(h.n, 7); /* the stop id 9, " P", ends it before the stop string is complete */
    assert_memory_equal(h.text, "A B C L M N O", 13);
    nib_session_free(session);
    script_model_close(&opened);
}

static void candidates_of_a_stream_follow_each_other(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    const int32_t prompt[] = {4, 5};
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.num_return = 3;
    options.max_new_tokens = 8;
    options.has_seed = 1;
    nib_result *result = generate_one(session, prompt, 2, &options);
    nib_stream *stream = open_stream(session, (nib_prompt){prompt, 2}, &options);
    for (size_t i = 0; i < 24; i++) {
        const nib_token *token = next(stream);
        assert_int_equal(token->index, i / 8);
        assert_int_equal(token->pos, 2 + i % 8);
        assert_int_equal(token->id, result->rows[i / 8].ids[2 + i % 8]);
        assert_int_equal(token->finish, i % 8 == 7 ? NIB_FINISH_LENGTH : NIB_FINISH_NONE);
    }
    assert_null(next(stream));
    nib_stream_free(stream);
    nib_result_free(result);
    nib_session_free(session);
    nib_model_free(model);
}

static void a_stream_is_cancelled_and_left_at_any_point(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    const int32_t prompt[] = {4, 5};
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    options.num_return = 3;
    for (size_t n = 0; n < 4; n++) {
        nib_stream *stream = open_stream(session, (nib_prompt){prompt, 2}, &options);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(next(stream)->finish, NIB_FINISH_NONE);
        }
        nib_session_cancel(session);
        const nib_token *token = next(stream);
        assert_int_equal(token->finish, NIB_FINISH_CANCELLED);
        assert_int_equal(token->id, -1);
        assert_null(next(stream)); /* the candidates behind it do not begin */
        nib_stream_free(stream);
        nib_stream_free(open_stream(session, (nib_prompt){prompt, 2}, &options));
    }
    nib_stream_free(NULL);
    nib_session_free(session);
    nib_model_free(model);
}

static void stream_refused(nib_session *session, nib_prompt prompt, const nib_generate_options *options,
                           nib_status expected, const char *texts) {
    nib_error err;
    nib_stream *stream = (nib_stream *)(uintptr_t)1;
    must_fail(nib_stream_open(&stream, session, prompt, options, &err), expected, &err, texts);
    assert_null(stream);
}

static void a_stream_refuses_what_generate_refuses(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    int32_t ids[TABLE_ROOM] = {0};
    const int32_t bad[] = {0, 50};
    const nib_text stop = {"x", 1};
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    stream_refused(session, (nib_prompt){NULL, 0}, NULL, NIB_EINVAL, "empty|start token");
    stream_refused(session, (nib_prompt){bad, 2}, NULL, NIB_EINVAL, "50|index 1");
    stream_refused(session, (nib_prompt){ids, TABLE_ROOM}, NULL, NIB_EFULL, "256");
    options.top_p = 2;
    stream_refused(session, (nib_prompt){ids, 2}, &options, NIB_EINVAL, "top_p");
    options.top_p = 1;
    options.stop = &stop;
    options.n_stop = 1;
    stream_refused(session, (nib_prompt){ids, 2}, &options, NIB_EUNSUPPORTED, "stop");
    nib_session_free(session);
    nib_model_free(model);
}

static void a_stream_reports_what_fails_in_it(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_STEP);
    nib_session *session = new_session(model);
    const int32_t prompt[] = {4, 5};
    const nib_token *token;
    nib_error err;
    table.fail_at = 4;
    nib_stream *stream = open_stream(session, (nib_prompt){prompt, 2}, NULL);
    (void)next(stream);
    (void)next(stream);
    must_fail(nib_stream_next(&token, stream, &err), NIB_ECALLBACK, &err, "7|position 3");
    assert_null(token);
    nib_stream_free(stream);
    nib_session_free(session);
    nib_model_free(model);
}

static void a_stream_reports_logits_that_are_none(void **state) {
    (void)state;
    const float rows[2][2] = {{0, 1}, {0, INFINITY}};
    table_model table = TABLE_MODEL_INIT;
    table.V = 2;
    table.table = rows[0];
    table.n_rows = 2;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    nib_session *session = new_session(model);
    const nib_token *token;
    nib_error err;
    nib_stream *stream = open_stream(session, (nib_prompt){(const int32_t[]){0}, 1}, NULL);
    (void)next(stream);
    must_fail(nib_stream_next(&token, stream, &err), NIB_ENUMERIC, &err, "row 0|position 2");
    nib_stream_free(stream);
    nib_session_free(session);
    nib_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_string_is_found_over_token_borders),
        cmocka_unit_test(a_stop_string_in_the_prompt_stops_nothing),
        cmocka_unit_test(a_near_miss_is_sent_once_and_at_the_limit_too),
        cmocka_unit_test(characters_cut_anywhere_come_whole),
        cmocka_unit_test(bytes_that_are_no_text_come_as_one_replacement),
        cmocka_unit_test(an_unfinished_character_at_the_end_is_one_replacement),
        cmocka_unit_test(a_stop_string_may_begin_within_a_character),
        cmocka_unit_test(an_end_id_is_in_the_ids_and_not_in_the_text),
        cmocka_unit_test(a_row_that_stands_for_no_token_has_no_text),
        cmocka_unit_test(any_stop_list_gives_the_same_text_streamed_and_whole),
        cmocka_unit_test(a_stream_copies_its_prompt_and_options),
        cmocka_unit_test(candidates_of_a_stream_follow_each_other),
        cmocka_unit_test(a_stream_is_cancelled_and_left_at_any_point),
        cmocka_unit_test(a_stream_refuses_what_generate_refuses),
        cmocka_unit_test(a_stream_reports_what_fails_in_it),
        cmocka_unit_test(a_stream_reports_logits_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
