# Unit tests of src/base: nib_unit_test(NAME layer..)
