/* The head of a GGUF file: hostile and damaged files are refused with the field's name, before memory is taken. */
#include "format/gguf_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "gguf_walk.h"
#include "gguf_writer.h"
#include "sanitized.h"

/* Opens data. NULL when all is well: a refusal has left no object and a message that names the file, and an accepted
 * file is right in every field. Else what is wrong. */
static const char *open_wrong(nib_status *status, nib_error *err, const unsigned char *data, size_t len) {
    static const char label[] = "model in memory: ";
    nib_gguf *gguf = (nib_gguf *)&gguf;
    *err = (nib_error){0};
    *status = nib_gguf_open_memory(&gguf, data, len, err);
    if (*status != NIB_OK) {
        bool names = *status == NIB_ENOMEM || strncmp(err->message, label, strlen(label)) == 0;
        return gguf == NULL && err->code == *status && names ? NULL : "refused without a right message";
    }
    const char *wrong = nib_test_gguf_walk(gguf, data, len);
    nib_gguf_free(gguf);
    return wrong;
}

static nib_status open_checked(nib_error *err, const unsigned char *data, size_t len) {
    nib_status status;
    const char *wrong = open_wrong(&status, err, data, len);
    if (wrong != NULL) {
        fail_msg("%s: %s", nib_status_name(status), wrong);
    }
    return status;
}

/* One field of the sample, spoilt. */
typedef struct spoilt {
    const char *name; /* of the key or tensor; NULL: at is the place in the file */
    int at;           /* places after the name's end */
    size_t n;         /* bytes of the field */
    uint64_t value;
    nib_status status;
    const char *says; /* what the message must contain */
} spoilt;

