# Unit tests of src/format: nib_unit_test(NAME layer..)
add_library(gguf_testing OBJECT unit/gguf_writer.c unit/gguf_walk.c)
target_link_libraries(gguf_testing PUBLIC nib_flags)
foreach(name test_gguf test_gguf_head test_gguf_meta test_file_show)
  nib_unit_test(${name} format kernel base)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:gguf_testing>)
endforeach()
nib_unit_test(test_name_index format kernel base)
nib_unit_test(test_gguf_models format kernel base)

# The fuzz targets' corpora are replayed as tests; with NIB_BUILD_FUZZERS the top level adds them.
if(NOT NIB_BUILD_FUZZERS)
  add_subdirectory(fuzz)
endif()
