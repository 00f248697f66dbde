import Foundation
import HTTPTypes
import Hummingbird
import VitrineImaging

/// Allows the gallery to clients with the token or, without a token, to programs on this machine.
struct GalleryAccess: Sendable {
    /// Empty for none.
    let token: String
    /// The proxies in front of the server, none of which is a program that looks at images.
    let proxies: ClientLocator

    static let cookieName = "vitrine_gallery"

    enum Decision: Sendable { case allowed, tokenNeeded, refused }

    /// - Parameter peer: The other end of the connection.
    func decision(for request: Request, peer: ClientAddress?) -> Decision {
        guard token.isEmpty else {
            return isToken(Self.cookie(of: request)) || isToken(Self.bearer(of: request)) ? .allowed : .tokenNeeded
        }
        return isFromThisMachine(request, peer) ? .allowed : .refused
    }

    /// Compares in a time that does not depend on the text.
    func isToken(_ text: String?) -> Bool {
        guard let text, !token.isEmpty else { return false }
        let (given, expected) = (Array(text.utf8), Array(token.utf8))
        var difference = UInt8(given.count == expected.count ? 0 : 1)
        for (index, byte) in expected.enumerated() { difference |= byte ^ (index < given.count ? given[index] : 0) }
        return difference == 0
    }

    /// Whether a program on this machine asks for a name of this machine.
    ///
    /// A proxy on this machine is no such program, and neither is a page of another host whose name leads here. There
    /// are more fields of proxies than a list can have. Those of browsers are few: a request with any other field counts
    /// as one that came through a proxy.
    private func isFromThisMachine(_ request: Request, _ peer: ClientAddress?) -> Bool {
        guard let peer, peer.isLoopback, !proxies.isTrusted(peer), LocalHost.isThisMachine(request) else {
            return false
        }
        return request.headers.allSatisfy { field in
            let name = field.name.canonicalName
            return Self.fieldsOfClients.contains(name) || name.hasPrefix("sec-") || name.hasPrefix("accept-")
        }
    }

    /// The fields that browsers and command-line clients send by themselves, besides `Sec-…` and `Accept-…`.
    private static let fieldsOfClients: Set<String> = [
        "accept", "authorization", "cache-control", "connection", "content-length", "content-type", "cookie", "dnt",
        "downlink", "dpr", "device-memory", "ect", "if-match", "if-modified-since", "if-none-match", "if-range",
        "if-unmodified-since", "keep-alive", "last-event-id", "origin", "pragma", "priority", "range", "referer", "rtt",
        "save-data", "te", "traceparent", "tracestate", "upgrade-insecure-requests", "user-agent", "viewport-width",
        "width",
    ]

    private static func cookie(of request: Request) -> String? {
        for field in request.headers[values: .cookie] {
            for part in field.split(separator: ";") {
                let pair = part.trimmingCharacters(in: .whitespaces)
                guard pair.hasPrefix(cookieName + "=") else { continue }
                return String(pair.dropFirst(cookieName.count + 1)).removingPercentEncoding
            }
        }
        return nil
    }

    private static func bearer(of request: Request) -> String? {
        guard let field = request.headers[.authorization], field.lowercased().hasPrefix("bearer ") else { return nil }
        return field.dropFirst(7).trimmingCharacters(in: .whitespaces)
    }
}

/// The names by which programs on a machine ask for the machine itself.
enum LocalHost {
    /// Whether the request names this machine itself: by `localhost`, or by an address of its own loopback.
    static func isThisMachine(_ request: Request) -> Bool {
        guard let authority = request.head.authority else { return false }
        let host = host(of: authority)
        return host.lowercased() == "localhost" || ClientAddress(host)?.isLoopback == true
    }

    /// Whether a request to the operator's address names an address, this machine, or a host of the configuration.
    ///
    /// Only clients that are no browsers name no host, and no page reaches a Unix socket.
    static func isOperators(_ request: Request, hosts: [String], peer: ClientAddress?) -> Bool {
        guard let authority = request.head.authority, peer?.isUnix != true else { return true }
        let name = host(of: authority).lowercased()
        return isLocal(authority) || hosts.contains { $0.lowercased() == name }
    }

    /// Whether a page of the request's own host sends it, or no page.
    static func isSameOrigin(_ request: Request, hosts: [String]) -> Bool {
        guard let origin = request.headers[.origin] else { return true }
        guard let authority = request.head.authority, isOperators(request, hosts: hosts, peer: nil) else {
            return false
        }
        return origin == "http://" + authority || origin == "https://" + authority
    }

    private static func isLocal(_ authority: String) -> Bool {
        let host = host(of: authority)
        return host.lowercased() == "localhost" || ClientAddress(host) != nil
    }

    /// The host of `host:port` or `[address]:port`.
    private static func host(of authority: String) -> Substring {
        if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
            return authority[authority.index(after: authority.startIndex)..<end]
        }
        return authority.lastIndex(of: ":").map { authority[..<$0] } ?? authority[...]
    }
}

extension ClientAddress {
    /// Whether it is 127.0.0.0/8 or ::1.
    var isLoopback: Bool { isIPv4 ? low >> 24 & 0xFF == 127 : high == 0 && low == 1 && !isUnix }
}
