#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// The rules are not public API. The attribute opens them to `Benchmarks/Sources/CacheProxy`, a package of its own that
// runs a conformance suite against them.

/// The rules of HTTP caching: RFC 9111, RFC 5861 (stale responses), RFC 8246 (`immutable`) and RFC 9213 (targeted
/// directives). It decides about storage and reuse, but performs no input or output and reads no clock.
///
/// A cache uses it in these steps:
///
/// 1. Look up the ``StoredResponse``s under ``identity(of:)`` of the URL and call ``decide(_:stored:now:)``.
/// 2. Send the request of the decision, if there is one. Note the times before the request and after the response's
///    head.
/// 3. Call ``update(after:)`` with the response, or ``canServeStale(_:to:afterFailureAt:)`` after a failure.
/// 4. Answer with ``head(of:for:now:)`` and the stored body, or with the received response.
///
/// ```swift
/// let cache = HTTPCache(policy: .images)
/// switch cache.decide(request, stored: variants, now: clock.now) {
/// case .serve(let index, _): …                 // the body of variants[index]
/// case .revalidate(let index, let headers): …  // send with these fields
/// …
/// }
/// ```
@_spi(HTTPCacheEngine) public struct HTTPCache: Sendable {
    /// The policy.
    public var policy: HTTPCachePolicy

    /// Creates a cache with a policy.
    public init(policy: HTTPCachePolicy = .standard) { self.policy = policy }
}

/// The way to answer a request.
@_spi(HTTPCacheEngine) public enum CacheDecision: Sendable, Hashable {
    /// With the stored response at this index. It may be stale if request and response permit that.
    case serve(Int, Freshness)
    /// With the stored response at this index, which is then revalidated with these fields in place of the request's
    /// (RFC 5861, section 3).
    case serveAndRevalidate(Int, Freshness, headers: HTTPHeaders)
    /// After revalidation of the stored response at this index with these fields in place of the request's. Without a
    /// validator they contain no condition, and the response replaces the stored one.
    case revalidate(Int, headers: HTTPHeaders)
    /// With the server's response to the unchanged request, because no stored response matches.
    case forward
    /// With status 504, because the request forbids access to the network.
    case unavailable
}

@_spi(HTTPCacheEngine) extension HTTPCache {
    /// Decides how to answer a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - stored: All responses that are stored under the URL, in any order.
    ///   - now: The time since 1970.
    public func decide(_ request: CacheRequest, stored: [StoredResponse], now: Duration) -> CacheDecision {
        guard request.isLookup else { return .forward }
        let wanted = request.directives
        guard let index = select(request, stored) else { return wanted.onlyIfCached ? .unavailable : .forward }
        let freshness = policy.freshness(of: stored[index], now: now)
        let isUnusable =
            policy.isFromFuture(stored[index], now: now) || policy.mustRepeatRedirects(stored[index], now: now)
        switch isUnusable ? .never : use(stored[index], freshness: freshness, wanted: wanted) {
        case .now: return .serve(index, freshness)
        case .whileRevalidating where wanted.onlyIfCached || request.method == "HEAD":
            return .serve(index, freshness)
        case .whileRevalidating:
            return .serveAndRevalidate(index, freshness, headers: conditions(for: stored[index], request))
        case .never where wanted.onlyIfCached: return .unavailable
        // A response to HEAD cannot confirm a body; it is compared instead (RFC 9111, section 4.3.5).
        case .never where request.method == "HEAD": return .forward
        case .never: return .revalidate(index, headers: conditions(for: stored[index], request))
        }
    }

    /// Returns whether a stale response may be used after the connection failed or broke (RFC 9111, section 4.2.4).
    ///
    /// - Parameters:
    ///   - response: The stored response.
    ///   - request: The request.
    ///   - now: The time of the failure, since 1970.
    public func canServeStale(_ response: StoredResponse, to request: CacheRequest, afterFailureAt now: Duration)
        -> Bool
    {
        allowsStale(response, request: request, now: now)
            || (policy.servesStaleWhenUnreachable && mayBeStale(response, request))
    }

    private enum Use { case now, whileRevalidating, never }

    private func use(_ response: StoredResponse, freshness: Freshness, wanted: CacheDirectives) -> Use {
        let (directives, _) = policy.directives(of: response.headers)
        guard !wanted.noCache.isEverything, !policy.requiresValidation(response, directives) else { return .never }
        if let oldest = wanted.maxAge, freshness.age > .seconds(oldest) {
            // Browsers send `max-age=0` on reload, which immutable responses may ignore (RFC 8246, section 2).
            guard directives.immutable, freshness.isFresh else { return .never }
        }
        if freshness.isFresh { return freshness.remaining >= .seconds(wanted.minFresh ?? 0) ? .now : .never }
        guard !policy.forbidsStale(response, directives), wanted.minFresh == nil else { return .never }
        if let most = wanted.maxStale, freshness.staleness <= .seconds(min(most, DeltaSeconds.most)) { return .now }
        if policy.honoursStaleWhileRevalidate, wanted.maxAge == nil, let window = directives.staleWhileRevalidate,
            freshness.staleness <= .seconds(window)
        {
            return .whileRevalidating
        }
        return .never
    }

