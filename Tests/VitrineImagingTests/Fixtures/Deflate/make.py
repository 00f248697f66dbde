#!/usr/bin/env python3
"""Makes the deflate fixtures beside it with zlib. Needs nothing but Python."""
import os
import random
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
rng = random.Random(1)
words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(150)]
text = " ".join(rng.choice(words) for _ in range(3000)).encode()
skewed = bytes(min(255, int(rng.expovariate(0.08))) for _ in range(9000))
plain = text + b"a" * 5000 + b"abc" * 700 + skewed + b"0123456789abcde" * 99 + text[:4000] + bytes(rng.randbytes(800))


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data)


def compress(level=6, strategy=zlib.Z_DEFAULT_STRATEGY, window=15):
    c = zlib.compressobj(level, zlib.DEFLATED, window, 8, strategy)
    return c.compress(plain) + c.flush()


write("plain.bin", plain)
for level in (0, 1, 6, 9):
    write("level%d.zz" % level, compress(level))
write("fixed.zz", compress(strategy=zlib.Z_FIXED))
write("huffman.zz", compress(strategy=zlib.Z_HUFFMAN_ONLY))
write("rle.zz", compress(strategy=zlib.Z_RLE))
write("window9.zz", compress(9, window=9))
