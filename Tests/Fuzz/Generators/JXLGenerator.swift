import TestSupport
import VitrineImaging

/// JPEG XL codestreams whose headers, entropy codes and trees are valid.
extension FuzzGenerators {
    /// An entropy code without copies for so many contexts.
    ///
    /// - Returns: Whether it is of prefixes. Others begin with a state, which must be what it was at their end.
    @discardableResult
    private static func jxlCode(_ w: inout LowestFirstBits, _ contexts: Int, _ r: inout FuzzRandom) -> Bool {
        w.flag(false)
        var clusters = 1
        if contexts > 1 {
            w.flag(true)
            let n = r.below(4)
            w.put(n, 2)
            clusters = 0
            for _ in 0..<contexts { let c = r.below(1 << n); clusters = max(clusters, c + 1); w.put(c, n) }
        }
        let prefix = r.flag()
        w.flag(prefix)
        let log = prefix ? 15 : 5 + r.below(4)
        if !prefix { w.put(log - 5, 2) }
        func clog(_ x: Int) -> Int { x <= 1 ? 0 : Int.bitWidth - (x - 1).leadingZeroBitCount }
        for _ in 0..<clusters {
            let split = r.chance(3) ? log : r.below(log + 1)
            w.put(split, clog(log + 1))
            guard split != log else { continue }
            let msb = r.below(split + 1); w.put(msb, clog(split + 1))
            let lsb = r.below(split - msb + 1); w.put(lsb, clog(split - msb + 1))
        }
        if prefix {
            var sizes: [Int] = []
            for _ in 0..<clusters {
                if r.chance(4) { w.flag(false); sizes.append(1); continue }
                w.flag(true)
                let n = r.below(r.chance(10) ? 15 : 6)
                w.put(n, 4)
                let extra = r.below(1 << n)
                w.put(extra, n)
                sizes.append(1 + (1 << n) + extra)
            }
            for size in sizes where size > 1 {
                if r.chance(6) {
                    w.put(r.pick([0, 2, 3]), 2); for _ in 0..<r.below(60) { w.put(r.below(256), 8) }; continue
                }
                w.put(1, 2)
                let count = 1 + r.below(min(4, size))
                w.put(count - 1, 2)
                let width = clog(size)
                var used: Set<Int> = []
                while used.count < count { used.insert(r.below(size)) }
                for s in used.sorted().shuffled(using: &r.numbers) { w.put(s, width) }
                if count == 4 { w.flag(r.flag()) }
            }
        } else {
            func u8(_ v: Int) {
                if v == 0 {
                    w.flag(false)
                } else {
                    w.flag(true); let n = Int.bitWidth - v.leadingZeroBitCount - 1; w.put(n, 3); w.put(v - (1 << n), n)
                }
            }
            for _ in 0..<clusters {
                switch r.below(5) {
                case 0: w.flag(true); w.flag(false); u8(r.below(min(40, 1 << log)))
                case 1:
                    w.flag(true); w.flag(true); u8(r.below(1 << log)); u8(r.below(1 << log)); w.put(r.below(4096), 12)
                case 2, 3: w.flag(false); w.flag(true); u8(r.below(1 << log))
                default: w.flag(false); w.flag(false); for _ in 0..<(4 + r.below(30)) { w.put(r.below(256), 8) }
                }
            }
        }
        return prefix
    }

    /// A tree of contexts, and the code of its leaves.
    ///
    /// - Returns: As ``jxlCode(_:_:_:)``.
    private static func jxlTree(_ w: inout LowestFirstBits, _ r: inout FuzzRandom) -> Bool {
        // 6 contexts, each with a code of its own, of one or two symbols.
        w.flag(false)
        w.flag(true); w.put(3, 2); for c in 0..<6 { w.put(c, 3) }
        w.flag(true)
        for _ in 0..<6 { w.put(15, 4) }
        var symbols: [[Int]] = []
        for c in 0..<6 {
            let top = [60, 20, 14, 20, 8, 20][c]
            var set: Set<Int> = c == 1 ? [0] : []
            let n = c == 1 ? 2 + r.below(3) : 1 + r.below(4)
            while set.count < min(n, top) { set.insert(r.below(top)) }
            symbols.append(Array(set).sorted())
            w.flag(true); w.put(6, 4); w.put(0, 6)
        }
        var lengths: [[Int]] = []
        for c in 0..<6 {
            w.put(1, 2); w.put(symbols[c].count - 1, 2)
            for s in symbols[c] { w.put(s, 7) }
            if symbols[c].count == 4 { w.flag(false) }
            lengths.append([[0], [1, 1], [1, 2, 2], [2, 2, 2, 2]][symbols[c].count - 1])
        }
        func put(_ c: Int, _ i: Int) {
            // canonical by symbol order of equal lengths
            let l = lengths[c]
            guard l.count > 1 else { return }
            var code = 0, codes = [Int](repeating: 0, count: l.count)
            for len in 1...2 { for k in l.indices where l[k] == len { codes[k] = code; code += 1 }; code <<= 1 }
            for b in stride(from: l[i] - 1, through: 0, by: -1) { w.put(codes[i] >> b & 1, 1) }
        }
        var pending = 1
        var nodes = 0
        let most = r.pick([1, 3, 9, 40, 200])
        while pending > 0 {
            pending -= 1
            nodes += 1
            let choice = nodes + pending < most ? r.below(symbols[1].count) : 0
            put(1, choice)
            if symbols[1][choice] == 0 {
                for c in [2, 3, 4, 5] { put(c, r.below(symbols[c].count)) }
            } else {
                put(0, r.below(symbols[0].count)); pending += 2
            }
        }
        let leaves = (nodes + 1) / 2
        return jxlCode(&w, leaves, &r)
    }

