public import VitrineImaging

/// The place a target has for an image, in pixels of the display.
public struct TargetGeometry: Sendable, Hashable {
    /// Width and height in pixels, both positive.
    public let size: PixelSize
    /// How an image is brought to the size.
    public let mode: ImageResizer.Mode
    /// Whether smaller images are enlarged before they are kept; if not, the toolkit does it when it draws.
    public let allowsUpscaling: Bool

    /// A place of a size in points.
    ///
    /// - Parameters:
    ///   - width: In points.
    ///   - height: In points.
    ///   - scale: Pixels a point; the products are rounded up.
    ///   - mode: How an image is brought to the size.
    ///   - allowsUpscaling: Whether smaller images are enlarged.
    /// - Returns: nil if there is no such place: a view that was not laid out yet has no size.
    public init?(
        width: Double, height: Double, scale: Double = 1, mode: ImageResizer.Mode = .aspectFit,
        allowsUpscaling: Bool = true
    ) {
        let (columns, rows) = ((width * scale).rounded(.up), (height * scale).rounded(.up))
        guard Self.sides.contains(columns), Self.sides.contains(rows) else { return nil }
        size = PixelSize(width: Int(columns), height: Int(rows))
        self.mode = mode
        self.allowsUpscaling = allowsUpscaling
    }

    private static let sides = 1.0...1_048_576

    /// The rule that brings images to it.
    public var resizer: ImageResizer { ImageResizer(size: size, mode: mode, allowsUpscaling: allowsUpscaling) }
}
