#!/usr/bin/env python3
"""Makes src/text/nfc_table.h from Python's copy of the Unicode character database.

    tools/nfc-table.py > src/text/nfc_table.h"""

import sys
import unicodedata


def pairs():
    """(code, first, second or 0, whether the pair composes to code again), Hangul syllables left out."""
    for code in range(sys.maxunicode + 1):
        mapping = unicodedata.decomposition(chr(code))
        if mapping and not mapping.startswith("<"):
            first, second = (mapping.split() + ["0"])[:2]
            first, second = int(first, 16), int(second, 16)
            # A code point that normalisation takes apart for good is excluded from composition.
            yield code, first, second, unicodedata.normalize("NFC", chr(code)) == chr(code)


def classes():
    """(first, last, combining class) of runs of code points with the same class, 0 left out."""
    runs = []
    for code in range(sys.maxunicode + 1):
        value = unicodedata.combining(chr(code))
        if value and runs and runs[-1][1] == code - 1 and runs[-1][2] == value:
            runs[-1][1] = code
        elif value:
            runs.append([code, code, value])
    return runs


def show(kind, name, comment, items):
    print(f"\n/* {comment} */\nstatic const {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) > 118:
            print(line)
            line = "   "
        line += f" {item},"
    print(f"{line}\n}};")


def main():
    table = list(pairs())
    order = sorted((i for i, row in enumerate(table) if row[3]), key=lambda i: table[i][1:3])
    print(f"/* Made by tools/nfc-table.py from Unicode {unicodedata.unidata_version}: do not edit. */")
    print("#ifndef NIB_TEXT_NFC_TABLE_H\n#define NIB_TEXT_NFC_TABLE_H\n\n#include <stdint.h>\n")
    print("/* clang-format off */")
    print("typedef struct nib_nfc_pair {\n    uint32_t code, first, second; /* second 0: first alone */\n} nib_nfc_pair;\n")
    print("typedef struct nib_nfc_class {\n    uint32_t first, last;\n    uint8_t value;\n} nib_nfc_class;")
    show("nib_nfc_pair", "nfc_pairs", "Canonical decompositions, by code.",
         (f"{{0x{code:x}, 0x{first:x}, 0x{second:x}}}" for code, first, second, _ in table))  # fmt: skip
    show("uint16_t", "nfc_compositions", "Those that compose again, by first and second: places in nfc_pairs.", map(str, order))
    show("nib_nfc_class", "nfc_classes", "Combining classes other than 0.",
         (f"{{0x{first:x}, 0x{last:x}, {value}}}" for first, last, value in classes()))  # fmt: skip
    print("\n/* clang-format on */\n#endif")


main()
