/// A number, a truth value or a date as nine bytes: what it is, and its 64 bits, little endian.
///
/// The first byte lets one kind of number be read as another when its value is the same in both.
enum Scalar: Equatable {
    case signed(Int64)
    case unsigned(UInt64)
    case double(Double)
    case bool(Bool)
    /// Seconds since 2001-01-01 00:00 UTC.
    case date(Double)

    init?(_ bytes: [UInt8]) {
        guard bytes.count == 9 else { return nil }
        let word = bytes[1...].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        switch bytes[0] {
        case UInt8(ascii: "i"): self = .signed(Int64(bitPattern: word))
        case UInt8(ascii: "u"): self = .unsigned(word)
        case UInt8(ascii: "d"): self = .double(Double(bitPattern: word))
        case UInt8(ascii: "b") where word <= 1: self = .bool(word == 1)
        case UInt8(ascii: "t"): self = .date(Double(bitPattern: word))
        default: return nil
        }
    }

    var bytes: [UInt8] {
        let (tag, word): (UInt8, UInt64) =
            switch self {
            case .signed(let value): (UInt8(ascii: "i"), UInt64(bitPattern: value))
            case .unsigned(let value): (UInt8(ascii: "u"), value)
            case .double(let value): (UInt8(ascii: "d"), value.bitPattern)
            case .bool(let value): (UInt8(ascii: "b"), value ? 1 : 0)
            case .date(let value): (UInt8(ascii: "t"), value.bitPattern)
            }
        return [tag] + (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }

    /// The value as an integer; nil unless it is exactly that.
    func integer<Number: FixedWidthInteger>() -> Number? {
        switch self {
        case .signed(let value): Number(exactly: value)
        case .unsigned(let value): Number(exactly: value)
        case .double(let value): Number(exactly: value)
        case .bool(let value): value ? 1 : 0
        case .date: nil
        }
    }

    /// The value as a double; nil unless it is exactly that.
    var double: Double? {
        switch self {
        case .signed(let value): Double(exactly: value)
        case .unsigned(let value): Double(exactly: value)
        case .double(let value): value
        case .bool(let value): value ? 1 : 0
        case .date: nil
        }
    }
}
