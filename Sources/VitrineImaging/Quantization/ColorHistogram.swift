/// How often which colours occur, in a grid of 32 steps a channel.
struct ColorHistogram {
    /// 32 cells a side and a border of zeros below, so that sums over boxes need no special case.
    static let side = 33

    /// For each cell the number of its colours and their sums of red, green and blue. Doubles are exact to 2⁵³.
    private(set) var sums = [SIMD4<Double>](repeating: .zero, count: side * side * side)

    /// Where a cell lies; each coordinate, of red, green and blue, from 1 to 32.
    @inline(__always)
    static func cell(_ at: SIMD3<Int>) -> Int { (at[0] &* side &+ at[1]) &* side &+ at[2] }

    /// Counts the colours of `pixels`, red in the lowest byte, but for those at least half transparent.
    ///
    /// - Parameter pixels: With straight alpha, or opaque.
    init(_ pixels: [UInt32]) {
        sums.withUnsafeMutableBufferPointer { sums in
            for pixel in pixels where pixel >> 24 >= 128 {
                let r = Int(pixel & 255), g = Int(pixel >> 8 & 255), b = Int(pixel >> 16 & 255)
                let cell = ColorHistogram.cell(SIMD3(r >> 3 &+ 1, g >> 3 &+ 1, b >> 3 &+ 1))
                sums[cell] += SIMD4(1, Double(r), Double(g), Double(b))
            }
        }
    }

    /// Counts the colours of every pixel up to `maximumSamples` of them and of regular points beyond.
    init(_ image: Image, maximumSamples: Int = 1 << 18) {
        let straight = image.converted(to: image.hasAlpha ? .straight : .opaque)
        var step = 1
        while (straight.width / step + 1) * (straight.height / step + 1) > maximumSamples { step += 1 }
        var pixels: [UInt32] = []
        pixels.reserveCapacity((straight.width / step + 1) * (straight.height / step + 1))
        straight.withUnsafeBytes { bytes in
            for y in stride(from: step / 2, to: straight.height, by: step) {
                let row = bytes.baseAddress! + y * straight.bytesPerRow
                for x in stride(from: step / 2, to: straight.width, by: step) {
                    pixels.append(PixelMath.load(row + x &* 4))
                }
            }
        }
        self.init(pixels)
    }
}
