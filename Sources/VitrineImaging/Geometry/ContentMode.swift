/// The layout of content of one size in bounds of another: the thirteen modes of UIKit.
public enum ContentMode: String, Hashable, Sendable, Codable, CaseIterable {
    /// Scaled to exactly the bounds; the ratio may change.
    case scaleToFill
    /// Scaled to the largest size inside the bounds.
    case aspectFit
    /// Scaled to the smallest size that covers the bounds.
    case aspectFill
    /// Not scaled, in the middle.
    case redraw
    /// Not scaled, in the middle.
    case center
    /// Not scaled, at the upper edge.
    case top
    /// Not scaled, at the lower edge.
    case bottom
    /// Not scaled, at the left edge.
    case left
    /// Not scaled, at the right edge.
    case right
    /// Not scaled, in the upper left corner.
    case topLeft
    /// Not scaled, in the upper right corner.
    case topRight
    /// Not scaled, in the lower left corner.
    case bottomLeft
    /// Not scaled, in the lower right corner.
    case bottomRight

    /// A width and a height in points.
    public struct Size: Hashable, Sendable {
        /// Width in points.
        public var width: Double
        /// Height in points.
        public var height: Double

        /// Creates a size.
        public init(width: Double, height: Double) {
            self.width = width
            self.height = height
        }
    }

    /// A rectangle in points, from the upper left corner of the bounds.
    public struct Frame: Hashable, Sendable {
        /// Points from the left edge of the bounds to the content; negative for content that begins outside.
        public var x: Double
        /// Points from the upper edge of the bounds to the content; negative for content that begins outside.
        public var y: Double
        /// Width in points.
        public var width: Double
        /// Height in points.
        public var height: Double

        package init(x: Double, y: Double, width: Double, height: Double) {
            self.x = x
            self.y = y
            self.width = width
            self.height = height
        }
    }

    /// Returns the factors for content along each axis: both ratios for ``scaleToFill``, the smaller for ``aspectFit``,
    /// the larger for ``aspectFill``, 1 for the others and for content without a size.
    public func scales(for content: Size, in bounds: Size) -> (horizontal: Double, vertical: Double) {
        guard content.width > 0, content.height > 0 else { return (1, 1) }
        let horizontal = bounds.width / content.width
        let vertical = bounds.height / content.height
        switch self {
        case .scaleToFill: return (horizontal, vertical)
        case .aspectFit: return (min(horizontal, vertical), min(horizontal, vertical))
        case .aspectFill: return (max(horizontal, vertical), max(horizontal, vertical))
        default: return (1, 1)
        }
    }

    /// Returns the rectangle of content, in the middle or at the edges of the mode. It may reach beyond the bounds.
    public func frame(for content: Size, in bounds: Size) -> Frame {
        let scale = scales(for: content, in: bounds)
        let width = content.width * scale.horizontal
        let height = content.height * scale.vertical
        let (x, y) = alignment
        return Frame(x: (bounds.width - width) * x, y: (bounds.height - height) * y, width: width, height: height)
    }

    /// The share of the free space before the content.
    private var alignment: (x: Double, y: Double) {
        switch self {
        case .scaleToFill, .aspectFit, .aspectFill, .redraw, .center: (0.5, 0.5)
        case .top: (0.5, 0)
        case .bottom: (0.5, 1)
        case .left: (0, 0.5)
        case .right: (1, 0.5)
        case .topLeft: (0, 0)
        case .topRight: (1, 0)
        case .bottomLeft: (0, 1)
        case .bottomRight: (1, 1)
        }
    }
}
