/// The rules for storing and reusing HTTP responses, as far as RFC 9111 leaves them to the cache.
///
/// Assign a policy to ``FetchOptions/caching``:
///
/// ```swift
/// var policy = HTTPCachePolicy.images
/// policy.lifetime = .fixed(.seconds(3600))
/// ```
public struct HTTPCachePolicy: Sendable, Hashable {
    /// The source of a response's freshness.
    public enum Lifetime: Sendable, Hashable {
        /// The header fields of the response, as in RFC 9111.
        case standard
        /// A fixed time after the response was received. Error responses and `no-store` follow the standard.
        case fixed(Duration)
        /// Responses stay fresh until they are refreshed explicitly. Error responses and `no-store` follow the
        /// standard.
        case neverRevalidated
    }

    /// Whether the cache serves several users: `private` responses and responses to requests with credentials are not
    /// stored, and `s-maxage` applies.
    package var isShared = false
    /// The source of a response's freshness. The default is ``Lifetime/standard``.
    public var lifetime = Lifetime.standard
    /// The lifetime of a response without freshness information, as a fraction of the time since its last change
    /// (RFC 9111, section 4.2.2). The default is 0.1; 0 turns the heuristic off.
    package var heuristicFraction = 0.1
    /// The longest lifetime by ``heuristicFraction``. The default is 1 day.
    package var heuristicLimit = Duration.seconds(86400)
    /// The shortest lifetime of an image without freshness information. It is not part of the RFC and therefore zero
    /// except in ``images``.
    package var imageFloor = Duration.zero
    /// Whether `stale-while-revalidate` applies (RFC 5861).
    package var honoursStaleWhileRevalidate = true
    /// Whether `stale-if-error` applies (RFC 5861).
    package var honoursStaleIfError = true
    /// Whether a stale response is returned if its server cannot be reached, unless the response forbids that
    /// (RFC 9111, section 4.2.4). The default is true.
    public var servesStaleWhenUnreachable = true
    /// Whether a stale response is returned if its server answers with 500, 502, 503 or 504 (RFC 9111, section 4.3.3).
    /// The default is false.
    public var servesStaleOnServerError = false
    /// Fields that replace `Cache-Control` and `Expires`, for example `CDN-Cache-Control` (RFC 9213). The first valid
    /// one applies.
    package var targetedFields: [String] = []
    /// The most responses to one URL that differ by `Vary`. The oldest are removed.
    package var variantLimit = 8

    package init() {}

    /// The rules of RFC 9111 for a private cache.
    public static let standard = HTTPCachePolicy()

    /// A private cache for images. An image without freshness information is fresh for an hour, and a stale image is
    /// returned if the server fails.
    public static let images: HTTPCachePolicy = {
        var policy = HTTPCachePolicy()
        policy.imageFloor = .seconds(3600)
        policy.servesStaleOnServerError = true
        return policy
    }()

    /// A shared cache in front of a server.
    public static let reverseProxy: HTTPCachePolicy = {
        var policy = HTTPCachePolicy()
        policy.isShared = true
        policy.targetedFields = ["CDN-Cache-Control"]
        return policy
    }()
}

/// The age and lifetime of a response (RFC 9111, section 4.2).
@_spi(HTTPCacheEngine) public struct Freshness: Sendable, Hashable {
    /// The time since the server created or confirmed the response.
    public let age: Duration
    /// The age at which the response becomes stale.
    public let lifetime: Duration

    /// The lifetime of responses that stay fresh forever.
    fileprivate static let forever = Duration.seconds(Int64(1) << 40)

    /// Whether the response can be used without revalidation.
    public var isFresh: Bool { lifetime > age }
    /// The remaining lifetime; zero for a stale response.
    public var remaining: Duration { max(.zero, lifetime - age) }
    /// The time since the response became stale; zero for a fresh response.
    public var staleness: Duration { max(.zero, age - lifetime) }
}

