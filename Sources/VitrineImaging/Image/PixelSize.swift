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