static const spoilt fields[] = {
    {NULL, 0, 4, 0x46474755, NIB_EFORMAT, "magic 0x55474746, expected 'GGUF'"},
    {NULL, 0, 4, 0x47475546, NIB_EFORMAT, "byte order is foreign"},
    {NULL, 4, 4, 0x03000000, NIB_EFORMAT, "byte order is foreign"},
    {NULL, 4, 4, 0x02000000, NIB_EFORMAT, "byte order is foreign"},
    {NULL, 4, 4, 0, NIB_EUNSUPPORTED, "version 0, expected 2 or 3"},
    {NULL, 4, 4, 1, NIB_EUNSUPPORTED, "version 1, expected 2 or 3"},
    {NULL, 4, 4, 4, NIB_EUNSUPPORTED, "version 4, expected 2 or 3"},
    {NULL, 8, 8, UINT64_C(1) << 63, NIB_EFORMAT, "tensor count 9223372036854775808, expected at most "},
    {NULL, 8, 8, UINT64_MAX, NIB_EFORMAT, "tensor count 18446744073709551615"},
    {NULL, 8, 8, 4, NIB_EFORMAT, "tensor 3: "},
    {NULL, 16, 8, UINT64_C(1) << 63, NIB_EFORMAT, "metadata count 9223372036854775808, expected at most "},
    {NULL, 16, 8, UINT64_MAX, NIB_EFORMAT, "metadata count 18446744073709551615"},
    {NULL, 24, 8, UINT64_C(1) << 40, NIB_EFORMAT, "metadata entry 0: key length 1099511627776"},
    {NULL, 24, 8, 0, NIB_EFORMAT, "metadata entry 0: key length 0, expected 1 to 65535"},
    {"general.architecture", -1, 1, 0, NIB_EFORMAT, "metadata entry 0: a NUL byte in the name 'general.architectur'"},
    {"general.architecture", 0, 4, 13, NIB_EFORMAT, "'general.architecture': value type 13, expected 0 to 12"},
    {"general.architecture", 0, 4, UINT32_MAX, NIB_EFORMAT, "value type 4294967295"},
    {"general.architecture", 4, 8, UINT64_C(1) << 40, NIB_EFORMAT, "string length 1099511627776"},
    {"general.architecture", 4, 8, UINT64_MAX, NIB_EFORMAT, "string length 18446744073709551615"},
    {"test.bool", 4, 1, 2, NIB_EFORMAT, "'test.bool': bool 2, expected 0 or 1"},
    {"test.array.bool", 17, 1, 255, NIB_EFORMAT, "'test.array.bool': bool 255, expected 0 or 1"},
    {"test.array.u8", 4, 4, 13, NIB_EFORMAT, "'test.array.u8': element type 13"},
    {"test.array.u8", 4, 4, NIB_GGUF_ARRAY, NIB_EUNSUPPORTED, "'test.array.u8': element type array"},
    {"test.array.empty", 4, 4, NIB_GGUF_ARRAY, NIB_EUNSUPPORTED, "element type array"},
    {"test.array.u64", 8, 8, UINT64_C(1) << 61, NIB_EFORMAT, "array length 2305843009213693952"},
    {"test.array.u64", 8, 8, UINT64_MAX, NIB_EFORMAT, "array length 18446744073709551615"},
    {"test.array.string", 8, 8, UINT64_C(1) << 62, NIB_EFORMAT, "array length 4611686018427387904"},
    {"test.array.string", 16, 8, UINT64_C(1) << 40, NIB_EFORMAT, "string length 1099511627776"},
    {"general.alignment", 0, 4, NIB_GGUF_F32, NIB_EFORMAT, "general.alignment has type f32, expected integer"},
    {"general.alignment", 0, 4, NIB_GGUF_I32, NIB_OK, ""},
    {"general.alignment", 4, 4, 0, NIB_EFORMAT, "general.alignment 0, expected a power of two from 8 to 1048576"},
    {"general.alignment", 4, 4, 1, NIB_EFORMAT, "general.alignment 1,"},
    {"general.alignment", 4, 4, 3, NIB_EFORMAT, "general.alignment 3,"},
    {"general.alignment", 4, 4, 4, NIB_EFORMAT, "general.alignment 4,"},
    {"general.alignment", 4, 4, 48, NIB_EFORMAT, "general.alignment 48,"},
    {"general.alignment", 4, 4, 1 << 21, NIB_EFORMAT, "general.alignment 2097152,"},
    {"general.alignment", 4, 4, 1 << 30, NIB_EFORMAT, "general.alignment 1073741824,"},
    {"general.alignment", 4, 4, 1 << 20, NIB_EFORMAT, "expected to end within the 0 bytes of data"},
    {"token_embd.weight", -25, 8, UINT64_C(1) << 40, NIB_EFORMAT, "tensor 1: name length 1099511627776"},
    {"token_embd.weight", -25, 8, 0, NIB_EFORMAT, "tensor 1: name length 0"},
    {"token_embd.weight", -10, 1, 0, NIB_EFORMAT, "a NUL byte in the name 'token_e'"},
    {"token_embd.weight", 0, 4, 0, NIB_EFORMAT, "tensor 1 'token_embd.weight': n_dims 0, expected 1 to 4"},
    {"token_embd.weight", 0, 4, 5, NIB_EFORMAT, "n_dims 5, expected 1 to 4"},
    {"token_embd.weight", 0, 4, UINT32_MAX, NIB_EFORMAT, "n_dims 4294967295, expected 1 to 4"},
    {"token_embd.weight", 4, 8, 0, NIB_EFORMAT, "dims[0] 0, expected 1 to"},
    {"token_embd.weight", 12, 8, 0, NIB_EFORMAT, "dims[1] 0, expected 1 to"},
    {"token_embd.weight", 4, 8, UINT64_C(1) << 63, NIB_EFORMAT, "dims[0] 9223372036854775808, expected 1 to"},
    {"token_embd.weight", 12, 8, UINT64_C(1) << 63, NIB_EFORMAT, "dims[1] 9223372036854775808, expected 1 to"},
    {"token_embd.weight", 12, 8, INT64_MAX, NIB_EFORMAT, "expected a product of dims below 2^63"},
    {"token_embd.weight", 4, 8, (UINT64_C(1) << 42) + 1, NIB_EFORMAT,
     "dims[0] 4398046511105, expected a multiple of 32"},
    {"token_embd.weight", 12, 8, (UINT64_C(1) << 42) + 1, NIB_EFORMAT, "281474976710720 elements of Q8_0 by dims"},
    {"token_embd.weight", 4, 8, 65, NIB_EFORMAT, "dims[0] 65, expected a multiple of 32, the block of Q8_0"},
    {"token_embd.weight", 12, 8, 8, NIB_EFORMAT, "offset 64 and size 544, expected to end within"},
    {"token_embd.weight", 20, 4, 99, NIB_EUNSUPPORTED, "type 99, expected the number of a known tensor type"},
    {"token_embd.weight", 20, 4, UINT32_MAX, NIB_EUNSUPPORTED, "type 4294967295"},
    {"token_embd.weight", 20, 4, 4, NIB_EUNSUPPORTED, "type 4,"},
    {"token_embd.weight", 24, 8, 1, NIB_EFORMAT, "offset 1, expected a multiple of general.alignment 64"},
    {"token_embd.weight", 24, 8, 512, NIB_EFORMAT, "offset 512 and size 340, expected to end within"},
    {"token_embd.weight", 24, 8, UINT64_C(1) << 40, NIB_EFORMAT, "offset 1099511627776, expected less than"},
    {"token_embd.weight", 24, 8, UINT64_MAX - 63, NIB_EFORMAT, "offset 18446744073709551552, expected less than"},
};

