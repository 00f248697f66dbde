#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The axis along which ``ImageProcessor/flip(_:)`` mirrors.
public enum FlipAxis: Sendable, Hashable {
    /// Exchanges left and right.
    case horizontal
    /// Exchanges top and bottom.
    case vertical
}

/// Mirrors the image.
struct FlipProcessor: ImageProcessing {
    let axis: FlipAxis

    var identifier: String { "flip(\(axis))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        image.oriented(axis == .horizontal ? .upMirrored : .downMirrored)
    }
}

/// Rotates the image clockwise.
struct RotateProcessor: ImageProcessing {
    let degrees: Double
    let background: PixelColor

    var identifier: String { "rotate(\(degrees),\(background.cssString))" }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(degrees, in: -360_000...360_000, "angle")
        var angle = degrees.truncatingRemainder(dividingBy: 360)
        if angle < 0 { angle += 360 }
        switch angle {
        case 0, 360: return image
        case 90: return image.oriented(.right)
        case 180: return image.oriented(.down)
        case 270: return image.oriented(.left)
        default: return try turned(image, by: angle * .pi / 180)
        }
    }

    private func turned(_ image: PixelImage, by radians: Double) throws(ImageError) -> PixelImage {
        let source = image.converted(to: .premultiplied)
        let width = Double(image.width), height = Double(image.height)
        let sine = sin(radians), cosine = cos(radians)
        // The rounding error of a side of whole pixels must not add another pixel.
        let size = PixelSize(
            width: Int((width * abs(cosine) + height * abs(sine) - 1e-6).rounded(.up)),
            height: Int((width * abs(sine) + height * abs(cosine) - 1e-6).rounded(.up)))
        try ProcessorCheck.outputSide(size, "rotated image")
        let centreX = Double(size.width) / 2, centreY = Double(size.height) / 2
        // The inverse map, around both centres.
        let sampler = AffineSampler(
            origin: (width / 2 - centreX * cosine - centreY * sine, height / 2 + centreX * sine - centreY * cosine),
            alongRow: (cosine, -sine), alongColumn: (sine, cosine))
        return sampler.draw(source, size: size).composed(over: background)
    }
}

/// Draws an image through an affine map with bilinear interpolation.
struct AffineSampler {
    /// Source column and row of the target's origin, and how they change with target column and row. Coordinates are
    /// of pixel corners: the centre of the first pixel is (0.5, 0.5).
    var origin: (x: Double, y: Double)
    var alongRow: (x: Double, y: Double)
    var alongColumn: (x: Double, y: Double)
    /// Whether the outermost pixels continue outside the image; otherwise everything there is transparent.
    var extendsEdges = false

    /// Draws `source`, which must not have straight alpha.
    func draw(_ source: PixelImage, size: PixelSize) -> PixelImage {
        PixelImage(width: size.width, height: size.height, alpha: .premultiplied) { target in
            source.withUnsafeBytes { bytes in
                let reader = Reader(
                    base: bytes.baseAddress!, width: source.width, height: source.height, stride: source.bytesPerRow,
                    extendsEdges: extendsEdges)
                for y in 0..<size.height {
                    let row = target.baseAddress! + y &* size.width &* 4
                    let centre = Double(y) + 0.5
                    let startX = origin.x + alongColumn.x * centre - 0.5
                    let startY = origin.y + alongColumn.y * centre - 0.5
                    for x in 0..<size.width {
                        let step = Double(x) + 0.5
                        let pixel = reader.pixel(startX + alongRow.x * step, startY + alongRow.y * step)
                        PixelMath.store(pixel, row + x &* 4)
                    }
                }
            }
        }
    }

    /// Interpolates between pixels.
    private struct Reader {
        let base: UnsafeRawPointer
        let width: Int
        let height: Int
        let stride: Int
        let extendsEdges: Bool

        @inline(__always)
        func pixel(_ x: Double, _ y: Double) -> UInt32 {
            var x = x, y = y
            if extendsEdges {
                x = max(0, min(Double(width &- 1), x))
                y = max(0, min(Double(height &- 1), y))
            }
            guard x > -1, y > -1, x < Double(width), y < Double(height) else { return 0 }
            let left = x.rounded(.down), top = y.rounded(.down)
            let column = Int(left), row = Int(top)
            let fx = UInt32((x - left) * 256 + 0.5), fy = UInt32((y - top) * 256 + 0.5)
            let upper = Self.mix(a: at(column, row), b: at(column &+ 1, row), share: fx)
            let lower = Self.mix(a: at(column, row &+ 1), b: at(column &+ 1, row &+ 1), share: fx)
            return Self.mix(a: upper, b: lower, share: fy)
        }

        @inline(__always)
        private func at(_ x: Int, _ y: Int) -> UInt32 {
            x >= 0 && y >= 0 && x < width && y < height ? PixelMath.load(base + (y &* stride &+ x &* 4)) : 0
        }

        /// `share` / 256 of `b` and the rest of `a`, two channels in one word.
        @inline(__always)
        private static func mix(a: UInt32, b: UInt32, share: UInt32) -> UInt32 {
            let rest = 256 &- share
            let mask: UInt32 = 0x00ff_00ff, half: UInt32 = 0x0080_0080
            let even = (a & mask) &* rest &+ (b & mask) &* share &+ half
            let odd = (a >> 8 & mask) &* rest &+ (b >> 8 & mask) &* share &+ half
            return (even >> 8 & mask) | (odd & ~mask)
        }
    }
}
