#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension BlurHash {
    /// The picture a hash describes: opaque, of any size (32 pixels a side are plenty; scale them up when drawing).
    ///
    /// - Parameters:
    ///   - hash: The text of the hash.
    ///   - size: Up to 1,024 pixels a side.
    ///   - punch: Contrast, 0…10; 1 (the default) as hashed.
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a BlurHash;
    ///   ``ImageError/invalidRequest(reason:)`` for other sizes and contrasts.
    public static func decode(_ hash: String, size: PixelSize, punch: Double = 1) throws(ImageError) -> Image {
        try ProcessorCheck.value(size.width, in: 1...1_024, "BlurHash width")
        try ProcessorCheck.value(size.height, in: 1...1_024, "BlurHash height")
        try ProcessorCheck.value(punch, in: 0...10, "BlurHash punch")
        let digits = try Base83.digits(hash)
        let (nx, ny) = try components(of: digits)
        let factors = try factors(digits, punch: Float(punch))
        let wavesX = waves(size.width, nx), wavesY = waves(size.height, ny)
        return Image(width: size.width, height: size.height, alpha: .opaque) { target in
            var line = [SIMD4<Float>](repeating: .zero, count: nx)
            for y in 0..<size.height {
                for i in 0..<nx {
                    line[i] = .zero
                    for j in 0..<ny { line[i] += factors[j * nx + i] * wavesY[y * ny + j] }
                }
                let row = target.baseAddress! + y * size.width * 4
                for x in 0..<size.width {
                    var sum = SIMD4<Float>.zero
                    for i in 0..<nx { sum += line[i] * wavesX[x * nx + i] }
                    let color = Color(
                        red: SRGB.level(sum.x), green: SRGB.level(sum.y), blue: SRGB.level(sum.z))
                    PixelMath.store(PixelMath.straight(color), row + x * 4)
                }
            }
        }
    }

    private static func factors(_ digits: [Int], punch: Float) throws(ImageError) -> [SIMD4<Float>] {
        let mean = try mean(of: digits)
        let linear = SRGB.linear
        var factors = [SIMD4(linear[Int(mean.red)], linear[Int(mean.green)], linear[Int(mean.blue)], 0)]
        let scale = Float(digits[1] + 1) / 166 * punch
        func value(_ digit: Int) -> Float {
            let v = Float(digit - 9) / 9
            return (v < 0 ? -v * v : v * v) * scale
        }
        for at in stride(from: 6, to: digits.count, by: 2) {
            let number = Base83.number(digits[at..<(at + 2)])
            guard number < 19 * 19 * 19 else { throw corrupt("the factor at character \(at + 1) is out of range") }
            factors.append(SIMD4(value(number / 361), value(number / 19 % 19), value(number % 19), 0))
        }
        return factors
    }

    private static func waves(_ side: Int, _ count: Int) -> [Float] {
        (0..<side).flatMap { position in
            (0..<count).map { Float(cos(Double.pi * Double($0) * Double(position) / Double(side))) }
        }
    }
}
