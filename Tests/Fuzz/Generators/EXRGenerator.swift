import TestSupport
import VitrineImaging

/// OpenEXR images of scan lines and tiles, of every compression.
extension FuzzGenerators {
    static func exr(_ r: inout FuzzRandom) -> [UInt8] {
        func attribute(_ name: String, _ type: String, _ value: [UInt8]) -> [UInt8] {
            Array(name.utf8) + [0] + Array(type.utf8) + [0] + little(value.count, 4) + value
        }
        let compression = r.pick([0, 1, 2, 3, 4, 4, 4, 5, 6])
        let rows = [1, 1, 1, 16, 32, 16, 32][compression]
        let names = r.pick([
            ["R", "G", "B"], ["A", "B", "G", "R"], ["Y"], ["A", "Y"], ["a.R", "a.G", "a.B", "Z"],
            ["B", "G", "R", "X", "Y"],
        ])
        let kinds = names.map { _ in r.below(3) }
        let sizes = kinds.map { $0 == 1 ? 2 : 4 }
        let (w, h) = (1 + r.below(60), 1 + r.below(70))
        let (left, top) = (r.range(-5...5), r.range(-5...5))
        let tiled = r.chance(3)
        let (tw, th) = (1 + r.below(40), 1 + r.below(40))
        var out = little(0x0131_2F76, 4) + little(2 | (tiled ? 0x200 : 0), 4)
        var list: [UInt8] = []
        for (n, k) in Swift.zip(names, kinds) {
            list += Array(n.utf8) + [0] + little(k, 4) + [0, 0, 0, 0] + little(1, 4) + little(1, 4)
        }
        out += attribute("channels", "chlist", list + [0])
        out += attribute("compression", "compression", [UInt8(compression)])
        out += attribute(
            "dataWindow", "box2i", little(left, 4) + little(top, 4) + little(left + w - 1, 4) + little(top + h - 1, 4))
        if tiled { out += attribute("tiles", "tiledesc", little(tw, 4) + little(th, 4) + [0]) }
        if r.chance(6) {
            let (a, b) = (1 + r.below(9), 1 + r.below(9));
            out += attribute("preview", "preview", little(a, 4) + little(b, 4) + r.bytes(4 * a * b))
        }
        out.append(0)
        let perPixel = sizes.reduce(0, +)
        func data(_ width: Int, _ height: Int, _ r: inout FuzzRandom) -> [UInt8] {
            let raw = width * height * perPixel
            switch compression {
            case 0: return r.bytes(raw)
            case 1:
                var d: [UInt8] = [], n = 0
                while n < raw {
                    if r.flag() {
                        let k = min(raw - n, 1 + r.below(128)); d += [UInt8(k - 1), r.byte()]; n += k
                    } else {
                        let k = min(raw - n, 1 + r.below(127)); d.append(UInt8(bitPattern: Int8(-k))); d += r.bytes(k);
                        n += k
                    }
                }
                return d
            case 2, 3:
                return RandomDeflate.zlib(
                    r.chance(10) ? r.bytes(raw + r.range(-2...2) + 2) : [UInt8](repeating: r.byte(), count: raw), &r)
            case 5:
                let n = kinds.reduce(0) { $0 + ($1 == 2 ? 3 : $1 == 1 ? 2 : 4) } * width * height
                return RandomDeflate.zlib(r.bytes(n), &r)
            case 4:
                // A bitmap, then codes.
                var d: [UInt8] = []
                let (first, last) =
                    r.chance(5)
                    ? (1, 0)
                    : {
                        let a = r.below(8_192); return (a, min(8_191, a + r.below(40)))
                    }()
                d += little(first, 2) + little(last, 2)
                if first <= last { d += r.bytes(last - first + 1) }
                let count = raw / 2
                // Two to some symbols of equal lengths, the last repeats.
                let (im, iM) = {
                    let a = r.below(60_000); return (a, min(65_536, a + 1 + r.below(300)))
                }()
                var bits = HighestFirstBits()
                let n = iM - im + 1
                var length = 1
                while 1 << length < n { length += 1 }
                // A full code: some have one bit less.
                let short = (1 << length) - n
                for i in 0..<n { bits.put(i < short ? length - 1 : length, 6); if length - 1 == 0 { break } }
                bits.align(false)
                let codes = r.bytes(count * length / 8 + 16)
                let h =
                    little(im, 4) + little(iM, 4) + little(bits.bytes.count, 4)
                    + little(r.chance(8) ? r.below(codes.count * 8) : codes.count * 8, 4) + little(0, 4)
                let body = h + bits.bytes + codes
                return d + little(body.count, 4) + body
            default: return r.bytes(r.below(raw))
            }
        }
        var chunks: [[UInt8]] = []
        if tiled {
            for ty in 0..<((h + th - 1) / th) {
                for tx in 0..<((w + tw - 1) / tw) {
                    let d = data(min(tw, w - tx * tw), min(th, h - ty * th), &r)
                    chunks.append(little(tx, 4) + little(ty, 4) + little(0, 4) + little(0, 4) + little(d.count, 4) + d)
                }
            }
        } else {
            for y in stride(from: 0, to: h, by: rows) {
                let d = data(w, min(rows, h - y), &r); chunks.append(little(top + y, 4) + little(d.count, 4) + d)
            }
        }
        var at = out.count + 8 * chunks.count
        for c in chunks { out += little(at, 8); at += c.count }
        return out + chunks.flatMap { $0 }
    }
}
