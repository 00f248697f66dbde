#!/bin/sh
# The chart of `HighRangeTests` in PQ and HLG with the primaries of BT.2020, written by pillow-heif 1.8, libavif 0.11 and
# libjxl 0.7: sh make.sh
set -e
scratch=$(mktemp -d)
python3 - "$scratch" <<'PY'
import math, struct, sys
white = 203
# Linear sRGB, of which 1 is reference white.
chart = [(0.1,) * 3, (0.5,) * 3, (1,) * 3, (4.5,) * 3,
         (0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5), (0.6, 0.3, 0.05),
         (4, 0.4, 0.1), (-0.25, 0.55, -0.03), (0.8, 1.1, 1.9), (0.61, -0.02, -0.01)]
to2020 = [(0.6274, 0.3293, 0.0433), (0.0691, 0.9195, 0.0114), (0.0164, 0.0880, 0.8956)]
def pq(v):
    y = max(0, v * white / 10000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * y) / (1 + 18.6875 * y)) ** 78.84375
def hlg(rgb):
    y = 0.2627 * rgb[0] + 0.6780 * rgb[1] + 0.0593 * rgb[2]
    scale = (y * white / 1000) ** (1 / 1.2) / y
    def encode(e):
        e = max(0, min(1, e * scale))
        return math.sqrt(3 * e) if e <= 1 / 12 else 0.17883277 * math.log(12 * e - 0.28466892) + 0.55991073
    return [encode(v) for v in rgb]
