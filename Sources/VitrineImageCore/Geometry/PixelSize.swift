/// A width and a height in whole pixels.
public struct PixelSize: Hashable, Sendable, CustomStringConvertible {
    /// Pixels a row.
    public var width: Int
    /// Rows.
    public var height: Int

    /// Creates a size. Neither side is checked.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// Creates the size of a square.
    public init(_ side: Int) {
        self.init(width: side, height: side)
    }

    /// 0 by 0.
    public static let zero = PixelSize(width: 0, height: 0)

    /// Width times height, at most `Int.max`: a header may hold any two numbers.
    public var pixelCount: Int {
        let (count, overflow) = width.multipliedReportingOverflow(by: height)
        return overflow ? .max : count
    }

    /// The longer of the two sides.
    package var longestSide: Int { max(width, height) }

    /// Width and height exchanged.
    package var transposed: PixelSize { PixelSize(width: height, height: width) }

    /// Whether either side is zero or negative.
    package var isEmpty: Bool { width <= 0 || height <= 0 }

    /// For example `640×480`.
    public var description: String { "\(width)×\(height)" }

    /// Returns the whole pixels of a length in points: rounded up, at least 1 for a positive length, and not checked
    /// further.
    ///
    /// 100 points at a scale of 1.1 are 110 pixels, although the product of the two numbers is a little more. So a
    /// product within a millionth of a whole number is that number.
    ///
    /// - Parameters:
    ///   - points: The length.
    ///   - scale: The pixels for each point.
    package static func pixels(_ points: Double, scale: Double) -> Double {
        let product = points * scale
        let nearest = product.rounded()
        let pixels = abs(product - nearest) <= 1e-6 ? nearest : product.rounded(.up)
        return product > 0 ? max(1, pixels) : pixels
    }
}

/// A rectangle of whole pixels, from the upper left corner of an image.
public struct PixelRect: Hashable, Sendable {
    /// Pixels to the left of it.
    public var x: Int
    /// Rows above it.
    public var y: Int
    /// Its width and height.
    public var size: PixelSize

    /// Creates a rectangle. No number is checked.
    public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, size) = (x, y, PixelSize(width: width, height: height))
    }

    /// The part inside an image of a size; nil if it is empty.
    package func clipped(to whole: PixelSize) -> PixelRect? {
        let (left, top) = (max(0, x), max(0, y))
        let right = x.addingReportingOverflow(size.width), bottom = y.addingReportingOverflow(size.height)
        let (width, height) = (
            min(right.overflow ? .max : right.partialValue, whole.width) - left,
            min(bottom.overflow ? .max : bottom.partialValue, whole.height) - top
        )
        guard size.width > 0, size.height > 0, left < whole.width, top < whole.height, width > 0, height > 0 else {
            return nil
        }
        return PixelRect(x: left, y: top, width: width, height: height)
    }

    /// Whether another rectangle lies within. Both lie within an image.
    package func contains(_ other: PixelRect) -> Bool {
        other.x >= x && other.y >= y && other.x + other.size.width <= x + size.width
            && other.y + other.size.height <= y + size.height
    }

    /// The rectangle as fractions of the sides of another one.
    package func fractions(of whole: PixelRect) -> UnitRect {
        let (width, height) = (Double(whole.size.width), Double(whole.size.height))
        return UnitRect(
            x: Double(x - whole.x) / width, y: Double(y - whole.y) / height, width: Double(size.width) / width,
            height: Double(size.height) / height)
    }
}

/// A part of an image, as fractions of its width and height from the upper left corner.
///
/// Parts outside 0...1 are cut off.
package struct UnitRect: Hashable, Sendable {
    package var x: Double
    package var y: Double
    package var width: Double
    package var height: Double

    package init(x: Double, y: Double, width: Double, height: Double) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    /// The whole image.
    package static let full = UnitRect(x: 0, y: 0, width: 1, height: 1)

    /// The part inside the image; nil if it is empty or a number is not finite.
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

/// A width and a height in points.
public struct PointSize: Hashable, Sendable {
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
