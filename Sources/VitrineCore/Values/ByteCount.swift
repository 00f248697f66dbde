/// A number of bytes, for limits and sizes: read from text, written as text, safe to compute with.
///
/// Never negative, and arithmetic stays within 0 and `Int.max` instead of trapping: limits may come from
/// configuration files.
///
/// ```swift
/// let capacity: ByteCount = .megabytes(150)
/// ByteCount("1.5GiB")?.bytes              // 1610612736
/// "\(ByteCount(1_500_000))"               // 1.5 MB
/// ```
public struct ByteCount: Sendable, Hashable, Codable {
    /// The number.
    public let bytes: Int

    /// Values below 0 count as 0.
    public init(_ bytes: Int) { self.bytes = max(0, bytes) }

    public static let zero = ByteCount(0)
    /// As many as there can be: no limit.
    public static let unlimited = ByteCount(.max)

    /// Thousands of bytes.
    public static func kilobytes(_ count: Int) -> ByteCount { ByteCount(count) * 1000 }
    /// Millions of bytes.
    public static func megabytes(_ count: Int) -> ByteCount { ByteCount(count) * 1_000_000 }
    /// Thousands of millions of bytes.
    public static func gigabytes(_ count: Int) -> ByteCount { ByteCount(count) * 1_000_000_000 }
    /// 1024 bytes each.
    public static func kibibytes(_ count: Int) -> ByteCount { ByteCount(count) * (1 << 10) }
    /// 1024 KiB each.
    public static func mebibytes(_ count: Int) -> ByteCount { ByteCount(count) * (1 << 20) }
    /// 1024 MiB each.
    public static func gibibytes(_ count: Int) -> ByteCount { ByteCount(count) * (1 << 30) }

    public static func + (one: ByteCount, other: ByteCount) -> ByteCount {
        let (sum, overflow) = one.bytes.addingReportingOverflow(other.bytes)
        return ByteCount(overflow ? .max : sum)
    }

    /// 0 if the second is larger.
    public static func - (one: ByteCount, other: ByteCount) -> ByteCount { ByteCount(one.bytes - other.bytes) }

    public static func * (one: ByteCount, factor: Int) -> ByteCount {
        let (product, overflow) = one.bytes.multipliedReportingOverflow(by: max(0, factor))
        return ByteCount(overflow ? .max : product)
    }

    public static func += (one: inout ByteCount, other: ByteCount) { one = one + other }
    public static func -= (one: inout ByteCount, other: ByteCount) { one = one - other }

    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(Int.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(bytes)
    }
}

extension ByteCount: Comparable {
    public static func < (one: ByteCount, other: ByteCount) -> Bool { one.bytes < other.bytes }
}

extension ByteCount: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int) { self.init(value) }
}
