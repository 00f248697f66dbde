#!/bin/sh
# Pictures of HEVC written by libvips 8.14 with libheif 1.15 and x265 3.5: six tiles of one scene of 192 × 128 pixels,
# and the varieties that are left to libheif.
set -e
scene=$(mktemp -d)
python3 - "$scene" <<'PY'
import math, sys
def save(name, channels, pixel, width=192, height=128):
    with open(f"{sys.argv[1]}/{name}", "wb") as f:
        if channels == 3:
            f.write(b"P6\n%d %d\n255\n" % (width, height))
        else:
            f.write(b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" % (width, height))
        for y in range(height):
            f.write(bytes(min(255, max(0, round(v))) for x in range(width) for v in pixel(x, y)))
def scene(x, y):
    ring = 40 * math.sin(math.hypot(x - 70, y - 50) / 7)
    return 40 + x + ring / 2, 60 + y * 1.3 + ring, 210 - x * 0.7 + 30 * math.cos(y / 11)
save("scene.ppm", 3, scene)
save("clear.pam", 4, lambda x, y: (*scene(x, y), x * 4), 64, 64)
PY
number=0
for top in 0 64; do
    for left in 0 64 128; do
        vips crop "$scene/scene.ppm" "$scene/tile.v" $left $top 64 64
        vips heifsave "$scene/tile.v" "tile-$number.heic" --compression hevc --subsample-mode on --Q 92 --effort 9 --strip
        number=$((number + 1))
    done
done
vips crop "$scene/scene.ppm" "$scene/part.v" 20 10 64 64
vips heifsave "$scene/part.v" deep.heic --compression hevc --bitdepth 10 --Q 80 --strip
vips heifsave "$scene/part.v" full-chroma.heic --compression hevc --subsample-mode off --Q 80 --strip
python3 - "$scene" <<'PY'
import sys, zlib, struct
# libvips 8.14 reads no PAM with alpha: as PNG.
data = open(f"{sys.argv[1]}/clear.pam", "rb").read().split(b"ENDHDR\n", 1)[1]
rows = b"".join(b"\0" + data[i:i + 256] for i in range(0, len(data), 256))
def chunk(kind, body): return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 6, 0, 0, 0))
open(f"{sys.argv[1]}/clear.png", "wb").write(png + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
vips heifsave "$scene/clear.png" alpha.heic --compression hevc --Q 80 --strip
rm -r "$scene"
