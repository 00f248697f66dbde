/// The name of a ``Format``: where its entries are, in memory and on disk (R30, R34).
public struct FormatName: RawRepresentable, Sendable, Hashable, Codable {
    /// Any text.
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// The same as ``init(rawValue:)``.
    public init(_ name: String) { rawValue = name }

    /// The values as they came, untransformed (R31).
    public static let original: FormatName = "original"

    public init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(String.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

extension FormatName: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) { rawValue = value }
}

extension FormatName: CustomStringConvertible {
    public var description: String { rawValue }
}
