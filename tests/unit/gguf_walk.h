/* Looks at every field of a file that was accepted: a reader that only does not crash may still accept a tensor without
 * data. For unit tests and the fuzz target. */
#ifndef NIB_TEST_GGUF_WALK_H
#define NIB_TEST_GGUF_WALK_H

#include "format/gguf.h"

/* NULL when everything is in range and set; else what is not. data [len] is the file, which was opened from memory. */
const char *nib_test_gguf_walk(const nib_gguf *gguf, const unsigned char *data, size_t len);

#endif
