/// Puts the blocks of a GIF file together.
struct GIFWriter {
    private var bytes: [UInt8] = Array("GIF89a".utf8)

    /// A file with this canvas and without a global colour table.
    init(_ size: PixelSize) {
        append16(size.width)
        append16(size.height)
        bytes += [0x70, 0, 0]  // eight bits a channel; no table, no aspect
    }

    /// The Netscape extension, which counts repeats: plays less one, 0 for ever.
    mutating func writeLoops(_ plays: Int) {
        bytes += [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1]
        append16(plays <= 0 ? 0 : min(plays - 1, 0xFFFF))
        bytes.append(0)
    }

    mutating func writeFrame(_ frame: IndexedPixels, _ area: GIFArea, delay: Int, isAnimated: Bool, clears: Bool) {
        if isAnimated || frame.transparentIndex != nil {
            let disposal: UInt8 = !isAnimated ? 0 : clears ? 2 : 1
            bytes += [0x21, 0xF9, 4, disposal << 2 | (frame.transparentIndex == nil ? 0 : 1)]
            append16(delay)
            bytes += [UInt8(truncatingIfNeeded: frame.transparentIndex ?? 0), 0]
        }
        var depth = 1
        while 1 << depth < frame.palette.count { depth += 1 }
        bytes.append(0x2C)
        for value in [area.x, area.y, area.width, area.height] { append16(value) }
        bytes.append(0x80 | UInt8(truncatingIfNeeded: depth - 1))
        for i in 0..<(1 << depth) {
            let color = i < frame.palette.count ? frame.palette[i] : 0
            bytes += [
                UInt8(truncatingIfNeeded: color), UInt8(truncatingIfNeeded: color >> 8),
                UInt8(truncatingIfNeeded: color >> 16),
            ]
        }
        let minimum = max(2, depth)
        bytes.append(UInt8(truncatingIfNeeded: minimum))
        let data = LZWEncoder.encode(frame.indices, minimumCodeSize: minimum)
        var at = 0
        while at < data.count {
            let count = min(255, data.count - at)
            bytes.append(UInt8(truncatingIfNeeded: count))
            bytes += data[at..<(at + count)]
            at += count
        }
        bytes.append(0)
    }

    /// The file, with its trailer.
    func finished() -> [UInt8] { bytes + [0x3B] }

    private mutating func append16(_ value: Int) {
        bytes += [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
    }
}