    /// Returns whether neither request nor response forbids stale responses.
    private func mayBeStale(_ response: StoredResponse, _ request: CacheRequest) -> Bool {
        let (directives, _) = policy.directives(of: response.headers)
        return !policy.forbidsStale(response, directives) && !request.directives.noCache.isEverything
    }

    /// Returns whether `stale-if-error` of request or response covers the time (RFC 5861, section 4).
    private func allowsStale(_ response: StoredResponse, request: CacheRequest, now: Duration) -> Bool {
        guard policy.honoursStaleIfError, mayBeStale(response, request) else { return false }
        let windows = [
            policy.directives(of: response.headers).directives.staleIfError, request.directives.staleIfError,
        ]
        guard let window = windows.compactMap({ $0 }).max() else { return false }
        return policy.freshness(of: response, now: now).staleness <= .seconds(window)
    }

    /// Returns whether a stale response may replace a server error.
    func replacesFailure(_ response: StoredResponse, request: CacheRequest, now: Duration) -> Bool {
        allowsStale(response, request: request, now: now)
            || (policy.servesStaleOnServerError && mayBeStale(response, request))
    }

    /// Returns the newest stored response that matches a request (RFC 9111, section 4.1).
    private func select(_ request: CacheRequest, _ stored: [StoredResponse]) -> Int? {
        matching(request, stored).max { isOlder(stored[$0], stored[$1]) }
    }

    /// Returns all stored responses that match a request.
    func matching(_ request: CacheRequest, _ stored: [StoredResponse]) -> [Int] {
        stored.indices.filter { index in
            let response = stored[index]
            return response.selecting.allSatisfy {
                $0.matches(request.headers) || hasLanguage(response, field: $0, request: request)
            }
        }
    }

    func isOlder(_ one: StoredResponse, _ other: StoredResponse) -> Bool {
        (one.date, one.responseTime) < (other.date, other.responseTime)
    }

    /// Returns whether the response has the only preferred language of a request, so that its other languages do not
    /// matter.
    private func hasLanguage(_ response: StoredResponse, field: SelectingField, request: CacheRequest) -> Bool {
        guard field.name == "accept-language", let language = response.headers.combined("Content-Language") else {
            return false
        }
        let liked = request.headers.all("Accept-Language").flatMap(HTTPList.elements).map(Preference.init)
        guard let most = liked.map(\.weight).max(), most > 0 else { return false }
        let best = Set(liked.filter { $0.weight == most }.map(\.name))
        return best == [HTTPList.lowercased(Array(language.utf8)[...])]
    }
}

/// A request as a cache sees it.
@_spi(HTTPCacheEngine) public struct CacheRequest: Sendable, Hashable {
    /// The method, in uppercase.
    public var method: String
    /// The URL.
    public var url: URL
    /// The header fields of the client.
    public var headers: HTTPHeaders

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - method: The method, in uppercase.
    ///   - url: The URL.
    ///   - headers: The header fields.
    public init(method: String = "GET", url: URL, headers: HTTPHeaders = HTTPHeaders()) {
        self.method = method
        self.url = url
        self.headers = headers
    }

    /// The directives of the request. Without `Cache-Control`, `Pragma: no-cache` applies (RFC 9111, section 5.4).
    var directives: CacheDirectives {
        var directives = CacheDirectives(headers)
        if directives.isEmpty, HTTPList.names(headers.all("Pragma")).contains("no-cache") {
            directives.noCache = .everything
        }
        return directives
    }

    /// Whether stored responses can answer the request.
    var isLookup: Bool { method == "GET" || method == "HEAD" }

    /// Whether the method may change resources (RFC 9110, section 9.2.1). Unknown methods may.
    var isUnsafe: Bool { !["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }
}

@_spi(HTTPCacheEngine) extension HTTPCache {
    /// Returns the cache key of a URL (RFC 9111, section 2): without fragment and default port, and with scheme and
    /// host in lowercase.
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

    /// Returns whether a URL is certainly normalized. Parsing it would dominate the cost of a hit.
    private static func isNormal(_ text: String) -> Bool {
        let rest = text.utf8.drop { $0 != UInt8(ascii: ":") }
        guard text.hasPrefix("http://") || text.hasPrefix("https://") else { return false }
        // After the scheme: a host name in lowercase without a port, and a path.
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

    /// Resolves a reference, or returns nil if its origin is not that of the URL (RFC 9111, section 4.4).
    static func sameOrigin(_ reference: String, as url: URL) -> URL? {
        guard reference.utf8.count <= 8192 else { return nil }
        // An empty reference is the URL itself (RFC 3986, section 4.4).
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
