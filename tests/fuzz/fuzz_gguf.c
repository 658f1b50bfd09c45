/* Any bytes are either refused or read as a GGUF file that is right in every field. */
#include <stdio.h>
#include <stdlib.h>

#include "format/gguf.h"
#include "gguf_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void die(const char *what) {
    (void)fprintf(stderr, "fuzz_gguf: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    nib_gguf *gguf = NULL;
    nib_error err = {.code = NIB_OK, .message = ""};
    nib_status status = nib_gguf_open_memory(&gguf, data, len, &err);
    if (status != NIB_OK) {
        if (gguf != NULL || err.code != status || err.message[0] == '\0') {
            die("refused without a right message");
        }
        if (status != NIB_EFORMAT && status != NIB_EUNSUPPORTED) {
            die("refused with another code than promised");
        }
        return 0;
    }
    const char *wrong = nib_test_gguf_walk(gguf, data, len);
    if (wrong != NULL) {
        die(wrong);
    }
    nib_gguf_free(gguf);
    return 0;
}
