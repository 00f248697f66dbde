/// The authority of a URL: credentials, host and port.
struct SourceAuthority {
    let credentials: String?
    let host: SourceURL.Host
    let port: Int?

    init(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(SourceURLProblem) {
        var rest = bytes
        if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
            guard !bytes[..<at].contains(UInt8(ascii: "@")) else { throw .malformed("it has more than one @") }
            credentials = String(decoding: bytes[..<at], as: UTF8.self)
            rest = bytes[(at + 1)...]
        } else {
            credentials = nil
        }
        let hostEnd: Int
        if rest.first == UInt8(ascii: "[") {
            guard let bracket = rest.firstIndex(of: UInt8(ascii: "]")) else {
                throw .malformed("a bracket is not closed")
            }
            host = .address(try Self.bracketed(rest[(rest.startIndex + 1)..<bracket]))
            hostEnd = bracket + 1
        } else {
            hostEnd = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
            host = try Self.host(rest[..<hostEnd])
        }
        port = try Self.port(rest[hostEnd...])
    }

    private static func bracketed(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(SourceURLProblem) -> IPAddress {
        guard !bytes.contains(UInt8(ascii: "%")) else {
            throw .malformed("addresses with a zone are not supported")
        }
        guard bytes.contains(UInt8(ascii: ":")), let address = IPAddress(String(decoding: bytes, as: UTF8.self)) else {
            throw .malformed("the text in brackets is not an IPv6 address")
        }
        return address
    }

    /// Parses a name or an IPv4 address in its usual notation.
    ///
    /// Hosts that end in a number are addresses to some programs (WHATWG URL, "ends in a number"): `127.1`, `0x7f.1`,
    /// `017700000001` and `2130706433` mean 127.0.0.1. Only four decimal numbers are accepted.
    static func host(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(SourceURLProblem) -> SourceURL.Host {
        var bytes = bytes
        if bytes.contains(UInt8(ascii: "%")) {
            return .name(try InternationalHost.ascii(percentEncoded: bytes))
        }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        guard !bytes.isEmpty else { throw .malformed("it has no host") }
        guard bytes.count <= 253 else { throw .malformed("the host name is longer than 253 bytes") }
        let text = SourceURL.lowercased(bytes)
        if endsInNumber(bytes) {
            guard let address = IPAddress(text) else {
                throw .malformed("the host is a number in an unusual notation")
            }
            return .address(address)
        }
        try checkLabels(bytes)
        return .name(text)
    }

    private static func endsInNumber(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let start = bytes.lastIndex(of: UInt8(ascii: ".")).map { $0 + 1 } ?? bytes.startIndex
        let label = bytes[start...]
        if !label.isEmpty, label.allSatisfy({ (0x30...0x39).contains($0) }) { return true }
        guard label.count >= 2, label.first == 0x30, label[label.startIndex + 1] | 0x20 == UInt8(ascii: "x") else {
            return false
        }
        return label.dropFirst(2).allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
    }

    /// Checks that labels consist of letters, digits, `-` and `_` (RFC 1123, section 2.1; underscores occur in
    /// practice).
    private static func checkLabels(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(SourceURLProblem) {
        var length = 0
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "."):
                guard length > 0 else { throw .malformed("a label of the host name is empty") }
                length = -1
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): break
            default: throw .malformed("the host name contains invalid characters")
            }
            length += 1
            guard length <= 63 else { throw .malformed("a label of the host name is longer than 63 bytes") }
        }
        guard length > 0 else { throw .malformed("a label of the host name is empty") }
    }

    private static func port(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(SourceURLProblem) -> Int? {
        guard let colon = bytes.first else { return nil }
        guard colon == UInt8(ascii: ":") else { throw .malformed("there are characters between host and port") }
        let digits = bytes.dropFirst()
        // An empty port is the scheme's own (RFC 3986, section 3.2.3).
        guard !digits.isEmpty else { return nil }
        guard digits.count <= 5, digits.first != 0x30, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .malformed("the port is not a number from 1 to 65535")
        }
        let value = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        guard value <= 65535 else { throw .malformed("the port is not a number from 1 to 65535") }
        return value
    }
}
