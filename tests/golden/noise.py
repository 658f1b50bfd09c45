#!/usr/bin/env python3
"""Writes tests/golden/noise.txt: the token that shared noise draws, by the rule alone (docs/numerics.md, rule 6), token
by token, in Python's own arithmetic. Shares no line with the library.

usage: noise.py > noise.txt
"""
import math
import sys

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF


def mix64(seed, item):
    z = (seed + (item + 1) * 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def philox(counter, seed):
    c = list(counter)
    k0, k1 = seed & MASK32, seed >> 32
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & MASK32, (p0 >> 32) ^ c[3] ^ k1, p0 & MASK32]
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c


def expo(r):
    if r < 1 << 63:
        return -math.log1p(-((float(r) + 0.5) * 2.0**-64))
    return -math.log((float(~r & MASK64) + 0.5) * 2.0**-64)


def logit(token):
    """0 to 16 in steps of 2^-20: exact in binary32."""
    return (mix64(2026, token) >> 40) * 2.0**-20


def draw(seed, position, stream, vocabulary, temperature):
    best, second, chosen = -math.inf, -math.inf, -1
    for block in range((vocabulary + 255) // 256):
        w = philox((block, position, stream, 0), seed)
        least, owner = expo(w[0] << 32 | w[1]) / 256, w[2] & 255
        words = {}
        for token in range(block * 256, min(vocabulary, block * 256 + 256)):
            e = least
            if token & 255 != owner:
                index = block * 64 + (token & 63)
                if index not in words:
                    words[index] = [philox((index, position, stream, purpose), seed) for purpose in (1, 2)]
                high, low = words[index]
                word = token >> 6 & 3
                e += expo(high[word] << 32 | low[word])
            score = logit(token) - temperature * math.log(e)
            if score > best:
                best, second, chosen = score, best, token
            else:
                second = max(second, score)
    # A last bit of another machine's logarithm must not decide.
    assert best - second > 1e-9, (seed, position, stream, vocabulary)
    return chosen


def main():
    print("# noise.py, Python %s: seed position stream V T id; logit(t) = (mix64(2026, t) >> 40) * 2^-20"
          % sys.version.split()[0])
    seeds = (0, 1, 42, 2**32 - 1, 2**32, 2**64 - 1)
    small = ((1, 1.0), (5, 10.0), (255, 2.0), (256, 2.0), (257, 5.0), (1000, 1.0), (1000, 3.0))
    for seed in seeds:
        for i, (vocabulary, temperature) in enumerate(small):
            for position, stream in ((0, 0), (1, 0), (0, 1), (77 + i, 3), (2**32 - 1, 2**32 - 1)):
                print(seed, position, stream, vocabulary, temperature,
                      draw(seed, position, stream, vocabulary, temperature))
    for vocabulary, temperature in ((50257, 0.7), (50257, 1.5), (262144, 1.0), (262144, 4.0)):
        for seed, position, stream in ((7, 12, 0), (2**64 - 1, 4095, 9)):
            print(seed, position, stream, vocabulary, temperature,
                  draw(seed, position, stream, vocabulary, temperature))


if __name__ == "__main__":
    main()
