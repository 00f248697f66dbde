/// Which part of a picture stays when the rest is cut off.
public enum Gravity: Hashable, Sendable, Codable {
    case center, top, bottom, left, right, topLeft, topRight, bottomLeft, bottomRight
    /// The point, in fractions of width and height from the upper left corner, that is to be in the middle, as far as
    /// the edges allow. Numbers outside 0...1 count as the nearest edge, those that are not numbers as the middle.
    case focal(x: Double, y: Double)
    /// The part with most to see: edges, skin tones, strong colours. Looks at the pixels; deterministic.
    case attention

    /// Where the middle of the window should be; nil where it depends on the pixels.
    var focus: (x: Double, y: Double)? {
        switch self {
        case .center: (0.5, 0.5)
        case .top: (0.5, 0)
        case .bottom: (0.5, 1)
        case .left: (0, 0.5)
        case .right: (1, 0.5)
        case .topLeft: (0, 0)
        case .topRight: (1, 0)
        case .bottomLeft: (0, 1)
        case .bottomRight: (1, 1)
        case .focal(let x, let y): (Self.unit(x), Self.unit(y))
        case .attention: nil
        }
    }

    private static func unit(_ value: Double) -> Double {
        value.isNaN ? 0.5 : max(0, min(1, value))
    }
}
