import Testing
import VitrineImaging

struct BoxReducerTests {
    struct Shape: CustomTestStringConvertible {
        var width, height, channels, factor, verticalFactor: Int
        var testDescription: String { "\(width)×\(height)×\(channels) by \(factor)×\(verticalFactor)" }
    }

    static let shapes = [
        Shape(width: 64, height: 48, channels: 1, factor: 4, verticalFactor: 4),
        Shape(width: 101, height: 67, channels: 3, factor: 7, verticalFactor: 7),
        Shape(width: 37, height: 29, channels: 4, factor: 3, verticalFactor: 6),
        Shape(width: 33, height: 9, channels: 2, factor: 5, verticalFactor: 2),
        Shape(width: 40, height: 1_200, channels: 1, factor: 600, verticalFactor: 600),
        Shape(width: 17, height: 13, channels: 3, factor: 1, verticalFactor: 1),
    ]

    /// The mean of a block in the most obvious way.
    private func mean(
        _ shape: Shape, _ scale: BoxReducer.Scale, x: Int, y: Int, c: Int, sample: (Int) -> Int
    ) -> UInt8 {
        var (sum, count) = (0, 0)
        for j in (y * shape.verticalFactor)..<min(shape.height, (y + 1) * shape.verticalFactor) {
            for i in (x * shape.factor)..<min(shape.width, (x + 1) * shape.factor) {
                sum += sample((j * shape.width + i) * shape.channels + c)
                count += 1
            }
        }
        let divisor = count * scale.divisor
        let dividend = sum * scale.multiplier + count * scale.bias + divisor / 2
        return dividend < 0 ? 0 : UInt8(min(255, dividend / divisor))
    }

    private func check(_ plane: PixelPlane, _ shape: Shape, _ scale: BoxReducer.Scale, sample: (Int) -> Int) {
        #expect(plane.extentWidth == Double(shape.width) / Double(shape.factor))
        #expect(plane.extentHeight == Double(shape.height) / Double(shape.verticalFactor))
        plane.storage.withUnsafeBytes { bytes in
            var wrong = 0
            for y in 0..<plane.height {
                for x in 0..<plane.width {
                    for c in 0..<shape.channels {
                        let expected = mean(shape, scale, x: x, y: y, c: c, sample: sample)
                        if bytes[(y * plane.width + x) * shape.channels + c] != expected { wrong += 1 }
                    }
                }
            }
            #expect(wrong == 0)
        }
    }

    @Test func meansOfWordsThatNoByteHoldsAreClamped() {
        var reducer = BoxReducer(width: 6, height: 2, factor: 2)
        let words: [UInt16] = [40_000, 65_535, 200, 300, 7, 10, 40_000, 65_535, 254, 256, 9, 8]
        words.withUnsafeBufferPointer { reducer.add(rows: $0.baseAddress!, count: 2, bytesPerRow: 12) }
        let bytes = reducer.finish().storage.withUnsafeBytes { Array($0) }
        #expect(bytes == [255, 253, 9])
    }

    @Test(arguments: shapes) func bytesBecomeExactMeans(shape: Shape) {
        let n = shape.width * shape.channels
        let samples = (0..<(n * shape.height)).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ ($0 >> 5) &* 191) }
        for rowsAtOnce in [1, 5, shape.height] {
            var reducer = BoxReducer(
                width: shape.width, height: shape.height, channels: shape.channels, factor: shape.factor,
                verticalFactor: shape.verticalFactor)
            for y in stride(from: 0, to: shape.height, by: rowsAtOnce) {
                samples.withUnsafeBufferPointer {
                    reducer.add(rows: $0.baseAddress! + y * n, count: min(rowsAtOnce, shape.height - y), bytesPerRow: n)
                }
            }
            check(reducer.finish(), shape, .identity) { Int(samples[$0]) }
        }
    }

    @Test(arguments: shapes) func wordsAreScaledToBytesExactly(shape: Shape) {
        let n = shape.width * shape.channels
        let samples = (0..<(n * shape.height)).map { UInt16(truncatingIfNeeded: ($0 &* 421 &+ $0 >> 4) & 1_023) }
        let scales = [
            BoxReducer.Scale(multiplier: 1, bias: 0, divisor: 4),
            BoxReducer.Scale(multiplier: 255, bias: 0, divisor: 1_023),
            BoxReducer.Scale(multiplier: 255, bias: -16 * 4 * 255, divisor: 219 * 4),
        ]
        for scale in scales {
            var reducer = BoxReducer(
                width: shape.width, height: shape.height, channels: shape.channels, factor: shape.factor,
                verticalFactor: shape.verticalFactor, scale: scale)
            samples.withUnsafeBufferPointer {
                reducer.add(rows: $0.baseAddress!, count: shape.height, bytesPerRow: n * 2)
            }
            check(reducer.finish(), shape, scale) { Int(samples[$0]) }
        }
    }

    @Test func missingRowsAreFilled() {
        var reducer = BoxReducer(width: 8, height: 12, factor: 4)
        let rows = [UInt8](repeating: 200, count: 8 * 6)
        rows.withUnsafeBufferPointer { reducer.add(rows: $0.baseAddress!, count: 6, bytesPerRow: 8) }
        let plane = reducer.finish(fill: 7)
        plane.storage.withUnsafeBytes { #expect(Array($0) == [200, 200, 200, 200, 7, 7]) }
    }

    @Test func extremeValuesDoNotOverflow() {
        var bytes = BoxReducer(width: 900, height: 900, factor: 900)
        let white = [UInt8](repeating: 255, count: 900)
        for _ in 0..<900 {
            white.withUnsafeBufferPointer { bytes.add(rows: $0.baseAddress!, count: 1, bytesPerRow: 900) }
        }
        bytes.finish().storage.withUnsafeBytes { #expect(Array($0) == [255]) }
        var words = BoxReducer(
            width: 900, height: 900, factor: 900, scale: .init(multiplier: 255, bias: 0, divisor: 65_535))
        let full = [UInt16](repeating: 65_535, count: 900)
        for _ in 0..<900 {
            full.withUnsafeBufferPointer { words.add(rows: $0.baseAddress!, count: 1, bytesPerRow: 1_800) }
        }
        words.finish().storage.withUnsafeBytes { #expect(Array($0) == [255]) }
    }
}
