extension ThumbHash {
    /// The hash of a picture. Pictures above 100 pixels a side are reduced first, as the format demands.
    public static func encode(_ image: Image) -> [UInt8] {
        let small = reduced(image)
        let width = small.width, height = small.height
        let (channels, hasAlpha) = planes(small)
        let limit = hasAlpha ? 5.0 : 7.0, longest = Double(max(width, height))
        let nx = max(1, Int((limit * Double(width) / longest).rounded()))
        let ny = max(1, Int((limit * Double(height) / longest).rounded()))
        func channel(_ index: Int, _ nx: Int, _ ny: Int) -> ThumbHashChannel {
            ThumbHashChannel(channels[index], width: width, height: height, nx: max(3, nx), ny: max(3, ny))
        }
        let l = channel(0, nx, ny), p = channel(1, 3, 3), q = channel(2, 3, 3)
        let a = hasAlpha ? channel(3, 5, 5) : .none
        func bits(_ value: Double) -> Int { Int(value.rounded()) }
        let isLandscape = width > height
        let first = bits(63 * l.constant) | bits(31.5 + 31.5 * p.constant) << 6 | bits(31.5 + 31.5 * q.constant) << 12
            | bits(31 * l.scale) << 18 | (hasAlpha ? 1 << 23 : 0)
        let second = (isLandscape ? ny : nx) | bits(63 * p.scale) << 3 | bits(63 * q.scale) << 9
            | (isLandscape ? 1 << 15 : 0)
        var hash = [first, first >> 8, first >> 16, second, second >> 8].map { UInt8(truncatingIfNeeded: $0) }
        if hasAlpha { hash.append(UInt8(bits(15 * a.constant) | bits(15 * a.scale) << 4)) }
        let factors = l.factors + p.factors + q.factors + a.factors
        for (index, factor) in factors.enumerated() {
            let nibble = UInt8(bits(15 * factor))
            if index % 2 == 0 { hash.append(nibble) } else { hash[hash.count - 1] |= nibble << 4 }
        }
        return hash
    }

    private static func reduced(_ image: Image) -> Image {
        guard image.size.longestSide > 100 else { return image }
        let factor = 100 / Double(image.size.longestSide)
        let size = PixelSize(
            width: max(1, Int((Double(image.width) * factor).rounded())),
            height: max(1, Int((Double(image.height) * factor).rounded())))
        return AreaReduction.apply(to: image, size: size)
    }

    /// Luminance, yellow-blue, red-green and alpha, over the mean colour where the picture is transparent.
    private static func planes(_ image: Image) -> (channels: [[Double]], hasAlpha: Bool) {
        let count = image.width * image.height
        let straight = image.converted(to: image.hasAlpha ? .straight : .opaque)
        var pixels: [UInt32] = []
        pixels.reserveCapacity(count)
        straight.withUnsafeBytes { bytes in
            for y in 0..<image.height {
                let row = bytes.baseAddress! + y * straight.bytesPerRow
                for x in 0..<image.width { pixels.append(PixelMath.load(row + x &* 4)) }
            }
        }
        var mean = SIMD4<Double>.zero
        for pixel in pixels {
            let alpha = Double(pixel >> 24) / 255
            mean += rgba(pixel) * (alpha / 255) + SIMD4(0, 0, 0, alpha)
        }
        let alphaSum = mean.w
        if alphaSum > 0 { mean /= alphaSum }
        var channels = [[Double]](repeating: [Double](repeating: 0, count: count), count: 4)
        for (index, pixel) in pixels.enumerated() {
            let alpha = Double(pixel >> 24) / 255
            let color = mean * (1 - alpha) + rgba(pixel) * (alpha / 255)
            channels[0][index] = (color.x + color.y + color.z) / 3
            channels[1][index] = (color.x + color.y) / 2 - color.z
            channels[2][index] = color.x - color.y
            channels[3][index] = alpha
        }
        return (channels, alphaSum < Double(count))
    }

    /// Red, green and blue, 0…255, and nothing.
    private static func rgba(_ pixel: UInt32) -> SIMD4<Double> {
        SIMD4(Double(pixel & 255), Double(pixel >> 8 & 255), Double(pixel >> 16 & 255), 0)
    }
}
