/// How content of one size is laid out in bounds of another: the thirteen modes of toolkits (R68).
public enum ContentMode: String, Hashable, Sendable, Codable, CaseIterable {
    case scaleToFill, aspectFit, aspectFill, redraw, center, top, bottom, left, right
    case topLeft, topRight, bottomLeft, bottomRight

    /// A width and a height in points.
    public struct Size: Hashable, Sendable {
        public var width: Double
        public var height: Double

        public init(width: Double, height: Double) {
            self.width = width
            self.height = height
        }
    }

    /// A rectangle in points, from the upper left corner of the bounds.
    public struct Frame: Hashable, Sendable {
        public var x: Double
        public var y: Double
        public var width: Double
        public var height: Double

        public init(x: Double, y: Double, width: Double, height: Double) {
            self.x = x
            self.y = y
            self.width = width
            self.height = height
        }
    }

    /// By what content is multiplied along each axis: both ratios for ``scaleToFill``, the smaller for ``aspectFit``,
    /// the larger for ``aspectFill``, 1 for all others and for content without a size.
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

    /// Where content lies: in the middle, or at the edges a positional mode names. It may reach beyond the bounds.
    public func frame(for content: Size, in bounds: Size) -> Frame {
        let scale = scales(for: content, in: bounds)
        let width = content.width * scale.horizontal
        let height = content.height * scale.vertical
        let (x, y) = alignment
        return Frame(x: (bounds.width - width) * x, y: (bounds.height - height) * y, width: width, height: height)
    }

    /// The share of the free space that goes before the content.
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
