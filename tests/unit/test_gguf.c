/* GGUF files as a whole: versions, tensors, from disk and from memory, in one part and in several. */
#include "format/gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "format/gguf_meta.h"
#include "gguf_walk.h"
#include "gguf_writer.h"

static char directory[] = "/tmp/nib-test-gguf-XXXXXX";

static int make_directory(void **state) {
    (void)state;
    return mkdtemp(directory) == NULL ? -1 : 0;
}

static int remove_directory(void **state) {
    (void)state;
    return rmdir(directory);
}

/* A path in the test's directory; static storage, four at a time. */
static const char *path_of(const char *name) {
    static char paths[4][128];
    static size_t next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

/* What one part of a split file says and holds. */
typedef struct part {
    const char *name; /* of the file */
    uint16_t no, count;
    int32_t n_tensors; /* split.tensors.count; -1: it is not there */
    const char *tensor;
} part;

static void save_part(const part *p) {
    size_t len;
    float value = (float)p->no;
    nib_test_gguf *w = nib_test_gguf_new(3);
    if (p->no == 0) {
        nib_test_gguf_string(w, "general.architecture", "llama");
    }
    nib_test_gguf_scalar(w, "split.no", NIB_GGUF_U16, &p->no, 2);
    nib_test_gguf_scalar(w, "split.count", NIB_GGUF_U16, &p->count, 2);
    if (p->n_tensors >= 0) {
        nib_test_gguf_scalar(w, "split.tensors.count", NIB_GGUF_I32, &p->n_tensors, 4);
    }
    nib_test_gguf_tensor(w, p->tensor, NIB_F32, 1, (const uint64_t[]){1}, &value, sizeof value);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    nib_test_gguf_save(path_of(p->name), data, len);
    free(data);
}

/* Writes three parts (a name of NULL: none), opens the first, and removes them. */
static nib_status open_parts(nib_gguf **gguf, nib_error *err, const part parts[3]) {
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].name != NULL) {
            save_part(&parts[i]);
        }
    }
    nib_status status = nib_gguf_open(gguf, path_of(parts[0].name), err);
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].name != NULL) {
            (void)unlink(path_of(parts[i].name));
        }
    }
    return status;
}

static void expect_refused(const part parts[3], nib_status expected, const char *says) {
    nib_gguf *gguf = (nib_gguf *)&gguf;
    nib_error err;
    assert_int_equal(open_parts(&gguf, &err, parts), expected);
    assert_null(gguf);
    if (strstr(err.message, says) == NULL) {
        fail_msg("\"%s\", expected \"%s\"", err.message, says);
    }
}

#define FIRST  "m-00001-of-00003.gguf"
#define SECOND "m-00002-of-00003.gguf"
#define THIRD  "m-00003-of-00003.gguf"

static void versions_2_and_3_are_read(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        size_t len;
        nib_gguf *gguf;
        unsigned char *data = nib_test_gguf_sample(&len, version);
        assert_int_equal(nib_gguf_open_memory(&gguf, data, len, NULL), NIB_OK);
        assert_int_equal(nib_gguf_version(gguf), version);
        assert_null(nib_test_gguf_walk(gguf, data, len));
        nib_gguf_free(gguf);
        free(data);
    }
}

static void tensors_are_as_written(void **state) {
    (void)state;
    size_t len;
    nib_gguf *gguf;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    assert_int_equal(nib_gguf_open_memory(&gguf, data, len, NULL), NIB_OK);
    assert_int_equal(nib_gguf_n_tensors(gguf), 3);
    const nib_tensor *q = nib_gguf_find_tensor(gguf, "blk.0.attn_q.weight");
    assert_ptr_equal(q, nib_gguf_tensor(gguf, 0));
    assert_true(q->n_dims == 2 && q->dims[0] == 4 && q->dims[1] == 3 && q->dims[2] == 1 && q->dims[3] == 1);
    assert_true(q->type == NIB_F32 && q->size_bytes == 48);
    assert_memory_equal(q->data + 44, &(float){12}, 4);
    const nib_tensor *embd = nib_gguf_find_tensor(gguf, "token_embd.weight");
    assert_true(embd->type == NIB_Q8_0 && embd->size_bytes == 340 && embd->offset == q->offset + 64);
    const nib_tensor *norm = nib_gguf_find_tensor(gguf, "output_norm.weight");
    assert_true(norm->n_dims == 1 && norm->data + norm->size_bytes == data + len);
    assert_null(nib_gguf_find_tensor(gguf, "output_norm.weigh"));
    nib_gguf_free(gguf);
    free(data);
}

