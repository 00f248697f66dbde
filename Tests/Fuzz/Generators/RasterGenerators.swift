import TestSupport
import VitrineImaging

/// Formats of plain rows: PSD, DDS, TGA, PNM and FITS.
extension FuzzGenerators {
    static func psd(_ r: inout FuzzRandom) -> [UInt8] {
        let depth = r.pick([1, 8, 8, 16, 16, 32]), mode = r.pick([0, 1, 2, 3, 4, 7, 8, 9])
        let channels = r.pick([1, 2, 3, 4, 5, 6]), large = r.chance(4)
        let (w, h) = (1 + r.below(90), 1 + r.below(60))
        var out =
            Array("8BPS".utf8) + big(large ? 2 : 1, 2) + [UInt8](repeating: 0, count: 6) + big(channels, 2) + big(h, 4)
            + big(w, 4) + big(depth, 2) + big(mode, 2)
        let palette = mode == 2 || r.chance(6) ? r.bytes(r.chance(8) ? r.below(900) : 768) : []
        out += big(palette.count, 4) + palette
        var resources: [UInt8] = []
        for _ in 0..<r.below(3) {
            let d = r.bytes(r.below(40))
            resources +=
                Array("8BIM".utf8) + big(r.pick([1033, 1036, 1039, 1047, 1057, 1058, 1060, r.below(65536)]), 2) + [
                    0, 0,
                ] + big(d.count, 4) + d + (d.count & 1 == 1 ? [0] : [])
        }
        out += big(resources.count, 4) + resources
        let layers: [UInt8] =
            r.flag()
            ? []
            : r.flag()
                ? big(2, large ? 8 : 4) + big(r.pick([0xFFFF, 1, 0x8000]), 2) + big(0, 4)
                : big(0, large ? 8 : 4) + big(0, 4) + Array("8BIM".utf8)
                    + Array(r.pick(["Mtrn", "Layr", "Lr16", "xxxx"]).utf8) + big(r.below(4), large ? 8 : 4) + r.bytes(4)
        out += big(layers.count, large ? 8 : 4) + layers
        let packed = r.flag()
        out += big(r.chance(12) ? r.below(5) : packed ? 1 : 0, 2)
        let row = (w * depth + 7) / 8
        if packed {
            var table: [UInt8] = [], data: [UInt8] = []
            for _ in 0..<(channels * h) {
                var d: [UInt8] = [], n = 0
                while n < row {
                    if r.flag() {
                        let k = min(row - n, 2 + r.below(127)); d += [UInt8(truncatingIfNeeded: 257 - k), r.byte()];
                        n += k
                    } else {
                        let k = min(row - n, 1 + r.below(128)); d.append(UInt8(k - 1)); d += r.bytes(k); n += k
                    }
                }
                if r.chance(60) { d = r.bytes(r.below(40)) }
                table += big(d.count, large ? 4 : 2); data += d
            }
            out += table + data
        } else {
            out += r.bytes(channels * h * row)
        }
        if r.chance(8) { out.removeLast(r.below(out.count / 2)) }
        return out
    }

    static func dds(_ r: inout FuzzRandom) -> [UInt8] {
        let (w, h) = (1 + r.below(70), 1 + r.below(50))
        var head = [UInt8](repeating: 0, count: 128)
        head.replaceSubrange(0..<4, with: "DDS ".utf8)
        func set(_ at: Int, _ v: Int) { head.replaceSubrange(at..<(at + 4), with: little(v, 4)) }
        set(4, 124); set(12, h); set(16, w); set(76, 32)
        var extra: [UInt8] = []
        if r.chance(3) {
            set(80, r.pick([0x40, 0x41, 0x20000, 0x20001, 0x2, 0x1])); set(88, r.pick([8, 16, 24, 32]))
            for at in [92, 96, 100, 104] {
                set(
                    at,
                    r.flag()
                        ? r.pick([0xFF, 0xFF00, 0xFF0000, 0xFF000000, 0xF800, 0x7E0, 0x1F, 0, 0xFFFFFFFF])
                        : r.below(1 << 32))
            }
        } else {
            set(80, 4)
            let code = r.pick(["DXT1", "DXT3", "DXT5", "ATI1", "BC4S", "ATI2", "BC5S", "DX10", "DX10", "DX10"])
            head.replaceSubrange(84..<88, with: code.utf8)
            if code == "DX10" {
                extra =
                    little(r.pick([71, 74, 77, 80, 81, 83, 84, 28, 87, 88, 85, 86, 61, 95, 96, 98, 95, 96, 98]), 4)
                    + [UInt8](repeating: 0, count: 16)
            }
        }
        let n = max(((w + 3) / 4) * ((h + 3) / 4) * 16, w * h * 4)
        return head + extra + r.bytes(r.chance(8) ? r.below(n) : n)
    }

