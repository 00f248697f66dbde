#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// What kind of place a URL names.
enum Resource: Sendable {
    case http, file, inline, registered

    init(_ url: URL) {
        switch url.scheme?.lowercased() {
        case "http", "https": self = .http
        case "file": self = .file
        case "data": self = .inline
        default: self = .registered
        }
    }

    /// Whether it is at hand: not worth a copy.
    var isLocal: Bool { self == .file || self == .inline }

    // MARK: Keys

    /// Fields that ask for the same resource in other words, in small letters.
    private static let silentFields: Set<String> = [
        "cache-control", "pragma", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
        "range", "accept-encoding",
    ]
    /// Longer identities are kept as a digest: keys have a limit, and `data:` URLs none.
    private static let longestIdentity = 2048

    /// What a request's resource is known by. Nothing of it is a secret: names, passwords and fields are digested.
    static func key(of request: HTTPRequest, _ identity: (@Sendable (URL) -> String?)?) -> CacheKey {
        let text = identity?(request.url) ?? HTTPCache.identity(of: request.url)
        let bare = SourceURL.withoutCredentials(text)
        let name = bare.utf8.count <= longestIdentity ? bare : digest(bare)
        let differences = differences(request, hasCredentials: bare.utf8.count != text.utf8.count ? text : nil)
        return differences.isEmpty ? CacheKey(name) : CacheKey(name, digest(differences.joined(separator: "\n")))
    }

    /// What makes a request's resource another than the URL's.
    private static func differences(_ request: HTTPRequest, hasCredentials: String?) -> [String] {
        var differences: [String] = []
        if let hasCredentials { differences.append(hasCredentials) }
        if request.method != "GET" { differences.append(request.method) }
        if let body = request.body { differences.append(Hexadecimal.text(SHA256Digest.digest(of: body))) }
        if let range = request.range { differences.append("\(range.lowerBound)-\(range.upperBound ?? -1)") }
        let fields = request.headers.map { ($0.name.lowercased(), $0.value) }
            .filter { !silentFields.contains($0.0) }
        return differences + fields.map { $0.0 + ":" + $0.1 }.sorted()
    }

    private static func digest(_ text: String) -> String {
        "sha256:" + Hexadecimal.text(SHA256Digest.digest(of: text))
    }
}
