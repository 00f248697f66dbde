#!/bin/sh -e
# Makes the AVIF files and their references (avifdec's reading, as raw RGB or RGBA) in this folder: sh make.sh
python3 -c '
from PIL import Image, ImageDraw
W, H = 75, 53
p = Image.new("RGB", (W, H))
p.putdata([(40 + x * 2, 200 - y * 3, 90 + (x + y) % 80) for y in range(H) for x in range(W)])
p.save("p.png")
a = Image.new("L", (W, H), 0); ImageDraw.Draw(a).ellipse((5, 5, 60, 45), fill=255)
p.putalpha(a); p.save("a.png")'
enc() { avifenc -s 6 --min 4 --max 8 "$@" >/dev/null; }
enc -d 8 -y 420 p.png 420.avif
enc -d 8 -y 420 -r limited --cicp 1/13/1 p.png 420-limited-709.avif
enc -d 10 -y 444 -r limited --cicp 1/13/6 p.png 444-10-limited.avif
enc -d 12 -y 422 p.png 422-12.avif
enc -d 8 -y 400 p.png 400.avif
enc -d 10 -y 400 -r limited p.png 400-10-limited.avif
enc -d 8 -y 444 --cicp 1/13/0 p.png 444-identity.avif
enc -d 8 -y 444 --cicp 1/13/8 p.png 444-ycgco.avif
enc -d 10 -y 444 --cicp 9/14/9 p.png 444-10-2020.avif
enc -d 8 -y 420 a.png 420-alpha.avif
enc -d 8 -y 444 --premultiply a.png 444-premultiplied.avif
avifenc -s 8 --min 8 --max 12 -y 420 p.png p.png a.png p.png sequence.avif >/dev/null 2>&1 || true
for f in *.avif; do avifdec -d 8 $f d.png >/dev/null && python3 - "$f" <<'P'
import sys
from PIL import Image
i = Image.open("d.png"); i = i.convert("RGBA" if i.mode in ("RGBA", "LA") else "RGB")
open(sys.argv[1].replace(".avif", ".rgba" if i.mode == "RGBA" else ".rgb"), "wb").write(i.tobytes())
P
done
rm -f p.png a.png d.png
