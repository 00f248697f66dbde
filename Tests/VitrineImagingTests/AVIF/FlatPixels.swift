import TestSupport
import VitrineImaging

/// A decoded picture as straight RGBA at the size of its first plane, for comparing with references.
struct FlatPixels {
    let width: Int
    let height: Int
    private(set) var bytes: [UInt8]

    init(_ image: DecodedImage) {
        let first = image.planes[0]
        (width, height) = (first.width, first.height)
        var bytes = [UInt8](repeating: 255, count: width * height * 4)
        for y in 0..<height {
            for x in 0..<width {
                let at = (y * width + x) * 4
                var pixel: [Double]
                switch image.model {
                case .yCbCr(let matrix, let fullRange):
                    let values = image.planes.map { FlatPixels.sample($0, x, y, of: first) }
                    pixel = FlatPixels.convert(values, matrix, fullRange) + (values.count == 4 ? [values[3]] : [255])
                case .gray:
                    let v = FlatPixels.pixel(first, x, y)
                    pixel = [v[0], v[0], v[0], v.count == 2 ? v[1] : 255]
                default:
                    let v = FlatPixels.pixel(first, x, y)
                    pixel = [v[0], v[1], v[2], v.count == 4 ? v[3] : 255]
                }
                if image.alpha == .premultiplied, pixel[3] > 0 {
                    for c in 0..<3 { pixel[c] = pixel[c] * 255 / pixel[3] }
                }
                for c in 0..<4 { bytes[at + c] = UInt8(max(0, min(255, pixel[c].rounded()))) }
            }
        }
        self.bytes = bytes
    }

    private static func pixel(_ plane: PixelPlane, _ x: Int, _ y: Int) -> [Double] {
        plane.storage.withUnsafeBytes { bytes in
            (0..<plane.channels).map { Double(bytes[y * plane.bytesPerRow + x * plane.channels + $0]) }
        }
    }

    /// Bilinear, between sample centres.
    private static func sample(_ plane: PixelPlane, _ x: Int, _ y: Int, of luma: PixelPlane) -> Double {
        let u = max(0, (Double(x) + 0.5) * plane.extentWidth / luma.extentWidth - 0.5)
        let v = max(0, (Double(y) + 0.5) * plane.extentHeight / luma.extentHeight - 0.5)
        let (x0, y0) = (min(plane.width - 1, Int(u)), min(plane.height - 1, Int(v)))
        let (x1, y1) = (min(plane.width - 1, x0 + 1), min(plane.height - 1, y0 + 1))
        let (fx, fy) = (u - Double(x0), v - Double(y0))
        let top = pixel(plane, x0, y0)[0] * (1 - fx) + pixel(plane, x1, y0)[0] * fx
        let bottom = pixel(plane, x0, y1)[0] * (1 - fx) + pixel(plane, x1, y1)[0] * fx
        return top * (1 - fy) + bottom * fy
    }

    private static func convert(_ v: [Double], _ matrix: DecodedImage.Matrix, _ fullRange: Bool) -> [Double] {
        let (kr, kb): (Double, Double) =
            switch matrix {
            case .bt601: (0.299, 0.114)
            case .bt709: (0.2126, 0.0722)
            case .bt2020: (0.2627, 0.0593)
            }
        let y = fullRange ? v[0] : (v[0] - 16) * 255 / 219
        let (cb, cr) = ((v[1] - 128) * (fullRange ? 1 : 255 / 224), (v[2] - 128) * (fullRange ? 1 : 255 / 224))
        let red = y + 2 * (1 - kr) * cr
        let blue = y + 2 * (1 - kb) * cb
        return [red, (y - kr * red - kb * blue) / (1 - kr - kb), blue]
    }

    /// Mean and largest difference to a reference of 3 or 4 channels; colours count by their alpha.
    func difference(to reference: ArraySlice<UInt8>) -> (mean: Double, largest: Double) {
        let channels = reference.count / (width * height)
        var (sum, largest) = (0.0, 0.0)
        for i in 0..<(width * height) {
            let base = reference.startIndex + i * channels
            let alpha = channels == 4 ? Double(reference[base + 3]) / 255 : 1
            for c in 0..<4 {
                let expected = c < channels ? Double(reference[base + c]) : 255
                let d = abs(Double(bytes[i * 4 + c]) - expected) * (c < 3 ? alpha : 1)
                sum += d
                largest = max(largest, d)
            }
        }
        return (sum / Double(width * height * 4), largest)
    }

    func difference(to reference: [UInt8]) -> (mean: Double, largest: Double) { difference(to: reference[...]) }
}

/// Repeatable noise.
struct Noise {
    private var generator: SeededGenerator

    init(_ seed: UInt64) { generator = SeededGenerator(seed) }

    mutating func next(below bound: Int) -> Int { Int(generator.next() % UInt64(bound)) }

    /// A copy with a few bytes changed, or cut short.
    mutating func mutate(_ bytes: [UInt8]) -> [UInt8] {
        var copy = bytes
        for _ in 0...next(below: 4) {
            // Headers break more than pixels do.
            let at = next(below: 3) == 0 ? next(below: copy.count) : next(below: min(copy.count, 160))
            copy[at] = [0, 0xFF, 0x7F, 0x80, UInt8(next(below: 256))][next(below: 5)]
        }
        if next(below: 8) == 0 { copy.removeLast(next(below: copy.count)) }
        return copy
    }
}
