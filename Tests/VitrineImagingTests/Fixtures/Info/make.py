# Makes the fixtures beside it with Pillow 13 and exiftool 12.57, and prints the digests the GIF tests expect.
# Run in this folder: python3 make.py
import io, subprocess
from PIL import Image, ImageDraw

def picture(w, h, mode="RGB"):
    im = Image.new("RGB", (w, h))
    im.putdata([((x * 255) // w, (y * 255) // h, ((x + y) * 7) % 256) for y in range(h) for x in range(w)])
    return im.convert(mode)

def digest(im):
    h = 0xCBF29CE484222325
    for r, g, b, a in im.convert("RGBA").getdata():
        v = (r | g << 8 | b << 16 | 255 << 24) if a else 0
        h = ((h ^ v) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "0x%016x" % h

if __name__ == "__main__":
    p = picture(48, 32)
    p.save("plain.bmp"); picture(48, 32, "P").save("palette.bmp")
    p.save("picture.jp2", quality_mode="rates", quality_layers=[40])
    p.save("picture.j2k", quality_mode="rates", quality_layers=[40])
    picture(48, 32, "RGBA").save("alpha.jp2", quality_mode="rates", quality_layers=[40])
    picture(48, 48, "RGBA").save("icon.ico", sizes=[(16, 16), (32, 32), (48, 48)])
    picture(48, 48, "RGBA").save("icon-bmp.ico", sizes=[(16, 16), (32, 32)], bitmap_format="bmp")
    frames = [picture(24, 16).rotate(90 * i) for i in range(4)]
    frames[0].save("animated.png", save_all=True, append_images=frames[1:], duration=[100, 200, 300, 400], loop=3)
    frames[0].save("animated.webp", save_all=True, append_images=frames[1:], duration=[100, 200, 300, 400], loop=3)
    frames[0].save("sequence.avif", save_all=True, append_images=frames[1:], duration=100)
    frames[0].save("pages.tif", save_all=True, append_images=frames[1:], compression="tiff_lzw")
    frames[0].save("big.tif", big_tiff=True)
    p.save("profile.png", icc_profile=__import__("PIL.ImageCms", fromlist=["x"]).ImageCmsProfile(
        __import__("PIL.ImageCms", fromlist=["x"]).createProfile("sRGB")).tobytes())
    p.save("thumbnail.jpg", quality=60)
    picture(16, 10).save("small.jpg", quality=40)
    subprocess.run(["exiftool", "-q", "-overwrite_original", "-Orientation#=6", "-Make=Vitrine", "-Model=Fixture 1",
        "-DateTimeOriginal=2024:02:29 12:34:56", "-SubSecTimeOriginal=25", "-OffsetTimeOriginal=+05:30",
        "-GPSLatitude=48.2", "-GPSLatitudeRef=N", "-GPSLongitude=16.3", "-GPSLongitudeRef=E",
        "-XMP-dc:Title=Fixture", "-XMP-tiff:Orientation#=6", "-ThumbnailImage<=small.jpg", "thumbnail.jpg"], check=True)
    for name in ["picture.png", "picture.webp"]:
        p.save(name)
        subprocess.run(["exiftool", "-q", "-overwrite_original", "-Orientation#=6", "-XMP-dc:Title=Fixture", name], check=True)
    # Turnings of AVIF, which Pillow writes as irot and imir.
    for i in range(1, 9):
        e = Image.Exif(); e[274] = i
        picture(32, 16).save("turned-%d.avif" % i, exif=e, quality=30)
    import os; os.remove("small.jpg")
