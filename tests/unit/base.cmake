# Unit tests of src/base: nib_unit_test(NAME layer..)
nib_unit_test(test_maths base)
target_link_libraries(test_maths PRIVATE m) # the oracle only
nib_unit_test(test_random base)
target_link_libraries(test_random PRIVATE m)
nib_unit_test(test_error base)
nib_unit_test(test_memory base)
nib_unit_test(test_number base)
nib_unit_test(test_utf8 base)
nib_unit_test(test_cpu_count base)
nib_unit_test(test_pool base)
target_link_options(test_pool PRIVATE -Wl,--wrap=pthread_create) # it refuses threads
set_tests_properties(test_pool PROPERTIES TIMEOUT 300) # a lost wake-up hangs
