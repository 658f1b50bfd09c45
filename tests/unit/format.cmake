# Unit tests of src/format: nib_unit_test(NAME layer..)
