# Makes the WebP files and their references (Pillow's reading) in this folder: python3 make.py
import os
import subprocess

from PIL import Image, ImageDraw

W, H = 75, 53
photo = Image.new("RGB", (W, H))
photo.putdata([(40 + x * 2, 200 - y * 3, 90 + (x + y) % 80) for y in range(H) for x in range(W)])
alpha = Image.new("L", (W, H), 0)
ImageDraw.Draw(alpha).ellipse((5, 5, 60, 45), fill=255)
cut = photo.copy()
cut.putalpha(alpha)
photo.save("lossy.webp", quality=90)
photo.save("lossless.webp", lossless=True)
cut.save("lossy-alpha.webp", quality=90)
cut.save("lossless-alpha.webp", lossless=True, exact=True)
# An opaque frame, a translucent one blended over it, one that replaces a part and clears it again, a full one.
patch = Image.new("RGBA", (40, 30), (250, 60, 10, 128))
ImageDraw.Draw(patch).rectangle((10, 8, 25, 20), fill=(0, 0, 0, 0))
photo.save("1.webp", lossless=True)
patch.save("2.webp", lossless=True, exact=True)
frames = ["1.webp", "+50", "2.webp", "+50+10+6+0+b", "2.webp", "+50+20+12+1-b", "2.webp", "+50+30+20+0+b", "lossy.webp", "+50+0+0+0-b"]
command = ["webpmux"] + [part for f in zip(frames[::2], frames[1::2]) for part in ("-frame",) + f]
subprocess.run(command + ["-o", "animated.webp"], check=True)
os.remove("1.webp")
os.remove("2.webp")
for name in ("lossy", "lossless", "lossy-alpha", "lossless-alpha"):
    image = Image.open(name + ".webp")
    open(name + (".rgba" if image.mode == "RGBA" else ".rgb"), "wb").write(image.tobytes())
image = Image.open("animated.webp")
with open("animated.rgba", "wb") as out:
    for i in range(image.n_frames):
        image.seek(i)
        out.write(image.convert("RGBA").tobytes())
