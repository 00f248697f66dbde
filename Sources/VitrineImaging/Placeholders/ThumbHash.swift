#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// ThumbHash: a blurred impression of an image, its shape and its transparency in 5 to 25 bytes, as a placeholder.
///
/// Source: ThumbHash by Evan Wallace (evanw.github.io/thumbhash and the format notes of its reference): luminance, two
/// colour differences and alpha as small triangles of cosine factors, 4 bits each.
public enum ThumbHash {
    /// Returns width over height, rounded to sevenths, or to fifths when the image has alpha.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a ThumbHash.
    public static func aspectRatio(of hash: [UInt8]) throws(ImageError) -> Double {
        let header = try ThumbHashHeader(hash)
        return Double(header.columns) / Double(header.rows)
    }

    /// Returns the mean colour and alpha.
    ///
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a ThumbHash.
    package static func averageColor(of hash: [UInt8]) throws(ImageError) -> PixelColor {
        let header = try ThumbHashHeader(hash)
        let (red, green, blue) = rgb(l: header.luminance, p: header.yellowBlue, q: header.redGreen)
        func byte(_ value: Double) -> UInt8 { UInt8(max(0, min(1, value)) * 255 + 0.5) }
        return PixelColor(red: byte(red), green: byte(green), blue: byte(blue), alpha: byte(header.alpha))
    }

    /// Returns red, green and blue from luminance (R + G + B) / 3, yellow-blue (R + G) / 2 − B and red-green R − G.
    static func rgb(l: Double, p: Double, q: Double) -> (Double, Double, Double) {
        let blue = l - 2 / 3 * p
        let red = (3 * l - blue + q) / 2
        return (red, red - q, blue)
    }

    static func corrupt(_ reason: String) -> ImageError { .corrupt(input: "ThumbHash", reason: reason) }
}

