/* Metadata of every type comes out as it was written, by index and by typed access. */
#include "format/gguf_meta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/gguf.h"
#include "gguf_writer.h"

typedef struct fixture {
    unsigned char *data;
    nib_gguf *gguf;
} fixture;

static int set_up(void **state) {
    static fixture f;
    size_t len;
    f.data = nib_test_gguf_sample(&len, 3);
    *state = &f;
    return nib_gguf_open_memory(&f.gguf, f.data, len, NULL) == NIB_OK ? 0 : -1;
}

static int tear_down(void **state) {
    fixture *f = *state;
    nib_gguf_free(f->gguf);
    free(f->data);
    return 0;
}

/* Element j of a key, which must have that type. */
static nib_value value_of(void **state, const char *key, const char *type, size_t j) {
    const nib_gguf *gguf = ((fixture *)*state)->gguf;
    nib_file_entry entry;
    nib_value value;
    int64_t i = nib_gguf_find(gguf, key);
    assert_true(i >= 0);
    nib_gguf_entry(&entry, gguf, (size_t)i);
    assert_string_equal(entry.key, key);
    assert_string_equal(entry.type, type);
    assert_true(j < entry.n);
    nib_gguf_value(&value, gguf, (size_t)i, j);
    return value;
}

static void scalars_keep_their_extremes(void **state) {
    assert_true(value_of(state, "test.u8", "u8", 0).u == UINT8_MAX);
    assert_true(value_of(state, "test.i8", "i8", 0).i == INT8_MIN);
    assert_true(value_of(state, "test.u16", "u16", 0).u == UINT16_MAX);
    assert_true(value_of(state, "test.i16", "i16", 0).i == INT16_MIN);
    assert_true(value_of(state, "test.u32", "u32", 0).u == UINT32_MAX);
    assert_true(value_of(state, "test.i32", "i32", 0).i == INT32_MIN);
    assert_true(value_of(state, "test.u64", "u64", 0).u == UINT64_MAX);
    assert_true(value_of(state, "test.i64", "i64", 0).i == INT64_MIN);
    assert_true(value_of(state, "test.f32", "f32", 0).r == 1.5);
    assert_true(value_of(state, "test.f64", "f64", 0).r == -0.1);
    assert_true(value_of(state, "test.bool", "bool", 0).u == 1);
}

static void kinds_follow_the_type(void **state) {
    assert_int_equal(value_of(state, "test.u16", "u16", 0).kind, NIB_VALUE_UINT);
    assert_int_equal(value_of(state, "test.i16", "i16", 0).kind, NIB_VALUE_INT);
    assert_int_equal(value_of(state, "test.bool", "bool", 0).kind, NIB_VALUE_BOOL);
    nib_value f32 = value_of(state, "test.f32", "f32", 0);
    nib_value f64 = value_of(state, "test.f64", "f64", 0);
    assert_int_equal(f32.kind, NIB_VALUE_REAL);
    assert_int_equal(f64.kind, NIB_VALUE_REAL);
    assert_true(f32.is_float32 && !f64.is_float32);
}

static void array_elements_are_read_by_index(void **state) {
    assert_true(value_of(state, "test.array.u8", "u8", 2).u == UINT8_MAX);
    assert_true(value_of(state, "test.array.i8", "i8", 0).i == -1);
    assert_true(value_of(state, "test.array.u16", "u16", 1).u == UINT16_MAX);
    assert_true(value_of(state, "test.array.i16", "i16", 0).i == -1);
    assert_true(value_of(state, "test.array.u32", "u32", 1).u == UINT32_MAX);
    assert_true(value_of(state, "test.array.i32", "i32", 1).i == 2);
    assert_true(value_of(state, "test.array.u64", "u64", 1).u == UINT64_MAX);
    assert_true(value_of(state, "test.array.i64", "i64", 0).i == -1);
    assert_true(value_of(state, "test.array.f32", "f32", 1).r == -2.0);
    assert_true(value_of(state, "test.array.f64", "f64", 0).r == 0.1);
    assert_true(value_of(state, "test.array.bool", "bool", 0).u == 0);
    assert_true(value_of(state, "test.array.bool", "bool", 1).u == 1);
}

static void strings_may_be_empty_and_hold_nul(void **state) {
    nib_value one = value_of(state, "test.array.string", "string", 0);
    nib_value empty = value_of(state, "test.array.string", "string", 1);
    nib_value nul = value_of(state, "test.array.string", "string", 2);
    assert_int_equal(one.len, 3);
    assert_memory_equal(one.text, "one", 3);
    assert_int_equal(empty.len, 0);
    assert_non_null(empty.text);
    assert_int_equal(nul.len, 3);
    assert_memory_equal(nul.text, "a\0b", 3);
}

static void an_integer_of_any_type_serves(void **state) {
    const nib_gguf *gguf = ((fixture *)*state)->gguf;
    uint64_t value = 0;
    assert_int_equal(nib_gguf_get_uint(&value, gguf, "test.u8", NULL), NIB_OK);
    assert_true(value == UINT8_MAX);
    assert_int_equal(nib_gguf_get_uint(&value, gguf, "test.u64", NULL), NIB_OK);
    assert_true(value == UINT64_MAX);
}