    static func jxl(_ r: inout FuzzRandom) -> [UInt8] {
        let width = 1 + r.below(r.flag() ? 600 : 2_600)
        let height = 1 + r.below(min(600, 200_000 / width))
        var w = LowestFirstBits()
        w.put(0x0AFF, 16)
        w.flag(false); w.put(3, 2); w.put(height - 1, 30); w.put(0, 3); w.put(3, 2); w.put(width - 1, 30)
        let isYCbCr = r.chance(3)
        if !isYCbCr && r.flag() {
            w.flag(true); w.flag(true)
        } else {
            w.flag(false); w.flag(false)
            w.flag(false); w.put(0, 2); w.flag(true); w.put(0, 2)
            w.flag(!isYCbCr); w.flag(true); w.put(0, 2); w.flag(true)
        }
        w.align()
        if isYCbCr || r.flag() {
            w.flag(false); w.put(0, 2); w.flag(false)
            // flags: noise and no smoothing at times
            if r.flag() { w.put(0, 2) } else { w.put(2, 2); w.put(r.pick([111, 0, 112]), 8) }
            if isYCbCr { w.flag(true); for _ in 0..<3 { w.put(r.below(4), 2) } }
            w.put(0, 2)
            if !isYCbCr { w.put(r.below(64), 6) }
            w.put(0, 2); w.flag(false); w.put(0, 2); w.flag(true); w.put(0, 2); w.flag(true); w.put(0, 2)
        } else {
            w.flag(true)
        }
        var g = LowestFirstBits()
        if r.chance(3) { g.flag(false); for _ in 0..<3 { g.put(0x3C00 + r.below(2_000), 16) } } else { g.flag(true) }
        g.put(r.below(2), 2); g.put(r.below(2_048), 11); g.put(r.below(3), 2)
        if g.bytes.count > 0 { g.put(r.below(256), r.pick([0, 5, 8])) }
        g.flag(true); g.flag(true)
        let shared = r.flag()
        g.flag(shared)
        let isSharedOfPrefixes = shared && jxlTree(&g, &r)
        if r.chance(10) { g.put(r.below(1 << 20), 20) }
        let groups = ((width + 255) / 256) * ((height + 255) / 256)
        let lf = ((width + 2047) / 2048) * ((height + 2047) / 2048)
        var sections: [[UInt8]] = [g.bytes]
        for _ in 0..<lf {
            var l = LowestFirstBits()
            l.put(r.below(4), 2)
            let usesShared = shared && !r.chance(5)
            l.flag(usesShared)
            if r.flag() {
                l.flag(true)
            } else {
                l.flag(false); for _ in 0..<7 { l.put(r.below(32), 5) }; for _ in 0..<4 { l.put(r.below(16), 4) }
            }
            l.put(0, 2)
            let isOfPrefixes = usesShared ? isSharedOfPrefixes : jxlTree(&l, &r)
            // Codes of one symbol leave the state as it is; most samples take a few bits more.
            if !isOfPrefixes, !r.chance(4) { l.put(0x13_0000, 32) }
            let samples = 3 * (min(width, 2_048) + 7) / 8 * (height + 7) / 8
            for b in r.bytes(r.chance(4) ? r.below(200) : samples + r.below(2 * samples)) { l.put(Int(b), 8) }
            sections.append(l.bytes)
        }
        let isOne = groups == 1
        let count = isOne ? 1 : 2 + lf + groups
        w.flag(false); w.align()
        var sizes = sections.map(\.count)
        if isOne { sizes = [sizes.reduce(0, +)] } else { while sizes.count < count { sizes.append(0) } }
        for s in sizes {
            if s < 1_024 {
                w.put(0, 2); w.put(s, 10)
            } else if s < 17_408 {
                w.put(1, 2); w.put(s - 1_024, 14)
            } else {
                w.put(2, 2); w.put(s - 17_408, 22)
            }
        }
        w.align()
        return w.bytes + sections.flatMap { $0 } + r.bytes(2_000)
    }
}
