import VitrineImaging

/// Deflate of random blocks: stored, fixed and dynamic with random complete codes.
enum RandomDeflate {
    /// Code lengths of a complete code for the symbols that are used, at most `limit` bits.
    static func lengths(_ count: Int, used: [Int], limit: Int, _ r: inout FuzzRandom) -> [Int] {
        var lengths = [Int](repeating: 0, count: count)
        var leaves = [0]
        let n = max(1, min(used.count, 1 << limit))
        while leaves.count < n {
            let choices = leaves.indices.filter { leaves[$0] < limit }
            let i = r.chance(3) ? choices[r.below(choices.count)] : choices.max { leaves[$0] < leaves[$1] } ?? 0
            leaves[i] += 1
            leaves.append(leaves[i])
            if choices.isEmpty { break }
        }
        if n == 1 { leaves = [1] }
        for (i, s) in used.shuffled(using: &r.numbers).prefix(n).enumerated() { lengths[s] = leaves[i] }
        return lengths
    }
    static func codes(_ lengths: [Int]) -> [Int] {
        var codes = [Int](repeating: 0, count: lengths.count)
        var code = 0
        for l in 1...15 {
            for s in lengths.indices where lengths[s] == l { codes[s] = code; code += 1 }
            code <<= 1
        }
        return codes
    }
    static func putCode(_ w: inout LowestFirstBits, _ code: Int, _ length: Int) {
        for i in stride(from: length - 1, through: 0, by: -1) { w.put(code >> i & 1, 1) }
    }