static void a_file_on_disk_reads_as_one_in_memory(void **state) {
    (void)state;
    size_t len;
    nib_gguf *gguf;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    nib_test_gguf_save(path_of("one.gguf"), data, len);
    assert_int_equal(nib_gguf_open(&gguf, path_of("one.gguf"), NULL), NIB_OK);
    (void)unlink(path_of("one.gguf"));
    assert_int_equal(nib_gguf_n_parts(gguf), 1);
    const nib_tensor *norm = nib_gguf_tensor(gguf, 2);
    assert_memory_equal(norm->data, data + norm->offset, norm->size_bytes);
    nib_gguf_free(gguf);
    free(data);
}

static void a_file_without_tensors_needs_no_data(void **state) {
    (void)state;
    size_t len;
    nib_gguf *gguf;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_string(w, "tokenizer.ggml.model", "gpt2");
    unsigned char *data = nib_test_gguf_finish(&len, w);
    assert_int_equal(nib_gguf_open_memory(&gguf, data, len, NULL), NIB_OK);
    assert_int_equal(nib_gguf_n_tensors(gguf), 0);
    assert_null(nib_gguf_find_tensor(gguf, "x"));
    nib_gguf_free(gguf);
    nib_gguf_free(NULL);
    free(data);
}

static void a_missing_file_is_an_io_error(void **state) {
    (void)state;
    nib_gguf *gguf = (nib_gguf *)&gguf;
    nib_error err;
    assert_int_equal(nib_gguf_open(&gguf, path_of("none.gguf"), &err), NIB_EIO);
    assert_null(gguf);
    assert_non_null(strstr(err.message, "none.gguf: No such file"));
    assert_int_equal(nib_gguf_open(&gguf, directory, &err), NIB_EIO);
}

static void a_file_cut_at_every_fiftieth_is_refused(void **state) {
    (void)state;
    size_t len;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    for (size_t i = 0; i < 50; i++) {
        nib_gguf *gguf = (nib_gguf *)&gguf;
        nib_error err;
        nib_test_gguf_save(path_of("cut.gguf"), data, len * i / 50);
        assert_int_equal(nib_gguf_open(&gguf, path_of("cut.gguf"), &err), NIB_EFORMAT);
        assert_null(gguf);
        assert_memory_equal(err.message, "cut.gguf: ", 10);
    }
    (void)unlink(path_of("cut.gguf"));
    free(data);
}

static void parts_make_one_model(void **state) {
    (void)state;
    nib_gguf *gguf;
    nib_error err;
    const part parts[] = {{FIRST, 0, 3, 3, "a"}, {SECOND, 1, 3, 3, "b"}, {THIRD, 2, 3, 3, "c"}};
    assert_int_equal(open_parts(&gguf, &err, parts), NIB_OK);
    assert_int_equal(nib_gguf_n_parts(gguf), 3);
    assert_int_equal(nib_gguf_n_tensors(gguf), 3);
    assert_true(nib_gguf_find(gguf, "general.architecture") == 0);
    assert_true(nib_gguf_size_bytes(gguf) > 3 * (nib_gguf_tensor(gguf, 2)->offset + 4) - 4);
    for (size_t i = 0; i < 3; i++) {
        const nib_tensor *tensor = nib_gguf_find_tensor(gguf, parts[i].tensor);
        float value = (float)i;
        assert_ptr_equal(tensor, nib_gguf_tensor(gguf, i));
        assert_int_equal(tensor->part, i);
        assert_memory_equal(tensor->data, &value, sizeof value);
    }
    nib_gguf_free(gguf);
}

