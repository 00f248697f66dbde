# Makes the fixtures beside it with Pillow 13 and prints the digests the tests expect. Run in this folder.
import sys; sys.path.insert(0, "../Info")
from make import picture, digest
from PIL import Image, ImageDraw
q = lambda im: im.quantize(64, dither=0)
q(picture(50, 37)).save("interlaced.gif", interlace=1)
q(picture(50, 37)).save("sequential.gif", interlace=0)
frames = []
for i in range(5):
    im = Image.new("RGBA", (40, 30), (0, 0, 0, 0))
    ImageDraw.Draw(im).ellipse((4 * i, 3 * i, 4 * i + 18, 3 * i + 14), fill=(40 * i, 255 - 40 * i, 90, 255))
    frames.append(im)
for name, disposal in [("keep", 1), ("clear", 2), ("restore", 3)]:
    frames[0].save(name + ".gif", save_all=True, append_images=frames[1:], disposal=disposal, duration=[50, 100, 150, 200, 250], loop=0)
files = ["interlaced.gif", "sequential.gif", "keep.gif", "clear.gif", "restore.gif"]
corpus = sys.argv[1] + "/"  # the folder gif of the shared corpus
import os
names = files + [corpus + f for f in sorted(os.listdir(corpus))]
for f in names:
    im = Image.open(f)
    n = getattr(im, "n_frames", 1)
    out = []
    for i in range(n):
        im.seek(i)
        if i in (0, 1, n // 2, n - 1): out.append("%d: %s" % (i, digest(im)))
    print('("%s", [%s]),' % (os.path.basename(f), ", ".join(out)))
