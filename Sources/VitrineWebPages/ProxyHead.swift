import VitrineNetwork

/// Why bytes that reached the proxy are not a request or a response that it passes on.
package enum ProxyHeadError: Error, Sendable, Hashable {
    /// The request line is not one that a browser sends to a proxy.
    case requestLine
    /// A line is not a header field.
    case field
    /// The size of the body is not stated as a single decimal number.
    case bodySize
    /// The answer does not begin with a status line.
    case statusLine
}

/// The head of a request that a browser sends to its proxy (RFC 9112, sections 3.2.2 and 3.2.3).
///
/// The reader is strict: anything a browser does not send is an error, so that no two programs on the way understand a
/// request differently.
package struct ProxyRequestHead: Sendable, Hashable {
    /// The most bytes of a head, with the empty line after it. Addresses of browsers have up to 2 MiB.
    package static let maximumBytes = 3 << 20
    static let maximumFields = 256
    /// Fields between a browser and its proxy (RFC 9110, section 7.6.1), and those written anew.
    private static let dropped: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "host",
        "expect",
    ]

    /// The request's method; `CONNECT` asks for a tunnel.
    package let method: String
    /// Scheme, host and port. A tunnel's scheme is `https`.
    package let site: SourceURL
    /// Path and query as they are sent to the server; empty for a tunnel.
    package let target: [UInt8]
    /// The header fields that are passed on, a line each, without line ends.
    package let fields: [[UInt8]]
    /// Bytes of the body that follow the head.
    package let bodySize: Int

    package var isTunnel: Bool { method == "CONNECT" }

    /// Reads a head.
    ///
    /// - Parameter bytes: Everything before the empty line that ends the head, without that line and the line end
    ///   before it.
    package init(parsing bytes: [UInt8]) throws(ProxyHeadError) {
        guard bytes.count <= Self.maximumBytes else { throw .requestLine }
        let lines = try Self.lines(bytes)
        let words = lines[0].split(separator: 0x20, omittingEmptySubsequences: false)
        guard words.count == 3, words[2].elementsEqual("HTTP/1.1".utf8), (1...32).contains(words[0].count),
            words[0].allSatisfy({ (0x41...0x5A).contains($0) || $0 == 0x2D }),
            words[1].allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw .requestLine }
        method = String(decoding: words[0], as: UTF8.self)
        if method == "CONNECT" {
            // Always host and port: neither scheme, user nor path (RFC 9110, section 9.3.6).
            guard words[1].last.map({ (0x30...0x39).contains($0) }) == true,
                !words[1].contains(where: { "/?#@".utf8.contains($0) }), words[1].contains(UInt8(ascii: ":"))
            else { throw .requestLine }
            site = try Self.site("https", words[1])
            target = []
        } else {
            let scheme = "http://".utf8
            guard words[1].starts(with: scheme) else { throw .requestLine }
            let rest = words[1].dropFirst(scheme.count)
            let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
            guard !words[1].contains(UInt8(ascii: "#")), !rest[..<end].contains(UInt8(ascii: "@")) else {
                throw .requestLine
            }
            site = try Self.site("http", rest[..<end])
            let path = Array(rest[end...])
            target = path.first == UInt8(ascii: "/") ? path : [UInt8(ascii: "/")] + path
        }
        (fields, bodySize) = try Self.fields(lines.dropFirst())
        guard !isTunnel || bodySize == 0 else { throw .bodySize }
    }

    /// The head as it is sent to the server, with the empty line.
    ///
    /// - Parameter proxy: Credentials of the proxy that it is sent to instead, as they stand in
    ///   `Proxy-Authorization`; nil when the server itself reads it.
    func bytes(toProxy proxy: UpstreamProxy?) -> [UInt8] {
        let authority = "\(site.host.text):\(site.port)"
        let host = isTunnel ? authority : String(site.origin.dropFirst(site.scheme.count + 3))
        var line = method + " "
        if isTunnel { line += authority } else if proxy != nil { line += site.origin }
        var result = Array(line.utf8) + target
        result += Array(" HTTP/1.1\r\nHost: \(host)\r\n".utf8)
        for field in fields { result += field + [0x0D, 0x0A] }
        if let authorization = proxy?.authorization {
            result += Array("Proxy-Authorization: \(authorization)\r\n".utf8)
        }
        if !isTunnel { result += Array("Connection: close\r\n".utf8) }
        return result + [0x0D, 0x0A]
    }

    private static func site(_ scheme: String, _ authority: some Sequence<UInt8>) throws(ProxyHeadError) -> SourceURL {
        guard let site = try? SourceURL(scheme + "://" + String(decoding: Array(authority), as: UTF8.self) + "/") else {
            throw .requestLine
        }
        return site
    }

    private static func lines(_ bytes: [UInt8]) throws(ProxyHeadError) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var start = 0
        for index in bytes.indices where bytes[index] == 0x0A {
            guard index > start, bytes[index - 1] == 0x0D else { throw .field }
            lines.append(bytes[start..<(index - 1)])
            guard lines.count <= maximumFields else { throw .field }
            start = index + 1
        }
        lines.append(bytes[start...])
        guard !lines.contains(where: { $0.contains { $0 == 0x0D || $0 == 0 } }) else { throw .field }
        return lines
    }

    private static func fields(
        _ lines: some Sequence<ArraySlice<UInt8>>
    ) throws(ProxyHeadError) -> (fields: [[UInt8]], bodySize: Int) {
        var fields: [[UInt8]] = []
        var bodySize: Int?
        for line in lines {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { throw .field }
            let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
            guard HTTPSyntax.isToken(name) else { throw .field }
            if name == "transfer-encoding" { throw .bodySize }
            if name == "content-length" {
                let digits = line[(colon + 1)...].drop { $0 == 0x20 }
                guard bodySize == nil, (1...15).contains(digits.count),
                    digits.allSatisfy({ (0x30...0x39).contains($0) })
                else { throw .bodySize }
                bodySize = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            }
            if !dropped.contains(name) { fields.append(Array(line)) }
        }
        return (fields, bodySize ?? 0)
    }
}

