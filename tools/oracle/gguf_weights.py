"""Reads a GGUF file and gives its metadata as plain values and its tensors as float32 arrays.

The dequantisation here is nib's rule (docs/numerics.md, rule 2): weight = scale * code, exact in float32, then the
minimum is added and the sum rounded once. Each tensor is compared bit for bit with gguf.quants.dequantize, which is
somebody else's; `check=False` skips that.
"""

import hashlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

SUB_BLOCKS = 8  # of 32 weights, in the 256 of a K-quant


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def half(raw, at):
    """The f16 at byte `at` of every block, as float32 [blocks, 1]."""
    return raw[:, at : at + 2].copy().view(np.float16).astype(np.float32)


def nibbles(raw):
    """Low nibbles of all bytes, then the high ones: [blocks, 2 * bytes]."""
    return np.concatenate([raw & 15, raw >> 4], axis=1)


def fifth_bits(raw):
    """Bit i of the four bytes of every block, moved to weight 16: [blocks, 32]."""
    bits = raw.copy().view("<u4") >> np.arange(32, dtype=np.uint32)
    return ((bits & 1) << 4).astype(np.uint8)


def scaled(codes, scale, minimum=None):
    """scale * code, exact; then + minimum, rounded once."""
    product = scale * codes.astype(np.float32)
    exact = scale.astype(np.float64) * codes.astype(np.float64)
    assert np.array_equal(product.astype(np.float64), exact), "scale * code is not exact in float32"
    return product if minimum is None else product + minimum


def q4_0(raw):
    return scaled(nibbles(raw[:, 2:]).astype(np.int8) - 8, half(raw, 0))


def q4_1(raw):
    return scaled(nibbles(raw[:, 4:]), half(raw, 0), half(raw, 2))


def q5_0(raw):
    return scaled((nibbles(raw[:, 6:]) | fifth_bits(raw[:, 2:6])).astype(np.int8) - 16, half(raw, 0))


def q5_1(raw):
    return scaled(nibbles(raw[:, 8:]) | fifth_bits(raw[:, 4:8]), half(raw, 0), half(raw, 2))


def q8_0(raw):
    return scaled(raw[:, 2:].view(np.int8), half(raw, 0))


def six_bit_scales(raw):
    """The 8 scales and 8 minima of Q4_K and Q5_K: 12 bytes a block to two [blocks, 8, 1]."""
    low, mid, high = raw[:, 0:4], raw[:, 4:8], raw[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1)
    minima = np.concatenate([mid & 63, (high >> 4) | ((mid >> 6) << 4)], axis=1)
    return scales[:, :, None], minima[:, :, None]


def with_minimum(raw, codes):
    """Codes [blocks, 8, 32] of Q4_K or Q5_K to weights [blocks, 256]."""
    scales, minima = six_bit_scales(raw[:, 4:16])
    d, dmin = half(raw, 0)[:, :, None], half(raw, 2)[:, :, None]
    return scaled(codes, scaled(scales, d), -scaled(minima, dmin)).reshape(len(raw), 256)


def pairs_of_32(raw):
    """128 bytes a block: 4 runs of 32 bytes, low nibbles first: [blocks, 8, 32]."""
    runs = raw.reshape(len(raw), 4, 1, 32)
    return np.concatenate([runs & 15, runs >> 4], axis=2).reshape(len(raw), SUB_BLOCKS, 32)


def q4_k(raw):
    return with_minimum(raw, pairs_of_32(raw[:, 16:]))


def q5_k(raw):
    shifts = np.arange(SUB_BLOCKS, dtype=np.uint8)[None, :, None]
    fifth = ((raw[:, None, 16:48] >> shifts) & 1) << 4
    return with_minimum(raw, pairs_of_32(raw[:, 48:]) | fifth)


def q6_k(raw):
    low, high = raw[:, :128].reshape(-1, 2, 1, 64), raw[:, 128:192].reshape(-1, 2, 1, 32)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8)[None, None, :, None]
    codes = (low | (((high >> shifts) & 3) << 4)).astype(np.int8) - 32
    scales = raw[:, 192:208].view(np.int8)
    scale = scaled(scales, half(raw, 208)).reshape(-1, 16, 1)
    return scaled(codes.reshape(-1, 16, 16), scale).reshape(len(raw), 256)


BLOCKED = {
    Type.Q4_0: q4_0,
    Type.Q4_1: q4_1,
    Type.Q5_0: q5_0,
    Type.Q5_1: q5_1,
    Type.Q8_0: q8_0,
    Type.Q4_K: q4_k,
    Type.Q5_K: q5_k,
    Type.Q6_K: q6_k,
}


def dequantise(data, kind):
    """A tensor's bytes (or plain floats) [.., row] to float32, rows kept."""
    if kind == Type.F32:
        return np.array(data, dtype=np.float32)
    if kind == Type.F16:
        return np.asarray(data).view(np.float16).astype(np.float32)
    if kind == Type.BF16:
        return (np.asarray(data).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    raw = np.ascontiguousarray(data).reshape(-1, block_bytes)
    return BLOCKED[kind](raw).reshape(*data.shape[:-1], -1)


class File:
    """The metadata and the dequantised tensors of one file."""

    def __init__(self, path, check=True):
        self.path, self.check = path, check
        self.reader = gguf.GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def get(self, key, default=None):
        """A metadata value; `{arch}` in the key is the architecture."""
        if "{arch}" in key:
            key = key.replace("{arch}", self.get("general.architecture"))
        field = self.reader.fields.get(key)
        return default if field is None else field.contents()

    def weight(self, name):
        tensor = self.tensors[name]
        ours = dequantise(tensor.data, tensor.tensor_type)
        if self.check:
            theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            same = np.array_equal(ours.view(np.uint32), np.ascontiguousarray(theirs, np.float32).view(np.uint32))
            if not same:
                print(f"{name} {tensor.tensor_type.name}: differs from gguf.quants.dequantize in "
                      f"{np.count_nonzero(ours != theirs)} of {ours.size}, at most {np.abs(ours - theirs).max():g}")
        return ours