    static func tga(_ r: inout FuzzRandom) -> [UInt8] {
        let type = r.pick([1, 2, 3, 9, 10, 11])
        let (w, h) = (1 + r.below(70), 1 + r.below(50))
        let mapped = type & 7 == 1, gray = type & 7 == 3
        let depth = mapped ? r.pick([8, 16]) : gray ? r.pick([8, 16]) : r.pick([15, 16, 24, 32])
        let (first, count, mapDepth) = (
            r.chance(3) ? r.below(70_000) & 0xFFFF : 0, mapped ? r.below(300) : r.chance(4) ? r.below(5) : 0,
            r.pick([15, 16, 24, 32])
        )
        let map = mapped || count > 0
        let id = r.bytes(r.below(5))
        var out: [UInt8] =
            [UInt8(id.count), map ? 1 : 0, UInt8(type)] + little(first, 2) + little(count, 2) + [UInt8(mapDepth)] + [
                0, 0, 0, 0,
            ] + little(w, 2) + little(h, 2) + [UInt8(depth), UInt8(r.below(64))] + id
        if map { out += r.bytes(count * ((mapDepth + 7) / 8)) }
        let bytes = (depth + 7) / 8
        out += type & 8 != 0 ? r.bytes(w * h * (bytes + 1)) : r.bytes(w * h * bytes)
        if r.chance(6) { out.removeLast(r.below(out.count / 2)) }
        if r.flag() {
            let area = out.count
            let ext = little(495, 2) + [UInt8](repeating: 0, count: 492) + [UInt8(r.below(6))]
            out += ext + little(area, 4) + little(0, 4) + Array("TRUEVISION-XFILE.".utf8) + [0]
        }
        return out
    }

    static func pnm(_ r: inout FuzzRandom) -> [UInt8] {
        let (w, h) = (1 + r.below(70), 1 + r.below(50))
        let maximum = r.pick([1, 3, 15, 100, 254, 255, 256, 1000, 65534, 65535])
        switch r.below(5) {
        case 0:
            let channels = 1 + r.below(4)
            let type = r.pick([
                "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA", "BLACKANDWHITE", "BLACKANDWHITE_ALPHA",
            ])
            var head = "P7\nWIDTH \(w)\nHEIGHT \(h)\nDEPTH \(channels)\nMAXVAL \(maximum)\n"
            if r.flag() { head += "TUPLTYPE \(type)\n" }
            return Array((head + "ENDHDR\n").utf8) + r.bytes(w * h * channels * 2)
        case 1:
            return Array("P\(r.pick(["F", "f"]))\n\(w) \(h)\n\(r.pick(["-1.0", "1.0", "0.5"]))\n".utf8)
                + r.bytes(w * h * 12)
        case 2:
            var t = "P\(r.pick([1, 2, 3])) \(w) \(h)\n" + "\(maximum)\n"
            for _ in 0..<(w * h * 3) { t += "\(r.below(r.pick([2, 256, 70_000]))) " }
            return Array(t.utf8)
        default: return Array("P\(r.pick([4, 5, 6]))\n\(w) \(h)\n\(maximum)\n".utf8) + r.bytes(w * h * 6)
        }
    }

    static func fits(_ r: inout FuzzRandom) -> [UInt8] {
        func card(_ k: String, _ v: String) -> String {
            let s = k.padding(8) + "= " + v; return String(s.prefix(80)).padding(80)
        }
        let bits = r.pick([8, 16, 32, 64, -32, -64])
        let (w, h) = (r.chance(10) ? r.size() : 1 + r.below(60), r.chance(10) ? r.size() : 1 + r.below(60))
        let planes = r.pick([1, 3, 2])
        var t =
            card("SIMPLE", "T") + card("BITPIX", "\(bits)") + card("NAXIS", "\(r.pick([2, 3, 3, 1, 0]))")
            + card("NAXIS1", "\(w)") + card("NAXIS2", "\(h)") + card("NAXIS3", "\(planes)")
        if r.flag() {
            t +=
                card("BSCALE", r.pick(["1.0", "1D300", "0", "-1", "NaN", "inf"]))
                + card("BZERO", r.pick(["32768", "1D308", "-1D308", "0"]))
        }
        if r.flag() { t += card("BLANK", "\(r.pick([0, -1, 32767]))") }
        if r.chance(4) { t += card("PCOUNT", "\(r.size())") }
        t += "END".padding(80)
        var out = Array(t.utf8)
        while out.count % 2_880 != 0 { out.append(32) }
        return out + r.bytes(min(200_000, max(0, min(w, 3_000) &* min(h, 3_000) &* planes &* abs(bits) / 8)))
    }
}

extension String {
    /// The text with blanks up to a length.
    fileprivate func padding(_ count: Int) -> String {
        self + String(repeating: " ", count: max(0, count - self.count))
    }
}
