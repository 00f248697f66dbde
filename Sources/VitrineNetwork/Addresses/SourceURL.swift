/// The address of something on a server, read strictly and written in one way only (RFC 3986; RFC 9110, section 4.2).
///
/// Two programs that read an address differently are how a check is passed with one host and a connection made to
/// another. So there is one reader: what it understood is what is checked, connected to, and sent. It refuses what
/// others guess at: hosts that are numbers in unusual notations, zones, backslashes, spaces, control characters, ports
/// beyond 65535, percent signs in names.
package struct SourceURL: Sendable, Hashable {
    /// Who is asked.
    package enum Host: Sendable, Hashable {
        /// A name, in ASCII and small letters, without a final dot.
        case name(String)
        /// An address written as such.
        case address(IPAddress)

        /// The address that the text alone names, which for `localhost` and all in it is this machine's (RFC 6761,
        /// section 6.3); nil for other names.
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
    /// The port, also where it is the scheme's own.
    package let port: Int
    /// What stood before the `@`, as it stood; nil if nothing did.
    package let credentials: String?
    /// Path and query, which are what a server is told: at least `/`.
    package let target: String
    /// Scheme, host and port: what makes two addresses the same site.
    package let origin: String
    /// The whole address without credentials and fragment.
    package let text: String

    /// Whether the connection is encrypted.
    package var isSecure: Bool { scheme == "https" }

    /// Reads an address.
    ///
    /// - Throws: ``NetworkError/invalidURL(url:reason:)``, or ``NetworkError/unsupportedScheme(url:scheme:)`` for other
    ///   schemes than HTTP's.
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
            throw .malformed("it holds spaces, control characters, backslashes or letters outside ASCII")
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

    /// As long as the longest addresses browsers take to servers.
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

    /// Any text without what looks like a name and password in it, for messages.
    package static func withoutCredentials(_ text: String) -> String {
        var text = text
        guard let found = text.withUTF8({ Self.findCredentials(in: $0) }) else { return text }
        return String(decoding: text.utf8.prefix(found.lowerBound), as: UTF8.self)
            + String(decoding: text.utf8.dropFirst(found.upperBound), as: UTF8.self)
    }

    /// What lies between `//` and the last `@` before path, query and fragment, with that.
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

/// What is wrong with a text that should be an address.
enum SourceURLProblem: Error {
    case scheme(String)
    case malformed(String)
}

extension SourceURL.Host {
    /// As it stands in an address: IPv6 addresses in brackets.
    package var text: String {
        switch self {
        case .name(let name): name
        case .address(.v4(let value)): IPAddress.v4(value).description
        case .address(let address): "[" + address.description + "]"
        }
    }
}
