/* Oracle: gguf-py's numpy code (tests/checkkern/gguf_blocks.py; its output is NIB_GGUF_BLOCKS). Every bit must be
 * equal: a weight is s * q, which is exact, or that plus a minimum, which is rounded once, in gguf-py as well. */
#include "kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 256, MAX_BYTES = 512 };

/* One hexadecimal digit of text, which is moved on. */
static uint32_t digit(const char **text) {
    char c = *(*text)++;
    return (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static uint32_t number(const char **text, int n_digits) {
    uint32_t x = 0;
    for (int i = 0; i < n_digits; i++) {
        x = x << 4 | digit(text);
    }
    return x;
}

static nib_dtype type_of(const char *name) {
    for (uint32_t i = 0; i < 64; i++) {
        const nib_dtype_traits *traits = nib_dtype_find(i);
        if (traits != NULL && strcmp(traits->name, name) == 0) {
            return (nib_dtype)i;
        }
    }
    fail_msg("%s is no type", name);
    return NIB_F32;
}

/* One line of the file, on every rung of this machine. */
static void check_line(const char *name, const char *bytes, const char *weights) {
    unsigned char row[MAX_BYTES];
    size_t len = strlen(bytes) / 2;
    assert_true(len <= sizeof row);
    for (size_t i = 0; i < len; i++) {
        row[i] = (unsigned char)number(&bytes, 2);
    }
    uint32_t want[N];
    for (int i = 0; i < N; i++) {
        want[i] = number(&weights, 8);
    }
    nib_matrix w = {.data = row, .rows = 1, .cols = N, .row_bytes = len, .dtype = type_of(name)};
    for (size_t i = 0; nib_kernels_name(i) != NULL; i++) {
        const nib_kernels *kernels = nib_kernels_find(nib_kernels_name(i));
        float got[N];
        if (kernels != NULL) {
            kernels->dequantize(got, &w, 0);
            assert_memory_equal(got, want, sizeof got);
        }
    }
}

static void every_quantised_type_is_read_as_by_gguf_py(void **state) {
    (void)state;
    FILE *file = fopen(NIB_GGUF_BLOCKS, "r");
    assert_non_null(file);
    static char line[8192];
    int n_types = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char name[16], bytes[2 * MAX_BYTES + 1], weights[8 * N + 1];
        if (line[0] != '#') {
            assert_int_equal(sscanf(line, "%15s %1024s %2048s", name, bytes, weights), 3);
            check_line(name, bytes, weights);
            n_types++;
        }
    }
    (void)fclose(file);
    assert_int_equal(n_types, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_quantised_type_is_read_as_by_gguf_py)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
