/// Blurs.
struct BlurProcessor: ImageProcessing {
    let radius: Double

    var identifier: String { "blur(\(radius))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(radius, in: 0...500, "blur radius")
        if radius == 0 { return image }
        // With straight alpha the colour of invisible pixels would bleed out.
        var result = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        GaussianBlur(sigma: radius).apply(to: &result)
        return result
    }
}

/// Unsharp masking.
struct SharpenProcessor: ImageProcessing {
    let amount: Double
    let radius: Double

    var identifier: String { "sharpen(\(amount),\(radius))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(amount, in: 0...10, "sharpen amount")
        try ProcessorCheck.value(radius, in: 0...500, "sharpen radius")
        if amount == 0 || radius == 0 { return image }
        let source = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        var result = source
        GaussianBlur(sigma: radius).apply(to: &result)
        let amount = Int32((amount * 256).rounded())
        let width = result.width, height = result.height
        let sourceStride = source.bytesPerRow, stride = result.bytesPerRow
        source.withUnsafeBytes { original in
            result.withUnsafeMutableBytes { blurred in
                for y in 0..<height {
                    let from = original.baseAddress! + y &* sourceStride, to = blurred.baseAddress! + y &* stride
                    for x in 0..<width {
                        let pixel = PixelMath.load(from + x &* 4)
                        PixelMath.store(
                            Self.sharpen(pixel, blurred: PixelMath.load(to + x &* 4), amount: amount), to + x &* 4)
                    }
                }
            }
        }
        return result
    }

    @inline(__always)
    private static func sharpen(_ pixel: UInt32, blurred: UInt32, amount: Int32) -> UInt32 {
        let alpha = Int32(pixel >> 24), blurredAlpha = Int32(blurred >> 24)
        guard alpha > 0, blurredAlpha > 0 else { return pixel }
        var result = pixel & 0xff00_0000
        var shift: UInt32 = 0
        while shift < 24 {
            let value = Int32(pixel >> shift & 255)
            var mean = Int32(blurred >> shift & 255)
            // Compare colours, not amounts of light: else the outline of a shape would be taken for detail.
            if alpha != blurredAlpha { mean = min(255, mean &* alpha / blurredAlpha) }
            let sharp = value &+ ((value &- mean) &* amount &+ 128) >> 8
            result |= UInt32(max(0, min(alpha, sharp))) << shift
            shift &+= 8
        }
        return result
    }
}

/// Fills squares with their mean colour.
struct PixelateProcessor: ImageProcessing {
    let block: Int

    var identifier: String { "pixelate(\(block))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(block, in: 1...65_535, "pixelate block")
        if block == 1 { return image }
        var result = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        let width = result.width, height = result.height, stride = result.bytesPerRow
        result.withUnsafeMutableBytes { bytes in
            let base = bytes.baseAddress!
            for top in Swift.stride(from: 0, to: height, by: block) {
                for left in Swift.stride(from: 0, to: width, by: block) {
                    Self.fill(
                        base + top * stride + left * 4, width: min(block, width - left),
                        height: min(block, height - top), stride: stride)
                }
            }
        }
        return result
    }

    private static func fill(_ base: UnsafeMutableRawPointer, width: Int, height: Int, stride: Int) {
        var red: UInt64 = 0, green: UInt64 = 0, blue: UInt64 = 0, alpha: UInt64 = 0
        for y in 0..<height {
            let row = base + y &* stride
            for x in 0..<width {
                let pixel = UInt64(PixelMath.load(row + x &* 4))
                red &+= pixel & 255
                green &+= pixel >> 8 & 255
                blue &+= pixel >> 16 & 255
                alpha &+= pixel >> 24
            }
        }
        let count = UInt64(width * height), half = count / 2
        let r = (red &+ half) / count, g = (green &+ half) / count, b = (blue &+ half) / count
        let a = (alpha &+ half) / count
        let mean = UInt32(truncatingIfNeeded: a << 24 | b << 16 | g << 8 | r)
        for y in 0..<height {
            let row = base + y &* stride
            for x in 0..<width { PixelMath.store(mean, row + x &* 4) }
        }
    }
}

/// A Gaussian approximated by three running means a direction, at a cost that does not grow with the radius.
///
/// Each mean has two fainter outermost samples, which make its variance exactly the Gaussian's. Without them small
/// radii would come in coarse steps. Source: P. Gwosdek, S. Grewenig, A. Bruhn and J. Weickert, "Theoretical
/// Foundations of Gaussian Convolution by Extended Box Filtering", SSVM 2011, §2.2.
private struct GaussianBlur {
    /// Whole samples on either side of the centre.
    private let reach: Int
    /// Weight of the outermost sample on either side, relative to the others.
    private let edge: Float
    /// One over the sum of weights.
    private let norm: Float

    private typealias Lines = SIMD16<Float>

    /// - Parameter sigma: Standard deviation in pixels, above 0 and at most 500.
    init(sigma: Double) {
        let variance = sigma * sigma / 3
        let reach = Int(((12 * variance + 1).squareRoot() - 1) / 2)
        let r = Double(reach)
        let edge = (2 * r + 1) * (variance - r * (r + 1) / 3) / (2 * ((r + 1) * (r + 1) - variance))
        self.reach = reach
        self.edge = Float(edge)
        norm = Float(1 / (2 * r + 1 + 2 * edge))
    }

