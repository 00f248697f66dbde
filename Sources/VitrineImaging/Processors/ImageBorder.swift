/// A line along the inner edge of a picture or a tile.
public struct ImageBorder: Hashable, Sendable, Codable {
    /// In pixels; fractions give a fainter innermost pixel.
    public var width: Double
    public var color: Color

    public init(width: Double, color: Color) {
        self.width = width
        self.color = color
    }

    /// One pixel, the thinnest line there is.
    public static func hairline(_ color: Color) -> ImageBorder { ImageBorder(width: 1, color: color) }
}
