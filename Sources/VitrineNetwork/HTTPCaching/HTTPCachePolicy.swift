/// How an ``HTTPCache`` treats what RFC 9111 leaves to a cache, and where a user wants something else than the RFC.
///
/// ```swift
/// var policy = HTTPCachePolicy.images
/// policy.lifetime = .fixed(.seconds(3600))
/// ```
public struct HTTPCachePolicy: Sendable, Hashable {
    /// What decides how long a response is fresh.
    public enum Lifetime: Sendable, Hashable {
        /// What the response says: RFC 9111.
        case standard
        /// So long after it was received, whatever it says. Errors keep to the standard, and `no-store` to its word.
        case fixed(Duration)
        /// For ever: it is asked for again only on demand. Errors keep to the standard, and `no-store` to its word.
        case neverRevalidated
    }

    /// Whether the cache serves several people. Then `private` responses and those to requests with credentials are not
    /// stored, and `s-maxage` counts. Default: false.
    public var isShared = false
    /// What decides how long a response is fresh. Default: ``Lifetime/standard``.
    public var lifetime = Lifetime.standard
    /// How much of the time since its last change a response without freshness information is fresh for
    /// (RFC 9111 section 4.2.2). Default: 0.1; 0 for none.
    public var heuristicFraction = 0.1
    /// The most that ``heuristicFraction`` can give. Default: 1 day.
    public var heuristicLimit = Duration.seconds(86400)
    /// How long an image is fresh for at least when nothing is said about it, not even when it was changed. No part of
    /// the RFC, therefore zero but in ``images``.
    public var imageFloor = Duration.zero
    /// Whether `stale-while-revalidate` counts (RFC 5861). Default: true.
    public var honoursStaleWhileRevalidate = true
    /// Whether `stale-if-error` counts (RFC 5861). Default: true.
    public var honoursStaleIfError = true
    /// Whether a stale response serves when there is no connection to its server, unless it forbids that
    /// (RFC 9111 section 4.2.4). Default: true.
    public var servesStaleWhenUnreachable = true
    /// Whether a server's failure (500, 502, 503, 504) counts as no connection (RFC 9111 section 4.3.3).
    /// Default: false.
    public var servesStaleOnServerError = false
    /// Fields that take the place of `Cache-Control` and `Expires`, the first that is there and valid: for caches that
    /// belong to a site, for example `CDN-Cache-Control` (RFC 9213). Default: none.
    public var targetedFields: [String] = []
    /// How many responses to one URL are kept that differ by `Vary`; the oldest go. Default: 8.
    public var variantLimit = 8

    public init() {}

    /// To the letter of the RFC, for one person.
    public static let standard = HTTPCachePolicy()

    /// For one person's images: one that says nothing is fresh for an hour, and the server's failures do not take away
    /// what is there.
    public static let images: HTTPCachePolicy = {
        var policy = HTTPCachePolicy()
        policy.imageFloor = .seconds(3600)
        policy.servesStaleOnServerError = true
        return policy
    }()

    /// For a proxy in front of a server, shared by all its users.
    public static let reverseProxy: HTTPCachePolicy = {
        var policy = HTTPCachePolicy()
        policy.isShared = true
        policy.targetedFields = ["CDN-Cache-Control"]
        return policy
    }()
}
