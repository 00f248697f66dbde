/// What fields and methods may look like (RFC 9110, sections 5 and 9).
package enum HTTPSyntax {
    /// Whether a text is a token (RFC 9110, section 5.6.2): what names of fields and methods are.
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: "!#$%&'*+.^`|~".utf8.contains(byte)
                }
            }
    }

    /// Whether a text can be the value of a field: one line, without control characters besides tabs, and without
    /// white space at its ends (RFC 9110, section 5.5).
    package static func isFieldValue(_ text: String) -> Bool {
        let bytes = text.utf8
        if let first = bytes.first, let last = bytes.last, isBlank(first) || isBlank(last) { return false }
        return bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }

    /// The fields of requests that describe the connection or the body as it is sent (RFC 9110, sections 7.6, 7.8, 8.6
    /// and 10.1, RFC 9112, section 6.1), in small letters. Loaders write them.
    package static let transportFields: Set<String> = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "upgrade",
        "http2-settings", "te", "trailer", "expect",
    ]

    /// Fields that choose a part of a response, or a condition for it, in small letters.
    package static let conditionFields: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range",
    ]

    /// - Throws: ``NetworkError/invalidRequest(url:reason:)`` if a request has a field that only its loader may write.
    static func checkFields(of request: HTTPRequest, at url: String) throws(NetworkError) {
        for field in request.headers {
            let name = field.name.lowercased()
            if transportFields.contains(name) {
                throw .invalidRequest(url: url, reason: "the loader writes the field \(field.name) itself")
            }
            if request.range != nil, name == "range" || name == "if-range" {
                throw .invalidRequest(url: url, reason: "it has a range and the field \(field.name)")
            }
        }
    }

    package static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Whether sending a request twice does no more than sending it once (RFC 9110, section 9.2.2).
    package static func isIdempotent(_ method: String) -> Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
        default: false
        }
    }
}
