/// How old a response is, and how old it may become (RFC 9111 section 4.2).
public struct Freshness: Sendable, Hashable {
    /// Since the server made or confirmed it.
    public let age: Duration
    /// The age from which on it is stale.
    public let lifetime: Duration

    /// More than any cache will see.
    static let forever = Duration.seconds(Int64(1) << 40)

    /// Whether it can be used without asking.
    public var isFresh: Bool { lifetime > age }
    /// How long it stays fresh; zero once it is stale.
    public var remaining: Duration { max(.zero, lifetime - age) }
    /// For how long it has been stale; zero while it is fresh.
    public var staleness: Duration { max(.zero, age - lifetime) }
}

extension HTTPCachePolicy {
    /// Statuses fresh by a heuristic if nothing is said (RFC 9110 section 15.1; 206 is not stored).
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Statuses whose meaning for caches is implemented here, for `must-understand`: all that RFC 9110 defines but 206
    /// and 304.
    static func understands(_ status: Int) -> Bool {
        switch status {
        case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// The directives of a response that count for this cache, and the name of the field they come from if it is none
    /// of the standard ones.
    func directives(of headers: HTTPHeaders) -> (directives: CacheDirectives, isTargeted: Bool) {
        for field in targetedFields {
            if let directives = TargetedDirectives.parse(headers.all(field)) { return (directives, true) }
        }
        return (CacheDirectives(headers), false)
    }

    /// Whether the policy's own rule takes the place of what such a response says.
    private func overrides(_ status: Int) -> Bool {
        lifetime != .standard && [200, 203, 301, 308].contains(status)
    }

    /// Whether the response says that it must not be used without asking.
    func requiresValidation(_ response: StoredResponse, _ directives: CacheDirectives) -> Bool {
        response.isInvalidated || (directives.noCache.isEverything && !overrides(response.status))
    }

    /// Whether the response forbids its use when it is stale (RFC 9111 section 4.2.4).
    func forbidsStale(_ response: StoredResponse, _ directives: CacheDirectives) -> Bool {
        if overrides(response.status) { return false }
        return directives.mustRevalidate || directives.noCache.isEverything
            || (isShared && (directives.proxyRevalidate || directives.sharedMaxAge != nil))
    }

    /// By how much a clock may be set back without notice.
    private static let clockStep = Duration.seconds(5)

    /// Whether a response was stored at a time that is still to come. The clock was wrong then or is now, so that
    /// nothing can be said about how old the response is.
    func isFromFuture(_ response: StoredResponse, now: Duration) -> Bool {
        response.responseTime - now > Self.clockStep && !(overrides(response.status) && lifetime == .neverRevalidated)
    }

    /// Age and lifetime at a time. What was stored at a time that is still to come is not fresh.
    public func freshness(of response: StoredResponse, now: Duration) -> Freshness {
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
        // RFC 9111 section 4.2.3. A clock that went back must not make a response younger than it was. `Date` knows whole
        // seconds only: without its fraction the time compared to it makes nothing look older than it is.
        let apparent = Duration.seconds(max(0, response.responseTime.components.seconds - response.date))
        let delay = response.responseTime - response.requestTime
        let corrected = .seconds(DeltaSeconds.age(response.headers) ?? 0) + delay
        return Freshness(age: max(apparent, corrected) + resident, lifetime: lifetime(of: response))
    }

    /// What the response says of its lifetime, or the heuristic (RFC 9111 sections 4.2.1 and 4.2.2).
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
            let changed = HTTPDate.seconds(text, now: response.responseTime), changed < response.date
        {
            let fraction = min(max(heuristicFraction.isNaN ? 0 : heuristicFraction, 0), 1)
            lifetime = min(.seconds(Double(response.date - changed) * fraction), heuristicLimit)
        }
        guard imageFloor > lifetime, response.status == 200, response.isImage else { return lifetime }
        return imageFloor
    }
}

extension StoredResponse {
    /// Whether the response says that it is an image.
    fileprivate var isImage: Bool {
        guard let type = headers["Content-Type"] else { return false }
        return type.utf8.prefix(6).map(\.asciiLowercased) == Array("image/".utf8)
    }
}
