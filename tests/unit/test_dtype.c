/* The element types of GGUF: names, numbers and block sizes, and which of them compute. */
#include "kernel/dtype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct row {
    uint32_t number, block, bytes;
    const char *name;
} row;

/* GGUF's types as gguf-py 0.19 lists them (GGML_QUANT_SIZES), but for Q8_1, which never lies in a file: the format's
 * own header gives it two binary16 numbers, gguf-py two of 32 bits. */
static const row rows[] = {
    {0, 1, 4, "F32"},         {1, 1, 2, "F16"},         {2, 32, 18, "Q4_0"},      {3, 32, 20, "Q4_1"},
    {6, 32, 22, "Q5_0"},      {7, 32, 24, "Q5_1"},      {8, 32, 34, "Q8_0"},      {9, 32, 36, "Q8_1"},
    {10, 256, 84, "Q2_K"},    {11, 256, 110, "Q3_K"},   {12, 256, 144, "Q4_K"},   {13, 256, 176, "Q5_K"},
    {14, 256, 210, "Q6_K"},   {15, 256, 292, "Q8_K"},   {16, 256, 66, "IQ2_XXS"}, {17, 256, 74, "IQ2_XS"},
    {18, 256, 98, "IQ3_XXS"}, {19, 256, 50, "IQ1_S"},   {20, 32, 18, "IQ4_NL"},   {21, 256, 110, "IQ3_S"},
    {22, 256, 82, "IQ2_S"},   {23, 256, 136, "IQ4_XS"}, {24, 1, 1, "I8"},         {25, 1, 2, "I16"},
    {26, 1, 4, "I32"},        {27, 1, 8, "I64"},        {28, 1, 8, "F64"},        {29, 256, 56, "IQ1_M"},
    {30, 1, 2, "BF16"},       {34, 256, 54, "TQ1_0"},   {35, 256, 66, "TQ2_0"},   {39, 32, 17, "MXFP4"},
    {40, 64, 36, "NVFP4"},    {41, 128, 18, "Q1_0"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void every_type_of_the_format_has_its_block(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS; i++) {
        const nib_dtype_traits *traits = nib_dtype_find(rows[i].number);
        assert_non_null(traits);
        assert_string_equal(traits->name, rows[i].name);
        assert_int_equal(traits->block, rows[i].block);
        assert_int_equal(traits->block_bytes, rows[i].bytes);
    }
}

static void withdrawn_and_unknown_numbers_are_not_found(void **state) {
    (void)state;
    static const uint32_t numbers[] = {4, 5, 31, 32, 33, 36, 37, 38, 42, 1000, 0x7fffffffu, 0xffffffffu};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_null(nib_dtype_find(numbers[i]));
    }
}

static void eleven_types_compute(void **state) {
    (void)state;
    static const uint32_t computing[] = {NIB_F32,  NIB_F16,  NIB_Q4_0, NIB_Q4_1, NIB_Q5_0, NIB_Q5_1,
                                         NIB_Q8_0, NIB_Q4_K, NIB_Q5_K, NIB_Q6_K, NIB_BF16};
    size_t n = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        n += nib_dtype_find(rows[i].number)->computes;
    }
    assert_int_equal(n, sizeof computing / sizeof *computing);
    for (size_t i = 0; i < n; i++) {
        assert_true(nib_dtype_find(computing[i])->computes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_the_format_has_its_block),
        cmocka_unit_test(withdrawn_and_unknown_numbers_are_not_found),
        cmocka_unit_test(eleven_types_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
