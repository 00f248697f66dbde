#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// BlurHash: a blurred impression of an image in 6 to 166 characters of text, as a placeholder.
///
/// It holds neither transparency nor the image's shape; ``ThumbHash`` holds both.
///
/// Source: the algorithm description of BlurHash by Wolt (`Algorithm.md` of woltapp/blurhash): a small discrete cosine
/// transform of linear light, quantised and written in base 83.
public enum BlurHash {
    /// Waves a hash can hold along each side.
    static let componentRange = 1...9

    /// Returns the mean colour, which a hash holds exactly.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a BlurHash.
    package static func averageColor(of hash: String) throws(ImageError) -> PixelColor {
        let digits = try Base83.digits(hash)
        _ = try components(of: digits)
        return try mean(of: digits)
    }

    static func components(of digits: [Int]) throws(ImageError) -> (x: Int, y: Int) {
        guard digits.count >= 6 else { throw corrupt("it has fewer than 6 characters") }
        guard digits[0] < 81 else { throw corrupt("its first character gives no number of components") }
        let x = digits[0] % 9 + 1, y = digits[0] / 9 + 1
        guard digits.count == 4 + 2 * x * y else {
            throw corrupt("\(x) by \(y) components take \(4 + 2 * x * y) characters, not \(digits.count)")
        }
        return (x, y)
    }

    static func mean(of digits: [Int]) throws(ImageError) -> PixelColor {
        let value = Base83.number(digits[2..<6])
        guard value < 1 << 24 else { throw corrupt("its mean colour is out of range") }
        return PixelColor(
            red: UInt8(truncatingIfNeeded: value >> 16), green: UInt8(truncatingIfNeeded: value >> 8),
            blue: UInt8(truncatingIfNeeded: value))
    }

    static func corrupt(_ reason: String) -> ImageError { .corrupt(input: "BlurHash", reason: reason) }
}

extension BlurHash {
    /// Samples a side. Larger images are sampled at regular points, far finer than 9 waves.
    private static let maximumSamples = 256

    /// Returns the hash of an image.
    ///
    /// Images up to 256 pixels a side are hashed from every pixel, as the reference does. Larger ones are sampled at
    /// 129 to 256 regular points a side, so factors differ a little for images with fine detail. Transparent parts
    /// count as white.
    ///
    /// - Parameters:
    ///   - image: Any image.
    ///   - x: Waves along the width, 1…9. Default 4.
    ///   - y: Waves along the height, 1…9. Default 3.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for other numbers of waves.
    public static func encode(_ image: PixelImage, x: Int = 4, y: Int = 3) throws(ImageError) -> String {
        try ProcessorCheck.value(x, in: componentRange, "BlurHash components along the width")
        try ProcessorCheck.value(y, in: componentRange, "BlurHash components along the height")
        let factors = transform(image.flattened(over: .white), nx: x, ny: y)

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

    /// Returns the factors of the waves, row by row of waves, for an opaque image.
    private static func transform(_ image: PixelImage, nx: Int, ny: Int) -> [SIMD3<Float>] {
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

    /// The sampled coordinates along one side: the middles of equal steps.
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

extension BlurHash {
    /// Returns the image of a hash: opaque, of any size. 32 pixels a side suffice; scale them up when drawing.
    ///
    /// - Parameters:
    ///   - hash: The text of the hash.
    ///   - size: Up to 1,024 pixels a side.
    ///   - punch: Contrast, 0…10. Default 1: as hashed.
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a BlurHash;
    ///   ``ImageError/invalidRequest(reason:)`` for other sizes and contrasts.
    public static func decode(_ hash: String, size: PixelSize, punch: Double = 1) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(size.width, in: 1...1_024, "BlurHash width")
        try ProcessorCheck.value(size.height, in: 1...1_024, "BlurHash height")
        try ProcessorCheck.value(punch, in: 0...10, "BlurHash punch")
        let digits = try Base83.digits(hash)
        let (nx, ny) = try components(of: digits)
        let factors = try factors(digits, punch: Float(punch))
        let wavesX = waves(size.width, nx), wavesY = waves(size.height, ny)
        return PixelImage(width: size.width, height: size.height, alpha: .opaque) { target in
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
                    let color = PixelColor(
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

/// The number system of BlurHash: 83 characters that need no escaping in JSON, HTML or a shell.
private enum Base83 {
    private static let alphabet = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

    private static let values: [Int] = {
        var values = [Int](repeating: -1, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = value }
        return values
    }()

    /// Appends `value` with `count` digits, most significant first.
    static func append(_ value: Int, count: Int, to text: inout [UInt8]) {
        var place = 1
        for _ in 1..<count { place *= 83 }
        while place > 0 {
            text.append(alphabet[value / place % 83])
            place /= 83
        }
    }

    /// Returns the value of each character.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` for other characters and for texts longer than any BlurHash.
    static func digits(_ text: String) throws(ImageError) -> [Int] {
        guard text.utf8.count <= 166 else { throw BlurHash.corrupt("it has more than 166 characters") }
        let digits = text.utf8.map { values[Int($0)] }
        guard !digits.contains(-1) else { throw BlurHash.corrupt("it has a character outside of base 83") }
        return digits
    }

    /// Returns the number of some digits.
    static func number(_ digits: ArraySlice<Int>) -> Int { digits.reduce(0) { $0 * 83 + $1 } }
}