/// The head of a server's response, as far as a proxy must change it: each connection serves one request.
package enum ProxyResponseHead {
    /// The most bytes of a head, the limit of browsers.
    package static let maximumBytes = 256 << 10

    /// The number of bytes up to the end of the head; nil while it is incomplete. Lines may end without a carriage
    /// return (RFC 9112, section 2.2).
    package static func end(in bytes: [UInt8], from start: Int = 0) -> Int? {
        var index = max(0, start)
        while let newline = bytes[index...].firstIndex(of: 0x0A) {
            let next = newline + 1
            if next < bytes.count, bytes[next] == 0x0A { return next + 1 }
            if next + 1 < bytes.count, bytes[next] == 0x0D, bytes[next + 1] == 0x0A { return next + 2 }
            index = next
        }
        return nil
    }

    /// The head as the browser gets it: the fields that concern this connection say that it ends.
    ///
    /// - Parameter bytes: A complete head, with its empty line.
    /// - Returns: Whether another head follows, as after the status 100, and the new head.
    package static func rewritten(_ bytes: [UInt8]) throws(ProxyHeadError) -> (isInterim: Bool, bytes: [UInt8]) {
        let lines = bytes.split(separator: 0x0A)
        guard let first = lines.first, first.starts(with: "HTTP/1.".utf8), first.count >= 12,
            first[first.startIndex + 8] == 0x20
        else { throw .statusLine }
        let digits = first[(first.startIndex + 9)..<(first.startIndex + 12)]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { throw .statusLine }
        let status = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        // The proxy sends no Upgrade, so a server has no business with 101.
        guard status >= 100, status != 101 else { throw .statusLine }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 32)
        for line in lines {
            let line = line.last == 0x0D ? line.dropLast() : line
            guard !line.isEmpty, !isHopField(line) else { continue }
            result += line
            result += [0x0D, 0x0A]
        }
        let isInterim = status < 200
        if !isInterim { result += Array("Connection: close\r\n".utf8) }
        return (isInterim, result + [0x0D, 0x0A])
    }

    private static func isHopField(_ line: ArraySlice<UInt8>) -> Bool {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
        return ["connection", "keep-alive", "proxy-connection"].contains(name)
    }
}
