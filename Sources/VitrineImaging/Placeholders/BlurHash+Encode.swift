#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension BlurHash {
    /// Samples a side; larger pictures, far beyond what 9 waves can show, are sampled at regular points.
    private static let maximumSamples = 256

    /// The hash of a picture.
    ///
    /// Pictures up to 256 pixels a side are hashed from every pixel, as the reference does; larger ones from 129 to 256
    /// regularly chosen pixels a side, so that the factors differ a little where the picture has fine detail.
    /// Transparent parts count as white.
    ///
    /// - Parameters:
    ///   - image: Any picture.
    ///   - x: Waves along the width, 1…9. Default 4.
    ///   - y: Waves along the height, 1…9. Default 3.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for other numbers of waves.
    public static func encode(_ image: Image, x: Int = 4, y: Int = 3) throws(ImageError) -> String {
        try ProcessorCheck.value(x, in: componentRange, "BlurHash components along the width")
        try ProcessorCheck.value(y, in: componentRange, "BlurHash components along the height")
        let factors = transform(image.flattened(over: .white), x, y)

        var text: [UInt8] = []
        text.reserveCapacity(4 + 2 * x * y)
        Base83.append((x - 1) + (y - 1) * 9, count: 1, to: &text)
        let largest = factors.dropFirst().reduce(Float(0)) { max($0, abs($1.x), abs($1.y), abs($1.z)) }
        let step = max(0, min(82, Int((largest * 166 - 0.5).rounded(.down))))
        Base83.append(step, count: 1, to: &text)
        let mean = factors[0]
        let red = Int(SRGB.level(mean.x)), green = Int(SRGB.level(mean.y))
        Base83.append(red << 16 | green << 8 | Int(SRGB.level(mean.z)), count: 4, to: &text)
        let scale = Float(step + 1) / 166
        func quantised(_ value: Float) -> Int {
            let v = value / scale
            let root = abs(v).squareRoot()
            return max(0, min(18, Int(((v < 0 ? -root : root) * 9 + 9.5).rounded(.down))))
        }
        for factor in factors.dropFirst() {
            let value = quantised(factor.x) * 361 + quantised(factor.y) * 19 + quantised(factor.z)
            Base83.append(value, count: 2, to: &text)
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The factors of the waves, row by row of waves, for an opaque picture.
    private static func transform(_ image: Image, _ nx: Int, _ ny: Int) -> [SIMD3<Float>] {
        let columns = samples(image.width), rows = samples(image.height)
        let wavesX = waves(columns, of: image.width, nx), wavesY = waves(rows, of: image.height, ny)
        var factors = [SIMD4<Float>](repeating: .zero, count: nx * ny)
        image.withUnsafeBytes { bytes in
            SRGB.linear.withUnsafeBufferPointer { linear in
                withUnsafeTemporaryAllocation(of: SIMD4<Float>.self, capacity: columns.count + nx) { buffer in
                    let line = buffer.baseAddress!, sums = line + columns.count
                    buffer.initialize(repeating: .zero)
                    for (j, y) in rows.enumerated() {
                        let row = bytes.baseAddress! + y &* image.bytesPerRow
                        for i in 0..<columns.count {
                            let p = PixelMath.load(row + columns[i] &* 4)
                            line[i] = SIMD4(
                                linear[Int(p & 255)], linear[Int(p >> 8 & 255)], linear[Int(p >> 16 & 255)], 0)
                        }
                        // Separable: first along the row, then the row's sums along the column.
                        for wave in 0..<nx {
                            var sum = SIMD4<Float>.zero
                            for i in 0..<columns.count { sum += line[i] * wavesX[wave &* columns.count &+ i] }
                            sums[wave] = sum
                        }
                        for waveY in 0..<ny {
                            let weight = wavesY[waveY &* rows.count &+ j]
                            for wave in 0..<nx { factors[waveY &* nx &+ wave] += sums[wave] * weight }
                        }
                    }
                }
            }
        }
        let count = Float(columns.count * rows.count)
        return factors.enumerated().map { index, factor in
            let f = factor * ((index == 0 ? 1 : 2) / count)
            return SIMD3(f.x, f.y, f.z)
        }
    }

    /// The coordinates along one side that are looked at: the middles of equal steps.
    private static func samples(_ side: Int) -> [Int] {
        let step = (side + maximumSamples - 1) / maximumSamples
        return Array(stride(from: (step - 1) / 2, to: side, by: step))
    }

    private static func waves(_ positions: [Int], of side: Int, _ count: Int) -> [Float] {
        (0..<count).flatMap { wave in
            positions.map { Float(cos(Double.pi * Double(wave) * Double($0) / Double(side))) }
        }
    }
}