static bool is_refused(const spoilt *field) {
    size_t len;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    size_t base = field->name == NULL ? 0 : nib_test_gguf_find(data, len, field->name);
    nib_test_gguf_put(data, base + (size_t)field->at, field->value, field->n);
    nib_error err;
    nib_status status;
    const char *wrong = open_wrong(&status, &err, data, len);
    free(data);
    if (wrong == NULL && status == field->status && strstr(err.message, field->says) != NULL) {
        return true;
    }
    (void)fprintf(stderr, "%s at %d set to %llu: %s \"%s\" %s, expected %s \"..%s..\"\n",
                  field->name != NULL ? field->name : "file", field->at, (unsigned long long)field->value,
                  nib_status_name(status), err.message, wrong != NULL ? wrong : "", nib_status_name(field->status),
                  field->says);
    return false;
}

static bool are_all_refused(void) {
    bool refused = true;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        refused = is_refused(&fields[i]) && refused;
    }
    return refused;
}

static void a_spoilt_field_is_refused_by_name(void **state) {
    (void)state;
    assert_true(are_all_refused());
}

static void a_spoilt_field_takes_no_memory(void **state) {
    (void)state;
#if NIB_SANITIZED
    skip(); /* a sanitizer's own address space is far above the limit */
#else
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {512u << 20, 512u << 20};
        _exit(setrlimit(RLIMIT_AS, &limit) == 0 && are_all_refused() ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
#endif
}

static void a_file_cut_anywhere_is_refused(void **state) {
    (void)state;
    size_t len;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    for (size_t cut = 0; cut < len; cut++) {
        unsigned char *shorter = malloc(cut == 0 ? 1 : cut); /* exact, so that a sanitizer sees a byte too far */
        assert_non_null(shorter);
        memcpy(shorter, data, cut);
        nib_error err;
        assert_int_equal(open_checked(&err, shorter, cut), NIB_EFORMAT);
        free(shorter);
    }
    free(data);
}

static void an_empty_file_is_refused(void **state) {
    (void)state;
    nib_error err;
    assert_int_equal(open_checked(&err, NULL, 0), NIB_EFORMAT);
    assert_non_null(strstr(err.message, "magic at byte 0: the file ends at byte 0"));
}

/* Small, since each of its bytes takes 255 values. */
static unsigned char *small_file(size_t *len) {
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_alignment(w, 8);
    nib_test_gguf_strings(w, "s", 2, (const char *const[]){"a", ""});
    nib_test_gguf_array(w, "b", NIB_GGUF_BOOL, 2, (const uint8_t[]){0, 1}, 1);
    nib_test_gguf_string(w, "t", "bc");
    nib_test_gguf_tensor(w, "x", NIB_F16, 2, (const uint64_t[]){2, 3}, NULL, 12);
    nib_test_gguf_tensor(w, "y", NIB_Q8_0, 1, (const uint64_t[]){32}, NULL, 34);
    return nib_test_gguf_finish(len, w);
}

static void a_mutated_byte_is_refused_or_consistent(void **state) {
    (void)state;
    size_t len;
    size_t n_refused = 0;
    unsigned char *data = small_file(&len);
    for (size_t i = 0; i < len; i++) {
        unsigned char right = data[i];
        for (unsigned mutation = 1; mutation < 256; mutation++) {
            data[i] = (unsigned char)(right ^ mutation);
            nib_error err;
            nib_status status = open_checked(&err, data, len);
            assert_true(status == NIB_OK || status == NIB_EFORMAT || status == NIB_EUNSUPPORTED);
            n_refused += status != NIB_OK;
        }
        data[i] = right;
    }
    free(data);
    assert_in_range(n_refused, len * 255 / 4, len * 255 - 1);
}

static void repeated_names_are_refused(void **state) {
    (void)state;
    size_t len;
    nib_error err;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_u32(w, "same", 1);
    nib_test_gguf_string(w, "same", "again");
    unsigned char *data = nib_test_gguf_finish(&len, w);
    assert_int_equal(open_checked(&err, data, len), NIB_EFORMAT);
    assert_non_null(strstr(err.message, "metadata entry 1 'same': the key is there a second time"));
    free(data);
    w = nib_test_gguf_new(3);
    nib_test_gguf_tensor(w, "same", NIB_F32, 1, (const uint64_t[]){2}, NULL, 8);
    nib_test_gguf_tensor(w, "same", NIB_F32, 1, (const uint64_t[]){2}, NULL, 8);
    data = nib_test_gguf_finish(&len, w);
    assert_int_equal(open_checked(&err, data, len), NIB_EFORMAT);
    assert_non_null(strstr(err.message, "tensor 1 'same': the name is there a second time"));
    free(data);
}

static nib_status open_key_of(nib_error *err, size_t key_len) {
    char *key = calloc(key_len + 1, 1);
    assert_non_null(key);
    memset(key, 'k', key_len);
    size_t len;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_bool(w, key, true);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    nib_status status = open_checked(err, data, len);
    free(data);
    free(key);
    return status;
}

static void a_key_is_at_most_65535_bytes(void **state) {
    (void)state;
    nib_error err;
    assert_int_equal(open_key_of(&err, 65535), NIB_OK);
    assert_int_equal(open_key_of(&err, 65536), NIB_EFORMAT);
    assert_non_null(strstr(err.message, "key length 65536, expected 1 to 65535"));
}

static void a_name_with_control_bytes_gives_one_line(void **state) {
    (void)state;
    size_t len;
    nib_error err;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_tensor(w, "a\n\x1b[31m\xff", NIB_F32, 1, (const uint64_t[]){0}, NULL, 0);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    assert_int_equal(open_checked(&err, data, len), NIB_EFORMAT);
    assert_non_null(strstr(err.message, "tensor 0 'a??[31m?': dims[0] 0"));
    free(data);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    size_t len;
    unsigned char *data = nib_test_gguf_sample(&len, 3);
    nib_status status = NIB_ENOMEM;
    size_t n = 0;
    while (status != NIB_OK) {
        nib_error err;
        nib_alloc_fail_at(++n);
        status = open_checked(&err, data, len);
        assert_true(status == NIB_OK || status == NIB_ENOMEM);
    }
    nib_alloc_fail_at(0);
    free(data);
    assert_true(n > 30); /* a name for each entry and tensor at least */
}

static size_t allocations_for_strings(size_t n_strings) {
    const char **texts = calloc(n_strings, sizeof *texts);
    assert_non_null(texts);
    for (size_t i = 0; i < n_strings; i++) {
        texts[i] = "x";
    }
    size_t len;
    nib_error err;
    nib_test_gguf *w = nib_test_gguf_new(3);
    nib_test_gguf_strings(w, "tokens", n_strings, texts);
    unsigned char *data = nib_test_gguf_finish(&len, w);
    nib_alloc_fail_at(0);
    assert_int_equal(open_checked(&err, data, len), NIB_OK);
    free(data);
    free(texts);
    return nib_alloc_count();
}

static void a_large_array_takes_one_allocation(void **state) {
    (void)state;
    assert_int_equal(allocations_for_strings(262144), allocations_for_strings(1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spoilt_field_is_refused_by_name),
        cmocka_unit_test(a_spoilt_field_takes_no_memory),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(an_empty_file_is_refused),
        cmocka_unit_test(a_mutated_byte_is_refused_or_consistent),
        cmocka_unit_test(repeated_names_are_refused),
        cmocka_unit_test(a_key_is_at_most_65535_bytes),
        cmocka_unit_test(a_name_with_control_bytes_gives_one_line),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_large_array_takes_one_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
