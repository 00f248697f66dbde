import TestSupport
import VitrineImaging
import VitrineHEIF

/// Pictures of HEVC (ITU-T H.265) whose parameter sets are valid, in every combination that the decoder reads, with
/// slices of chance behind them.
extension FuzzGenerators {
    struct HEVC {
        var ctb = 4, minCB = 3, minTB = 2, maxTB = 4
        var width = 16, height = 16
        var sao = false, dependent = false, output = false, extra = 0, wpp = false, tiles = false, sliceChroma = false
        var overrideDeblock = false, acrossSlices = false, headerExtension = false
    }

    static func nal(_ type: Int, _ payload: [UInt8]) -> [UInt8] {
        var out: [UInt8] = [0, 0, 0, 1, UInt8(type << 1), 1]
        var zeros = 0
        for b in payload {
            if zeros >= 2, b <= 3 { out.append(3); zeros = 0 }
            out.append(b)
            zeros = b == 0 ? zeros + 1 : 0
        }
        if zeros > 0 { out.append(3) }
        return out
    }

    static func scaling(_ w: inout HighestFirstBits, _ r: inout FuzzRandom) {
        for size in 0..<4 {
            for matrix in stride(from: 0, to: 6, by: size == 3 ? 3 : 1) {
                let isCoded = r.flag()
                w.flag(isCoded)
                guard isCoded else { w.ue(r.below(size == 3 ? matrix / 3 + 1 : matrix + 1)); continue }
                if size > 1 { w.se(r.range(-7...247)) }
                for _ in 0..<(size == 0 ? 16 : 64) { w.se(r.chance(4) ? r.range(-128...127) : r.range(-3...3)) }
            }
        }
    }

    static func hevc(_ r: inout FuzzRandom) -> [UInt8] { hevcAnyPicture(&r).bytes }

    /// A picture of chance, which seldom ends where it must; at times one that does.
    static func hevcAnyPicture(_ r: inout FuzzRandom) -> (bytes: [UInt8], width: Int, height: Int) {
        (r.chance(4) ? hevcWholePicture(&r) : nil) ?? hevcPicture(&r)
    }

    /// A picture of a single block of coding trees that ends where it must, so that filters and the way out are reached
    /// as well. One in some hundred does by chance; nil if none was found.
    private static func hevcWholePicture(_ r: inout FuzzRandom) -> (bytes: [UInt8], width: Int, height: Int)? {
        for _ in 0..<120 {
            let found = hevcPicture(&r, isBlock: true)
            let picture = HEVCByteStream(found.bytes)
            let isWhole = try? picture.stream.withUnsafeBufferPointer { stream in
                try HEVCIntraDecoder(
                    configuration: picture.configuration, maximumSide: 64, maximumPixels: 64 * 64
                ).decode(stream).isEmpty == false
            }
            if isWhole == true { return found }
        }
        return nil
    }

