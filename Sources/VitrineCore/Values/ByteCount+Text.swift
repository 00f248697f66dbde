extension ByteCount {
    /// The units sizes are written in.
    public enum Units: Sendable {
        /// kB, MB, GB, TB, PB, EB: powers of 1000 (SI).
        case decimal
        /// KiB, MiB, GiB, TiB, PiB, EiB: powers of 1024 (IEC 80000-13).
        case binary
    }

    private static let prefixes = Array("KMGTPE".utf8)

    /// The count in the largest unit it reaches, with one decimal unless that is 0: `999 B`, `1.5 MB`, `2 GiB`.
    /// Rounded half up. The same in every locale.
    public func formatted(_ units: Units = .decimal) -> String {
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

    /// The count a text says: digits with at most one decimal point, spaces, and a unit.
    ///
    /// Units are `B`, `kB`, `MB` … (powers of 1000), `KiB`, `MiB` … (powers of 1024), in any case, without `B` too:
    /// `10 MB`, `1.5GiB`, `64k`, `4096`. Fractions of a byte are dropped.
    ///
    /// - Returns: nil for any other text, also a negative one, and for more than `Int.max` bytes.
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
                    // Six decimals are enough for anyone; the others are dropped.
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
    /// ``formatted(_:)`` in decimal units.
    public var description: String { formatted() }
}
