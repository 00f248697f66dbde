extension ThumbHash {
    /// The picture a hash describes, in its own proportions.
    ///
    /// - Parameters:
    ///   - hash: The bytes of the hash.
    ///   - longestSide: Pixels, 1…1,024. Default 32, which is plenty: scale up when drawing.
    /// - Returns: An opaque picture, or one with straight alpha if the hash has alpha.
    /// - Throws: ``ImageError/corrupt(input:reason:)`` when `hash` is not a ThumbHash;
    ///   ``ImageError/invalidRequest(reason:)`` for other sizes.
    public static func decode(_ hash: [UInt8], longestSide: Int = 32) throws(ImageError) -> Image {
        try ProcessorCheck.value(longestSide, in: 1...1_024, "ThumbHash size")
        let header = try ThumbHashHeader(hash)
        let ratio = Double(header.columns) / Double(header.rows), longest = Double(longestSide)
        let width = max(1, Int((ratio > 1 ? longest : longest * ratio).rounded()))
        let height = max(1, Int((ratio > 1 ? longest / ratio : longest).rounded()))

        var nibbles = hash[header.factorsStart...].flatMap { [Int($0 & 15), Int($0 >> 4)] }[...]
        func triangle(_ nx: Int, _ ny: Int, _ scale: Double) -> Triangle {
            let count = ThumbHashHeader.factorCount(nx, ny)
            defer { nibbles = nibbles.dropFirst(count) }
            return Triangle(
                nx: nx, ny: ny, factors: nibbles.prefix(count).map { (Double($0) / 7.5 - 1) * scale },
                width: width, height: height)
        }
        let l = triangle(max(3, header.columns), max(3, header.rows), header.luminanceScale)
        // The format boosts colour by a quarter, which makes up for what quantisation takes.
        let p = triangle(3, 3, header.yellowBlueScale * 1.25), q = triangle(3, 3, header.redGreenScale * 1.25)
        let a = header.hasAlpha ? triangle(5, 5, header.alphaScale) : nil

        return Image(width: width, height: height, alpha: header.hasAlpha ? .straight : .opaque) { target in
            for y in 0..<height {
                for x in 0..<width {
                    let (red, green, blue) = rgb(
                        header.luminance + l.value(x, y), header.yellowBlue + p.value(x, y),
                        header.redGreen + q.value(x, y))
                    let alpha = header.alpha + (a?.value(x, y) ?? 0)
                    let color = Color(red: byte(red), green: byte(green), blue: byte(blue), alpha: byte(alpha))
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
