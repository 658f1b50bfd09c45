/* Opening models: what a file says of itself, its end tokens, what it would take, the instruction set, and what is
 * refused with which code. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "decode/session.h"
#include "gguf_writer.h"
#include "script_model.h"
#include "table_model.h"

#define TINY NIB_TEST_GOLDEN "/tiny/"

static const script_piece pieces[] = {{"one", 3}, {" two", 4}};

static script_spec two_pieces(void) {
    script_spec script = SCRIPT_INIT;
    script.pieces = pieces;
    script.n = 2;
    return script;
}

static nib_model_info info_of(const nib_model *model) {
    nib_model_info info = {.size = sizeof info};
    nib_error err;
    must(nib_model_get_info(&info, model, &err), &err);
    return info;
}

/* ---- what a file says ---- */

static void a_model_says_what_its_file_says(void **state) {
    (void)state;
    script_spec script = two_pieces();
    script.pad_id = 4;
    script_model opened = script_model_open(&script);
    nib_model_info info = info_of(opened.model);
    assert_string_equal(info.architecture, "llama");
    assert_string_equal(info.name, "script");
    const int64_t got[] = {info.V, info.D, info.L, info.H, info.K, info.head_dim, info.context};
    const int64_t expected[] = {5, 5, 1, 1, 1, 2, 256};
    assert_memory_equal(got, expected, sizeof got);
    assert_int_equal(info.pad_id, 4);
    assert_int_equal(info.start_id, SCRIPT_START);
    assert_int_equal(info.end_id, SCRIPT_END);
    assert_int_equal(info.add_start, 1);
    assert_int_equal(info.has_chat_template, 0);
    assert_null(info.chat_template);
    /* embedding, head 25 each; q, k, v, o 10 each; gate, up, down 5 each; three norms of 5 */
    assert_int_equal(info.n_params, 2 * 25 + 4 * 10 + 3 * 5 + 3 * 5);
    assert_int_equal(info.weight_bytes, info.n_params * 4);
    assert_int_equal(info.compute, NIB_COMPUTE_FAST);
    assert_int_equal(info.cache_type, NIB_CACHE_TYPE_F16);
    assert_int_equal(nib_tokenizer_size(nib_model_tokenizer(opened.model)), 5);
    script_model_close(&opened);
}

static void info_needs_its_size(void **state) {
    (void)state;
    script_spec script = two_pieces();
    script_model opened = script_model_open(&script);
    nib_model_info info = {.size = 8};
    nib_error err;
    must_fail(nib_model_get_info(&info, opened.model, &err), NIB_EINVAL, &err, "nib_model_info.size: 8");
    script_model_close(&opened);
    nib_model_free(NULL);
}

static void check_ends(const script_spec *script, const int32_t *ends, size_t n) {
    script_model opened = script_model_open(script);
    nib_model_info info = info_of(opened.model);
    assert_int_equal(info.n_end_ids, n);
    assert_memory_equal(info.end_ids, ends, n * sizeof ends[0]);
    assert_int_equal(info.end_id, ends[0]);
    script_model_close(&opened);
}

static void ends_are_the_union_of_what_the_file_says(void **state) {
    (void)state;
    script_spec script = two_pieces();
    check_ends(&script, (const int32_t[]){2}, 1);
    script.eot_id = 3;
    check_ends(&script, (const int32_t[]){2, 3}, 2);
    script.eom_id = 4;
    check_ends(&script, (const int32_t[]){2, 3, 4}, 3);
    script.eot_id = script.eom_id = 2;
    check_ends(&script, (const int32_t[]){2}, 1);
    const char *const texts[] = {"<|im_end|>", "<|turn|>", "<|eot_id|>", "<|endoftext|>"};
    memcpy(script.spelling, texts, sizeof texts);
    script.n_control = 4;
    check_ends(&script, (const int32_t[]){2, 5, 7, 8}, 4);
    script.eot_id = 8;
    check_ends(&script, (const int32_t[]){2, 8, 5, 7}, 4);
}

