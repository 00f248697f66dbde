import TestSupport
import VitrineImaging

/// PNG images and animations of every kind, with right checksums.
extension FuzzGenerators {
    static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(type.utf8) + data
        return big(data.count, 4) + body + big(Int(CRC32.checksum(body)), 4)
    }

    static func png(_ r: inout FuzzRandom) -> [UInt8] {
        let (type, depths): (Int, [Int]) = r.pick([
            (0, [1, 2, 4, 8, 16]), (2, [8, 16]), (3, [1, 2, 4, 8]), (4, [8, 16]), (6, [8, 16]),
        ])
        let depth = r.pick(depths)
        let (w, h) = (1 + r.below(r.flag() ? 12 : 140), 1 + r.below(r.flag() ? 12 : 140))
        let channels = [1, 1, 3, 1, 2, 1, 4][type]
        let interlaced = r.chance(3)
        var out: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        out += chunk("IHDR", big(w, 4) + big(h, 4) + [UInt8(depth), UInt8(type), 0, 0, interlaced ? 1 : 0])
        if r.chance(6) {
            out += chunk(r.pick(["gAMA", "tEXt", "eXIf", "iCCP", "cHRM", "sRGB", "pHYs"]), r.bytes(r.below(60)))
        }
        let frames = r.chance(5) ? 1 + r.below(4) : 0
        if frames > 0 { out += chunk("acTL", big(frames, 4) + big(r.below(3), 4)) }
        if type == 3 || r.chance(8) { out += chunk("PLTE", r.bytes(3 * (1 + r.below(256)))) }
        if r.chance(3) { out += chunk("tRNS", r.bytes(r.pick([1, 2, 6, 16, 256, r.below(256)]))) }
        func image(_ w: Int, _ h: Int, _ r: inout FuzzRandom) -> [UInt8] {
            var raw: [UInt8] = []
            let passes =
                interlaced
                ? [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
                : [(0, 0, 1, 1)]
            for (x, y, dx, dy) in passes {
                let pw = w > x ? (w - x + dx - 1) / dx : 0, ph = h > y ? (h - y + dy - 1) / dy : 0
                guard pw > 0 else { continue }
                for _ in 0..<ph {
                    raw.append(UInt8(r.chance(200) ? r.below(256) : r.below(5)));
                    raw += r.bytes((pw * depth * channels + 7) / 8)
                }
            }
            if r.chance(8) { raw.removeLast(r.below(raw.count)) }
            if r.chance(8) { raw += r.bytes(r.below(2_000)) }
            if r.chance(3) {
                // Random blocks, cut to what is needed by luck.
                let s = RandomDeflate.stream(raw.count, &r, spoil: r.chance(4))
                return [0x78, 0x01] + s.bytes + big(Int(Adler32.checksum(s.output)), 4)
            }
            return RandomDeflate.zlib(raw, &r)
        }
        func split(_ data: [UInt8], _ make: ([UInt8]) -> [UInt8], _ r: inout FuzzRandom) -> [UInt8] {
            var out: [UInt8] = [], at = 0
            let step = r.flag() ? data.count : 1 + r.below(data.count)
            repeat {
                let n = min(step, data.count - at); out += make(Array(data[at..<(at + n)])); at += n
            } while at < data.count
            return out
        }
        var sequence = 0
        func control(_ w: Int, _ h: Int, _ x: Int, _ y: Int, _ r: inout FuzzRandom) -> [UInt8] {
            defer { sequence += 1 }
            return chunk(
                "fcTL",
                big(sequence, 4) + big(w, 4) + big(h, 4) + big(x, 4) + big(y, 4) + big(r.below(100), 2)
                    + big(r.below(100), 2) + [UInt8(r.below(3)), UInt8(r.below(2))])
        }
        if frames > 0, r.flag() { out += control(w, h, 0, 0, &r) }
        out += split(image(w, h, &r), { chunk("IDAT", $0) }, &r)
        for _ in 0..<frames {
            let (fw, fh) = (1 + r.below(w), 1 + r.below(h))
            out += control(
                fw, fh, r.chance(20) ? r.below(w + 3) : r.below(w - fw + 1),
                r.chance(20) ? r.below(h + 3) : r.below(h - fh + 1), &r)
            let data = image(fw, fh, &r)
            out += split(
                data,
                { d in
                    defer { sequence += 1 }; return chunk("fdAT", big(sequence, 4) + d)
                }, &r)
        }
        return out + chunk("IEND", [])
    }
}
