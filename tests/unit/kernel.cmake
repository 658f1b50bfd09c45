# Unit tests of src/kernel: nib_unit_test(NAME layer..)
nib_unit_test(test_dtype kernel base)
nib_unit_test(test_kernel kernel base)