static void families_add_the_start_token_when_the_file_is_silent(void **state) {
    (void)state;
    const struct {
        const char *pre;
        int adds;
    } cases[] = {{"gpt-2", 0}, {"smollm", 0}, {"qwen2", 0}, {"llama-bpe", 1}, {"llama3", 1}, {"tekken", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const script_piece one[] = {{"a", 1}};
        script_spec script = SCRIPT_INIT;
        script.pieces = one;
        script.n = 1;
        script.pre = cases[i].pre;
        script.silent_on_start = 1;
        script_model opened = script_model_open(&script);
        nib_model_info info = {.size = sizeof info};
        assert_int_equal(nib_model_get_info(&info, opened.model, NULL), NIB_OK);
        assert_int_equal(info.add_start, cases[i].adds);
        script_model_close(&opened);
    }
}

static void a_text_that_ends_elsewhere_ends_nothing_as_an_ordinary_token(void **state) {
    (void)state;
    static const script_piece words[] = {{"<|im_end|>", 10}, {"</s>", 4}};
    script_spec script = SCRIPT_INIT;
    script.pieces = words;
    script.n = 2;
    check_ends(&script, (const int32_t[]){2}, 1);
}

/* ---- instruction sets ---- */

static void the_instruction_set_is_chosen_by_option_then_environment(void **state) {
    (void)state;
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    nib_model *model;
    nib_error err;
    assert_int_equal(setenv("NIB_CPU", "base", 1), 0);
    must(nib_model_open(&model, "random:llama-tiny", NULL, &err), &err);
    assert_string_equal(info_of(model).cpu, "base");
    nib_model_free(model);
    assert_int_equal(setenv("NIB_CPU", "z80", 1), 0);
    must_fail(nib_model_open(&model, "random:llama-tiny", NULL, &err), NIB_EINVAL, &err, "NIB_CPU|\"z80\"|base");
    assert_null(model);
    options.cpu = NIB_CPU_BASE;
    must(nib_model_open(&model, "random:llama-tiny", &options, &err), &err);
    nib_model_free(model);
    assert_int_equal(setenv("NIB_CPU", "", 1), 0);
    must(nib_model_open(&model, "random:llama-tiny", NULL, &err), &err);
    nib_model_free(model);
    assert_int_equal(unsetenv("NIB_CPU"), 0);
}

static void one_file_opened_twice_is_one_model(void **state) {
    (void)state;
    nib_model_options exact = NIB_MODEL_OPTIONS_INIT;
    nib_model *first, *second, *other, *again;
    nib_error err;
    exact.compute = NIB_COMPUTE_EXACT;
    must(nib_model_open(&first, TINY "llama-quants.gguf", NULL, &err), &err);
    must(nib_model_open(&second, TINY "../tiny/llama-quants.gguf", NULL, &err), &err);
    must(nib_model_open(&other, TINY "llama-quants.gguf", &exact, &err), &err);
    must(nib_model_open(&again, TINY "llama-quants.gguf", &exact, &err), &err);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, other);
    assert_ptr_equal(other, again);
    nib_model_free(again);
    nib_model_free(first);
    assert_int_equal(info_of(second).compute, NIB_COMPUTE_FAST); /* still there */
    must(nib_model_open(&first, TINY "llama-quants.gguf", NULL, &err), &err);
    assert_ptr_equal(first, second);
    nib_model_free(first);
    nib_model_free(second);
    nib_model_free(other);
}