extension ThumbHash {
    /// Returns the hash of an image. Images above 100 pixels a side are reduced first, as the format demands.
    public static func encode(_ image: PixelImage) -> [UInt8] {
        let small = reduced(image)
        let width = small.width, height = small.height
        let (channels, hasAlpha) = planes(small)
        let limit = hasAlpha ? 5.0 : 7.0, longest = Double(max(width, height))
        let nx = max(1, Int((limit * Double(width) / longest).rounded()))
        let ny = max(1, Int((limit * Double(height) / longest).rounded()))
        func channel(_ index: Int, nx: Int, ny: Int) -> ThumbHashChannel {
            ThumbHashChannel(channels[index], width: width, height: height, nx: max(3, nx), ny: max(3, ny))
        }
        let l = channel(0, nx: nx, ny: ny), p = channel(1, nx: 3, ny: 3), q = channel(2, nx: 3, ny: 3)
        let a = hasAlpha ? channel(3, nx: 5, ny: 5) : .none
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

    private static func reduced(_ image: PixelImage) -> PixelImage {
        guard image.size.longestSide > 100 else { return image }
        let factor = 100 / Double(image.size.longestSide)
        let size = PixelSize(
            width: max(1, Int((Double(image.width) * factor).rounded())),
            height: max(1, Int((Double(image.height) * factor).rounded())))
        return AreaReduction.apply(to: image, size: size)
    }

    /// Returns luminance, yellow-blue, red-green and alpha, over the mean colour where the image is transparent.
    private static func planes(_ image: PixelImage) -> (channels: [[Double]], hasAlpha: Bool) {
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

extension ThumbHash {
    /// Returns the image of a hash, in its own proportions.
    ///
    /// - Parameters:
    ///   - hash: The bytes of the hash.
    ///   - longestSide: Pixels, 1…1,024. Default 32, which suffices: scale up when drawing.
    /// - Returns: An opaque image, or one with straight alpha if the hash has alpha.
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a ThumbHash;
    ///   ``ImageError/invalidRequest(reason:)`` for other sizes.
    public static func decode(_ hash: [UInt8], longestSide: Int = 32) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(longestSide, in: 1...1_024, "ThumbHash size")
        let header = try ThumbHashHeader(hash)
        let ratio = Double(header.columns) / Double(header.rows), longest = Double(longestSide)
        let width = max(1, Int((ratio > 1 ? longest : longest * ratio).rounded()))
        let height = max(1, Int((ratio > 1 ? longest / ratio : longest).rounded()))

        var nibbles = hash[header.factorsStart...].flatMap { [Int($0 & 15), Int($0 >> 4)] }[...]
        func triangle(nx: Int, ny: Int, scale: Double) -> Triangle {
            let count = ThumbHashHeader.factorCount(nx, ny)
            defer { nibbles = nibbles.dropFirst(count) }
            return Triangle(
                nx: nx, ny: ny, factors: nibbles.prefix(count).map { (Double($0) / 7.5 - 1) * scale },
                width: width, height: height)
        }
        let l = triangle(nx: max(3, header.columns), ny: max(3, header.rows), scale: header.luminanceScale)
        // The format boosts colour by a quarter to compensate for quantisation.
        let p = triangle(nx: 3, ny: 3, scale: header.yellowBlueScale * 1.25),
            q = triangle(nx: 3, ny: 3, scale: header.redGreenScale * 1.25)
        let a = header.hasAlpha ? triangle(nx: 5, ny: 5, scale: header.alphaScale) : nil

        return PixelImage(width: width, height: height, alpha: header.hasAlpha ? .straight : .opaque) { target in
            for y in 0..<height {
                for x in 0..<width {
                    let (red, green, blue) = rgb(
                        l: header.luminance + l.value(x, y), p: header.yellowBlue + p.value(x, y),
                        q: header.redGreen + q.value(x, y))
                    let alpha = header.alpha + (a?.value(x, y) ?? 0)
                    let color = PixelColor(red: byte(red), green: byte(green), blue: byte(blue), alpha: byte(alpha))
                    PixelMath.store(PixelMath.straight(color), target.baseAddress! + (y * width + x) * 4)
                }
            }
        }
    }

    /// The reference cuts fractions off.
    private static func byte(_ value: Double) -> UInt8 { UInt8(max(0, min(1, value)) * 255) }

    /// The factors of one channel with the waves they belong to.
    private struct Triangle {
        let nx: Int
        let ny: Int
        let factors: [Double]
        let wavesX: [Double]
        let wavesY: [Double]
        let width: Int
        let height: Int

        init(nx: Int, ny: Int, factors: [Double], width: Int, height: Int) {
            self.nx = nx
            self.ny = ny
            self.factors = factors
            self.width = width
            self.height = height
            wavesX = ThumbHashChannel.waves(width, nx)
            wavesY = ThumbHashChannel.waves(height, ny)
        }

        func value(_ x: Int, _ y: Int) -> Double {
            var sum = 0.0, index = 0
            for waveY in 0..<ny {
                let vertical = wavesY[waveY * height + y] * 2
                var waveX = waveY == 0 ? 1 : 0
                while waveX * ny < nx * (ny - waveY) {
                    sum += factors[index] * wavesX[waveX * width + x] * vertical
                    index += 1
                    waveX += 1
                }
            }
            return sum
        }
    }
}

/// The first 5 (with alpha 6) bytes of a ThumbHash.
private struct ThumbHashHeader {
    /// Constant factors: 0…1, −1…1, −1…1 and 0…1.
    let luminance: Double, yellowBlue: Double, redGreen: Double, alpha: Double
    /// The scale of the other factors of each channel.
    let luminanceScale: Double, yellowBlueScale: Double, redGreenScale: Double, alphaScale: Double
    let hasAlpha: Bool
    /// Luminance factors along the width and the height as the header states them, 1…7: their ratio is the image's.
    let columns: Int, rows: Int
    /// Where the 4-bit factors begin.
    let factorsStart: Int

    init(_ hash: [UInt8]) throws(ImageError) {
        guard hash.count >= 5 else { throw ThumbHash.corrupt("it has fewer than 5 bytes") }
        let first = Int(hash[0]) | Int(hash[1]) << 8 | Int(hash[2]) << 16
        let second = Int(hash[3]) | Int(hash[4]) << 8
        hasAlpha = first >> 23 != 0
        guard !hasAlpha || hash.count >= 6 else { throw ThumbHash.corrupt("it lacks the byte for its alpha") }
        luminance = Double(first & 63) / 63
        yellowBlue = Double(first >> 6 & 63) / 31.5 - 1
        redGreen = Double(first >> 12 & 63) / 31.5 - 1
        luminanceScale = Double(first >> 18 & 31) / 31
        yellowBlueScale = Double(second >> 3 & 63) / 63
        redGreenScale = Double(second >> 9 & 63) / 63
        alpha = hasAlpha ? Double(hash[5] & 15) / 15 : 1
        alphaScale = hasAlpha ? Double(hash[5] >> 4) / 15 : 0
        let shorter = second & 7, longer = hasAlpha ? 5 : 7
        guard shorter > 0 else { throw ThumbHash.corrupt("it has a side without factors") }
        let isLandscape = second >> 15 != 0
        columns = isLandscape ? longer : shorter
        rows = isLandscape ? shorter : longer
        factorsStart = hasAlpha ? 6 : 5
        let count = Self.factorCount(max(3, columns), max(3, rows)) + 2 * Self.factorCount(3, 3)
            + (hasAlpha ? Self.factorCount(5, 5) : 0)
        let expected = factorsStart + (count + 1) / 2
        guard hash.count == expected else { throw ThumbHash.corrupt("it needs \(expected) bytes, not \(hash.count)") }
    }

    /// Factors of a channel with `nx` by `ny` waves, the constant one left out: the triangle of low frequencies.
    static func factorCount(_ nx: Int, _ ny: Int) -> Int {
        (0..<ny).reduce(-1) { count, y in count + (0..<nx).count { $0 * ny < nx * (ny - y) } }
    }
}

/// One channel of a ThumbHash: a triangle of cosine factors.
private struct ThumbHashChannel {
    let constant: Double
    /// The other factors, row by row; encoded ones scaled to 0…1.
    let factors: [Double]
    /// The largest of them by size.
    let scale: Double

    static let none = ThumbHashChannel(constant: 1, factors: [], scale: 0)

    private init(constant: Double, factors: [Double], scale: Double) {
        self.constant = constant
        self.factors = factors
        self.scale = scale
    }

    /// Transforms `samples`, `width` by `height` of them.
    init(_ samples: [Double], width: Int, height: Int, nx: Int, ny: Int) {
        let wavesX = Self.waves(width, nx), wavesY = Self.waves(height, ny)
        // Separable: sums along each row for every wave, then along the columns.
        var rows = [Double](repeating: 0, count: nx * height)
        samples.withUnsafeBufferPointer { samples in
            wavesX.withUnsafeBufferPointer { waves in
                for y in 0..<height {
                    for wave in 0..<nx {
                        var even = 0.0, odd = 0.0
                        var x = 0
                        // Two sums: one would wait for each addition.
                        while x &+ 1 < width {
                            even += samples[y &* width &+ x] * waves[wave &* width &+ x]
                            odd += samples[y &* width &+ x &+ 1] * waves[wave &* width &+ x &+ 1]
                            x &+= 2
                        }
                        if x < width { even += samples[y &* width &+ x] * waves[wave &* width &+ x] }
                        rows[wave &* height &+ y] = even + odd
                    }
                }
            }
        }
        var constant = 0.0, factors: [Double] = [], scale = 0.0
        for waveY in 0..<ny {
            for waveX in 0..<nx where waveX * ny < nx * (ny - waveY) {
                var sum = 0.0
                for y in 0..<height { sum += rows[waveX * height + y] * wavesY[waveY * height + y] }
                sum /= Double(width * height)
                if waveX == 0 && waveY == 0 {
                    constant = sum
                } else {
                    factors.append(sum)
                    scale = max(scale, abs(sum))
                }
            }
        }
        self.init(
            constant: constant, factors: scale > 0 ? factors.map { 0.5 + 0.5 / scale * $0 } : factors, scale: scale)
    }

    /// cos(π wave (position + ½) / side) for every position of every wave.
    static func waves(_ side: Int, _ count: Int) -> [Double] {
        (0..<count).flatMap { wave in
            (0..<side).map { cos(Double.pi / Double(side) * Double(wave) * (Double($0) + 0.5)) }
        }
    }
}
