import VitrineCore

/// An HTTP URL, parsed strictly and normalized (RFC 3986; RFC 9110, section 4.2).
///
/// If two parsers read a URL differently, a check can pass for one host while the connection goes to another. Therefore
/// one parser serves the check, the connection and the request. It refuses ambiguous URLs: hosts that are numbers in
/// unusual notations, zones, backslashes, spaces, control characters, and ports beyond 65535.
package struct SourceURL: Sendable, Hashable {
    /// The host of a URL.
    package enum Host: Sendable, Hashable {
        /// A name in lowercase ASCII, without a final dot.
        case name(String)
        /// A literal IP address.
        case address(IPAddress)

        /// The literal address; 127.0.0.1 for `localhost` and names below it (RFC 6761, section 6.3); nil for other
        /// names.
        var literal: IPAddress? {
            switch self {
            case .address(let address): address
            case .name(let name): name == "localhost" || name.hasSuffix(".localhost") ? .v4(0x7F00_0001) : nil
            }
        }
    }

    /// `http` or `https`.
    package let scheme: String
    package let host: Host
    /// The port, which may be the default of the scheme.
    package let port: Int
    /// The text before the `@`, still encoded; nil if there is none.
    package let credentials: String?
    /// Path and query, at least `/`.
    package let target: String
    /// Scheme, host and port.
    package let origin: String
    /// The whole URL without credentials and fragment.
    package let text: String

    /// A digest of the whole URL, to store in its place.
    package var digest: String { Hexadecimal.text(SHA256Digest.digest(of: text)) }

    /// Whether the connection is encrypted.
    package var isSecure: Bool { scheme == "https" }

    /// Parses a URL.
    ///
    /// - Throws: ``NetworkError/invalidURL(url:reason:)``, or ``NetworkError/unsupportedScheme(url:scheme:)`` for
    ///   schemes other than `http` and `https`.
    package init(_ text: String) throws(NetworkError) {
        var text = text
        let result = text.withUTF8 { bytes in
            Result { () throws(SourceURLProblem) in try Self(reading: bytes) }
        }
        switch result {
        case .success(let url): self = url
        case .failure(.scheme(let scheme)):
            throw .unsupportedScheme(url: Self.withoutCredentials(text), scheme: scheme)
        case .failure(.malformed(let reason)):
            throw .invalidURL(url: Self.withoutCredentials(text), reason: reason)
        }
    }

    private init(reading bytes: UnsafeBufferPointer<UInt8>) throws(SourceURLProblem) {
        guard bytes.count <= Self.maximumLength else { throw .malformed("it is longer than 64 KiB") }
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C }) else {
            throw .malformed("it contains spaces, control characters, backslashes or letters outside ASCII")
        }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
            throw .malformed("it has no scheme")
        }
        let scheme = Self.lowercased(bytes[..<colon])
        guard scheme == "http" || scheme == "https" else { throw .scheme(scheme) }
        guard bytes.count > colon + 2, bytes[colon + 1] == 0x2F, bytes[colon + 2] == 0x2F else {
            throw .malformed("// must follow the scheme")
        }
        let start = colon + 3
        let end = bytes[start...].firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? bytes.count
        let authority = try SourceAuthority(bytes[start..<end])
        let fragment = bytes[end...].firstIndex(of: UInt8(ascii: "#")) ?? bytes.count
        let path = String(decoding: bytes[end..<fragment], as: UTF8.self)
        let standard = scheme == "https" ? 443 : 80
        self.scheme = scheme
        host = authority.host
        port = authority.port ?? standard
        credentials = authority.credentials
        target = path.utf8.first == UInt8(ascii: "/") ? path : "/" + path
        let prefix = scheme + "://" + host.text
        origin = port == standard ? prefix : prefix + ":" + String(port)
        self.text = origin + target
    }

    /// The limit of browsers.
    private static let maximumLength = 64 << 10

    static func lowercased(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        String(unsafeUninitializedCapacity: bytes.count) { target in
            var count = 0
            for byte in bytes {
                target[count] = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
                count += 1
            }
            return count
        }
    }

    /// Returns a text without anything that looks like a user name and password, for messages.
    package static func withoutCredentials(_ text: String) -> String {
        var text = text
        guard let found = text.withUTF8({ Self.findCredentials(in: $0) }) else { return text }
        return String(decoding: text.utf8.prefix(found.lowerBound), as: UTF8.self)
            + String(decoding: text.utf8.dropFirst(found.upperBound), as: UTF8.self)
    }

    /// Finds the text between `//` and the last `@` before path, query and fragment, including the `@`.
    private static func findCredentials(in bytes: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        guard let second = bytes.indices.dropFirst().first(where: { bytes[$0] == 0x2F && bytes[$0 - 1] == 0x2F })
        else { return nil }
        var end: Int?
        for index in (second + 1)..<bytes.count {
            switch bytes[index] {
            case 0x40: end = index + 1
            case 0x2F, 0x3F, 0x23, 0x5C: return end.map { second + 1..<$0 }
            default: break
            }
        }
        return end.map { second + 1..<$0 }
    }
}

/// The reason why a text is not an HTTP URL.
enum SourceURLProblem: Error {
    case scheme(String)
    case malformed(String)
}

extension SourceURL.Host {
    /// The host as a part of a URL, with IPv6 addresses in brackets.
    package var text: String {
        switch self {
        case .name(let name): name
        case .address(.v4(let value)): IPAddress.v4(value).description
        case .address(let address): "[" + address.description + "]"
        }
    }
}

extension SourceURL {
    /// Resolves a reference, such as the `Location` of a redirect, against this URL (RFC 3986, section 5.2).
    ///
    /// Spaces and letters outside ASCII in path and query are encoded first, as browsers do.
    ///
    /// - Throws: ``NetworkError/invalidURL(url:reason:)`` or ``NetworkError/unsupportedScheme(url:scheme:)``.
    package func resolve(_ reference: String) throws(NetworkError) -> SourceURL {
        let reference = PercentEncoding.encodeForbidden(String(reference.prefix { $0 != "#" }))
        if Self.hasScheme(reference) { return try SourceURL(reference) }
        if reference.hasPrefix("//") { return try SourceURL(scheme + ":" + reference) }
        let path = String(target.prefix { $0 != "?" })
        if reference.isEmpty { return try SourceURL(text) }
        if reference.hasPrefix("?") { return try SourceURL(origin + path + reference) }
        let query = reference.firstIndex(of: "?") ?? reference.endIndex
        var merged = String(reference[..<query])
        if !merged.hasPrefix("/") {
            let directory = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
            merged = directory + merged
        }
        return try SourceURL(origin + Self.withoutDots(merged) + reference[query...])
    }

    /// RFC 3986, section 3.1.
    private static func hasScheme(_ text: String) -> Bool {
        guard let first = text.utf8.first, (0x61...0x7A).contains(first | 0x20) else { return false }
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: ":"): return true
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): break
            default: return false
            }
        }
        return false
    }

    /// RFC 3986, section 5.2.4.
    private static func withoutDots(_ path: String) -> String {
        var segments: [Substring] = []
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            switch part {
            case ".": if isLast { segments.append("") }
            case "..":
                if segments.count > 1 { segments.removeLast() }
                if isLast { segments.append("") }
            default: segments.append(part)
            }
        }
        return segments.joined(separator: "/")
    }
}
