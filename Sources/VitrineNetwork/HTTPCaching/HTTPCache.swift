/// Decides what may be stored and reused of what HTTP brings: RFC 9111, with RFC 5861 (stale responses), RFC 8246
/// (`immutable`) and RFC 9213 (targeted directives). Pure: it does no input or output and reads no clock.
///
/// Who stores and fetches goes through these steps:
///
/// 1. Look up the ``StoredResponse``s under ``identity(of:)`` of the URL and ask ``decide(_:stored:now:)``.
/// 2. Send what the decision says, if anything; note the times before the request and after the head of the response.
/// 3. Ask ``update(after:)`` what to do with the response, or ``canServeStale(_:to:afterFailureAt:)`` if none came.
/// 4. Answer with ``head(of:for:now:)`` and the stored body, or with what came.
///
/// ```swift
/// let cache = HTTPCache(policy: .images)
/// switch cache.decide(request, stored: variants, now: clock.now) {
/// case .serve(let index, _): …               // the body of variants[index]
/// case .revalidate(let index, let headers): …  // send with these fields
/// …
/// }
/// ```
public struct HTTPCache: Sendable {
    /// What is left to the user.
    public var policy: HTTPCachePolicy

    public init(policy: HTTPCachePolicy = .standard) { self.policy = policy }
}

/// How a request is to be answered.
public enum CacheDecision: Sendable, Hashable {
    /// With the stored response at this place, which needs no asking. It may be stale where request or response allow.
    case serve(Int, Freshness)
    /// With the stored response at once, and then ask, with these fields in place of the request's, whether it still
    /// holds (RFC 5861 section 3).
    case serveAndRevalidate(Int, Freshness, headers: HTTPHeaders)
    /// Not before the server has been asked whether the stored response still holds, with these fields in place of the
    /// request's. If it has no validator they hold no condition, and a response replaces it.
    case revalidate(Int, headers: HTTPHeaders)
    /// With what the server says: nothing is stored that fits. The request goes on as it is.
    case forward
    /// With status 504: the request wants nothing from the network.
    case unavailable
}

extension HTTPCache {
    /// Decides how to answer a request.
    ///
    /// - Parameters:
    ///   - request: What is asked for.
    ///   - stored: All that is stored under the URL, in any order.
    ///   - now: Since 1970.
    public func decide(_ request: CacheRequest, stored: [StoredResponse], now: Duration) -> CacheDecision {
        guard request.isLookup else { return .forward }
        let wanted = request.directives
        guard let index = select(request, stored) else { return wanted.onlyIfCached ? .unavailable : .forward }
        let freshness = policy.freshness(of: stored[index], now: now)
        let isFromFuture = policy.isFromFuture(stored[index], now: now)
        switch isFromFuture ? .never : use(stored[index], freshness, wanted) {
        case .now: return .serve(index, freshness)
        case .whileRevalidating where wanted.onlyIfCached || request.method == "HEAD":
            return .serve(index, freshness)
        case .whileRevalidating:
            return .serveAndRevalidate(index, freshness, headers: conditions(for: stored[index], request))
        case .never where wanted.onlyIfCached: return .unavailable
        // The answer to a HEAD need not confirm a body: what comes back is compared (RFC 9111 section 4.3.5).
        case .never where request.method == "HEAD": return .forward
        case .never: return .revalidate(index, headers: conditions(for: stored[index], request))
        }
    }

    /// Whether a stored response may serve after all when no answer came: no connection, or one that broke before the
    /// response was whole (RFC 9111 section 4.2.4).
    public func canServeStale(_ response: StoredResponse, to request: CacheRequest, afterFailureAt now: Duration)
        -> Bool
    {
        allowsStale(response, request, now) || (policy.servesStaleWhenUnreachable && mayBeStale(response, request))
    }

    private enum Use { case now, whileRevalidating, never }

    private func use(_ response: StoredResponse, _ freshness: Freshness, _ wanted: CacheDirectives) -> Use {
        let (directives, _) = policy.directives(of: response.headers)
        guard !wanted.noCache.isEverything, !policy.requiresValidation(response, directives) else { return .never }
        if let oldest = wanted.maxAge, freshness.age > .seconds(oldest) {
            // Reloading a page says `max-age=0`, which what does not change may ignore (RFC 8246 section 2).
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

    /// Whether neither side forbids stale responses.
    private func mayBeStale(_ response: StoredResponse, _ request: CacheRequest) -> Bool {
        let (directives, _) = policy.directives(of: response.headers)
        return !policy.forbidsStale(response, directives) && !request.directives.noCache.isEverything
    }

    /// Whether `stale-if-error`, of the response or the request, covers the time (RFC 5861 section 4).
    func allowsStale(_ response: StoredResponse, _ request: CacheRequest, _ now: Duration) -> Bool {
        guard policy.honoursStaleIfError, mayBeStale(response, request) else { return false }
        let windows = [
            policy.directives(of: response.headers).directives.staleIfError, request.directives.staleIfError,
        ]
        guard let window = windows.compactMap({ $0 }).max() else { return false }
        return policy.freshness(of: response, now: now).staleness <= .seconds(window)
    }

    /// Whether a stored response may serve in place of a server's failure.
    func replacesFailure(_ response: StoredResponse, _ request: CacheRequest, _ now: Duration) -> Bool {
        allowsStale(response, request, now) || (policy.servesStaleOnServerError && mayBeStale(response, request))
    }

    /// The stored response that fits a request: of several the one made last (RFC 9111 section 4.1).
    func select(_ request: CacheRequest, _ stored: [StoredResponse]) -> Int? {
        matching(request, stored).max { isOlder(stored[$0], stored[$1]) }
    }

    /// All that fit.
    func matching(_ request: CacheRequest, _ stored: [StoredResponse]) -> [Int] {
        stored.indices.filter { index in
            let response = stored[index]
            return response.selecting.allSatisfy { $0.matches(request.headers) || hasLanguage(response, $0, request) }
        }
    }

    func isOlder(_ one: StoredResponse, _ other: StoredResponse) -> Bool {
        (one.date, one.responseTime) < (other.date, other.responseTime)
    }

    /// Whether the response is in the one language that a request likes best: then the others it lists do not matter.
    private func hasLanguage(_ response: StoredResponse, _ field: SelectingField, _ request: CacheRequest) -> Bool {
        guard field.name == "accept-language", let language = response.headers.combined("Content-Language") else {
            return false
        }
        let liked = request.headers.all("Accept-Language").flatMap(HTTPList.elements).map(Preference.init)
        guard let most = liked.map(\.weight).max(), most > 0 else { return false }
        let best = Set(liked.filter { $0.weight == most }.map(\.name))
        return best == [HTTPList.lowercased(Array(language.utf8)[...])]
    }
}
