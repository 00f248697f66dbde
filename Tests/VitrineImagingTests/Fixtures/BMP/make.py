# Makes the bitmaps, icons and their references (.rgb, .rgba: Pillow's reading) in this folder: python3 make.py
import io, struct
from PIL import Image, BmpImagePlugin  # noqa: F401

W, H = 23, 17
photo = Image.new("RGB", (W, H))
photo.putdata([((x * 11) % 256, (y * 15) % 256, (x * y * 3) % 256) for y in range(H) for x in range(W)])


def rows(image, pack, width_bits):
    stride = (W * width_bits + 31) // 32 * 4
    return [pack([image.getpixel((x, y)) for x in range(W)]).ljust(stride, b"\0") for y in range(H)]


def write(name, dib, palette, body, reference=True, mode="RGB"):
    offset = 14 + len(dib) + len(palette)
    data = b"BM" + struct.pack("<IHHI", offset + len(body), 0, 0, offset) + dib + palette + body
    open(name + ".bmp", "wb").write(data)
    if reference:
        open(name + ".rgb" + ("a" if mode == "RGBA" else ""), "wb").write(Image.open(io.BytesIO(data)).convert(mode).tobytes())


def info(bits, compression=0, height=H, used=0, size=40, rest=b""):
    return struct.pack("<IiiHHIIiiII", size, W, height, 1, bits, compression, 0, 0, 0, used, 0) + rest


def indexed(bits):
    count = min(1 << bits, 200)
    image = photo.quantize(count)
    colors = (image.getpalette() + [0] * 768)[: 3 * count]
    palette = b"".join(bytes(colors[3 * i : 3 * i + 3][::-1]) + b"\0" for i in range(count))
    def pack(values):
        text = "".join(format(v, "0%db" % bits) for v in values)
        text += "0" * (-len(text) % 8)
        return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
    return image, count, palette, b"".join(reversed(rows(image, pack, bits))), pack


for bits in (1, 4, 8):
    image, count, palette, body, pack = indexed(bits)
    write("indexed%d" % bits, info(bits, used=count), palette, body)
image, count, palette, body, pack = indexed(8)
core = b"".join(palette[4 * i : 4 * i + 3] for i in range(count)).ljust(768, b"\0")
write("os2-core", struct.pack("<IHHHH", 12, W, H, 1, 8), core, body)

bgr = rows(photo, lambda p: b"".join(bytes(v[::-1]) for v in p), 24)
write("rgb24", info(24), b"", b"".join(reversed(bgr)))
write("topdown24", info(24, height=-H), b"", b"".join(bgr))
bgrx = rows(photo, lambda p: b"".join(bytes(v[::-1]) + b"\0" for v in p), 32)
write("rgb32", info(32), b"", b"".join(reversed(bgrx)))
word = lambda f: (lambda p: b"".join(struct.pack("<H", f(*v)) for v in p))
write("rgb555", info(16), b"", b"".join(reversed(rows(photo, word(lambda r, g, b: r >> 3 << 10 | g >> 3 << 5 | b >> 3), 16))))
write("rgb565", info(16, 3), struct.pack("<III", 0xF800, 0x7E0, 0x1F),
      b"".join(reversed(rows(photo, word(lambda r, g, b: r >> 3 << 11 | g >> 2 << 5 | b >> 3), 16))))
bgra = rows(photo, lambda p: b"".join(bytes(v[::-1]) + bytes([(v[0] * 7) % 256]) for v in p), 32)
masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
for name, size in (("v3-alpha", 56), ("v4-alpha", 108), ("v5-alpha", 124)):
    write(name, info(32, 3, size=size, rest=masks + b"\0" * (size - 56)), b"", b"".join(reversed(bgra)), mode="RGBA")

# Run-length coding: absolute runs, encoded runs, a delta, an early end.
def rle(image, nibbles):
    out = b""
    for y in range(H - 1, -1, -1):
        line, x = [image.getpixel((i, y)) for i in range(W)], 0
        if y == 5:
            out += b"\0\2\4\1"  # right 4, up 1: the rest of this row and the start of the next stay 0
            continue
        if y == 4:
            x = 4
        if y == 0:
            out += b"\0\1"
            return out
        while x < W:
            n = 1
            while x + n < W and line[x + n] == line[x] and n < 255:
                n += 1
            if n == 1 and W - x >= 5:
                n = 5
                values = line[x : x + 5]
                data = bytes(values) if not nibbles else bytes([values[0] << 4 | values[1], values[2] << 4 | values[3], values[4] << 4])
                out += bytes([0, 5]) + data + b"\0" * (len(data) % 2)
            else:
                out += bytes([n, line[x] << 4 | line[x] if nibbles else line[x]])
            x += n
        out += b"\0\0"
    return out


for bits, compression in ((8, 1), (4, 2)):
    image, count, palette, body, pack = indexed(bits)
    write("rle%d" % bits, info(bits, compression, used=count), palette, rle(image, bits == 4), reference=False)
    # Pillow refuses an early end; what the code leaves out is colour 0.
    expected = image.copy()
    for x in range(W):
        for y in (5, 0) + ((4,) if x < 4 else ()):
            expected.putpixel((x, y), 0)
    open("rle%d.rgb" % bits, "wb").write(expected.convert("RGB").tobytes())

# Icons: a 16-colour one with a mask, a 32-bit one with alpha, and a PNG entry.
image, count, palette, body, pack = indexed(4)
holes = b"".join(struct.pack(">I", (0xAAAAAAAA if y % 2 else 0) & ~0 << 32 - W & 0xFFFFFFFF) for y in range(H - 1, -1, -1))
masked = struct.pack("<IiiHHIIiiII", 40, W, 2 * H, 1, 4, 0, 0, 0, 0, 16, 0) + palette + body + holes
deep = struct.pack("<IiiHHIIiiII", 40, W, 2 * H, 1, 32, 0, 0, 0, 0, 0, 0) + b"".join(reversed(bgra)) + b"\0" * (4 * H)
buffer = io.BytesIO()
photo.resize((32, 32)).save(buffer, "PNG")


def icon(name, entries, kind=1):
    at, head, body = 6 + 16 * len(entries), struct.pack("<HHH", 0, kind, len(entries)), b""
    for w, h, bits, data in entries:
        head += struct.pack("<BBBBHHII", w, h, 0, 0, 1, bits, len(data), at + len(body))
        body += data
    open(name, "wb").write(head + body)


icon("three.ico", [(W, H, 4, masked), (32, 32, 32, buffer.getvalue()), (W, H, 32, deep)])
icon("masked.cur", [(W, H, 4, masked)], 2)
rgb = Image.open("indexed4.bmp").convert("RGB")
alpha = Image.new("L", (W, H))
alpha.putdata([0 if y % 2 and x % 2 == 0 else 255 for y in range(H) for x in range(W)])
rgb.putalpha(alpha)
open("masked.rgba", "wb").write(rgb.tobytes())
