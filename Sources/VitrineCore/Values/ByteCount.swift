/// A number of bytes, for limits and sizes. It is read from text, written as text, and safe to compute with.
///
/// A count is never negative, and arithmetic stays within 0 and `Int.max` instead of trapping, because limits may come
/// from configuration files.
///
/// ```swift
/// let capacity: ByteCount = .megabytes(150)
/// ByteCount("1.5GiB")?.bytes              // 1610612736
/// "\(ByteCount(1_500_000))"               // 1.5 MB
/// ```
public struct ByteCount: Sendable, Hashable, Codable {
    /// The number of bytes.
    public let bytes: Int

    /// Creates a count.
    ///
    /// - Parameter bytes: The number of bytes. Negative values count as 0.
    public init(_ bytes: Int) { self.bytes = max(0, bytes) }

    /// No bytes.
    public static let zero = ByteCount(0)
    /// The largest count, for no limit.
    public static let unlimited = ByteCount(.max)

    /// Returns a count in units of 1000 bytes.
    public static func kilobytes(_ count: Int) -> ByteCount { ByteCount(count) * 1000 }
    /// Returns a count in units of 1,000,000 bytes.
    public static func megabytes(_ count: Int) -> ByteCount { ByteCount(count) * 1_000_000 }
    /// Returns a count in units of 1,000,000,000 bytes.
    public static func gigabytes(_ count: Int) -> ByteCount { ByteCount(count) * 1_000_000_000 }
    /// Returns a count in units of 1024 bytes.
    public static func kibibytes(_ count: Int) -> ByteCount { ByteCount(count) * (1 << 10) }
    /// Returns a count in units of 1024² bytes.
    public static func mebibytes(_ count: Int) -> ByteCount { ByteCount(count) * (1 << 20) }
    /// Returns a count in units of 1024³ bytes.
    public static func gibibytes(_ count: Int) -> ByteCount { ByteCount(count) * (1 << 30) }

    /// Returns the sum of two counts.
    package static func + (one: ByteCount, other: ByteCount) -> ByteCount {
        let (sum, overflow) = one.bytes.addingReportingOverflow(other.bytes)
        return ByteCount(overflow ? .max : sum)
    }

    /// Returns the difference of two counts, or 0 if the second is larger.
    package static func - (one: ByteCount, other: ByteCount) -> ByteCount { ByteCount(one.bytes - other.bytes) }

    /// Returns a multiple of a count. Negative factors count as 0.
    package static func * (one: ByteCount, factor: Int) -> ByteCount {
        let (product, overflow) = one.bytes.multipliedReportingOverflow(by: max(0, factor))
        return ByteCount(overflow ? .max : product)
    }

    /// Adds a count.
    package static func += (one: inout ByteCount, other: ByteCount) { one = one + other }
    /// Subtracts a count, down to 0.
    package static func -= (one: inout ByteCount, other: ByteCount) { one = one - other }

    /// Decodes a count from a number of bytes.
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(Int.self))
    }

    /// Encodes the number of bytes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(bytes)
    }
}

extension ByteCount: Comparable {
    /// Returns whether the first count is smaller.
    public static func < (one: ByteCount, other: ByteCount) -> Bool { one.bytes < other.bytes }
}

extension ByteCount: ExpressibleByIntegerLiteral {
    /// Creates a count from a number of bytes.
    public init(integerLiteral value: Int) { self.init(value) }
}

extension ByteCount {
    /// The units of written sizes.
    package enum Units: Sendable {
        /// Powers of 1000 (SI): kB, MB, GB, TB, PB, EB.
        case decimal
        /// Powers of 1024 (IEC 80000-13): KiB, MiB, GiB, TiB, PiB, EiB.
        case binary
    }

    private static let prefixes = Array("KMGTPE".utf8)

