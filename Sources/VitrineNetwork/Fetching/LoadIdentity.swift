#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// The identity of a load: everything that can change its answer.
///
/// All keys of this module are made here, those of values in memory and on disk, of running transfers and of part
/// files. A property that changes the answer of a load is added here and nowhere else. `Documentation/Design` lists
/// the parts.
struct LoadIdentity {
    /// The resource: the caller's identity, or the normalized URL, without secrets.
    private let name: String
    /// The parts that a plain load of the resource does not have. They may contain secrets, so they are digested.
    private var parts: [String] = []
    private let fence: String?

    /// Creates the identity of a transfer.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - id: The identity of the resource, in place of the URL.
    ///   - identity: The same, if there is no id. One that begins with `/` belongs to the URL's origin.
    ///   - loader: The loader.
    init(_ request: HTTPRequest, id: String?, identity: String? = nil, by loader: NetworkLoader) {
        let text = HTTPCache.identity(of: request.url)
        let bare = SourceURL.withoutCredentials(text)
        if let id {
            name = id
        } else if let identity {
            name = identity.utf8.first == UInt8(ascii: "/") ? Self.origin(of: bare) + identity : identity
        } else {
            name = bare.utf8.count <= Self.longestName ? bare : Self.digest(bare)
        }
        fence = loader.configuration.policy.fence
        if bare.utf8.count != text.utf8.count {
            parts.append("credentials:" + ((try? SourceURL(text))?.credentials ?? text))
        }
        if request.method != "GET" { parts.append("method:" + request.method) }
        if let body = request.body { parts.append("body:" + Hexadecimal.text(SHA256Digest.digest(of: body))) }
        if let range = request.range { parts.append("range:" + range.fieldValue) }
        let fields = loader.fields(of: request).fields.filter { !Self.silentFields.contains($0.name.lowercased()) }
        parts += fields.map { "field:" + $0.name.lowercased() + ":" + $0.value }.sorted()
        parts += loader.identityParts(forScheme: request.url.scheme)
    }

    /// Creates the identity of a fetch with options.
    init(_ request: HTTPRequest, id: String?, options: FetchOptions) {
        self.init(request, id: id, identity: id == nil ? options.identity?(request.url) : nil, by: options.loader)
        parts += options.identityParts(request)
    }

    /// The key of the load. It has no readable secrets.
    ///
    /// If the loader's policy refuses private addresses, the key has one more part, so that a value of a loader with
    /// access to them is never returned.
    var key: CacheKey {
        let key = parts.isEmpty ? CacheKey(name) : CacheKey(name, Self.digest(CacheKey(parts: parts).identity))
        return fence.map { key.appending($0) } ?? key
    }

    /// Fields that do not select another resource, in lowercase.
    private static let silentFields: Set<String> = [
        "cache-control", "pragma", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
        "range", "accept-encoding",
    ]
    /// Longer names are replaced by a digest, because the length of keys is limited.
    private static let longestName = 2048

    private static func digest(_ text: String) -> String {
        "sha256:" + Hexadecimal.text(SHA256Digest.digest(of: text))
    }

    /// Scheme, host and port of a URL without credentials.
    private static func origin(of url: String) -> String {
        guard let slashes = url.firstRange(of: "://") else { return String(url.prefix { $0 != "/" }) }
        return String(url[..<slashes.upperBound] + url[slashes.upperBound...].prefix { !"/?#".contains($0) })
    }
}

extension NetworkLoader {
    /// Returns the fields of a request with those of the configuration that it does not set itself.
    func fields(of request: HTTPRequest) -> HTTPHeaders {
        guard !configuration.headers.fields.isEmpty else { return request.headers }
        var headers = request.headers
        for field in configuration.headers.fields where !headers.contains(field.name) {
            headers.append(field.name, field.value)
        }
        return headers
    }

    /// Returns the identity of the credentials that the modifiers and the authentication add; nil if there are none.
    static func credentialsIdentity(of configuration: Configuration) -> String? {
        if let identity = configuration.identity { return "identity:" + identity }
        guard !configuration.modifiers.isEmpty || configuration.authentication != nil else { return nil }
        // Closures cannot be compared: the loader has values of its own.
        return "loader:" + UUID().uuidString
    }

    /// Returns the parts of an identity that the loader adds, apart from its header fields.
    fileprivate func identityParts(forScheme scheme: String?) -> [String] {
        var parts: [String] = []
        if let credentialsIdentity { parts.append(credentialsIdentity) }
        if let identity = transport(forScheme: scheme)?.identity { parts.append("transport:" + identity) }
        if let restrictions { parts.append("policy:" + restrictions) }
        return parts
    }
}

extension URLAccessPolicy {
    /// The restrictions that neither ``userInitiated`` nor ``publicOnly`` has, as text; nil if there are none. A value
    /// that was stored under other restrictions may be one that these refuse.
    package var restrictions: String? {
        let usual = allowsPrivateAddresses ? Self.userInitiated : Self.publicOnly
        func list(_ names: [String]?) -> String { names.map { CacheKey(parts: $0.sorted()).identity } ?? "all" }
        func text(_ policy: URLAccessPolicy) -> [String] {
            [
                list(policy.schemes.map(Array.init)), list(policy.hosts), list(policy.blockedHosts),
                list(policy.ports?.map(String.init)), list(policy.contentTypes),
                "\(policy.allowsRedirectsToPrivate) \(policy.allowsRedirectsToInsecure) \(policy.allowsCredentials)",
                "\(policy.maximumRedirects)",
            ]
        }
        let own = text(self)
        return own == text(usual) ? nil : CacheKey(parts: own).identity
    }
}

extension FetchOptions {
    /// Returns the parts of an identity that the options add; none for the default options.
    fileprivate func identityParts(_ request: HTTPRequest) -> [String] {
        var parts: [String] = []
        // The types are sent as `Accept`, and other types are refused.
        if !contentTypes.isEmpty, !sniffsContent { parts.append("types:" + CacheKey(parts: contentTypes).identity) }
        let limit = min(request.maximumBodySize, maximumBodySize)
        if limit != Self.usualBodySize { parts.append("size:\(limit.bytes)") }
        if caching != .images { parts.append("caching:" + caching.text) }
        return parts
    }

    /// Returns the limits of time that can end a load early; empty for the usual ones.
    ///
    /// They are no part of the key, because they do not change the value. But a load does not join one with others.
    func bounds(of request: HTTPRequest) -> String {
        let limits = [request.totalTimeout ?? totalTimeout, request.connectTimeout, request.idleTimeout]
        let retries = loader.configuration.retries
        if limits == Self.usualLimits, retries.limit == 2, retries.maximumRetryAfter == .seconds(60) { return "" }
        return limits.map { $0.map { "\($0)" } ?? "none" }.joined(separator: " ")
            + " \(retries.limit) \(retries.maximumRetryAfter)"
    }

    private static let usualLimits: [Duration?] = [.seconds(600), .seconds(15), .seconds(30)]
}

extension HTTPCachePolicy {
    /// All properties as text.
    fileprivate var text: String {
        "\(isShared) \(lifetime) \(heuristicFraction) \(heuristicLimit) \(imageFloor) \(honoursStaleWhileRevalidate) "
            + "\(honoursStaleIfError) \(servesStaleWhenUnreachable) \(servesStaleOnServerError) "
            + "\(targetedFields) \(variantLimit)"
    }
}
