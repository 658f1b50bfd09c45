# Unit tests of src/decode: nib_unit_test(NAME layer..)
