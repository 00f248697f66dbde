/// A Gaussian approximated by three running means a direction, at a cost that does not grow with the radius.
///
/// Each mean has two fainter outermost samples, chosen so that the variance is exactly the Gaussian's: without them
/// small radii would come in coarse steps. Source: P. Gwosdek, S. Grewenig, A. Bruhn and J. Weickert, "Theoretical
/// Foundations of Gaussian Convolution by Extended Box Filtering", SSVM 2011, §2.2.
struct GaussianBlur {
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
    func apply(to image: inout Image) {
        let width = image.width, height = image.height, stride = image.bytesPerRow
        let capacity = max(width, height) + 6 * (reach + 1)
        withUnsafeTemporaryAllocation(of: Lines.self, capacity: 2 * capacity) { buffer in
            let a = buffer.baseAddress!, b = a + capacity
            image.withUnsafeMutableBytes { bytes in
                let base = bytes.baseAddress!
                // Four rows, then four columns at a time, one in each lane.
                for y in Swift.stride(from: 0, to: height, by: 4) {
                    blur(base + y * stride, lines: min(4, height - y), step: stride, count: width, next: 4, a, b)
                }
                for x in Swift.stride(from: 0, to: width, by: 4) {
                    blur(base + x * 4, lines: min(4, width - x), step: 4, count: height, next: stride, a, b)
                }
            }
        }
    }

    /// Blurs up to four lines whose starts are `step` bytes apart and whose pixels are `next` bytes apart.
    private func blur(
        _ base: UnsafeMutableRawPointer, lines: Int, step: Int, count: Int, next: Int,
        _ a: UnsafeMutablePointer<Lines>, _ b: UnsafeMutablePointer<Lines>
    ) {
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
        mean(a, b, count + 4 * (reach + 1))
        mean(b, a, count + 2 * (reach + 1))
        mean(a, b, count)
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
    private func mean(_ source: UnsafePointer<Lines>, _ target: UnsafeMutablePointer<Lines>, _ count: Int) {
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

    /// Four pixels to four lanes of red, of green, of blue and of alpha.
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
