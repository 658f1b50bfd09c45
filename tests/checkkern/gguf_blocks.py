#!/usr/bin/env python3
"""Writes gguf_blocks.txt: blocks of every quantised type and what gguf-py's numpy code makes of them.

usage: gguf_blocks.py > gguf_blocks.txt   (needs the Python packages gguf and numpy)
"""
import importlib.metadata

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

SEED = 20260101
TYPES = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K".split()
HALVES = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}

versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("gguf", "numpy"))
print(f"# type, bytes of a row, its weights as binary32 patterns: {versions}, seed {SEED}")
rng = np.random.default_rng(SEED)
for name in TYPES:
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    data = rng.integers(0, 256, (256 // block, size), dtype=np.uint8)
    for at in HALVES.get(name, [0]):
        # Finite ones, subnormal ones among them.
        half = rng.integers(0, 0x7C00, 256 // block).astype(np.uint16)
        half |= rng.integers(0, 2, 256 // block).astype(np.uint16) << 15
        data[:, at] = half & 255
        data[:, at + 1] = half >> 8
    row = data.reshape(1, -1)
    weights = np.ascontiguousarray(dequantize(row, GGMLQuantizationType[name])).view(np.uint32).ravel()
    print(name, row.tobytes().hex(), "".join(f"{w:08x}" for w in weights))