static void a_file_that_was_replaced_is_another_model(void **state) {
    (void)state;
    char path[] = "/tmp/nib-test-model-XXXXXX";
    script_spec script = two_pieces();
    size_t len;
    unsigned char *bytes = script_file(&len, &script);
    nib_model *first, *second;
    nib_error err;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && close(fd) == 0);
    must(nib_model_open(&first, path, NULL, &err), &err);
    assert_int_equal(unlink(path), 0);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && close(fd) == 0);
    must(nib_model_open(&second, path, NULL, &err), &err);
    assert_ptr_not_equal(first, second);
    nib_model_free(first);
    nib_model_free(second);
    assert_int_equal(unlink(path), 0);
    free(bytes);
}

static void options_of_models_are_checked(void **state) {
    (void)state;
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    script_spec script = two_pieces();
    size_t len;
    unsigned char *file = script_file(&len, &script);
    nib_model *model;
    nib_error err;
    options.compute = 2;
    must_fail(nib_model_open_memory(&model, file, len, &options, &err), NIB_EINVAL, &err, "compute: 2");
    assert_null(model);
    must_fail(nib_model_open(&model, TINY "llama-text.gguf", &options, &err), NIB_EINVAL, &err, "compute: 2");
    for (int cpu = NIB_CPU_BASE; cpu <= NIB_CPU_NEONDOT; cpu++) {
        const char *name = nib_kernels_name((size_t)cpu - 1);
        options = (nib_model_options)NIB_MODEL_OPTIONS_INIT;
        options.cpu = cpu;
        if (nib_kernels_find(name) != NULL) {
            must(nib_model_random(&model, "llama-tiny", NULL, 0, &options, &err), &err);
            nib_model_free(model);
        } else {
            must_fail(nib_model_random(&model, "llama-tiny", NULL, 0, &options, &err), NIB_EINVAL, &err, name);
            must_fail(nib_model_random(&model, "llama-tiny", NULL, 0, &options, &err), NIB_EINVAL, &err,
                      "that this machine has: auto, base");
        }
    }
    options.size = 0;
    must_fail(nib_model_random(&model, "llama-tiny", NULL, 0, &options, &err), NIB_EINVAL, &err,
              "nib_model_options.size: 0");
    free(file);
}

/* ---- refusals ---- */

static void refused_path(const char *path, nib_status expected, const char *texts) {
    nib_model *model = (nib_model *)(uintptr_t)1;
    nib_model_memory memory = {.size = sizeof memory};
    nib_error err;
    must_fail(nib_model_open(&model, path, NULL, &err), expected, &err, texts);
    assert_null(model);
    must_fail(nib_model_estimate(&memory, path, &err), expected, &err, texts);
}

static void paths_that_lead_to_no_model_are_refused(void **state) {
    (void)state;
    refused_path(NULL, NIB_EINVAL, "no path");
    refused_path("", NIB_EINVAL, "no path");
    refused_path(TINY "nothing.gguf", NIB_EIO, "nothing.gguf");
    refused_path(TINY, NIB_EIO, "tiny");
    refused_path(TINY "llama-text.golden", NIB_EFORMAT, "");
    refused_path("random:nothing", NIB_EINVAL, "nothing");
}

/* A spoilt file: a field behind the name is overwritten. */
static void refused_file(const script_spec *script, const char *name, size_t skip, uint64_t value, size_t n,
                         nib_status expected, const char *texts) {
    size_t len;
    unsigned char *file = script_file(&len, script);
    nib_model *model = (nib_model *)(uintptr_t)1;
    nib_error err;
    nib_test_gguf_put(file, nib_test_gguf_find(file, len, name) + skip, value, n);
    must_fail(nib_model_open_memory(&model, file, len, NULL, &err), expected, &err, texts);
    assert_null(model);
    free(file);
}

