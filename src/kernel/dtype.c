/* The element types of GGUF: names and block sizes, as the ggml project's ggml.h and ggml-common.h define them. */
#include "kernel/dtype.h"

/* By number. Numbers that are missing (4, 5, 31 .. 33, 36 .. 38) were withdrawn by the format. */
static const nib_dtype_traits traits[] = {
    [NIB_F32] = {"F32", 1, 4, true},
    [NIB_F16] = {"F16", 1, 2, true},
    [NIB_Q4_0] = {"Q4_0", 32, 2 + 16, true},
    [NIB_Q4_1] = {"Q4_1", 32, 2 + 2 + 16, true},
    [NIB_Q5_0] = {"Q5_0", 32, 2 + 4 + 16, true},
    [NIB_Q5_1] = {"Q5_1", 32, 2 + 2 + 4 + 16, true},
    [NIB_Q8_0] = {"Q8_0", 32, 2 + 32, true},
    [9] = {"Q8_1", 32, 2 + 2 + 32, false},
    [10] = {"Q2_K", 256, 16 + 64 + 2 + 2, false},
    [11] = {"Q3_K", 256, 32 + 64 + 12 + 2, false},
    [NIB_Q4_K] = {"Q4_K", 256, 2 + 2 + 12 + 128, true},
    [NIB_Q5_K] = {"Q5_K", 256, 2 + 2 + 12 + 32 + 128, true},
    [NIB_Q6_K] = {"Q6_K", 256, 128 + 64 + 16 + 2, true},
    [15] = {"Q8_K", 256, 4 + 256 + 32, false},
    [16] = {"IQ2_XXS", 256, 2 + 64, false},
    [17] = {"IQ2_XS", 256, 2 + 64 + 8, false},
    [18] = {"IQ3_XXS", 256, 2 + 64 + 32, false},
    [19] = {"IQ1_S", 256, 2 + 32 + 16, false},
    [20] = {"IQ4_NL", 32, 2 + 16, false},
    [21] = {"IQ3_S", 256, 2 + 64 + 8 + 32 + 4, false},
    [22] = {"IQ2_S", 256, 2 + 64 + 16, false},
    [23] = {"IQ4_XS", 256, 2 + 2 + 128 + 4, false},
    [24] = {"I8", 1, 1, false},
    [25] = {"I16", 1, 2, false},
    [26] = {"I32", 1, 4, false},
    [27] = {"I64", 1, 8, false},
    [28] = {"F64", 1, 8, false},
    [29] = {"IQ1_M", 256, 32 + 16 + 8, false},
    [NIB_BF16] = {"BF16", 1, 2, true},
    [34] = {"TQ1_0", 256, 2 + 52, false},
    [35] = {"TQ2_0", 256, 2 + 64, false},
    [39] = {"MXFP4", 32, 1 + 16, false},
    [40] = {"NVFP4", 64, 4 + 32, false},
    [41] = {"Q1_0", 128, 2 + 16, false},
};

const nib_dtype_traits *nib_dtype_find(uint32_t number) {
    if (number >= sizeof traits / sizeof *traits || traits[number].name == NULL) {
        return NULL;
    }
    return &traits[number];
}