    /// Blurs in place. The image must not have straight alpha.
    func apply(to image: inout PixelImage) {
        let width = image.width, height = image.height, stride = image.bytesPerRow
        let capacity = max(width, height) + 6 * (reach + 1)
        withUnsafeTemporaryAllocation(of: Lines.self, capacity: 2 * capacity) { buffer in
            let a = buffer.baseAddress!, b = a + capacity
            image.withUnsafeMutableBytes { bytes in
                let base = bytes.baseAddress!
                // Four rows, then four columns at a time, one in each lane.
                for y in Swift.stride(from: 0, to: height, by: 4) {
                    let rows = LineGroup(
                        base: base + y * stride, lines: min(4, height - y), step: stride, count: width, next: 4)
                    blur(rows, a: a, b: b)
                }
                for x in Swift.stride(from: 0, to: width, by: 4) {
                    let columns = LineGroup(
                        base: base + x * 4, lines: min(4, width - x), step: 4, count: height, next: stride)
                    blur(columns, a: a, b: b)
                }
            }
        }
    }

    /// Up to four rows or columns of an image.
    private struct LineGroup {
        let base: UnsafeMutableRawPointer
        let lines: Int
        /// The bytes from line to line.
        let step: Int
        /// The pixels of a line.
        let count: Int
        /// The bytes from pixel to pixel.
        let next: Int
    }

    /// Blurs up to four lines. `a` and `b` are memory for the lines between the means.
    private func blur(_ group: LineGroup, a: UnsafeMutablePointer<Lines>, b: UnsafeMutablePointer<Lines>) {
        let (base, lines, step, count, next) = (group.base, group.lines, group.step, group.count, group.next)
        let pad = 3 * (reach + 1)
        // Missing lines repeat the first; their results are not stored.
        let p0 = base, p1 = lines > 1 ? base + step : base, p2 = lines > 2 ? base + 2 * step : base
        let p3 = lines > 3 ? base + 3 * step : base
        var offset = 0
        for i in 0..<count {
            (a + pad + i).initialize(
                to: Self.spread(
                    SIMD4(
                        PixelMath.load(p0 + offset), PixelMath.load(p1 + offset), PixelMath.load(p2 + offset),
                        PixelMath.load(p3 + offset))))
            offset &+= next
        }
        a.initialize(repeating: a[pad], count: pad)
        (a + pad + count).initialize(repeating: a[pad + count - 1], count: pad)
        mean(a, target: b, count: count + 4 * (reach + 1))
        mean(b, target: a, count: count + 2 * (reach + 1))
        mean(a, target: b, count: count)
        offset = 0
        for i in 0..<count {
            let pixels = Self.gather(b[i])
            PixelMath.store(pixels.x, p0 + offset)
            if lines > 1 { PixelMath.store(pixels.y, p1 + offset) }
            if lines > 2 { PixelMath.store(pixels.z, p2 + offset) }
            if lines > 3 { PixelMath.store(pixels.w, p3 + offset) }
            offset &+= next
        }
    }

    /// One running mean; `target` gets `count` samples and `source` has `2 * (reach + 1)` more.
    @inline(__always)
    private func mean(_ source: UnsafePointer<Lines>, target: UnsafeMutablePointer<Lines>, count: Int) {
        var sum = Lines.zero
        for i in 1...(2 * reach + 1) { sum += source[i] }
        let far = 2 * reach + 2
        let edge = Lines(repeating: edge), norm = Lines(repeating: norm)
        var first = source[0]
        for i in 0..<count {
            let last = source[i &+ far], second = source[i &+ 1]
            (target + i).initialize(to: (sum + (first + last) * edge) * norm)
            sum += last - second
            first = second
        }
    }

    /// Spreads four pixels to four lanes each of red, green, blue and alpha.
    @inline(__always)
    private static func spread(_ p: SIMD4<UInt32>) -> Lines {
        let mask = SIMD4<UInt32>(repeating: 255)
        let r = SIMD4<Float>(SIMD4<Int32>(truncatingIfNeeded: p & mask))
        let g = SIMD4<Float>(SIMD4<Int32>(truncatingIfNeeded: (p &>> 8) & mask))
        let b = SIMD4<Float>(SIMD4<Int32>(truncatingIfNeeded: (p &>> 16) & mask))
        let a = SIMD4<Float>(SIMD4<Int32>(truncatingIfNeeded: p &>> 24))
        return Lines(lowHalf: SIMD8(lowHalf: r, highHalf: g), highHalf: SIMD8(lowHalf: b, highHalf: a))
    }

    @inline(__always)
    private static func gather(_ v: Lines) -> SIMD4<UInt32> {
        let a = byte(v.highHalf.highHalf)
        // Running sums round differently for colour and alpha; colour must not come out above it.
        let r = pointwiseMin(byte(v.lowHalf.lowHalf), a), g = pointwiseMin(byte(v.lowHalf.highHalf), a)
        let b = pointwiseMin(byte(v.highHalf.lowHalf), a)
        return SIMD4<UInt32>(truncatingIfNeeded: r | (g &<< 8) | (b &<< 16) | (a &<< 24))
    }

    @inline(__always)
    private static func byte(_ v: SIMD4<Float>) -> SIMD4<Int32> {
        let rounded = pointwiseMax(pointwiseMin(v + 0.5, SIMD4(repeating: 255.5)), .zero)
        return SIMD4(
            Int32(rounded.x), Int32(rounded.y), Int32(rounded.z), Int32(rounded.w))
    }
}