    /// Returns the count in the largest unit it reaches, with one decimal unless that is 0: `999 B`, `1.5 MB`, `2 GiB`.
    ///
    /// Halves are rounded up. The text is the same in every locale.
    package func formatted(_ units: Units = .decimal) -> String {
        let base: UInt64 = units == .decimal ? 1000 : 1024
        let value = UInt64(bytes)
        guard value >= base else { return "\(value) B" }
        var unit = base
        var power = 0
        // Rounding may reach the next unit: 999,950 bytes are 1 MB.
        while power < Self.prefixes.count - 1, Self.tenths(value, unit) >= base * 10 {
            unit *= base
            power += 1
        }
        let tenths = Self.tenths(value, unit)
        let number = tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
        let letter = Character(Unicode.Scalar(Self.prefixes[power]))
        switch units {
        case .decimal: return "\(number) \(power == 0 ? "k" : letter)B"
        case .binary: return "\(number) \(letter)iB"
        }
    }

    private static func tenths(_ value: UInt64, _ unit: UInt64) -> UInt64 {
        let (whole, rest) = value.quotientAndRemainder(dividingBy: unit)
        // At most 2^60 remains, which times 10 fits.
        return whole * 10 + (rest * 10 + unit / 2) / unit
    }

    /// Creates a count from a text: digits with at most one decimal point, spaces, and a unit.
    ///
    /// Units are `B`, `kB`, `MB` … (powers of 1000) and `KiB`, `MiB` … (powers of 1024), in any case and also without
    /// `B`: `10 MB`, `1.5GiB`, `64k`, `4096`. Fractions of a byte are dropped.
    ///
    /// - Parameter text: The text.
    /// - Returns: nil for any other text, for a negative number, and for more than `Int.max` bytes.
    public init?(_ text: String) {
        var rest = Substring(text).utf8
        while rest.first == UInt8(ascii: " ") { rest.removeFirst() }
        while rest.last == UInt8(ascii: " ") { rest.removeLast() }
        guard let number = Self.takeNumber(from: &rest) else { return nil }
        while rest.first == UInt8(ascii: " ") { rest.removeFirst() }
        guard let unit = Self.unit(rest) else { return nil }
        let (whole, overflow) = number.whole.multipliedReportingOverflow(by: unit)
        guard !overflow else { return nil }
        // The divisor is at most 10^6 and a fraction below it: exact in 128 bits.
        let product = number.fraction.multipliedFullWidth(by: unit)
        let part = number.divisor.dividingFullWidth(product).quotient
        let (sum, tooLarge) = whole.addingReportingOverflow(part)
        guard !tooLarge, let bytes = Int(exactly: sum) else { return nil }
        self.init(bytes)
    }

    private static func takeNumber(
        from text: inout Substring.UTF8View
    ) -> (whole: UInt64, fraction: UInt64, divisor: UInt64)? {
        var whole: UInt64 = 0, fraction: UInt64 = 0, divisor: UInt64 = 1
        var hasDigits = false, hasPoint = false
        while let byte = text.first {
            if byte == UInt8(ascii: "."), !hasPoint {
                hasPoint = true
            } else if (0x30...0x39).contains(byte) {
                hasDigits = true
                let digit = UInt64(byte - 0x30)
                if !hasPoint {
                    let (tens, overflow) = whole.multipliedReportingOverflow(by: 10)
                    let (sum, carry) = tens.addingReportingOverflow(digit)
                    guard !overflow, !carry else { return nil }
                    whole = sum
                } else if divisor < 1_000_000 {
                    // Six decimals are precise enough; the others are dropped.
                    fraction = fraction * 10 + digit
                    divisor *= 10
                }
            } else {
                break
            }
            text.removeFirst()
        }
        return hasDigits ? (whole, fraction, divisor) : nil
    }

    private static func unit(_ text: Substring.UTF8View) -> UInt64? {
        var letters = text.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }
        if letters.last == UInt8(ascii: "B") { letters.removeLast() }
        guard let prefix = letters.first else { return 1 }
        guard let power = prefixes.firstIndex(of: prefix) else { return nil }
        let base: UInt64
        switch letters.count {
        case 1: base = 1000
        case 2 where letters[1] == UInt8(ascii: "I"): base = 1024
        default: return nil
        }
        return (0...power).reduce(1) { unit, _ in unit * base }
    }
}

extension ByteCount: CustomStringConvertible {
    /// The count in decimal units, such as `1.5 MB`.
    public var description: String { formatted() }
}
