/// Reads the items of structured fields (RFC 8941), as far as caching directives have them.
struct StructuredReader {
    enum Item {
        case flag(Bool)
        /// The digits, without a sign.
        case integer(ArraySlice<UInt8>)
        case text(ArraySlice<UInt8>)
        /// A valid item that no directive has: a token, a negative or a decimal number.
        case other
    }

    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }
    private var current: UInt8? { isAtEnd ? nil : bytes[position] }

    mutating func accept(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    mutating func skipSpaces() { while accept(0x20) {} }
    mutating func skipOptionalSpace() { while let byte = current, byte.isHTTPWhitespace { position += 1 } }

    /// A name in small letters.
    mutating func key() -> String? {
        let start = position
        guard let first = current, (0x61...0x7A).contains(first) || first == 0x2A else { return nil }
        while let byte = current {
            switch byte {
            case 0x61...0x7A, 0x30...0x39, 0x5F, 0x2D, 0x2E, 0x2A: position += 1
            default: return String(decoding: bytes[start..<position], as: UTF8.self)
            }
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    mutating func item() -> Item? {
        switch current {
        case 0x3F: flag()
        case 0x22: text()
        case .some(let byte) where byte.decimalDigit != nil || byte == 0x2D: number()
        case .some(let byte) where (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || byte == 0x2A: token()
        default: nil
        }
    }

    /// Steps over the parameters of an item; directives have none that mean anything.
    mutating func skipParameters() -> Bool {
        while accept(0x3B) {
            skipSpaces()
            guard key() != nil else { return false }
            if accept(0x3D), item() == nil { return false }
        }
        return true
    }

    private mutating func flag() -> Item? {
        position += 1
        if accept(0x31) { return .flag(true) }
        return accept(0x30) ? .flag(false) : nil
    }

    private mutating func number() -> Item? {
        let isNegative = accept(0x2D)
        let start = position
        while current?.decimalDigit != nil { position += 1 }
        let digits = bytes[start..<position]
        guard (1...15).contains(digits.count) else { return nil }
        guard accept(0x2E) else { return isNegative ? .other : .integer(digits) }
        let fraction = position
        while current?.decimalDigit != nil { position += 1 }
        return (1...3).contains(position - fraction) ? .other : nil
    }

    private mutating func text() -> Item? {
        position += 1
        var result: [UInt8] = []
        while let byte = current {
            position += 1
            switch byte {
            case 0x22: return .text(result[...])
            case 0x5C:
                guard let escaped = current, escaped == 0x22 || escaped == 0x5C else { return nil }
                result.append(escaped)
                position += 1
            case 0x20...0x7E: result.append(byte)
            default: return nil
            }
        }
        return nil
    }

    private mutating func token() -> Item? {
        while let byte = current, byte.isHTTPToken || byte == 0x3A || byte == 0x2F { position += 1 }
        return .other
    }
}
