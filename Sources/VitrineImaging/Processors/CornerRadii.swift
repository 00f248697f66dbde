/// The radius of each corner of a picture, in pixels.
public struct CornerRadii: Hashable, Sendable, Codable {
    public var topLeft: Double
    public var topRight: Double
    public var bottomRight: Double
    public var bottomLeft: Double

    /// Corners that are not named stay square.
    public init(topLeft: Double = 0, topRight: Double = 0, bottomRight: Double = 0, bottomLeft: Double = 0) {
        self.topLeft = topLeft
        self.topRight = topRight
        self.bottomRight = bottomRight
        self.bottomLeft = bottomLeft
    }

    /// The same radius everywhere.
    public init(_ radius: Double) {
        self.init(topLeft: radius, topRight: radius, bottomRight: radius, bottomLeft: radius)
    }

    var all: [Double] { [topLeft, topRight, bottomRight, bottomLeft] }

    /// The radii made smaller by one factor so that neighbours do not overlap on a picture of this size.
    ///
    /// Source: W3C CSS Backgrounds and Borders Level 3, §4.5 (Overlapping Curves).
    func fitting(width: Double, height: Double) -> CornerRadii {
        let factor = min(
            1, width / (topLeft + topRight), width / (bottomLeft + bottomRight), height / (topLeft + bottomLeft),
            height / (topRight + bottomRight))
        // No radii at all divide by zero, which gives infinity, hence 1.
        return CornerRadii(
            topLeft: topLeft * factor, topRight: topRight * factor, bottomRight: bottomRight * factor,
            bottomLeft: bottomLeft * factor)
    }

    /// The radii of a shape inset by `distance`.
    func inset(by distance: Double) -> CornerRadii {
        CornerRadii(
            topLeft: max(0, topLeft - distance), topRight: max(0, topRight - distance),
            bottomRight: max(0, bottomRight - distance), bottomLeft: max(0, bottomLeft - distance))
    }
}
