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
