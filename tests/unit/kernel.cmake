# Unit tests of src/kernel: nib_unit_test(NAME layer..)
