/* The element types of weights: names, block sizes. The numbers are those of GGUF. */
#ifndef NIB_KERNEL_DTYPE_H
#define NIB_KERNEL_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nib_dtype {
    NIB_F32 = 0,
    NIB_F16 = 1,
    NIB_Q4_0 = 2,
    NIB_Q4_1 = 3,
    NIB_Q5_0 = 6,
    NIB_Q5_1 = 7,
    NIB_Q8_0 = 8,
    NIB_Q4_K = 12,
    NIB_Q5_K = 13,
    NIB_Q6_K = 14,
    NIB_BF16 = 30
} nib_dtype;

/* What is known of a type of GGUF. */
typedef struct nib_dtype_traits {
    const char *name;     /* "Q4_K" */
    uint32_t block;       /* elements of a block */
    uint32_t block_bytes; /* bytes of a block */
    bool computes;        /* kernels exist: it can be a weight */
} nib_dtype_traits;

/* The traits of a type number of GGUF (also of those without kernels, so that a file can be shown); NULL when the
 * number is not known. */
const nib_dtype_traits *nib_dtype_find(uint32_t number);

#endif
