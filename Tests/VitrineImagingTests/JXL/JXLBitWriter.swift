/// Writes JPEG XL codestreams bit by bit, lowest bit first: headers that no encoder would write.
///
/// Source: ISO/IEC 18181-1 annex B to D, F.
struct JXLBitWriter {
    private(set) var bytes: [UInt8] = []
    private var count = 0

    mutating func write(_ value: Int, _ bits: Int) {
        for bit in 0..<bits {
            if count & 7 == 0 { bytes.append(0) }
            bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << UInt8(count & 7)
            count += 1
        }
    }

    /// Several numbers, each with its bits.
    mutating func write(_ fields: [(value: Int, bits: Int)]) { for field in fields { write(field.value, field.bits) } }

    mutating func align() { count = bytes.count * 8 }

    private mutating func writeSize(_ side: Int) {
        write([(0, 1), (3, 2), (side - 1, 30), (0, 3), (3, 2), (side - 1, 30)])
    }

    /// The headers of an image in the default colours, a square.
    static func image(side: Int, isAnimated: Bool) -> [UInt8] {
        var writer = JXLBitWriter()
        writer.write(0x0AFF, 16)
        writer.writeSize(side)
        if isAnimated {
            // Extras: orientation, no intrinsic size, no preview; 100 ticks a second, endless, without timecodes.
            writer.write([(0, 1), (1, 1), (0, 3), (0, 1), (0, 1), (1, 1), (0, 2), (0, 2), (0, 2), (0, 1)])
            // 8 bits, small buffers, no extra channels, XYB, default colour, tone mapping and extensions.
            writer.write([(0, 1), (0, 2), (1, 1), (0, 2), (1, 1), (1, 1), (1, 1), (0, 2)])
        } else {
            writer.write(1, 1)
        }
        writer.write(1, 1)  // default transform
        writer.align()
        return writer.bytes
    }

    /// The header of one frame of an animation, and its table of contents: every section has no bytes, and their order is
    /// a permutation in which each place is written as the first of those left.
    static func permutedFrame(side: Int) -> [UInt8] {
        var writer = JXLBitWriter()
        // Regular, modular, no flags, no upsampling, groups of 128 pixels, one pass, no crop, replacing, one tick, not
        // the last, not saved, no name, default restoration, no extensions.
        writer.write([
            (0, 1), (0, 2), (1, 1), (0, 2), (0, 2), (0, 2), (0, 2), (0, 1), (0, 2), (1, 2), (0, 1), (0, 2), (0, 2),
            (1, 1), (0, 2),
        ])
        let (columns, lowFrequency) = (side / 128, (side + 1_023) / 1_024)
        let count = 2 + lowFrequency * lowFrequency + columns * columns
        // A permutation, no copies, two distributions by context.
        writer.write([(1, 1), (0, 1), (1, 1), (1, 2)])
        for context in 0..<8 { writer.write(context == 7 ? 1 : 0, 1) }
        // Prefix codes; plain numbers in the first, their logarithm in the second; alphabets of 1 and 17.
        writer.write([(1, 1), (15, 4), (0, 4), (0, 1), (1, 1), (4, 4), (0, 4)])
        // The second always gives 16: numbers of 15 further bits.
        writer.write([(1, 2), (0, 2), (16, 5)])
        writer.write(count - 32_768, 15)
        writer.align()
        return writer.bytes + [UInt8](repeating: 0, count: (count * 12 + 7) / 8)
    }

    /// A lossy image without pixels of its own whose tree is a chain: every sample walks all of its nodes.
    static func chainedTree(side: Int, nodes: Int) -> [UInt8] {
        var globals = JXLBitWriter()
        // Default quantizers, the least scale and quantizer, default contexts and correlation, a common tree without
        // copies, six contexts with a distribution each.
        globals.write([(1, 1), (0, 2), (0, 11), (0, 2), (1, 1), (1, 1), (1, 1), (0, 1), (1, 1), (3, 2)])
        for context in 0..<6 { globals.write(context, 3) }
        globals.write(1, 1)
        for _ in 0..<6 { globals.write(15, 4) }
        // Alphabets of 2, 4 and four times 1: the splits, the properties, the leaves.
        globals.write([(1, 1), (0, 4), (1, 1), (1, 4), (1, 1), (0, 1), (0, 1), (0, 1), (0, 1)])
        globals.write([(1, 2), (0, 2), (1, 1), (1, 2), (1, 2), (0, 2), (3, 2), (1, 1)])
        for _ in 1..<nodes { globals.write([(1, 1), (0, 1)]) }
        globals.write([(0, 1), (0, 1)])
        // The codes of samples: one distribution with one symbol, 0.
        globals.write([(0, 1), (1, 1), (0, 2), (1, 1), (15, 4), (0, 1)])
        var section = JXLBitWriter()
        section.write([(0, 2), (1, 1), (1, 1), (0, 2)])

        var writer = JXLBitWriter()
        writer.write([(1, 1), (0, 1)])  // a default frame, sections in order
        writer.align()
        func size(_ count: Int) {
            if count < 1_024 {
                writer.write([(0, 2), (count, 10)])
            } else if count < 17_408 {
                writer.write([(1, 2), (count - 1_024, 14)])
            } else {
                writer.write([(2, 2), (count - 17_408, 22)])
            }
        }
        let areas = ((side + 2_047) / 2_048) * ((side + 2_047) / 2_048)
        let groups = ((side + 255) / 256) * ((side + 255) / 256)
        size(globals.bytes.count)
        for _ in 0..<areas { size(section.bytes.count) }
        for _ in 0...groups { size(0) }
        writer.align()
        let content = globals.bytes + Array(repeating: section.bytes, count: areas).flatMap { $0 }
        return image(side: side, isAnimated: false) + writer.bytes + content
    }
}
