extension JSON {
    /// A number, in the narrowest form that says exactly what was written.
    public enum Number: Sendable, Hashable {
        /// Written without a point or an exponent, from -2⁶³ to 2⁶³-1.
        case integer(Int64)
        /// Written without a point or an exponent, from 2⁶³ to 2⁶⁴-1.
        case unsigned(UInt64)
        /// Written with a point or an exponent, and a finite double whose shortest text has the same value.
        case double(Double)
        /// Any other number, as it was written: more digits or larger than the other forms hold.
        case decimal(String)

        /// The value if it is a whole number of 64 bits with a sign.
        public var int64: Int64? {
            switch self {
            case .integer(let value): value
            case .unsigned: nil
            case .double(let value): Int64(exactly: value)
            case .decimal: nil
            }
        }

        /// The value if it is a whole number of 64 bits without a sign.
        public var uint64: UInt64? {
            switch self {
            case .integer(let value): UInt64(exactly: value)
            case .unsigned(let value): value
            case .double(let value): UInt64(exactly: value)
            case .decimal: nil
            }
        }

        /// The nearest double; nil for a number beyond its range.
        public var double: Double? {
            switch self {
            case .integer(let value): return Double(value)
            case .unsigned(let value): return Double(value)
            case .double(let value): return value
            case .decimal(let text):
                guard let value = Double(text), value.isFinite else { return nil }
                return value
            }
        }

        /// The number as JSON writes it. Not finite doubles, which no text gives, are null.
        public var text: String {
            switch self {
            case .integer(let value): String(value)
            case .unsigned(let value): String(value)
            case .double(let value): value.isFinite ? value.description : "null"
            case .decimal(let text): text
            }
        }

        /// The number a literal says, whose syntax has been checked.
        init(literal: String) {
            if let value = Int64(literal), value != 0 || literal == "0" {
                self = .integer(value)
            } else if literal.utf8.first != UInt8(ascii: "-"), let value = UInt64(literal) {
                self = .unsigned(value)
            } else if let value = Double(literal), value.isFinite,
                Self.digits(literal) == Self.digits(value.description)
            {
                self = .double(value)
            } else {
                self = .decimal(literal)
            }
        }

        /// Sign, significant digits and power of ten of the last digit: equal for equal values.
        private static func digits(_ literal: String) -> [Int] {
            var digits: [Int] = []
            var power = 0, exponent = 0, exponentSign = 1
            var isNegative = false, isFraction = false, isExponent = false
            for byte in literal.utf8 {
                switch byte {
                case UInt8(ascii: "-") where isExponent: exponentSign = -1
                case UInt8(ascii: "-"): isNegative = true
                case UInt8(ascii: "."): isFraction = true
                case UInt8(ascii: "e"), UInt8(ascii: "E"): isExponent = true
                case 0x30...0x39 where isExponent:
                    // Beyond any double; more digits change nothing but could overflow.
                    if exponent < 1_000_000 { exponent = exponent * 10 + Int(byte - 0x30) }
                case 0x30...0x39:
                    digits.append(Int(byte - 0x30))
                    if isFraction { power -= 1 }
                default: break
                }
            }
            power += exponent * exponentSign
            while digits.last == 0 {
                digits.removeLast()
                power += 1
            }
            let first = digits.firstIndex { $0 != 0 } ?? digits.count
            digits.removeFirst(first)
            return [isNegative ? 1 : 0, digits.isEmpty ? 0 : power] + digits
        }
    }
}
