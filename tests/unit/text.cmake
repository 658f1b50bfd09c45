# Unit tests of src/text: nib_unit_test(NAME layer..)
foreach(name test_bpe test_spm test_special test_decoder test_tokenizer)
  nib_unit_test(${name} text base)
endforeach()

foreach(name test_long_text test_nfc test_pretokenizer)
  nib_unit_test(${name} text base)
  target_compile_definitions(${name} PRIVATE NIB_TEST_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
endforeach()

# Ids equal to other tokenizers': of small vocabularies here, of GGUF files that may be missing.
nib_unit_test(test_token_ids text format kernel base)
target_compile_definitions(test_token_ids PRIVATE NIB_TEST_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
foreach(vocab SmolLM2-135M-Instruct.Q4_1 gemma-3-270m-q4_k_m ggml-vocab-gpt-2 ggml-vocab-llama-bpe ggml-vocab-qwen2
    ggml-vocab-deepseek-llm ggml-vocab-deepseek-coder ggml-vocab-llama-spm)
  add_test(NAME token_ids_${vocab} COMMAND test_token_ids ids-${vocab}.txt)
  set_tests_properties(token_ids_${vocab} PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endforeach()
nib_unit_test(test_ggml_vocab text format kernel base)
target_compile_definitions(test_ggml_vocab PRIVATE NIB_TEST_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
