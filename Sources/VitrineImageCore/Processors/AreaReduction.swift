/// Reduces an image by exact area averaging: every source pixel counts with the share that lies in a target pixel.
///
/// For hashes, watermarks and contact sheets. ``Resampler`` has better filters for images that are shown.
package struct AreaReduction {
    /// The target in which a source sample begins, its share there, and the rest, which belongs to the next target.
    private struct Share {
        var target: Int32
        var first: Float
        var rest: Float
    }

    /// Returns the image at `size`, premultiplied or opaque. `size` must not be empty nor larger than the image.
    package static func apply(to image: PixelImage, size: PixelSize) -> PixelImage {
        let source = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        if size == source.size { return source }
        let columns = shares(from: source.width, to: size.width), rows = shares(from: source.height, to: size.height)
        return PixelImage(width: size.width, height: size.height, alpha: source.alpha) { target in
            // One element more than needed takes the empty rest of the last source pixel.
            withUnsafeTemporaryAllocation(of: SIMD4<Float>.self, capacity: 3 * (size.width + 1)) { buffer in
                let line = buffer.baseAddress!
                let now = line + (size.width + 1), next = now + (size.width + 1)
                buffer.initialize(repeating: .zero)
                source.withUnsafeBytes { bytes in
                    columns.withUnsafeBufferPointer { columns in
                        for y in 0..<source.height {
                            let row = bytes.baseAddress! + y &* source.bytesPerRow
                            reduce(row, columns, into: line, count: size.width)
                            let share = rows[y]
                            for x in 0..<size.width {
                                now[x] += line[x] * share.first
                                next[x] += line[x] * share.rest
                            }
                            let isLast = y == source.height - 1 || rows[y + 1].target != share.target
                            if isLast {
                                store(
                                    now, target: target.baseAddress! + Int(share.target) &* size.width &* 4,
                                    count: size.width)
                                for x in 0..<size.width {
                                    now[x] = next[x]
                                    next[x] = .zero
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    private static func shares(from source: Int, to target: Int) -> [Share] {
        let scale = Double(target) / Double(source)
        return (0..<source).map { i in
            let begin = min(target - 1, i * target / source)
            // In units of target pixels, so that the shares of one target add up to 1.
            let inside = min(scale, Double(begin + 1) - Double(i) * scale)
            return Share(target: Int32(begin), first: Float(inside), rest: Float(max(0, scale - inside)))
        }
    }

    private static func reduce(
        _ row: UnsafeRawPointer, _ shares: UnsafeBufferPointer<Share>, into line: UnsafeMutablePointer<SIMD4<Float>>,
        count: Int
    ) {
        for x in 0...count { line[x] = .zero }
        for x in 0..<shares.count {
            let p = PixelMath.load(row + x &* 4)
            let pixel = SIMD4<Float>(
                Float(Int32(truncatingIfNeeded: p & 255)), Float(Int32(truncatingIfNeeded: p >> 8 & 255)),
                Float(Int32(truncatingIfNeeded: p >> 16 & 255)), Float(Int32(truncatingIfNeeded: p >> 24)))
            let share = shares[x], target = Int(share.target)
            line[target] += pixel * share.first
            line[target &+ 1] += pixel * share.rest
        }
    }

    private static func store(
        _ line: UnsafePointer<SIMD4<Float>>, target: UnsafeMutableRawPointer, count: Int
    ) {
        for x in 0..<count {
            let v = pointwiseMin(line[x] + 0.5, SIMD4(repeating: 255.5))
            let a = UInt32(v.w)
            let pixel = min(a, UInt32(v.x)) | min(a, UInt32(v.y)) << 8 | min(a, UInt32(v.z)) << 16 | a << 24
            PixelMath.store(pixel, target + x &* 4)
        }
    }
}
