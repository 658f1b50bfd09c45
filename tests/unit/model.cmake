# Unit tests of src/model: nib_unit_test(NAME layer..)