    static let lengthBase = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227,
        258,
    ]
    static let lengthExtra = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0]
    static let distBase = [
        1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097,
        6145, 8193, 12289, 16385, 24577,
    ]

    /// A raw stream and what it decodes to, about `wanted` bytes; nil output when it is made wrong on purpose.
    static func stream(_ wanted: Int, _ r: inout FuzzRandom, spoil: Bool) -> (bytes: [UInt8], output: [UInt8]) {
        var w = LowestFirstBits()
        var out: [UInt8] = []
        while true {
            let last = out.count >= wanted
            w.flag(last)
            switch r.below(5) {
            case 0:
                w.put(0, 2)
                w.align()
                let n = r.chance(4) ? 0 : r.below(300)
                w.put(n, 16); w.put(n ^ 0xFFFF, 16)
                let b = r.bytes(n)
                for x in b { w.put(Int(x), 8) }
                out += b
            case 1:
                w.put(1, 2);
                body(
                    &w, &out, wanted, &r, (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 },
                    [Int](repeating: 5, count: 30), spoil: spoil)
            default:
                w.put(2, 2)
                let kinds = 1 + r.below(286)
                var used = Set((0..<kinds).map { _ in r.below(286) })
                used.insert(256)
                let lit = lengths(286, used: used.sorted(), limit: r.range(9...15), &r)
                let dused = Set((0..<(1 + r.below(30))).map { _ in r.below(30) }).sorted()
                var dist = lengths(30, used: dused, limit: r.range(5...15), &r)
                if r.chance(6) { dist = [Int](repeating: 0, count: 30); if r.flag() { dist[r.below(30)] = 1 } }
                guard lit[256] > 0 else { continue }
                header(&w, lit, dist, &r)
                body(&w, &out, wanted, &r, lit, dist, spoil: spoil)
            }
            if last { break }
            if w.bytes.count > 200_000 { break }
        }
        return (w.bytes, out)
    }

    private static func header(_ w: inout LowestFirstBits, _ lit: [Int], _ dist: [Int], _ r: inout FuzzRandom) {
        let hlit = max(257, (lit.lastIndex { $0 > 0 } ?? 256) + 1)
        let hdist = max(1, (dist.lastIndex { $0 > 0 } ?? 0) + 1)
        let all = Array(lit[..<hlit]) + Array(dist[..<hdist])
        var tokens: [(Int, Int, Int)] = []
        var i = 0
        while i < all.count {
            var run = 1
            while i + run < all.count, all[i + run] == all[i] { run += 1 }
            if all[i] == 0, run >= 3, !r.chance(5) {
                let n = min(run, r.flag() ? 10 : 138)
                if n <= 10 { tokens.append((17, n - 3, 3)) } else { tokens.append((18, n - 11, 7)) }
                i += n
            } else if i > 0, all[i] == all[i - 1], run >= 3, !r.chance(5) {
                let n = min(run, 6)
                tokens.append((16, n - 3, 2))
                i += n
            } else {
                tokens.append((all[i], 0, 0)); i += 1
            }
        }
        let cl = lengths(
            19,
            used: Set(tokens.map(\.0)).sorted().count == 1
                ? [tokens[0].0, tokens[0].0 == 0 ? 1 : 0] : Set(tokens.map(\.0)).sorted(), limit: 7, &r)
        let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
        let hclen = max(4, (order.lastIndex { cl[$0] > 0 } ?? 3) + 1)
        w.put(hlit - 257, 5); w.put(hdist - 1, 5); w.put(hclen - 4, 4)
        for s in order[..<hclen] { w.put(cl[s], 3) }
        let codes = codes(cl)
        for t in tokens { putCode(&w, codes[t.0], cl[t.0]); w.put(t.1, t.2) }
    }

    private static func body(
        _ w: inout LowestFirstBits, _ out: inout [UInt8], _ wanted: Int, _ r: inout FuzzRandom, _ lit: [Int],
        _ dist: [Int], spoil: Bool
    ) {
        let (lc, dc) = (codes(lit), codes(dist))
        let literals = (0..<256).filter { lit[$0] > 0 }
        let matches = (257..<286).filter { $0 < lit.count && lit[$0] > 0 }
        let distances = dist.indices.filter { dist[$0] > 0 }
        let n = r.below(r.flag() ? 20 : 600)
        for _ in 0..<n {
            if spoil, r.chance(4_000) { w.put(r.below(1 << 14), 14); continue }
            if !matches.isEmpty, !distances.isEmpty, r.flag() {
                let m = r.pick(matches), d = r.pick(distances)
                let extra = lengthExtra[m - 257], dextra = d < 4 ? 0 : d / 2 - 1
                let le = r.below(1 << extra), de = r.below(1 << dextra)
                let (length, distance) = (lengthBase[m - 257] + le, distBase[d] + de)
                if distance > out.count, !(spoil && r.chance(300)) { continue }
                putCode(&w, lc[m], lit[m]); w.put(le, extra)
                putCode(&w, dc[d], dist[d]); w.put(de, dextra)
                if distance <= out.count { for _ in 0..<length { out.append(out[out.count - distance]) } }
            } else if !literals.isEmpty {
                let s = r.pick(literals)
                putCode(&w, lc[s], lit[s])
                out.append(UInt8(s))
            }
            if out.count > wanted + 70_000 { break }
        }
        putCode(&w, lc[256], lit[256])
    }

    /// zlib of given bytes, by stored and fixed blocks.
    static func zlib(_ bytes: [UInt8], _ r: inout FuzzRandom) -> [UInt8] {
        var w = LowestFirstBits()
        w.put(0x78, 8); w.put(0x01, 8)
        var at = 0
        repeat {
            let n = min(bytes.count - at, 1 + r.below(r.flag() ? 100 : 60_000))
            let last = at + n == bytes.count
            w.flag(last)
            if r.flag() {
                w.put(0, 2); w.align(); w.put(n, 16); w.put(n ^ 0xFFFF, 16)
                for x in bytes[at..<(at + n)] { w.put(Int(x), 8) }
            } else {
                w.put(1, 2)
                for x in bytes[at..<(at + n)] {
                    let v = Int(x); v < 144 ? putCode(&w, 0x30 + v, 8) : putCode(&w, 0x190 + v - 144, 9)
                }
                putCode(&w, 0, 7)
            }
            at += n
        } while at < bytes.count
        w.align()
        return w.bytes + big(Int(Adler32.checksum(bytes)), 4)
    }
}
