/// The low-frequency samples of a frame: one a block of 8 × 8 pixels and channel, fewer where chroma is subsampled.
struct JXLLowFrequencyPlanes: ~Copyable {
    struct Plane {
        var samples: UnsafeMutablePointer<Float>
        var width: Int
        var height: Int
        var shiftX: Int
        var shiftY: Int
    }

    /// X, Y, B or Cb, Y, Cr.
    private(set) var planes: [Plane] = []
    let isSubsampled: Bool

    init(_ frame: JXLFrameHeader) {
        let across = frame.sampling.map { $0 == 1 || $0 == 2 ? 1 : 0 }
        let down = frame.sampling.map { $0 == 1 || $0 == 3 ? 1 : 0 }
        let (mostX, mostY) = (across.max() ?? 0, down.max() ?? 0)
        isSubsampled = across.contains { $0 != mostX } || down.contains { $0 != mostY }
        func blocks(_ side: Int, _ shift: Int) -> Int { ((side + (8 << shift) - 1) / (8 << shift)) << shift }
        let (width, height) = (blocks(frame.width, mostX), blocks(frame.height, mostY))
        for c in 0..<3 {
            let (x, y) = (mostX - across[c], mostY - down[c])
            let samples = UnsafeMutablePointer<Float>.allocate(capacity: (width >> x) * (height >> y))
            samples.initialize(repeating: 0, count: (width >> x) * (height >> y))
            planes.append(Plane(samples: samples, width: width >> x, height: height >> y, shiftX: x, shiftY: y))
        }
    }

    deinit { for plane in planes { plane.samples.deallocate() } }

    /// Reads the section of one area of at most 256 × 256 blocks.
    func read(
        _ bits: inout JXLBits, section: Int, columns: Int, _ globals: JXLLowFrequencyGlobals
    ) throws(JXLFault) {
        let precision = 1 / Float(1 << bits.bits(2))
        let (left, top) = (section % columns * 256, section / columns * 256)
        // Y comes first.
        let areas = [1, 0, 2].map { c in
            let plane = planes[c]
            let (x, y) = (left >> plane.shiftX, top >> plane.shiftY)
            return (
                x: x, y: y, width: min(plane.width - x, 256 >> plane.shiftX),
                height: min(plane.height - y, 256 >> plane.shiftY)
            )
        }
        guard areas.allSatisfy({ $0.width > 0 && $0.height > 0 }) else { throw .corrupt("section") }
        let scratch = UnsafeMutablePointer<Int32>.allocate(capacity: 3 * 65_536)
        defer { scratch.deallocate() }
        var stream = try JXLModularStream(&bits, stream: 1 + section, global: globals.shared)
        var channels: [JXLModularStream.Channel] = []
        for (index, area) in areas.enumerated() {
            let channel = JXLModularStream.Channel(
                samples: scratch + index * 65_536, width: area.width, height: area.height, stride: area.width)
            let previous = channels.reversed().filter { $0.width == area.width && $0.height == area.height }
            try stream.read(&bits, channel, index: index, previous: previous)
            channels.append(channel)
        }
        try stream.finish(bits)
        for (index, area) in areas.enumerated() {
            let c = [1, 0, 2][index]
            let plane = planes[c]
            let step = globals.steps[c] * precision
            for y in 0..<area.height {
                let from = channels[index].samples + y * area.width
                let to = plane.samples + (area.y + y) * plane.width + area.x
                for x in 0..<area.width { to[x] = Float(from[x]) * step }
                guard !isSubsampled, c != 1 else { continue }
                let share = c == 0 ? globals.correlation.x : globals.correlation.b
                let luma = planes[1].samples + (area.y + y) * plane.width + area.x
                for x in 0..<area.width { to[x] += luma[x] * share }
            }
        }
    }

    /// Evens out steps that quantization made (annex G.2.3): a sample moves towards the weighted mean of its
    /// neighbourhood if that is within about one step.
    mutating func smooth(_ steps: [Float]) {
        let (width, height) = (planes[1].width, planes[1].height)
        guard width > 2, height > 2 else { return }
        let (side, corner): (Float, Float) = (0.203_451_397_572_315_78, 0.033_482_918_596_873_9)
        let own = 1 - 4 * (side + corner)
        let (x, y, b) = (planes[0].samples, planes[1].samples, planes[2].samples)
        let results = (0..<3).map { c in
            let copy = UnsafeMutablePointer<Float>.allocate(capacity: width * height)
            copy.initialize(from: planes[c].samples, count: width * height)
            return copy
        }
        let (toX, toY, toB) = (results[0], results[1], results[2])
        let (perX, perY, perB) = (1 / steps[0], 1 / steps[1], 1 / steps[2])
        @inline(__always) func mean(_ p: UnsafeMutablePointer<Float>) -> Float {
            let sides = p[-1] + p[1] + p[-width] + p[width]
            let corners = p[-width - 1] + p[-width + 1] + p[width - 1] + p[width + 1]
            return own * p[0] + side * sides + corner * corners
        }
        for row in 1..<(height - 1) {
            for i in (row * width + 1)..<(row * width + width - 1) {
                let (meanX, meanY, meanB) = (mean(x + i), mean(y + i), mean(b + i))
                let (byX, byY, byB) = (meanX - x[i], meanY - y[i], meanB - b[i])
                let gap = max(0.5, max(abs(byX) * perX, max(abs(byY) * perY, abs(byB) * perB)))
                let factor = max(0, 3 - 4 * gap)
                toX[i] += byX * factor
                toY[i] += byY * factor
                toB[i] += byB * factor
            }
        }
        for c in 0..<3 {
            planes[c].samples.deallocate()
            planes[c].samples = results[c]
        }
    }
}