static void spoilt_files_are_refused_by_field(void **state) {
    (void)state;
    script_spec script = two_pieces();
    script.pad_id = 4;
    refused_file(&script, "general.architecture", 12, 'x', 1, NIB_EUNSUPPORTED, "general.architecture|xlama|llama");
    refused_file(&script, "llama.embedding_length", 4, 7, 4, NIB_EFORMAT, "token_embd.weight|expected 7");
    refused_file(&script, "llama.block_count", 4, 2, 4, NIB_EFORMAT, "blk.1.attn_norm.weight: missing");
    refused_file(&script, "llama.block_count", 4, 0, 4, NIB_EFORMAT, "block count: 0");
    refused_file(&script, "llama.context_length", 4, 0, 4, NIB_EFORMAT, "context length: 0");
    refused_file(&script, "tokenizer.ggml.model", 12, 'x', 1, NIB_EUNSUPPORTED, "tokenizer.ggml.model|xpt2");
    refused_file(&script, "tokenizer.ggml.pre", 12, 'x', 1, NIB_EUNSUPPORTED, "xpt-2");
    refused_file(&script, "tokenizer.ggml.eos_token_id", 4, 5, 4, NIB_EFORMAT, "tokenizer.ggml.eos_token_id: 5|0 to 4");
    refused_file(&script, "tokenizer.ggml.padding_token_id", 4, 9, 4, NIB_EFORMAT,
                 "tokenizer.ggml.padding_token_id: 9");
    refused_file(&script, "tokenizer.ggml.token_type", 16, 77, 4, NIB_EFORMAT, "token 0 is 77");
    refused_file(&script, "blk.0.attn_q.weight", 20, 26, 4, NIB_EUNSUPPORTED, "blk.0.attn_q.weight|I32");
}

static void an_id_of_all_ones_is_none(void **state) {
    (void)state;
    script_spec script = two_pieces();
    size_t len;
    unsigned char *file = script_file(&len, &script);
    nib_model *model;
    nib_error err;
    nib_test_gguf_put(file, nib_test_gguf_find(file, len, "tokenizer.ggml.bos_token_id") + 4, UINT32_MAX, 4);
    must(nib_model_open_memory(&model, file, len, NULL, &err), &err);
    assert_int_equal(info_of(model).start_id, -1);
    assert_int_equal(info_of(model).add_start, 0);
    nib_model_free(model);
    free(file);
}

static void a_file_cut_anywhere_is_refused(void **state) {
    (void)state;
    script_spec script = two_pieces();
    size_t len;
    unsigned char *file = script_file(&len, &script);
    for (size_t n = 0; n < len; n += 1 + len / 200) {
        unsigned char *cut = malloc(n > 0 ? n : 1); /* exact, so that a sanitizer sees a byte too far */
        nib_model *model = (nib_model *)(uintptr_t)1;
        nib_error err;
        assert_non_null(cut);
        memcpy(cut, file, n);
        must_fail(nib_model_open_memory(&model, cut, n, NULL, &err), NIB_EFORMAT, &err, "");
        assert_null(model);
        free(cut);
    }
    free(file);
}

/* ---- what opening would take ---- */

static const char *const files[] = {TINY "llama-text.gguf", TINY "llama-k-quants.gguf", TINY "llama-tied-f32.gguf",
                                    TINY "gemma3-window8-f16.gguf", TINY "gemma3-window64-q8_0.gguf"};

static void the_estimate_is_what_it_comes_to(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        nib_model_memory memory = {.size = sizeof memory};
        nib_model *model;
        nib_error err;
        int32_t ids[128] = {0};
        must(nib_model_estimate(&memory, files[i], &err), &err);
        must(nib_model_open(&model, files[i], NULL, &err), &err);
        nib_model_info info = info_of(model);
        assert_int_equal(memory.weights, info.weight_bytes);
        nib_session *session = new_session(model);
        float *logits = malloc((size_t)info.V * sizeof(float));
        assert_non_null(logits);
        must(nib_session_logits(logits, session, ids, 128, 127, &err), &err);
        nib_session_stats stats = {.size = sizeof stats};
        must(nib_session_get_stats(&stats, session, &err), &err);
        if (strstr(files[i], "window") != NULL) { /* pages out of the windows are given back */
            assert_true(stats.cache_bytes < 128 * memory.kv_per_token);
            assert_int_equal(stats.cache_peak_bytes, 128 * memory.kv_per_token);
        } else {
            assert_int_equal(stats.cache_bytes, 128 * memory.kv_per_token);
        }
        assert_true(session->work.bytes <= memory.session);
        assert_true(memory.resident > 0);
        free(logits);
        nib_session_free(session);
        nib_model_free(model);
    }
}

