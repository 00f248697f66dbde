import Foundation
import HTTPTypes
import Hummingbird
import VitrineImaging

/// Allows the gallery to programs on this machine, and to clients with the token.
struct GalleryAccess: Sendable {
    /// Empty for none.
    let token: String

    static let cookieName = "vitrine_gallery"

    enum Decision: Sendable { case allowed, tokenNeeded, refused }

    func decision(for request: Request, client: ClientAddress?) -> Decision {
        if Self.isFromThisMachine(request, client) || isToken(Self.cookie(of: request))
            || isToken(Self.bearer(of: request))
        {
            return .allowed
        }
        return token.isEmpty ? .refused : .tokenNeeded
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
    /// A proxy on this machine is no such program, and neither is a page of another host whose name leads here.
    private static func isFromThisMachine(_ request: Request, _ client: ClientAddress?) -> Bool {
        guard let client, client.isLoopback, LocalHost.isNamed(by: request) else { return false }
        return proxyFields.allSatisfy { !request.headers.contains($0) }
    }

    private static let proxyFields = ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"]
        .compactMap { HTTPField.Name($0) }

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
    /// Whether the request names this machine or an address. A page of another host cannot do that: browsers send the
    /// name of the page's host, even if it leads to this machine.
    static func isNamed(by request: Request) -> Bool {
        guard let authority = request.head.authority else { return false }
        return isLocal(authority)
    }

    /// Whether a page of the request's own host sends it, or no page.
    static func isSameOrigin(_ request: Request) -> Bool {
        guard let origin = request.headers[.origin] else { return true }
        guard isNamed(by: request), let authority = request.head.authority else {
            return false
        }
        return origin == "http://" + authority || origin == "https://" + authority
    }

    private static func isLocal(_ authority: String) -> Bool {
        var host = authority[...]
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
            host = host[host.index(after: host.startIndex)..<end]
        } else if let colon = host.lastIndex(of: ":") {
            host = host[..<colon]
        }
        return host.lowercased() == "localhost" || ClientAddress(host) != nil
    }
}

extension ClientAddress {
    /// Whether it is 127.0.0.0/8 or ::1.
    var isLoopback: Bool { isIPv4 ? low >> 24 & 0xFF == 127 : high == 0 && low == 1 && !isUnix }
}
