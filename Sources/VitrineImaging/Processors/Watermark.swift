/// A picture to draw on other pictures, and where.
public struct Watermark: Sendable, Hashable {
    /// Nine places on a picture.
    public enum Position: String, Sendable, Hashable, Codable, CaseIterable {
        case topLeft, top, topRight, left, center, right, bottomLeft, bottom, bottomRight
    }

    /// What is drawn.
    public let image: Image
    /// Where it stands. Default bottom right.
    public var position: Position
    /// The share of the picture's width and height it is made to fit into, above 0 up to 1; nil (the default) for its
    /// own size in pixels.
    public var scale: Double?
    /// From 0 (invisible) to 1 (as it is, the default).
    public var opacity: Double
    /// Pixels between it and the edges, and between tiles. Default 0.
    public var margin: Int
    /// Whether it is repeated over the whole picture, one copy standing at `position`. Default false.
    public var isTiled: Bool
    private let fingerprint: String

    /// Reads all pixels of `image` once, to know it again in cache keys: make one value and use it for many pictures.
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

    /// Watermarks are equal when they put equal pixels in the same place.
    public static func == (a: Watermark, b: Watermark) -> Bool { a.identifier == b.identifier }

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

    /// The watermark at the size it is drawn, premultiplied or opaque.
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
    /// Draws `top` over this picture with its top left corner at (x, y), which may lie outside; what does not fit is
    /// left away.
    ///
    /// Neither may have straight alpha.
    ///
    /// - Parameter opacity: 0 (nothing) to 255 (all of `top`).
    mutating func compose(_ top: Image, x: Int, y: Int, opacity: UInt32 = 255) {
        let left = max(0, x), right = min(width, x + top.width)
        let first = max(0, y), last = min(height, y + top.height)
        guard left < right, first < last else { return }
        let stride = bytesPerRow
        top.withUnsafeBytes { source in
            withUnsafeMutableBytes { target in
                for row in first..<last {
                    let from = source.baseAddress! + (row - y) * top.bytesPerRow
                    let to = target.baseAddress! + row * stride
                    for column in left..<right {
                        let pixel = PixelMath.scale(PixelMath.load(from + (column &- x) &* 4), opacity)
                        let below = PixelMath.load(to + column &* 4)
                        PixelMath.store(PixelMath.over(pixel, below), to + column &* 4)
                    }
                }
            }
        }
    }
}

extension Image {
    /// 128 bits that tell pictures apart in cache keys: size, alpha and visible bytes, equal in every run.
    ///
    /// Two FNV-1a sums over 32-bit words with different offsets, each stirred at the end (constants: the FNV offset
    /// basis and prime of draft-eastlake-fnv §5, and the finaliser of MurmurHash3). Not proof against somebody who
    /// wants two pictures to collide.
    var fingerprint: String {
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
