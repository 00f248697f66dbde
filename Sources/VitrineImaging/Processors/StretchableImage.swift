/// A small picture of a rounded rectangle that stretches to any size without distorting its corners: the placeholder
/// to show while a picture is loading.
///
/// ```swift
/// let tile = try StretchableImage(radius: 12, color: Color(white: 235), border: .hairline(Color(white: 200)))
/// let placeholder = try tile.stretched(to: PixelSize(width: 320, height: 240))
/// ```
public struct StretchableImage: Sendable {
    /// How far the parts that must not stretch reach in from each side, in pixels.
    public struct CapInsets: Sendable, Hashable, Codable {
        public var top: Int
        public var left: Int
        public var bottom: Int
        public var right: Int

        public init(top: Int, left: Int, bottom: Int, right: Int) {
            self.top = top
            self.left = left
            self.bottom = bottom
            self.right = right
        }
    }

    /// The tile: premultiplied, or opaque when nothing of it is transparent.
    public let image: Image
    /// The parts that must not stretch; at least one row and one column remain between them.
    public let capInsets: CapInsets

    /// Draws a tile.
    ///
    /// - Parameters:
    ///   - size: Pixels; nil (the default) for the smallest tile that holds the corners and one stretchable pixel.
    ///   - radius: Of all four corners, in pixels.
    ///   - color: Fills the tile.
    ///   - border: Drawn inside the outline. Default nil: none.
    ///   - background: Fills the corners outside the outline. Default nil: they are transparent.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when a length is negative, not a number or above 4,095 pixels,
    ///   or when `size` cannot hold the corners.
    public init(
        size: PixelSize? = nil, radius: Double, color: Color, border: ImageBorder? = nil, background: Color? = nil
    ) throws(ImageError) {
        try ProcessorCheck.value(radius, in: 0...4_095, "tile radius")
        try ProcessorCheck.value(border?.width ?? 0, in: 0...4_095, "tile border width")
        let cap = Int(max(radius, border?.width ?? 0).rounded(.up))
        let size = size ?? PixelSize(2 * cap + 1)
        try ProcessorCheck.outputSide(size, "rounded tile")
        guard size.width > 2 * cap, size.height > 2 * cap else {
            throw .invalidRequest(reason: "a tile of \(size) cannot hold corners of \(cap) pixels")
        }
        var image = try Image(size: size, color: color).processed(by: [.roundCorners(radius, border: border)])
        if let background { image = image.composed(over: background) }
        self.image = image
        capInsets = CapInsets(top: cap, left: cap, bottom: cap, right: cap)
    }

    /// The tile at another size: corners as they are, everything between them repeated.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` when `size` cannot hold the corners;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` beyond ``ImageLimits/maximumOutputSide``.
    public func stretched(to size: PixelSize) throws(ImageError) -> Image {
        let caps = capInsets
        try ProcessorCheck.outputSide(size, "rounded tile")
        guard size.width >= max(1, caps.left + caps.right), size.height >= max(1, caps.top + caps.bottom) else {
            throw .invalidRequest(reason: "a tile of \(size) cannot hold corners of \(caps.left) pixels")
        }
        let right = size.width - caps.right, bottom = size.height - caps.bottom
        let tile = image.size
        return image.moved(to: size) { x, y in
            (
                x < caps.left ? x : x >= right ? tile.width &- size.width &+ x : caps.left,
                y < caps.top ? y : y >= bottom ? tile.height &- size.height &+ y : caps.top
            )
        }
    }
}