    /// A picture as a stream with start codes, and its size before it is cropped.
    ///
    /// - Parameter isBlock: Whether it has one block of coding trees in one slice.
    static func hevcPicture(
        _ r: inout FuzzRandom, isBlock: Bool = false
    ) -> (bytes: [UInt8], width: Int, height: Int) {
        var p = HEVC()
        p.minCB = r.range(3...5)
        p.ctb = r.range(max(4, p.minCB)...6)
        p.minTB = r.range(2...(p.minCB - 1))
        p.maxTB = r.range(p.minTB...min(p.ctb, 5))
        let unit = 1 << p.minCB
        let most = isBlock ? 1 << p.ctb : 200
        p.width = unit * (1 + r.below(max(1, most / unit)))
        p.height = unit * (1 + r.below(max(1, most / unit)))
        var s = HighestFirstBits()
        s.put(0, 4); s.put(0, 3); s.put(1, 1); for _ in 0..<12 { s.put(r.below(256), 8) }
        s.ue(0); s.ue(1); s.ue(p.width); s.ue(p.height)
        let crop = r.chance(3)
        s.flag(crop)
        if crop { for side in [p.width, p.width, p.height, p.height] { s.ue(r.below(max(1, side / 4))) } }
        s.ue(0); s.ue(0); s.ue(r.below(13))
        s.flag(true); for _ in 0..<3 { s.ue(r.below(5)) }
        s.ue(p.minCB - 3); s.ue(p.ctb - p.minCB); s.ue(p.minTB - 2); s.ue(p.maxTB - p.minTB)
        s.ue(r.below(4)); s.ue(r.below(p.ctb - p.minTB + 1))
        let lists = r.flag()
        s.flag(lists)
        if lists { let own = r.flag(); s.flag(own); if own { scaling(&s, &r) } }
        s.flag(r.flag())
        p.sao = r.flag(); s.flag(p.sao)
        let pcm = r.flag() && p.minCB <= 5
        s.flag(pcm)
        if pcm {
            s.put(r.below(8), 4); s.put(r.below(8), 4)
            let low = r.range(min(p.minCB, 5)...min(p.ctb, 5)), high = r.range(low...min(p.ctb, 5))
            s.ue(low - 3); s.ue(high - low); s.flag(r.flag())
        }
        s.ue(0); s.flag(false); s.flag(false); s.flag(r.flag()); s.flag(false); s.flag(false); s.align()

        var q = HighestFirstBits()
        q.ue(0); q.ue(0)
        p.dependent = r.flag(); q.flag(p.dependent)
        p.output = r.chance(4); q.flag(p.output)
        p.extra = r.chance(4) ? r.below(4) : 0; q.put(p.extra, 3)
        q.flag(r.flag()); q.flag(false); q.ue(0); q.ue(0)
        let qp = r.range(-26...25)
        q.se(qp); q.flag(false); q.flag(r.flag())
        let delta = r.flag(); q.flag(delta)
        if delta { q.ue(r.below(min(3, p.ctb - p.minCB) + 1)) }
        q.se(r.range(-12...12)); q.se(r.range(-12...12))
        p.sliceChroma = r.flag(); q.flag(p.sliceChroma)
        q.flag(false); q.flag(false); q.flag(r.chance(3))
        p.tiles = !isBlock && r.chance(3); p.wpp = !isBlock && r.chance(3)
        q.flag(p.tiles); q.flag(p.wpp)
        if p.tiles {
            let cols = (p.width + (1 << p.ctb) - 1) >> p.ctb, rows = (p.height + (1 << p.ctb) - 1) >> p.ctb
            let (tc, tr) = (r.range(1...min(cols, 20)), r.range(1...min(rows, 22)))
            q.ue(tc - 1); q.ue(tr - 1)
            let even = r.flag(); q.flag(even)
            if !even {
                for (n, total) in [(tc, cols), (tr, rows)] {
                    var left = total
                    for i in 1..<n { let side = r.range(1...max(1, left - (n - i))); q.ue(side - 1); left -= side }
                }
            }
            q.flag(r.flag())
        }
        p.acrossSlices = r.flag(); q.flag(p.acrossSlices)
        let control = r.flag(); q.flag(control)
        if control {
            p.overrideDeblock = r.flag(); q.flag(p.overrideDeblock)
            let off = r.chance(4); q.flag(off)
            if !off { q.se(r.range(-6...6)); q.se(r.range(-6...6)) }
        }
        let own = r.chance(3); q.flag(own)
        if own { scaling(&q, &r) }
        q.flag(false); q.ue(0)
        p.headerExtension = r.chance(5); q.flag(p.headerExtension)
        q.flag(false); q.align()

        let count = ((p.width - 1) >> p.ctb + 1) * ((p.height - 1) >> p.ctb + 1)
        let bits = Int.bitWidth - (count - 1).leadingZeroBitCount
        var out = nal(33, s.bytes) + nal(34, q.bytes)
        let slices = isBlock || r.chance(2) ? 1 : 1 + r.below(5)
        for i in 0..<slices {
            var h = HighestFirstBits()
            h.flag(i == 0); h.flag(false); h.ue(0)
            var dependent = false
            if i > 0 {
                if p.dependent { dependent = r.flag(); h.flag(dependent) }
                h.put(r.below(count), bits)
            }
            if !dependent {
                h.put(r.below(1 << p.extra), p.extra)
                h.ue(2)
                if p.output { h.flag(true) }
                var filters = false
                if p.sao { let (a, b) = (r.flag(), r.flag()); h.flag(a); h.flag(b); filters = a || b }
                h.se(r.range((-26 - qp)...(25 - qp)))
                if p.sliceChroma { h.se(r.range(-12...12)); h.se(r.range(-12...12)) }
                var deblocks = true
                if p.overrideDeblock {
                    let over = r.flag(); h.flag(over)
                    if over {
                        let off = r.flag(); h.flag(off); deblocks = !off;
                        if !off { h.se(r.range(-6...6)); h.se(r.range(-6...6)) }
                    }
                }
                if p.acrossSlices, filters || deblocks { h.flag(r.flag()) }
            }
            if p.tiles || p.wpp { h.ue(0) }
            if p.headerExtension { h.ue(0) }
            h.align()
            let n = i == slices - 1 ? 40 + r.below(3_000) : 4 + r.below(200)
            out += nal(r.flag() ? 19 : 20, h.bytes + r.bytes(n))
        }
        return (out, p.width, p.height)
    }
}
