/// The syntax of header fields and methods (RFC 9110, sections 5 and 9).
package enum HTTPSyntax {
    /// Returns whether a text is a token, as names of fields and methods are (RFC 9110, section 5.6.2).
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: "!#$%&'*+.^`|~".utf8.contains(byte)
                }
            }
    }

    /// Returns whether a text is a valid field value: one line without control characters except tabs, and without
    /// surrounding white space (RFC 9110, section 5.5).
    package static func isFieldValue(_ text: String) -> Bool {
        let bytes = text.utf8
        if let first = bytes.first, let last = bytes.last, isBlank(first) || isBlank(last) { return false }
        return bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }

    /// The request fields that describe the connection or the encoded body, in lowercase (RFC 9110, sections 7.6, 7.8,
    /// 8.6 and 10.1, RFC 9112, section 6.1). Transports write them.
    package static let transportFields: Set<String> = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade",
        "http2-settings", "te", "trailer", "expect",
    ]

    /// The fields of ranges and conditions, in lowercase.
    package static let conditionFields: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range",
    ]

    /// Checks the fields of a request.
    ///
    /// - Throws: ``NetworkError/invalidRequest(url:reason:)`` if the request has a field that only the transport may
    ///   write.
    static func checkFields(of request: HTTPRequest, at url: String) throws(NetworkError) {
        try checkRange(of: request, at: url)
        for field in request.headers.fields {
            let name = field.name.lowercased()
            if transportFields.contains(name) {
                throw .invalidRequest(url: url, reason: "the transport writes the field \(field.name) itself")
            }
            if request.range != nil, name == "range" || name == "if-range" {
                throw .invalidRequest(url: url, reason: "it has a range and the field \(field.name)")
            }
        }
    }

    /// Checks the range of a request.
    ///
    /// - Throws: ``NetworkError/invalidRequest(url:reason:)`` for an empty or negative range.
    static func checkRange(of request: HTTPRequest, at url: @autoclosure () -> String) throws(NetworkError) {
        guard let range = request.range, range.isEmpty || range.lowerBound < 0 else { return }
        throw .invalidRequest(url: url(), reason: "its range is empty or negative")
    }

    package static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Returns whether a request with this method may be sent twice (RFC 9110, section 9.2.2).
    package static func isIdempotent(_ method: String) -> Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
        default: false
        }
    }
}

extension UInt8 {
    /// The byte with `A` to `Z` in lowercase.
    var asciiLowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }

    /// The value of the byte as a decimal digit.
    var decimalDigit: UInt8? { (0x30...0x39).contains(self) ? self &- 0x30 : nil }

    /// Whether the byte is white space of header fields: space or tab (RFC 9110, section 5.6.3).
    var isHTTPWhitespace: Bool { self == 0x20 || self == 0x09 }

    /// Whether the byte may occur in a token (RFC 9110, section 5.6.2).
    var isHTTPToken: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
        default: false
        }
    }
}

/// Parses header fields with comma-separated lists (RFC 9110, section 5.6.1).
enum HTTPList {
    /// Returns the elements of a line without surrounding white space and without empty ones.
    ///
    /// Commas in quoted strings do not separate elements. A quote without an end is an ordinary byte, so that it cannot
    /// hide the elements after it.
    static func elements(_ line: String) -> [ArraySlice<UInt8>] {
        let bytes = Array(line.utf8)
        var elements: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        // Search for a missing end only once, or a line of quotes would take quadratic time.
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

    /// Returns the bytes without surrounding white space.
    static func trim(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let first = bytes.firstIndex(where: { !$0.isHTTPWhitespace }),
            let last = bytes.lastIndex(where: { !$0.isHTTPWhitespace })
        else { return [] }
        return bytes[first...last]
    }

    /// Returns an argument without quotes and backslashes.
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

    /// Parses a number of digits only; nil if it overflows.
    static func number(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard !bytes.isEmpty, bytes.allSatisfy({ $0.decimalDigit != nil }) else { return nil }
        return Int(String(decoding: bytes, as: UTF8.self))
    }

    /// Returns a text in lowercase.
    static func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Returns the names that several lines list, in lowercase.
    static func names(_ lines: [String]) -> [String] {
        lines.flatMap { elements($0).map(lowercased) }
    }
}