/* Bytes that the program has from malloc; 0 where nobody says (another C library, a sanitizer's own allocator). */
static size_t allocated(void) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

static void opening_takes_no_more_than_the_estimate(void **state) {
    (void)state;
    const char *const paths[] = {files[0],         files[1], files[2], files[3], files[4], "random:llama-tiny",
                                 "random:gpt-tiny"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        nib_model_memory memory = {.size = sizeof memory};
        nib_model *model;
        nib_error err;
        must(nib_model_estimate(&memory, paths[i], &err), &err);
        size_t before = allocated();
        must(nib_model_open(&model, paths[i], NULL, &err), &err);
        size_t after = allocated();
        if (after - before > memory.resident) {
            fail_msg("%s: %zu bytes, estimated %zu", paths[i], after - before, memory.resident);
        }
        nib_model_free(model);
    }
}

static void the_estimate_needs_its_size(void **state) {
    (void)state;
    nib_model_memory memory = {.size = 4};
    nib_error err;
    must_fail(nib_model_estimate(&memory, files[0], &err), NIB_EINVAL, &err, "nib_model_memory.size: 4");
}

static void a_file_and_its_bytes_are_the_same_model(void **state) {
    (void)state;
    char path[] = "/tmp/nib-test-model-XXXXXX";
    script_spec script = two_pieces();
    size_t len;
    unsigned char *file = script_file(&len, &script);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, file, len) == (ssize_t)len && close(fd) == 0);
    nib_model *from_path, *from_memory;
    nib_error err;
    must(nib_model_open(&from_path, path, NULL, &err), &err);
    must(nib_model_open_memory(&from_memory, file, len, NULL, &err), &err);
    assert_int_equal(unlink(path), 0); /* an open model does not need its name */
    nib_session *a = new_session(from_path), *b = new_session(from_memory);
    const int32_t ids[] = {SCRIPT_START};
    nib_result *x = generate_one(a, ids, 1, NULL), *y = generate_one(b, ids, 1, NULL);
    check_same_row(&x->rows[0], &y->rows[0]);
    assert_string_equal(x->rows[0].text, "one two");
    nib_result_free(x);
    nib_result_free(y);
    nib_session_free(a);
    nib_session_free(b);
    nib_model_free(from_path);
    nib_model_free(from_memory);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_says_what_its_file_says),
        cmocka_unit_test(info_needs_its_size),
        cmocka_unit_test(ends_are_the_union_of_what_the_file_says),
        cmocka_unit_test(families_add_the_start_token_when_the_file_is_silent),
        cmocka_unit_test(a_text_that_ends_elsewhere_ends_nothing_as_an_ordinary_token),
        cmocka_unit_test(the_instruction_set_is_chosen_by_option_then_environment),
        cmocka_unit_test(one_file_opened_twice_is_one_model),
        cmocka_unit_test(a_file_that_was_replaced_is_another_model),
        cmocka_unit_test(options_of_models_are_checked),
        cmocka_unit_test(paths_that_lead_to_no_model_are_refused),
        cmocka_unit_test(spoilt_files_are_refused_by_field),
        cmocka_unit_test(an_id_of_all_ones_is_none),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(the_estimate_is_what_it_comes_to),
        cmocka_unit_test(opening_takes_no_more_than_the_estimate),
        cmocka_unit_test(the_estimate_needs_its_size),
        cmocka_unit_test(a_file_and_its_bytes_are_the_same_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
