public import VitrineImaging

/// A small image of a rounded rectangle that stretches to any size without distorting its corners, for placeholders
/// of images that are loading.
///
/// ```swift
/// let tile = try StretchableImage(radius: 12, color: PixelColor(white: 235), border: ImageBorder(color: PixelColor(white: 200)))
/// let placeholder = try tile.stretched(to: PixelSize(width: 320, height: 240))
/// ```
public struct StretchableImage: Sendable {
    /// The tile: premultiplied, or opaque when none of its pixels is transparent.
    public let image: PixelImage
    /// The pixels at each of the four sides that do not stretch. At least one row and one column lie between them.
    public let capInset: Int

    /// Draws a tile.
    ///
    /// - Parameters:
    ///   - size: Pixels; nil (the default) for the smallest tile that holds the corners and one stretchable pixel.
    ///   - radius: Of all four corners, in pixels.
    ///   - color: Fills the tile.
    ///   - border: Drawn inside the outline. Default nil: none.
    ///   - background: Fills the corners outside the outline. Default nil: they are transparent.
    /// - Throws: `ImageError/invalidRequest(reason:)` when a length is negative, not a number or above 4,095 pixels,
    ///   or when `size` cannot hold the corners.
    public init(
        size: PixelSize? = nil, radius: Double, color: PixelColor, border: ImageBorder? = nil, background: PixelColor? = nil
    ) throws(ImageError) {
        try ProcessorCheck.value(radius, in: 0...4_095, "tile radius")
        try ProcessorCheck.value(border?.width ?? 0, in: 0...4_095, "tile border width")
        let cap = Int(max(radius, border?.width ?? 0).rounded(.up))
        let size = size ?? PixelSize(2 * cap + 1)
        try ProcessorCheck.outputSide(size, "rounded tile")
        guard size.width > 2 * cap, size.height > 2 * cap else {
            throw .invalidRequest(reason: "a tile of \(size) cannot hold corners of \(cap) pixels")
        }
        var image = try PixelImage(size: size, color: color).processed(by: [.roundCorners(radius, border: border)])
        if let background { image = image.composed(over: background) }
        self.image = image
        capInset = cap
    }

    /// Returns the tile at another size: corners as they are, the middle row and column repeated.
    ///
    /// - Throws: `ImageError/invalidRequest(reason:)` when `size` cannot hold the corners;
    ///   `ImageError/limitExceeded(input:limit:actual:allowed:)` beyond `ImageLimits/maximumOutputSide`.
    public func stretched(to size: PixelSize) throws(ImageError) -> PixelImage {
        try ProcessorCheck.outputSide(size, "rounded tile")
        guard size.width >= max(1, 2 * capInset), size.height >= max(1, 2 * capInset) else {
            throw .invalidRequest(reason: "a tile of \(size) cannot hold corners of \(capInset) pixels")
        }
        return PixelImage(width: size.width, height: size.height, alpha: image.alpha) { target in
            image.withUnsafeBytes { source in
                for y in 0..<size.height {
                    let row = Self.index(y, size.height, tile: image.height, cap: capInset)
                    let from = source.baseAddress! + row * image.bytesPerRow
                    let to = target.baseAddress! + y * size.width * 4
                    for x in 0..<size.width {
                        let column = Self.index(x, size.width, tile: image.width, cap: capInset)
                        PixelMath.store(PixelMath.load(from + 4 &* column), to + 4 &* x)
                    }
                }
            }
        }
    }

    /// The pixel of the tile that stands at `position` of a side `length` pixels long.
    private static func index(_ position: Int, _ length: Int, tile: Int, cap: Int) -> Int {
        if position < cap { return position }
        return position >= length &- cap ? tile &- length &+ position : cap
    }
}
