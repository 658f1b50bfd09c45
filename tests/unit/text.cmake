# Unit tests of src/text: nib_unit_test(NAME layer..)
