/* Builds GGUF files in memory for tests, right ones and wrong ones: nothing is checked, not even that a key is new.
 * Running out of memory ends the test program. Allocates with malloc, so injected faults do not reach it.
 *
 *     nib_test_gguf *w = nib_test_gguf_new(3);
 *     nib_test_gguf_string(w, "general.architecture", "llama");
 *     nib_test_gguf_u32(w, "llama.block_count", 2);
 *     nib_test_gguf_strings(w, "tokenizer.ggml.tokens", 3, (const char *const[]){"<s>", "a", "b"});
 *     nib_test_gguf_tensor(w, "output.weight", NIB_F32, 2, (const uint64_t[]){4, 2}, values, 4 * 2 * sizeof(float));
 *     size_t len;
 *     unsigned char *file = nib_test_gguf_finish(&len, w);   free with free()
 *
 * To spoil a field of a finished file: nib_test_gguf_find and nib_test_gguf_put. */
#ifndef NIB_TEST_GGUF_WRITER_H
#define NIB_TEST_GGUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nib_test_gguf nib_test_gguf;

nib_test_gguf *nib_test_gguf_new(uint32_t version);

/* Metadata, in the order of the calls. type is the specification's number (NIB_GGUF_* of format/gguf_meta.h), value and
 * values are the elements as C has them (bool: one byte each), size_bytes the bytes of one. */
void nib_test_gguf_u32(nib_test_gguf *w, const char *key, uint32_t value);
void nib_test_gguf_f32(nib_test_gguf *w, const char *key, float value);
void nib_test_gguf_bool(nib_test_gguf *w, const char *key, bool value);
void nib_test_gguf_string(nib_test_gguf *w, const char *key, const char *text);
void nib_test_gguf_string_len(nib_test_gguf *w, const char *key, const char *text, size_t len);
void nib_test_gguf_scalar(nib_test_gguf *w, const char *key, uint32_t type, const void *value, size_t size_bytes);
void nib_test_gguf_array(nib_test_gguf *w, const char *key, uint32_t type, size_t n, const void *values,
                         size_t size_bytes);
void nib_test_gguf_strings(nib_test_gguf *w, const char *key, size_t n, const char *const *texts);
void nib_test_gguf_strings_len(nib_test_gguf *w, const char *key, size_t n, const char *const *texts,
                               const size_t *lens);

/* The alignment of tensors added from now on, 32 unless it is set; also writes general.alignment. */
void nib_test_gguf_alignment(nib_test_gguf *w, uint32_t alignment);

/* A tensor; dims[0] is contiguous; data [size_bytes], or NULL for zeros. */
void nib_test_gguf_tensor(nib_test_gguf *w, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *dims,
                          const void *data, size_t size_bytes);

/* The file, an exact heap block to be freed with free(). Frees w. */
unsigned char *nib_test_gguf_finish(size_t *len, nib_test_gguf *w);

/* A small file with every value type, alone and in arrays, and three tensors:
 *   blk.0.attn_q.weight F32 [4, 3], token_embd.weight Q8_0 [64, 5], output_norm.weight F32 [8]
 * test.u8 .. test.f64 hold the type's largest or smallest value, test.bool true, test.string "text", test.array.<type>
 * two or three values. */
unsigned char *nib_test_gguf_sample(size_t *len, uint32_t version);

/* Writes bytes to a new file; ends the program when that cannot be done. */
void nib_test_gguf_save(const char *path, const unsigned char *bytes, size_t len);

/* Where the bytes after a key or a tensor's name lie: the value type of the key; n_dims (4), dims (8 each), type (4),
 * offset (8) of the tensor. The name's length lies 8 + strlen(name) bytes before that. */
size_t nib_test_gguf_find(const unsigned char *bytes, size_t len, const char *name);

/* Overwrites n bytes at a place with a little-endian number. The fixed places: magic 0 (4), version 4 (4), tensor count
 * 8 (8), metadata count 16 (8). */
void nib_test_gguf_put(unsigned char *bytes, size_t at, uint64_t value, size_t n);

#endif
