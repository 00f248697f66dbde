# Makes damaged-first.cb7 beside it by libarchive 3 and Pillow: the first of two pages lacks the end of its scan.
import ctypes, ctypes.util, io
from PIL import Image

def page(side, quality):
    out = io.BytesIO()
    Image.radial_gradient("L").resize((side, side)).convert("RGB").save(out, "JPEG", quality=quality)
    return out.getvalue()

first, second = page(64, 90), page(24, 60)
a = ctypes.CDLL(ctypes.util.find_library("archive"))
for name in ("archive_write_new", "archive_entry_new"):
    getattr(a, name).restype = ctypes.c_void_p
archive = ctypes.c_void_p(a.archive_write_new())
a.archive_write_set_format_7zip(archive)
a.archive_write_set_options(archive, b"7zip:compression=deflate")
a.archive_write_open_filename(archive, b"damaged-first.cb7")
for name, content in ((b"1.jpg", first[:-len(first) // 3]), (b"2.jpg", second)):
    entry = ctypes.c_void_p(a.archive_entry_new())
    a.archive_entry_set_pathname(entry, name)
    a.archive_entry_set_size(entry, ctypes.c_int64(len(content)))
    a.archive_entry_set_filetype(entry, 0o100000)
    a.archive_entry_set_perm(entry, 0o644)
    assert a.archive_write_header(archive, entry) == 0
    a.archive_write_data(archive, content, ctypes.c_size_t(len(content)))
    a.archive_entry_free(entry)
a.archive_write_close(archive)
a.archive_write_free(archive)
