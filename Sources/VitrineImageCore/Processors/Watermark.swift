/// Draws another image on top.
struct WatermarkProcessor: ImageProcessing {
    private let watermark: PixelImage
    private let position: Gravity
    private let scale: Double?
    private let opacity: Double
    private let margin: Int
    private let isTiled: Bool
    let identifier: String

    /// The parameters are those of ``ImageProcessor/watermark(_:at:scale:opacity:margin:isTiled:)``.
    init(_ image: PixelImage, position: Gravity, scale: Double?, opacity: Double, margin: Int, isTiled: Bool) {
        watermark = image
        self.position = position
        self.scale = scale
        self.opacity = opacity
        self.margin = margin
        self.isTiled = isTiled
        let size = scale.map { "\($0)" } ?? "own"
        identifier = "watermark(\(image.fingerprint),\(position),\(size),\(opacity),\(margin),\(isTiled))"
    }

    func process(_ image: PixelImage) throws(ImageError) -> PixelImage {
        try ProcessorCheck.value(opacity, in: 0...1, "watermark opacity")
        try ProcessorCheck.value(margin, in: 0...65_535, "watermark margin")
        if let scale, !(scale > 0 && scale <= 1) {
            throw .invalidRequest(reason: "watermark scale must be above 0 and at most 1, not \(scale)")
        }
        guard let place = position.focus else {
            throw .invalidRequest(reason: "watermark position must be a place, not \(position)")
        }
        let opacity = UInt32((opacity * 255).rounded())
        if opacity == 0 { return image }
        let mark = sized(for: image.size)
        var result = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        let (x, y) = origin(of: mark.size, on: image.size, at: place)
        guard isTiled else {
            result.compose(mark, x: x, y: y, opacity: opacity)
            return result
        }
        let stepX = mark.width + margin, stepY = mark.height + margin
        for top in stride(from: firstTile(y, stepY), to: image.height, by: stepY) {
            for left in stride(from: firstTile(x, stepX), to: image.width, by: stepX) {
                result.compose(mark, x: left, y: top, opacity: opacity)
            }
        }
        return result
    }

    /// Returns the watermark at its final size, premultiplied or opaque.
    private func sized(for size: PixelSize) -> PixelImage {
        let mark = watermark.alpha == .straight ? watermark.converted(to: .premultiplied) : watermark
        guard let scale else { return mark }
        let factor = scale * min(
            Double(size.width) / Double(mark.width), Double(size.height) / Double(mark.height))
        let wanted = PixelSize(
            width: max(1, Int((Double(mark.width) * factor).rounded())),
            height: max(1, Int((Double(mark.height) * factor).rounded())))
        if wanted.width <= mark.width && wanted.height <= mark.height {
            return AreaReduction.apply(to: mark, size: wanted)
        }
        let sampler = AffineSampler(
            origin: (0, 0), alongRow: (Double(mark.width) / Double(wanted.width), 0),
            alongColumn: (0, Double(mark.height) / Double(wanted.height)), extendsEdges: true)
        return sampler.draw(mark, size: wanted)
    }

    /// Returns the upper left corner of the watermark. Negative if it is larger than the image.
    private func origin(
        of mark: PixelSize, on size: PixelSize, at place: (x: Double, y: Double)
    ) -> (x: Int, y: Int) {
        /// The margin counts fully at the edges and not at all in the middle.
        func start(_ free: Int, _ share: Double) -> Int {
            Int((Double(free) * share + Double(margin) * (1 - 2 * share)).rounded(.towardZero))
        }
        return (start(size.width - mark.width, place.x), start(size.height - mark.height, place.y))
    }

    /// The first tile that reaches into the image when one stands at `origin`.
    private func firstTile(_ origin: Int, _ step: Int) -> Int {
        let rest = origin % step
        return rest > 0 ? rest - step : rest
    }
}

extension PixelImage {
    /// 128 bits that identify size, alpha and visible bytes in cache keys, equal in every run.
    ///
    /// Two FNV-1a sums over 32-bit words with different offsets, each stirred at the end (constants: the FNV offset
    /// basis and prime of draft-eastlake-fnv §5, and the finaliser of MurmurHash3). Does not resist deliberate
    /// collisions.
    fileprivate var fingerprint: String {
        var a: UInt64 = 0xcbf2_9ce4_8422_2325, b: UInt64 = 0x9ae1_6a3b_2f90_404f
        func stir(_ word: UInt64) {
            a = (a ^ word) &* 0x0000_0100_0000_01b3
            b = (b ^ (word &+ b >> 32)) &* 0x9e37_79b9_7f4a_7c15
        }
        for word in [width, height, Int(alpha.code)] { stir(UInt64(word)) }
        withUnsafeBytes { bytes in
            for y in 0..<height {
                let row = bytes.baseAddress! + y &* bytesPerRow
                for x in 0..<width { stir(UInt64(PixelMath.load(row + x &* 4))) }
            }
        }
        return Self.hexadecimal(Self.finish(a)) + Self.hexadecimal(Self.finish(b))
    }

    private static func finish(_ sum: UInt64) -> UInt64 {
        var h = sum
        h = (h ^ h >> 33) &* 0xff51_afd7_ed55_8ccd
        h = (h ^ h >> 33) &* 0xc4ce_b9fe_1a85_ec53
        return h ^ h >> 33
    }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
