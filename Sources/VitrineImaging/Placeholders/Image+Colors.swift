extension Image {
    /// The mean colour: red, green and blue weighted by alpha, and the mean alpha. Clear if nothing is visible.
    ///
    /// The mean is of sRGB values, so it equals the picture scaled down to one pixel by a viewer.
    public var averageColor: Color {
        let premultiplied = alpha == .straight ? converted(to: .premultiplied) : self
        var sum = SIMD4<UInt64>.zero
        premultiplied.withUnsafeBytes { bytes in
            for y in 0..<height {
                let row = bytes.baseAddress! + y &* premultiplied.bytesPerRow
                // Two channels in each word: 16 million pixels fit before the lower one could reach the upper.
                var even: UInt64 = 0, odd: UInt64 = 0
                for x in 0..<width {
                    let p = UInt64(PixelMath.load(row + x &* 4))
                    even &+= p & 0xff | (p & 0xff_0000) << 16
                    odd &+= p >> 8 & 0xff | (p >> 8 & 0xff_0000) << 16
                }
                sum &+= SIMD4(even & 0xffff_ffff, odd & 0xffff_ffff, even >> 32, odd >> 32)
            }
        }
        let count = UInt64(width) * UInt64(height)
        guard sum.w > 0 else { return .clear }
        func channel(_ value: UInt64) -> UInt8 {
            UInt8(min(255, (Double(value) * 255 / Double(sum.w)).rounded()))
        }
        return Color(
            red: channel(sum.x), green: channel(sum.y), blue: channel(sum.z), alpha: UInt8((sum.w + count / 2) / count))
    }

    /// Up to `count` colours that stand for the picture best, the commonest first.
    ///
    /// Deterministic; fewer when the picture has fewer, none when nothing of it is at least half opaque. Large pictures
    /// are sampled.
    ///
    /// - Parameter count: 1…256; others are clamped.
    public func dominantColors(count: Int = 5) -> [Color] {
        ColorPalette(ColorHistogram(self, maximumSamples: 1 << 14), count: max(1, min(256, count)))
            .entries.map(\.rounded)
    }
}