wide = [[sum(m * v for m, v in zip(row, color)) for row in to2020] for color in chart]
for name, encoded in ("pq", [[pq(v) for v in c] for c in wide]), ("hlg", [hlg(c) for c in wide]):
    samples = [[round(v * 65535) for v in c] for c in encoded]
    rows = [b"".join(struct.pack(">3H", *samples[y // 16 * 4 + x // 16]) for x in range(64)) for y in range(48)]
    open(f"{sys.argv[1]}/{name}.rgb", "wb").write(b"".join(rows))
PY
python3 - "$scratch" <<'PY'
import sys, pillow_heif
pillow_heif.options.SAVE_HDR_TO_12_BIT = False
for curve, code in ("pq", 16), ("hlg", 18):
    samples = open(f"{sys.argv[1]}/{curve}.rgb", "rb").read()
    swapped = bytes(b for i in range(0, len(samples), 2) for b in (samples[i + 1], samples[i]))
    picture = pillow_heif.from_bytes(mode="RGB;16", size=(64, 48), data=swapped)
    picture.save(f"{curve}.heic", quality=-1, chroma=444, save_nclx_profile=True, color_primaries=9,
                 transfer_characteristics=code, matrix_coefficients=9, full_range_flag=1)
PY
cat > "$scratch/avif.c" <<'C'
#include <avif/avif.h>
#include <stdio.h>
#include <stdlib.h>
// avif TRANSFER IN OUT
int main(int count, char **text) {
    static unsigned char pixels[64 * 48 * 6];
    static uint16_t words[64 * 48 * 3];
    FILE *in = fopen(text[2], "rb");
    if (count < 4 || !in || fread(pixels, 1, sizeof pixels, in) != sizeof pixels) return 1;
    for (size_t i = 0; i < sizeof words / 2; i++) words[i] = (uint16_t)(pixels[2 * i] << 8 | pixels[2 * i + 1]);
    int transfer = atoi(text[1]); // 0: grey, of 8 bits
    avifImage *image =
        avifImageCreate(64, 48, transfer ? 10 : 8, transfer ? AVIF_PIXEL_FORMAT_YUV444 : AVIF_PIXEL_FORMAT_YUV400);
    image->colorPrimaries = transfer ? 9 : 2;
    image->transferCharacteristics = transfer ? (avifTransferCharacteristics)transfer : 2;
    image->matrixCoefficients = transfer ? 9 : 6;
    image->yuvRange = AVIF_RANGE_FULL;
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, image);
    rgb.format = AVIF_RGB_FORMAT_RGB;
    rgb.depth = 16;
    rgb.pixels = (uint8_t *)words;
    rgb.rowBytes = 64 * 6;
    if (avifImageRGBToYUV(image, &rgb)) return 2;
    avifEncoder *e = avifEncoderCreate();
    e->minQuantizer = e->maxQuantizer = 4;
    e->codecChoice = AVIF_CODEC_CHOICE_AOM;
    avifRWData data = AVIF_DATA_EMPTY;
    if (avifEncoderWrite(e, image, &data)) return 3;
    FILE *o = fopen(text[3], "wb");
    return !o || fwrite(data.data, 1, data.size, o) != data.size || fclose(o);
}
C
cc "$scratch/avif.c" -o "$scratch/avif" -lavif
"$scratch/avif" 16 "$scratch/pq.rgb" pq.avif
"$scratch/avif" 18 "$scratch/hlg.rgb" hlg.avif
# The chart with a gain map of 1/100 of a power of two a level, which leads to standard range (ISO 21496-1).
python3 - "$scratch" <<'PY'
import sys
levels = [0, 100, 200, 217, 100, 0, 0, 50, 200, 0, 100, 0]
gray = b"".join(bytes((levels[y // 16 * 4 + x // 16],) * 6) for y in range(48) for x in range(64))
open(f"{sys.argv[1]}/gain.rgb", "wb").write(gray)
PY
"$scratch/avif" 0 "$scratch/gain.rgb" "$scratch/gain.avif"
python3 - "$scratch" <<'PY'
import struct, sys
def boxes(data, start, end):
    while start + 8 <= end:
        size, kind = struct.unpack(">I4s", data[start:start + 8])
        yield kind, data[start + 8:start + (size or end - start)]
        start += size or end - start
def find(data, *path):
    for kind in path:
        data = next(body for k, body in boxes(data, 4 if kind in (b"iinf", b"iprp", b"pitm") else 0, len(data)) if k == kind)
    return data
def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body
def full(kind, *parts): return box(kind, b"\0\0\0\0", *parts)
base, gain = (open(name, "rb").read() for name in ("pq.avif", f"{sys.argv[1]}/gain.avif"))
def part(data, kind): return box(kind, find(data, b"meta", b"iprp", b"ipco", kind)) if kind != b"colr" else None
pictures = [next(body for kind, body in boxes(data, 0, len(data)) if kind == b"mdat") for data in (base, gain)]
def fraction(value): return struct.pack(">iI", round(value * 1000), 1000)
tmap = b"\0" * 5 + b"\0" + fraction(2.17) + fraction(0) + b"".join(map(fraction, (0, 2.55, 1, 0, 0)))
def nclx(a, b, c): return box(b"colr", b"nclx", struct.pack(">3HB", a, b, c, 0x80))
def info(number, kind): return box(b"infe", b"\2\0\0\0", struct.pack(">HH", number, 0), kind, b"\0")
properties = [part(base, b"ispe"), part(base, b"av1C"), nclx(9, 16, 9), nclx(1, 13, 6), part(gain, b"av1C"), nclx(2, 2, 6)]
uses = [(1, (1, 2, 3)), (2, (1, 4)), (3, (1, 5, 6))]
items = [pictures[0], tmap, pictures[1]]
def meta(offset):
    places = b""
    for number, data in enumerate(items, 1):
        places += struct.pack(">HHHII", number, 0, 1, offset, len(data))
        offset += len(data)
    return full(b"meta", full(b"hdlr", b"\0" * 4, b"pict", b"\0" * 13), full(b"pitm", b"\0\1"),
        full(b"iloc", b"\x44\0", struct.pack(">H", 3), places),
        full(b"iinf", struct.pack(">H", 3), info(1, b"av01"), info(2, b"tmap"), info(3, b"av01")),
        full(b"iref", box(b"dimg", struct.pack(">4H", 2, 2, 1, 3))),
        box(b"iprp", box(b"ipco", *properties), full(b"ipma", struct.pack(">I", 3),
            *(struct.pack(">HB", n, len(p)) + bytes(p) for n, p in uses))),
        box(b"grpl", full(b"altr", struct.pack(">4I", 4, 2, 2, 1))))
head = box(b"ftyp", b"avif", b"\0" * 4, b"avifmif1miaftmap")
file = head + meta(len(head) + len(meta(0)) + 8) + box(b"mdat", *items)
open("gain.avif", "wb").write(file)
PY
cat > "$scratch/encode.c" <<'C'
#include <jxl/encode.h>
#include <stdio.h>
#include <stdlib.h>
// encode PQ|HLG IN OUT DISTANCE
int main(int count, char **text) {
    static unsigned char pixels[64 * 48 * 6], out[1 << 20];
    FILE *in = fopen(text[2], "rb");
    if (count < 5 || !in || fread(pixels, 1, sizeof pixels, in) != sizeof pixels) return 1;
    int is_pq = text[1][0] == 'P', is_lossless = atof(text[4]) == 0;
    JxlEncoder *e = JxlEncoderCreate(NULL);
    JxlEncoderUseContainer(e, JXL_FALSE);
    JxlBasicInfo info;
    JxlEncoderInitBasicInfo(&info);
    info.xsize = 64;
    info.ysize = 48;
    info.bits_per_sample = 16;
    info.intensity_target = is_pq ? 10000 : 1000;
    info.uses_original_profile = is_lossless;
    JxlColorEncoding c = {.color_space = JXL_COLOR_SPACE_RGB, .white_point = JXL_WHITE_POINT_D65,
        .primaries = JXL_PRIMARIES_2100, .transfer_function = is_pq ? JXL_TRANSFER_FUNCTION_PQ : JXL_TRANSFER_FUNCTION_HLG,
        .rendering_intent = JXL_RENDERING_INTENT_RELATIVE};
    JxlEncoderFrameSettings *s = JxlEncoderFrameSettingsCreate(e, NULL);
    if (JxlEncoderSetBasicInfo(e, &info) || JxlEncoderSetColorEncoding(e, &c)) return 2;
    if (is_lossless ? JxlEncoderSetFrameLossless(s, JXL_TRUE) : JxlEncoderSetFrameDistance(s, (float)atof(text[4]))) return 3;
    JxlPixelFormat f = {3, JXL_TYPE_UINT16, JXL_BIG_ENDIAN, 0};
    if (JxlEncoderAddImageFrame(s, &f, pixels, sizeof pixels)) return 4;
    JxlEncoderCloseInput(e);
    unsigned char *next = out;
    size_t room = sizeof out;
    if (JxlEncoderProcessOutput(e, &next, &room) != JXL_ENC_SUCCESS) return 5;
    FILE *o = fopen(text[3], "wb");
    return !o || fwrite(out, 1, (size_t)(next - out), o) != (size_t)(next - out) || fclose(o);
}
C
cc "$scratch/encode.c" -o "$scratch/encode" -ljxl
"$scratch/encode" PQ "$scratch/pq.rgb" pq.jxl 0.05
"$scratch/encode" HLG "$scratch/hlg.rgb" hlg.jxl 0
rm -r "$scratch"
