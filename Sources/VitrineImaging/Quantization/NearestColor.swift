/// Finds the nearest colour of a palette, remembering the answer for each 1/64 of a channel.
struct NearestColor {
    private let colors: [SIMD4<Int32>]
    /// Answers by the six high bits of red, green and blue; -1 where none was asked for yet.
    private var answers = [Int16](repeating: -1, count: 64 * 64 * 64)

    /// - Parameter palette: 1 to 256 colours, red in the lowest byte; the highest does not count.
    init(_ palette: [UInt32]) {
        colors = palette.map {
            SIMD4(Int32($0 & 0xFF), Int32($0 >> 8 & 0xFF), Int32($0 >> 16 & 0xFF), 0)
        }
    }

    /// The colour at an index of the palette.
    func color(_ index: UInt8) -> SIMD4<Int32> { colors[Int(index)] }

    /// The index of the colour with the least squared distance. Channels from 0 to 255.
    mutating func index(_ red: Int, _ green: Int, _ blue: Int) -> UInt8 {
        let key = (red >> 2) << 12 | (green >> 2) << 6 | blue >> 2
        if answers[key] >= 0 { return UInt8(truncatingIfNeeded: answers[key]) }
        let wanted = SIMD4<Int32>(
            Int32(truncatingIfNeeded: red & ~3 | 2), Int32(truncatingIfNeeded: green & ~3 | 2),
            Int32(truncatingIfNeeded: blue & ~3 | 2), 0)
        var (best, least) = (0, Int32.max)
        for i in colors.indices {
            let d = colors[i] &- wanted
            let distance = (d &* d).wrappedSum()
            if distance < least { (best, least) = (i, distance) }
        }
        answers[key] = Int16(truncatingIfNeeded: best)
        return UInt8(truncatingIfNeeded: best)
    }
}
