# Adds a rotation by 90 degrees (irot 3: anticlockwise 270, upright is clockwise 90) to items of a HEIF or AVIF file.
# ISO/IEC 23008-12 6.5.10. Usage: turn-heif.py in out [item ...]; item 1 when none is named.
import struct, sys
d = bytearray(open(sys.argv[1], "rb").read())
turned = [int(word) for word in sys.argv[3:]] or [1]
def u(at, n): return int.from_bytes(d[at:at+n], "big")
def add(at, n, more): d[at:at+n] = (u(at, n) + more).to_bytes(n, "big")
def box(kind, start, end):
    p = start
    while p < end:
        if d[p+4:p+8] == kind: return p, u(p, 4)
        p += u(p, 4)
meta, metan = box(b"meta", 0, len(d)); iloc, _ = box(b"iloc", meta + 12, meta + metan)
iprp, iprpn = box(b"iprp", meta + 12, meta + metan); ipco, ipcon = box(b"ipco", iprp + 8, iprp + iprpn)
ipma, ipman = box(b"ipma", iprp + 8, iprp + iprpn)
count, p = 0, ipco + 8
while p < ipco + ipcon: count += 1; p += u(p, 4)
grown = 9 + len(turned)
# Places in the file move; those in "idat" (method 1) do not.
version, base = d[iloc+8], d[iloc+13] >> 4
assert version < 2 and d[iloc+12] >> 4 == 4 and base in (0, 4) and (version == 0 or d[iloc+13] & 15 == 0)
p = iloc + 16
for _ in range(u(iloc + 14, 2)):
    method = u(p + 2, 2) & 15 if version else 0
    p += 4 + 2 * version
    based = base and u(p, 4)
    if based and method == 0: add(p, 4, grown)
    p += base + 2
    for _ in range(u(p - 2, 2)):
        if method == 0 and not based: add(p, 4, grown)
        p += 4 + (d[iloc+12] & 15)
assert d[ipma+8] == 0 and d[ipma+11] & 1 == 0
for at, more in ((meta, grown), (iprp, grown), (ipco, 9), (ipma, len(turned))): add(at, 4, more)
p = ipma + 16
for _ in range(u(ipma + 12, 4)):
    item, n = u(p, 2), d[p+2]
    p += 3 + n
    if item in turned:
        d[p-n-1] += 1
        d[p:p] = bytes([0x80 | (count + 1)])
        p += 1
d[ipco+ipcon:ipco+ipcon] = struct.pack(">I", 9) + b"irot" + bytes([3])
open(sys.argv[2], "wb").write(d)
