/// A width and a height in whole pixels.
public struct PixelSize: Hashable, Sendable, Codable, CustomStringConvertible {
    public var width: Int
    public var height: Int

    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// A square.
    public init(_ side: Int) {
        self.init(width: side, height: side)
    }

    public static let zero = PixelSize(width: 0, height: 0)

    /// Width times height, saturating: a header may claim any two numbers.
    public var pixelCount: Int {
        let (count, overflow) = width.multipliedReportingOverflow(by: height)
        return overflow ? .max : count
    }

    /// The longer of the two sides.
    public var longestSide: Int { max(width, height) }

    /// Width and height exchanged.
    public var transposed: PixelSize { PixelSize(width: height, height: width) }

    /// Whether either side is zero or negative.
    public var isEmpty: Bool { width <= 0 || height <= 0 }

    /// For example `640×480`.
    public var description: String { "\(width)×\(height)" }
}

/// A part of a picture, as fractions of its width and height from the upper left corner.
///
/// `UnitRect(x: 0, y: 0, width: 1, height: 1)` is all of it. What lies outside 0...1 is cut off.
public struct UnitRect: Hashable, Sendable, Codable {
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

    /// The whole picture.
    public static let full = UnitRect(x: 0, y: 0, width: 1, height: 1)

    /// The part inside the picture; nil if there is none, or a number is not finite.
    package var clipped: UnitRect? {
        guard x.isFinite, y.isFinite, width.isFinite, height.isFinite else { return nil }
        let left = max(0, x)
        let top = max(0, y)
        let right = min(1, x + width)
        let bottom = min(1, y + height)
        guard right > left, bottom > top else { return nil }
        return UnitRect(x: left, y: top, width: right - left, height: bottom - top)
    }
}
