# Unit tests of src/decode: nib_unit_test(NAME layer..)
nib_unit_test(test_order decode model text format kernel base)
nib_unit_test(test_logsum decode model text format kernel base)
nib_unit_test(test_sample decode model text format kernel base)
nib_unit_test(test_processors decode model text format kernel base)
target_link_libraries(test_processors PRIVATE m)
nib_unit_test(test_noise decode model text format kernel base)
target_compile_definitions(test_noise PRIVATE NIB_TEST_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")

# Models with known logits, and files that write what they are told, for tests of whole generations.
add_library(generate_testing OBJECT unit/table_model.c unit/script_model.c)
target_link_libraries(generate_testing PUBLIC nib_flags PkgConfig::CMOCKA)
nib_unit_test(test_stop decode model text format kernel base)
foreach(name test_generate test_generate_options test_stream test_session test_custom_model test_bench)
  nib_unit_test(${name} decode model text format kernel base)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:generate_testing> $<TARGET_OBJECTS:gguf_testing>)
  target_compile_definitions(${name} PRIVATE NIB_TEST_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
endforeach()
target_compile_options(test_session PRIVATE -frounding-math) # it changes the rounding mode
target_link_libraries(test_session PRIVATE m)

# Models of random quantised blocks.
add_library(quant_testing OBJECT unit/quant_model.c)
target_link_libraries(quant_testing PUBLIC nib_flags PkgConfig::CMOCKA)
foreach(name test_batches test_sharing test_same_bits test_session_threads)
  nib_unit_test(${name} decode model text format kernel base)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:generate_testing> $<TARGET_OBJECTS:gguf_testing>
    $<TARGET_OBJECTS:quant_testing>)
endforeach()
target_compile_options(test_session_threads PRIVATE -frounding-math) # it changes the rounding mode
target_link_libraries(test_session_threads PRIVATE m)
target_compile_definitions(test_session_threads PRIVATE NIB_TEST_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/golden")
