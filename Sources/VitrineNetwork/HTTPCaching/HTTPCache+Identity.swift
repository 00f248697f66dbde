#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension HTTPCache {
    /// The text under which responses to a URL are stored (RFC 9111 section 2): the URL without its fragment, with
    /// scheme and host in small letters and without a port that goes without saying.
    public static func identity(of url: URL) -> String {
        let text = url.absoluteString
        if isNormal(text) { return text }
        guard var parts = URLComponents(url: url.absoluteURL, resolvingAgainstBaseURL: true) else {
            return url.absoluteString
        }
        parts.fragment = nil
        parts.scheme = parts.scheme?.lowercased()
        parts.host = parts.host?.lowercased()
        if let port = parts.port, port == defaultPort(parts.scheme) { parts.port = nil }
        if parts.percentEncodedPath.isEmpty, parts.host != nil { parts.percentEncodedPath = "/" }
        return parts.string ?? url.absoluteString
    }

    /// Whether a URL certainly is its own identity: taking one apart costs more than everything else a hit needs.
    private static func isNormal(_ text: String) -> Bool {
        let rest = text.utf8.drop { $0 != UInt8(ascii: ":") }
        guard text.hasPrefix("http://") || text.hasPrefix("https://") else { return false }
        // Behind the scheme: a name in small letters without a port or anything that could be escaped, and a path.
        var isHost = true
        for byte in rest.dropFirst(3) {
            switch byte {
            case UInt8(ascii: "/") where isHost: isHost = false
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
                UInt8(ascii: "-"):
                break
            case UInt8(ascii: "#"): return false
            case _ where isHost: return false
            default: break
            }
        }
        return !isHost
    }

    /// The URL that a field names, if scheme, host and port are those of another (RFC 9111 section 4.4).
    static func sameOrigin(_ reference: String, as url: URL) -> URL? {
        guard reference.utf8.count <= 8192 else { return nil }
        // An empty reference is the URL itself (RFC 3986 section 4.4).
        let resolved = reference.isEmpty ? url : URL(string: reference, relativeTo: url)?.absoluteURL
        guard let resolved, resolved.scheme?.lowercased() == url.scheme?.lowercased(),
            resolved.host()?.lowercased() == url.host()?.lowercased(),
            resolved.port ?? defaultPort(resolved.scheme) == url.port ?? defaultPort(url.scheme)
        else { return nil }
        return resolved
    }

    private static func defaultPort(_ scheme: String?) -> Int? {
        switch scheme?.lowercased() {
        case "http": 80
        case "https": 443
        default: nil
        }
    }
}
