/* Unicode's normalisation form C, which some vocabularies were trained on. */
#ifndef NIB_TEXT_NFC_H
#define NIB_TEXT_NFC_H

#include <stdbool.h>
#include <stddef.h>

/* Whether text [len] may differ from its normal form: false for text without characters from U+0300 on. */
bool nib_nfc_needed(const char *text, size_t len);

/* The normal form of text [len], *out_len bytes; free it with nib_free. Bytes that are no character stay where they are.
 * NULL when out of memory. Linear in len. */
char *nib_nfc(size_t *out_len, const char *text, size_t len);

#endif