static void typed_access_returns_what_was_written(void **state) {
    const nib_gguf *gguf = ((fixture *)*state)->gguf;
    double real = 0;
    bool yes = false;
    const char *text = NULL;
    size_t len = 0;
    assert_int_equal(nib_gguf_get_real(&real, gguf, "test.f32", NULL), NIB_OK);
    assert_true(real == 1.5);
    assert_int_equal(nib_gguf_get_real(&real, gguf, "test.f64", NULL), NIB_OK);
    assert_true(real == -0.1);
    assert_int_equal(nib_gguf_get_bool(&yes, gguf, "test.bool", NULL), NIB_OK);
    assert_true(yes);
    assert_int_equal(nib_gguf_get_string(&text, &len, gguf, "test.string", NULL), NIB_OK);
    assert_int_equal(len, 4);
    assert_memory_equal(text, "text", 4);
}

static void an_absent_key_leaves_the_value_alone(void **state) {
    const nib_gguf *gguf = ((fixture *)*state)->gguf;
    uint64_t number = 7;
    double real = 7;
    bool yes = true;
    const char *text = "7";
    size_t len = 7;
    int64_t entry = 7;
    size_t n = 7;
    assert_int_equal(nib_gguf_get_uint(&number, gguf, "no.such", NULL), NIB_OK);
    assert_int_equal(nib_gguf_get_real(&real, gguf, "no.such", NULL), NIB_OK);
    assert_int_equal(nib_gguf_get_bool(&yes, gguf, "no.such", NULL), NIB_OK);
    assert_int_equal(nib_gguf_get_string(&text, &len, gguf, "no.such", NULL), NIB_OK);
    assert_true(number == 7 && real == 7 && yes && strcmp(text, "7") == 0 && len == 7);
    assert_int_equal(nib_gguf_get_array(&entry, &n, gguf, "no.such", NIB_VALUE_UINT, NULL), NIB_OK);
    assert_true(entry == -1 && n == 0);
    assert_int_equal(nib_gguf_find(gguf, "no.such"), -1);
}

static void another_type_is_refused_by_name(void **state) {
    const nib_gguf *gguf = ((fixture *)*state)->gguf;
    nib_error err;
    uint64_t number = 7;
    double real = 7;
    bool yes = true;
    const char *text = "7";
    size_t len = 7;
    assert_int_equal(nib_gguf_get_uint(&number, gguf, "test.string", &err), NIB_EFORMAT);
    assert_string_equal(err.message, "model in memory: test.string has type string, expected integer");
    assert_int_equal(nib_gguf_get_uint(&number, gguf, "test.i8", &err), NIB_EFORMAT);
    assert_string_equal(err.message, "model in memory: test.i8 -128, expected at least 0");
    assert_int_equal(nib_gguf_get_uint(&number, gguf, "test.array.u32", &err), NIB_EFORMAT);
    assert_string_equal(err.message, "model in memory: test.array.u32 has type array of u32, expected integer");
    assert_int_equal(nib_gguf_get_real(&real, gguf, "test.u8", &err), NIB_EFORMAT);
    assert_string_equal(err.message, "model in memory: test.u8 has type u8, expected f32 or f64");
    assert_int_equal(nib_gguf_get_bool(&yes, gguf, "test.u8", &err), NIB_EFORMAT);
    assert_int_equal(nib_gguf_get_string(&text, &len, gguf, "test.u8", &err), NIB_EFORMAT);
    assert_true(number == 7 && real == 7 && yes && len == 7);
}

static void arrays_are_found_by_kind(void **state) {
    const nib_gguf *gguf = ((fixture *)*state)->gguf;
    int64_t entry;
    size_t n;
    nib_error err;
    nib_value value;
    assert_int_equal(nib_gguf_get_array(&entry, &n, gguf, "test.array.string", NIB_VALUE_STRING, NULL), NIB_OK);
    assert_true(entry == nib_gguf_find(gguf, "test.array.string") && n == 3);
    assert_int_equal(nib_gguf_get_array(&entry, &n, gguf, "test.array.i32", NIB_VALUE_UINT, NULL), NIB_OK);
    nib_gguf_value(&value, gguf, (size_t)entry, 1);
    assert_true(value.u == 2 && value.i == 2);
    assert_int_equal(nib_gguf_get_array(&entry, &n, gguf, "test.array.empty", NIB_VALUE_UINT, NULL), NIB_OK);
    assert_true(entry >= 0 && n == 0);
    assert_int_equal(nib_gguf_get_array(&entry, &n, gguf, "test.array.f32", NIB_VALUE_STRING, &err), NIB_EFORMAT);
    assert_string_equal(err.message, "model in memory: test.array.f32 has type array of f32, expected array of string");
    assert_true(entry == -1 && n == 0);
    assert_int_equal(nib_gguf_get_array(&entry, &n, gguf, "test.u8", NIB_VALUE_UINT, &err), NIB_EFORMAT);
    assert_string_equal(err.message, "model in memory: test.u8 has type u8, expected array of integer");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_keep_their_extremes),
        cmocka_unit_test(kinds_follow_the_type),
        cmocka_unit_test(array_elements_are_read_by_index),
        cmocka_unit_test(strings_may_be_empty_and_hold_nul),
        cmocka_unit_test(an_integer_of_any_type_serves),
        cmocka_unit_test(typed_access_returns_what_was_written),
        cmocka_unit_test(an_absent_key_leaves_the_value_alone),
        cmocka_unit_test(another_type_is_refused_by_name),
        cmocka_unit_test(arrays_are_found_by_kind),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
