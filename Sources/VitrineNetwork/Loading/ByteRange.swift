/// A part of a body, in bytes from its beginning (RFC 9110, section 14.1.2).
public struct ByteRange: Sendable, Hashable {
    /// The first byte wanted.
    public let lowerBound: Int
    /// The byte after the last one wanted; nil for all there are.
    public let upperBound: Int?

    /// Everything from an offset on. Below 0 counts as 0.
    public init(from offset: Int) {
        lowerBound = max(0, offset)
        upperBound = nil
    }

    /// - Returns: nil for an empty or negative range, which cannot be asked for.
    public init?(_ range: Range<Int>) {
        guard !range.isEmpty, range.lowerBound >= 0 else { return nil }
        lowerBound = range.lowerBound
        upperBound = range.upperBound
    }

    /// The value of a `Range` field: `bytes=0-499`.
    public var headerValue: String { "bytes=\(lowerBound)-" + (upperBound.map { String($0 - 1) } ?? "") }
}