static void a_total_of_tensors_need_not_be_said(void **state) {
    (void)state;
    nib_gguf *gguf;
    const part parts[] = {{FIRST, 0, 3, -1, "a"}, {SECOND, 1, 3, -1, "b"}, {THIRD, 2, 3, -1, "c"}};
    assert_int_equal(open_parts(&gguf, NULL, parts), NIB_OK);
    nib_gguf_free(gguf);
}

static void one_part_of_one_is_a_whole_file(void **state) {
    (void)state;
    nib_gguf *gguf;
    const part parts[] = {{"whole.gguf", 0, 1, 1, "a"}, {NULL, 0, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
    assert_int_equal(open_parts(&gguf, NULL, parts), NIB_OK);
    assert_int_equal(nib_gguf_n_parts(gguf), 1);
    nib_gguf_free(gguf);
    const part merged[] = {{"whole.gguf", 0, 0, 1, "a"}, {NULL, 0, 0, 0, NULL}, {NULL, 0, 0, 0, NULL}};
    assert_int_equal(open_parts(&gguf, NULL, merged), NIB_OK);
    nib_gguf_free(gguf);
}

static void opening_must_begin_with_the_first_part(void **state) {
    (void)state;
    const part parts[] = {{SECOND, 1, 3, 3, "b"}, {FIRST, 0, 3, 3, "a"}, {THIRD, 2, 3, 3, "c"}};
    expect_refused(parts, NIB_EFORMAT, SECOND ": split.no 1, expected 0: open the first of the 3 parts");
}

static void a_missing_part_is_named(void **state) {
    (void)state;
    const part parts[] = {{FIRST, 0, 3, 3, "a"}, {NULL, 0, 0, 0, NULL}, {THIRD, 2, 3, 3, "c"}};
    expect_refused(parts, NIB_EIO, SECOND ": No such file");
}

static void a_part_in_anothers_place_is_named(void **state) {
    (void)state;
    const part parts[] = {{FIRST, 0, 3, 3, "a"}, {SECOND, 2, 3, 3, "c"}, {THIRD, 1, 3, 3, "b"}};
    expect_refused(parts, NIB_EFORMAT, SECOND ": split.no 2, split.count 3, split.tensors.count 3, expected 1, 3, 3");
}

static void a_part_of_another_split_is_named(void **state) {
    (void)state;
    const part count[] = {{FIRST, 0, 3, 3, "a"}, {SECOND, 1, 3, 3, "b"}, {THIRD, 2, 4, 3, "c"}};
    expect_refused(count, NIB_EFORMAT, THIRD ": split.no 2, split.count 4");
    const part total[] = {{FIRST, 0, 3, 3, "a"}, {SECOND, 1, 3, 4, "b"}, {THIRD, 2, 3, 3, "c"}};
    expect_refused(total, NIB_EFORMAT, SECOND ": split.no 1, split.count 3, split.tensors.count 4");
}

static void a_wrong_total_of_tensors_is_refused(void **state) {
    (void)state;
    const part parts[] = {{FIRST, 0, 3, 4, "a"}, {SECOND, 1, 3, 4, "b"}, {THIRD, 2, 3, 4, "c"}};
    expect_refused(parts, NIB_EFORMAT, FIRST ": split.tensors.count 4, expected 3");
}

static void a_tensor_in_two_parts_is_refused(void **state) {
    (void)state;
    const part parts[] = {{FIRST, 0, 3, 3, "a"}, {SECOND, 1, 3, 3, "b"}, {THIRD, 2, 3, 3, "a"}};
    expect_refused(parts, NIB_EFORMAT, "tensor 2 'a': the name is there a second time");
}

static void a_first_part_must_be_named_as_one(void **state) {
    (void)state;
    const part parts[] = {{"renamed.gguf", 0, 3, 3, "a"}, {SECOND, 1, 3, 3, "b"}, {THIRD, 2, 3, 3, "c"}};
    expect_refused(parts, NIB_EFORMAT,
                   "renamed.gguf: the name of a first part, expected to end in -00001-of-00003.gguf");
    const part count[] = {{"m-00001-of-00002.gguf", 0, 3, 3, "a"}, {SECOND, 1, 3, 3, "b"}, {THIRD, 2, 3, 3, "c"}};
    expect_refused(count, NIB_EFORMAT, "expected to end in -00001-of-00003.gguf");
}

static void split_counts_have_a_limit(void **state) {
    (void)state;
    size_t len;
    nib_gguf *gguf;
    nib_error err;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_scalar(w, "split.count", NIB_GGUF_U64, &(uint64_t){UINT64_C(1) << 63}, 8);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    assert_int_equal(nib_gguf_open_memory(&gguf, data, len, &err), NIB_EFORMAT);
    assert_string_equal(err.message, "model in memory: split.count 9223372036854775808, expected at most 99999");
    free(data);
}

static void a_split_file_in_memory_is_refused(void **state) {
    (void)state;
    size_t len;
    nib_gguf *gguf;
    nib_error err;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_u32(w, "split.count", 2);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    assert_int_equal(nib_gguf_open_memory(&gguf, data, len, &err), NIB_EUNSUPPORTED);
    assert_string_equal(err.message, "model in memory: split.count 2, expected a file that is not split");
    assert_null(gguf);
    free(data);
}

static void every_allocation_for_a_split_file_may_fail(void **state) {
    (void)state;
    const part parts[] = {{FIRST, 0, 3, 3, "a"}, {SECOND, 1, 3, 3, "b"}, {THIRD, 2, 3, 3, "c"}};
    nib_status status = NIB_ENOMEM;
    for (size_t n = 1; status != NIB_OK; n++) {
        nib_gguf *gguf = (nib_gguf *)&gguf;
        nib_error err;
        nib_alloc_fail_at(n);
        status = open_parts(&gguf, &err, parts);
        nib_alloc_fail_at(0);
        assert_true(status == NIB_OK || status == NIB_ENOMEM);
        assert_true((status == NIB_OK) == (gguf != NULL));
        nib_gguf_free(gguf);
    }
}

/* Runs last: whatever the tests before it opened, or failed to open, is unmapped again. */
static void no_file_stays_mapped(void **state) {
    (void)state;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) {
        skip(); /* no Linux */
    }
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, directory) != NULL) {
            fail_msg("still mapped: %s", line);
        }
    }
    (void)fclose(maps);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_2_and_3_are_read),
        cmocka_unit_test(tensors_are_as_written),
        cmocka_unit_test(a_file_on_disk_reads_as_one_in_memory),
        cmocka_unit_test(a_file_without_tensors_needs_no_data),
        cmocka_unit_test(a_missing_file_is_an_io_error),
        cmocka_unit_test(a_file_cut_at_every_fiftieth_is_refused),
        cmocka_unit_test(parts_make_one_model),
        cmocka_unit_test(a_total_of_tensors_need_not_be_said),
        cmocka_unit_test(one_part_of_one_is_a_whole_file),
        cmocka_unit_test(opening_must_begin_with_the_first_part),
        cmocka_unit_test(a_missing_part_is_named),
        cmocka_unit_test(a_part_in_anothers_place_is_named),
        cmocka_unit_test(a_part_of_another_split_is_named),
        cmocka_unit_test(a_wrong_total_of_tensors_is_refused),
        cmocka_unit_test(a_tensor_in_two_parts_is_refused),
        cmocka_unit_test(a_first_part_must_be_named_as_one),
        cmocka_unit_test(split_counts_have_a_limit),
        cmocka_unit_test(a_split_file_in_memory_is_refused),
        cmocka_unit_test(every_allocation_for_a_split_file_may_fail),
        cmocka_unit_test(no_file_stays_mapped),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
