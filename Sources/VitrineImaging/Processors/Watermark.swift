/// A picture to draw on other pictures, with its place and size.
public struct Watermark: Sendable, Hashable {
    /// Nine places on a picture.
    public enum Position: String, Sendable, Hashable, Codable, CaseIterable {
        /// The upper left corner.
        case topLeft
        /// The middle of the upper edge.
        case top
        /// The upper right corner.
        case topRight
        /// The middle of the left edge.
        case left
        /// The middle of the picture.
        case center
        /// The middle of the right edge.
        case right
        /// The lower left corner.
        case bottomLeft
        /// The middle of the lower edge.
        case bottom
        /// The lower right corner.
        case bottomRight
    }

    /// The picture that is drawn.
    public let image: Image
    /// The place on the picture below. Default bottom right.
    public var position: Position
    /// The share of the other picture's width and height that the watermark fits into, above 0 up to 1. Default nil:
    /// its own size in pixels.
    public var scale: Double?
    /// From 0, invisible, to 1, the default.
    public var opacity: Double
    /// Pixels between the watermark and the edges, and between tiles. Default 0.
    public var margin: Int
    /// Whether copies cover the whole picture, one of them at ``position``. Default false.
    public var isTiled: Bool
    private let fingerprint: String

    /// Creates a watermark. Reads all pixels of `image` for cache keys: use one value for many pictures.
    public init(
        _ image: Image, position: Position = .bottomRight, scale: Double? = nil, opacity: Double = 1, margin: Int = 0,
        isTiled: Bool = false
    ) {
        self.image = image
        self.position = position
        self.scale = scale
        self.opacity = opacity
        self.margin = margin
        self.isTiled = isTiled
        fingerprint = image.fingerprint
    }

    var identifier: String {
        let size = scale.map { "\($0)" } ?? "own"
        return "watermark(\(fingerprint),\(position.rawValue),\(size),\(opacity),\(margin),\(isTiled))"
    }

    /// Returns whether two watermarks put equal pixels in the same place.
    public static func == (a: Watermark, b: Watermark) -> Bool { a.identifier == b.identifier }

    /// Hashes the picture's fingerprint and the parameters.
    public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}

/// Draws another picture on top.
struct WatermarkProcessor: ImageProcessing {
    let watermark: Watermark

    var identifier: String { watermark.identifier }

    func process(_ image: Image) throws(ImageError) -> Image {
        try ProcessorCheck.value(watermark.opacity, in: 0...1, "watermark opacity")
        try ProcessorCheck.value(watermark.margin, in: 0...65_535, "watermark margin")
        if let scale = watermark.scale, !(scale > 0 && scale <= 1) {
            throw .invalidRequest(reason: "watermark scale must be above 0 and at most 1, not \(scale)")
        }
        let opacity = UInt32((watermark.opacity * 255).rounded())
        if opacity == 0 { return image }
        let mark = sized(for: image.size)
        var result = image.alpha == .straight ? image.converted(to: .premultiplied) : image
        let (x, y) = origin(of: mark.size, on: image.size)
        guard watermark.isTiled else {
            result.compose(mark, x: x, y: y, opacity: opacity)
            return result
        }
        let stepX = mark.width + watermark.margin, stepY = mark.height + watermark.margin
        for top in stride(from: firstTile(y, stepY), to: image.height, by: stepY) {
            for left in stride(from: firstTile(x, stepX), to: image.width, by: stepX) {
                result.compose(mark, x: left, y: top, opacity: opacity)
            }
        }
        return result
    }

    /// Returns the watermark at its final size, premultiplied or opaque.
    private func sized(for size: PixelSize) -> Image {
        let mark = watermark.image.alpha == .straight ? watermark.image.converted(to: .premultiplied) : watermark.image
        guard let scale = watermark.scale else { return mark }
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

    private func origin(of mark: PixelSize, on size: PixelSize) -> (x: Int, y: Int) {
        let margin = watermark.margin
        let x: Int, y: Int
        switch watermark.position {
        case .topLeft, .left, .bottomLeft: x = margin
        case .top, .center, .bottom: x = (size.width - mark.width) / 2
        case .topRight, .right, .bottomRight: x = size.width - mark.width - margin
        }
        switch watermark.position {
        case .topLeft, .top, .topRight: y = margin
        case .left, .center, .right: y = (size.height - mark.height) / 2
        case .bottomLeft, .bottom, .bottomRight: y = size.height - mark.height - margin
        }
        return (x, y)
    }

    /// The first tile that reaches into the picture when one stands at `origin`.
    private func firstTile(_ origin: Int, _ step: Int) -> Int {
        let rest = origin % step
        return rest > 0 ? rest - step : rest
    }
}

extension Image {
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
        for word in [width, height, Int(alpha.rawValue)] { stir(UInt64(word)) }
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
