#!/usr/bin/env python3
"""Makes the PNG fixtures beside it: every colour type, depth and interlacing, and animations. Needs nothing but Python.

Digests of the files are in digests.txt: name, width, height, channels and CRC-32 of the 8-bit samples as libpng gives
them (png_set_expand, png_set_scale_16); animations have one line for each frame, composed by Pillow, as RGBA.
"""
import os
import random
import struct
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def paeth(a, b, c):
    p = a + b - c
    d = [abs(p - a), abs(p - b), abs(p - c)]
    return [a, b, c][d.index(min(d))]


def filtered(rows, distance, seed):
    out, above = bytearray(), None
    for y, row in enumerate(rows):
        above = above or bytes(len(row))
        kind = (y + seed) % 5
        out.append(kind)
        for i, v in enumerate(row):
            a = row[i - distance] if i >= distance else 0
            b = above[i]
            c = above[i - distance] if i >= distance else 0
            out.append((v - [0, a, b, (a + b) // 2, paeth(a, b, c)][kind]) & 255)
        above = row
    return bytes(out)


def packed(samples, depth):
    bits = "".join(format(s, "0%db" % depth) for s in samples)
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def stream(pixels, width, height, kind, depth, interlaced, seed):
    channels = CHANNELS[kind]
    distance = max(1, depth * channels // 8)
    out = b""
    for i, (x0, y0, dx, dy) in enumerate(PASSES if interlaced else [(0, 0, 1, 1)]):
        rows = []
        for y in range(y0, height, dy):
            samples = [pixels[y][x * channels + c] for x in range(x0, width, dx) for c in range(channels)]
            if samples:
                rows.append(packed(samples, depth))
        out += filtered(rows, distance, seed + i)
    return out


def png(name, kind, depth, interlaced, width=23, height=17, transparency=b"", extra=b"", split=0, level=9):
    rng = random.Random(name)
    channels, top = CHANNELS[kind], (1 << depth) - 1
    pixels = []
    for y in range(height):
        row = []
        for x in range(width):
            for c in range(channels):
                ramp = (x * (3 + c) + y * 5) * top // 200
                row.append(min(top, max(0, ramp + rng.randint(-top // 16, top // 16))))
        pixels.append(row)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced)))
    palette = bytes(rng.randrange(256) for _ in range(3 << min(depth, 8))) if kind == 3 else b""
    data = zlib.compress(stream(pixels, width, height, kind, depth, interlaced, len(name)), level)
    pieces = [data[i : i + split] for i in range(0, len(data), split)] if split else [data]
    with open(os.path.join(HERE, name + ".png"), "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + head + extra)
        f.write(chunk(b"PLTE", palette) if palette else b"")
        f.write(chunk(b"tRNS", transparency) if transparency else b"")
        for piece in pieces:
            f.write(chunk(b"IDAT", piece))
        f.write(chunk(b"IEND", b""))


def animation(name, frames, hidden=False):
    """frames: (x, y, width, height, disposal, blend, pixel function)"""
    width, height, sequence = 16, 12, 0
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
    out += chunk(b"acTL", struct.pack(">II", len(frames), 0))
    if hidden:
        rows = [[9, 8, 7, 255] * width for _ in range(height)]
        out += chunk(b"IDAT", zlib.compress(stream(rows, width, height, 6, 8, False, 0)))
    for i, (x, y, w, h, disposal, blend, pixel) in enumerate(frames):
        out += chunk(b"fcTL", struct.pack(">IIIIIHHBB", sequence, w, h, x, y, 1, 10, disposal, blend))
        sequence += 1
        data = zlib.compress(stream([sum((pixel(u, v) for u in range(w)), []) for v in range(h)], w, h, 6, 8, False, i))
        if i == 0 and not hidden:
            out += chunk(b"IDAT", data)
        else:
            for part in (data[: len(data) // 2], data[len(data) // 2 :]):
                out += chunk(b"fdAT", struct.pack(">I", sequence) + part)
                sequence += 1
    with open(os.path.join(HERE, name + ".png"), "wb") as f:
        f.write(out + chunk(b"IEND", b""))


def main():
    for kind, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (False, True):
                png("%s%d-%d" % ("i" if interlaced else "n", kind, depth), kind, depth, interlaced)
    png("key-gray4", 0, 4, False, transparency=struct.pack(">H", 3))
    png("key-gray16", 0, 16, True, transparency=struct.pack(">H", 0))
    png("key-rgb8", 2, 8, False, transparency=struct.pack(">HHH", 0, 0, 0))
    png("key-rgb16", 2, 16, False, transparency=struct.pack(">HHH", 0, 0, 0))
    png("palette-alpha", 3, 4, True, transparency=bytes([0, 85, 170]))
    png("narrow-interlaced", 2, 8, True, width=1, height=9)
    png("tiny-pieces", 6, 8, False, split=1)
    png("stored", 2, 8, False, level=0)

    ring = lambda u, v: [200, 40 + 5 * u, 30 * v % 256, 255] if (u + v) % 3 else [0, 0, 0, 0]
    solid = lambda r, g, b: lambda u, v: [r, g, b, 255]
    full, part = (0, 0, 16, 12), (3, 2, 8, 7)
    frames = [
        full + (0, 0, ring), part + (2, 1, ring), part + (1, 0, solid(1, 200, 3)), full + (0, 1, ring),
        (8, 6, 8, 6) + (0, 0, ring), full + (1, 0, solid(90, 90, 200)), part + (0, 1, ring),
    ]
    animation("animation", frames)
    animation("animation-hidden-default", frames, hidden=True)


main()
