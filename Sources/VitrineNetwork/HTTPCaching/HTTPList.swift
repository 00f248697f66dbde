/// Taking header fields apart that hold comma-separated lists (RFC 9110 section 5.6.1).
enum HTTPList {
    /// The elements of a line without the white space around them and without empty ones; commas inside of quoted
    /// strings separate nothing. A quote that never ends is an ordinary byte, so that it cannot hide what follows.
    static func elements(_ line: String) -> [ArraySlice<UInt8>] {
        let bytes = Array(line.utf8)
        var elements: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        // A search for the end fails once at most: more of them would make a line of quotes cost its length squared.
        var quotesEnd = true
        while index < bytes.count {
            if bytes[index] == 0x2C {
                append(bytes[start..<index], to: &elements)
                start = index + 1
            } else if bytes[index] == 0x22, quotesEnd {
                if let end = closingQuote(bytes, after: index) { index = end } else { quotesEnd = false }
            }
            index += 1
        }
        append(bytes[start...], to: &elements)
        return elements
    }

    private static func closingQuote(_ bytes: [UInt8], after start: Int) -> Int? {
        var index = start + 1
        while index < bytes.count {
            if bytes[index] == 0x22 { return index }
            index += bytes[index] == 0x5C ? 2 : 1
        }
        return nil
    }

    private static func append(_ bytes: ArraySlice<UInt8>, to elements: inout [ArraySlice<UInt8>]) {
        let trimmed = trim(bytes)
        if !trimmed.isEmpty { elements.append(trimmed) }
    }

    /// Without the white space at both ends.
    static func trim(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let first = bytes.firstIndex(where: { !$0.isHTTPWhitespace }),
            let last = bytes.lastIndex(where: { !$0.isHTTPWhitespace })
        else { return [] }
        return bytes[first...last]
    }

    /// An argument without its quotes and backslashes, if it has any.
    static func unquoted(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22 else { return bytes }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var isEscaped = false
        for byte in bytes.dropFirst().dropLast() {
            if byte == 0x5C, !isEscaped {
                isEscaped = true
            } else {
                result.append(byte)
                isEscaped = false
            }
        }
        return result[...]
    }

    /// A number of digits only; nil when it is more than fits.
    static func number(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard !bytes.isEmpty, bytes.allSatisfy({ $0.decimalDigit != nil }) else { return nil }
        return Int(String(decoding: bytes, as: UTF8.self))
    }

    /// A text in small letters.
    static func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.map(\.asciiLowercased), as: UTF8.self)
    }

    /// The names of fields that several lines list, in small letters.
    static func names(_ lines: [String]) -> [String] {
        lines.flatMap { elements($0).map(lowercased) }
    }
}