extension HTTPCachePolicy {
    /// The status codes with heuristic freshness (RFC 9110, section 15.1; 206 is not stored).
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Returns whether the cache implements a status code, for `must-understand`: all of RFC 9110 except 206 and 304.
    static func understands(_ status: Int) -> Bool {
        switch status {
        case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// Returns the directives of a response that apply to this cache, and whether they come from a targeted field.
    func directives(of headers: HTTPHeaders) -> (directives: CacheDirectives, isTargeted: Bool) {
        for field in targetedFields {
            if let directives = TargetedDirectives.parse(headers.all(field)) { return (directives, true) }
        }
        return (CacheDirectives(headers), false)
    }

    /// Returns whether the policy's lifetime replaces that of a response with a status.
    private func overrides(_ status: Int) -> Bool {
        lifetime != .standard && [200, 203, 301, 308].contains(status)
    }

    /// Returns whether the response must be revalidated before use.
    func requiresValidation(_ response: StoredResponse, _ directives: CacheDirectives) -> Bool {
        response.isInvalidated || (directives.noCache.isEverything && !overrides(response.status))
    }

    /// Returns whether the response forbids its use when stale (RFC 9111, section 4.2.4).
    func forbidsStale(_ response: StoredResponse, _ directives: CacheDirectives) -> Bool {
        if overrides(response.status) { return false }
        return response.redirection?.forbidsStale == true
            || directives.mustRevalidate || directives.noCache.isEverything
            || (isShared && (directives.proxyRevalidate || directives.sharedMaxAge != nil))
    }

    /// Returns whether a redirect that led to the response is no longer fresh, so that it may lead elsewhere now.
    func mustRepeatRedirects(_ response: StoredResponse, now: Duration) -> Bool {
        guard let end = response.redirection?.freshUntil, !overrides(response.status) else { return false }
        return end <= now
    }

    /// The tolerance for a clock that is set back.
    private static let clockStep = Duration.seconds(5)

    /// Returns whether a response was stored in the future. Its age is then unknown, because the clock was or is wrong.
    func isFromFuture(_ response: StoredResponse, now: Duration) -> Bool {
        response.responseTime - now > Self.clockStep && !(overrides(response.status) && lifetime == .neverRevalidated)
    }

    /// Returns age and lifetime at a time. A response from the future is not fresh.
    package func freshness(of response: StoredResponse, now: Duration) -> Freshness {
        let freshness = freshness(ofPresent: response, now: now)
        return isFromFuture(response, now: now) ? Freshness(age: freshness.age, lifetime: .zero) : freshness
    }

    private func freshness(ofPresent response: StoredResponse, now: Duration) -> Freshness {
        let resident = max(.zero, now - response.responseTime)
        if overrides(response.status) {
            switch lifetime {
            case .standard: break
            case .fixed(let lifetime): return Freshness(age: resident, lifetime: lifetime)
            case .neverRevalidated: return Freshness(age: resident, lifetime: Freshness.forever)
            }
        }
        // RFC 9111, section 4.2.3. A clock that was set back must not make a response younger. `Date` has whole
        // seconds, so the fraction of the response time is dropped as well.
        let apparent = Duration.seconds(max(0, response.responseTime.components.seconds - response.date))
        let delay = response.responseTime - response.requestTime
        let corrected = .seconds(DeltaSeconds.age(response.headers) ?? 0) + delay
        let age = max(apparent, corrected) + resident
        var lifetime = lifetime(of: response)
        if let end = response.redirection?.freshUntil { lifetime = min(lifetime, max(.zero, age + end - now)) }
        return Freshness(age: age, lifetime: lifetime)
    }

    /// Returns the declared or heuristic lifetime (RFC 9111, sections 4.2.1 and 4.2.2).
    private func lifetime(of response: StoredResponse) -> Duration {
        let (directives, isTargeted) = directives(of: response.headers)
        if isShared, let seconds = directives.sharedMaxAge { return .seconds(seconds) }
        if let seconds = directives.maxAge { return .seconds(seconds) }
        if !isTargeted, let expires = response.headers["Expires"] {
            guard let end = HTTPDate.seconds(expires, now: response.responseTime) else { return .zero }
            return max(.zero, .seconds(end - response.date))
        }
        return heuristic(response, directives)
    }

    private func heuristic(_ response: StoredResponse, _ directives: CacheDirectives) -> Duration {
        guard HTTPCachePolicy.heuristicStatuses.contains(response.status) || directives.isPublic else { return .zero }
        if directives.isEmpty, HTTPList.names(response.headers.all("Pragma")).contains("no-cache") { return .zero }
        var lifetime = Duration.zero
        if let text = response.headers["Last-Modified"],
            let changed = HTTPDate.seconds(text, now: response.responseTime),
            case let date = response.date, changed < date
        {
            let fraction = min(max(heuristicFraction.isNaN ? 0 : heuristicFraction, 0), 1)
            lifetime = min(.seconds(Double(date - changed) * fraction), heuristicLimit)
        }
        guard imageFloor > lifetime, response.status == 200, response.isImage else { return lifetime }
        return imageFloor
    }
}

extension StoredResponse {
    /// Whether the media type is an image.
    fileprivate var isImage: Bool {
        guard let type = headers["Content-Type"] else { return false }
        return type.utf8.prefix(6).map(\.asciiLowercased) == Array("image/".utf8)
    }
}
