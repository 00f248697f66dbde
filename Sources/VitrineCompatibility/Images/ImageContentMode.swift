public import VitrineImaging

/// The layout of content of one size in bounds of another, as views have it.
public enum ImageContentMode: Hashable, Sendable {
    /// Scaled to exactly the bounds; the ratio may change.
    case stretch
    /// Scaled to the largest size inside the bounds.
    case fit
    /// Scaled to the smallest size that covers the bounds.
    case fill
    /// Not scaled, at an edge, in a corner or in the middle of the bounds. `Gravity/attention` is the middle.
    case unscaled(Gravity)

    /// Returns the rectangle of content in points, from the upper left corner of the bounds. It may reach beyond them.
    ///
    /// The ratio of its sides to those of the content is the scale, 1 for content without a size.
    public func frame(
        for content: PointSize, in bounds: PointSize
    ) -> (x: Double, y: Double, width: Double, height: Double) {
        let scale = scales(for: content, in: bounds)
        let width = content.width * scale.horizontal
        let height = content.height * scale.vertical
        let focus: (x: Double, y: Double) = if case .unscaled(let gravity) = self { gravity.anchor } else { (0.5, 0.5) }
        return ((bounds.width - width) * focus.x, (bounds.height - height) * focus.y, width, height)
    }

    /// Returns the factors for content along each axis: both ratios for `stretch`, the smaller for `fit`,
    /// the larger for `fill`, 1 otherwise and for content without a size.
    package func scales(for content: PointSize, in bounds: PointSize) -> (horizontal: Double, vertical: Double) {
        guard content.width > 0, content.height > 0 else { return (1, 1) }
        let horizontal = bounds.width / content.width
        let vertical = bounds.height / content.height
        switch self {
        case .stretch: return (horizontal, vertical)
        case .fit: return (min(horizontal, vertical), min(horizontal, vertical))
        case .fill: return (max(horizontal, vertical), max(horizontal, vertical))
        case .unscaled: return (1, 1)
        }
    }
}
