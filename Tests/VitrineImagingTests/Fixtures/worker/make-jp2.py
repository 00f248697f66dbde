"""Writes the JPEG 2000 fixtures of four quadrants, with opj_compress (OpenJPEG 2.5) and imagecodecs (OpenJPH).

jp2-palette.jp2 and jp2-edge-tiles.j2k (Bretagne2_4) come from the test data of public projects.
"""
import struct
import subprocess

import imagecodecs
import numpy as np

W, H = 96, 64
q = np.zeros((H, W, 3), int)
q[:32, :48], q[:32, 48:], q[32:, :48], q[32:, 48:] = [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]
luma = q @ [0.299, 0.587, 0.114]
blue = 128 + q @ [-0.168736, -0.331264, 0.5]
red = 128 + q @ [0.5, -0.418688, -0.081312]
y, cb, cr = (plane.round().clip(0, 255) for plane in (luma, blue, red))
rgb = [q[:, :, i] for i in range(3)]


def compress(path, planes, steps, *arguments):
    with open("planes.raw", "wb") as file:
        for plane in planes:
            file.write(plane.astype("u1").tobytes())
    shape = f"{W},{H},{len(planes)},8,u@" + ":".join(f"{step}x{step}" for step in steps)
    subprocess.run(["opj_compress", "-i", "planes.raw", "-o", path, "-F", shape, *arguments], check=True)


def box(kind, payload):
    return struct.pack(">I", len(payload) + 8) + kind + payload


def wrap(path, planes, steps, space, definitions=()):
    compress("stream.j2k", planes, steps, "-mct", "0")
    header = box(b"ihdr", struct.pack(">IIHBBBB", H, W, len(planes), 7, 7, 0, 0))
    header += box(b"colr", struct.pack(">BBBI", 1, 0, 0, space))
    if definitions:
        fields = b"".join(struct.pack(">HHH", *field) for field in definitions)
        header += box(b"cdef", struct.pack(">H", len(definitions)) + fields)
    with open(path, "wb") as file, open("stream.j2k", "rb") as stream:
        file.write(box(b"jP  ", b"\r\n\x87\n") + box(b"ftyp", b"jp2 \0\0\0\0jp2 "))
        file.write(box(b"jp2h", header) + box(b"jp2c", stream.read()))


compress("jp2-offset.j2k", rgb, [1, 1, 1], "-d", "10,7", "-T", "3,2", "-t", "33,29", "-n", "4")
wrap("jp2-ycc.jp2", [y, cb[::2, ::2], cr[::2, ::2]], [1, 2, 2], 18)
alpha = np.full((H, W), 255)
alpha[32:, 48:] = 0
order = [(0, 1, 0), (1, 0, 3), (2, 0, 2), (3, 0, 1)]  # alpha, red difference, blue difference, luma
wrap("jp2-ycc-alpha.jp2", [alpha, cr[::2, ::2], cb[::2, ::2], y], [1, 2, 2, 1], 18, order)
wrap("jp2-coarse.jp2", [plane[::2, ::2] for plane in rgb], [2, 2, 2], 16)
wrap("jp2-swapped.jp2", rgb[::-1], [1, 1, 1], 16, [(0, 0, 3), (1, 0, 2), (2, 0, 1)])
wide = np.repeat(np.repeat(q, 10, 1), 2, 0).astype("u1")
with open("htj2k-wide.j2c", "wb") as file:
    file.write(imagecodecs.htj2k_encode(wide, reversible=True))
