/* The public view of a model file. */
#include <nib/file.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "gguf_writer.h"

static char path[] = "/tmp/nib-test-file-XXXXXX";

static int save_sample(void **state) {
    (void)state;
    int fd = mkstemp(path);
    if (fd < 0) {
        return -1;
    }
    (void)close(fd);
    size_t len;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    nib_test_gguf_save(path, data, len);
    free(data);
    return 0;
}

static int remove_sample(void **state) {
    (void)state;
    return unlink(path);
}

static nib_file *open_sample(void) {
    nib_file *file;
    assert_int_equal(nib_file_open(&file, path, NULL), NIB_OK);
    return file;
}

static void format_and_counts_are_told(void **state) {
    (void)state;
    uint32_t version = 0;
    nib_file *file = open_sample();
    assert_string_equal(nib_file_format(&version, file), "GGUF");
    assert_int_equal(version, 3);
    assert_int_equal(nib_file_n_tensors(file), 3);
    assert_int_equal(nib_file_n_entries(file), 27);
    assert_int_equal(nib_file_n_parts(file), 1);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(nib_file_size_bytes(file), info.st_size);
    nib_file_free(file);
    nib_file_free(NULL);
}

static void entries_and_values_are_told(void **state) {
    (void)state;
    nib_file_entry entry;
    nib_value value;
    nib_file *file = open_sample();
    assert_int_equal(nib_file_get_entry(&entry, file, 0, NULL), NIB_OK);
    assert_string_equal(entry.key, "general.architecture");
    assert_string_equal(entry.type, "string");
    assert_true(entry.n == 1 && !entry.is_array);
    assert_int_equal(nib_file_get_value(&value, file, 0, 0, NULL), NIB_OK);
    assert_true(value.kind == NIB_VALUE_STRING && value.len == 5 && memcmp(value.text, "llama", 5) == 0);
    nib_file_free(file);
}

static void tensors_are_told(void **state) {
    (void)state;
    nib_file_tensor tensor;
    nib_file *file = open_sample();
    assert_int_equal(nib_file_get_tensor(&tensor, file, 1, NULL), NIB_OK);
    assert_string_equal(tensor.name, "token_embd.weight");
    assert_string_equal(tensor.type, "Q8_0");
    assert_true(tensor.n_dims == 2 && tensor.dims[0] == 64 && tensor.dims[1] == 5 && tensor.dims[3] == 1);
    assert_true(tensor.size_bytes == 340 && tensor.offset % 64 == 0 && tensor.part == 0);
    nib_file_free(file);
}

static void indices_are_checked(void **state) {
    (void)state;
    nib_file_entry entry;
    nib_value value;
    nib_file_tensor tensor;
    nib_error err;
    nib_file *file = open_sample();
    assert_int_equal(nib_file_get_entry(&entry, file, 27, &err), NIB_EINVAL);
    assert_string_equal(err.message, "metadata entry 27, expected less than 27");
    assert_int_equal(nib_file_get_value(&value, file, 27, 0, &err), NIB_EINVAL);
    assert_int_equal(nib_file_get_value(&value, file, 0, 1, &err), NIB_EINVAL);
    assert_string_equal(err.message, "element 1, expected less than 1");
    assert_int_equal(nib_file_get_tensor(&tensor, file, 3, &err), NIB_EINVAL);
    assert_string_equal(err.message, "tensor 3, expected less than 3");
    nib_file_free(file);
}

static void what_cannot_be_opened_says_why(void **state) {
    (void)state;
    nib_file *file = (nib_file *)&file;
    nib_error err;
    assert_int_equal(nib_file_open(&file, "/tmp", &err), NIB_EIO);
    assert_null(file);
    assert_int_equal(nib_file_open(&file, "/proc/self/exe", &err), NIB_EFORMAT);
    assert_non_null(strstr(err.message, "magic 0x7f454c46, expected 'GGUF'"));
    assert_null(file);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    nib_status status = NIB_ENOMEM;
    for (size_t n = 1; status != NIB_OK; n++) {
        nib_file *file = (nib_file *)&file;
        nib_alloc_fail_at(n);
        status = nib_file_open(&file, path, NULL);
        nib_alloc_fail_at(0);
        assert_true((status == NIB_OK) == (file != NULL));
        assert_true(status == NIB_OK || status == NIB_ENOMEM);
        nib_file_free(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_and_counts_are_told),
        cmocka_unit_test(entries_and_values_are_told),
        cmocka_unit_test(tensors_are_told),
        cmocka_unit_test(indices_are_checked),
        cmocka_unit_test(what_cannot_be_opened_says_why),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, save_sample, remove_sample);
}
