import Foundation
@_spi(HTTPCacheEngine) import VitrineNetwork

/// A cache with what it stores of one URL and a clock that is moved by hand.
struct Site {
    var cache: HTTPCache
    var url = URL(string: "http://example.org/a.jpg")!
    var stored: [StoredResponse] = []
    /// 2023-11-14 22:13:20 UTC.
    var now = Duration.seconds(1_700_000_000)

    init(_ policy: HTTPCachePolicy = .standard) { cache = HTTPCache(policy: policy) }

    /// A date so many seconds after the clock's, as HTTP writes it.
    func date(_ seconds: Int64) -> String { HTTPDate.text(now.components.seconds + seconds) }

    func request(_ method: String = "GET", _ headers: HTTPHeaders = [:]) -> CacheRequest {
        CacheRequest(method: method, url: url, headers: headers)
    }

    /// A response comes in, at once unless told otherwise, and what the engine says is done.
    @discardableResult
    mutating func receive(
        _ headers: HTTPHeaders, status: Int = 200, to request: CacheRequest? = nil, revalidating: Int? = nil,
        delay: Duration = .zero, bodyLength: Int? = 1000
    ) -> CacheUpdate {
        let sent = now
        now += delay
        var exchange = CacheExchange(
            request: request ?? self.request(), status: status, headers: headers, requestTime: sent,
            responseTime: now, stored: stored)
        exchange.revalidated = revalidating
        let update = cache.update(after: exchange)
        for (index, head) in update.refreshed { stored[index] = head }
        stored = stored.indices.filter { !update.removed.contains($0) }.map { stored[$0] }
        if case .storing(var head) = update.answer {
            head.bodyLength = bodyLength
            stored.append(head)
        }
        return update
    }

    func decide(_ headers: HTTPHeaders = [:]) -> CacheDecision {
        cache.decide(request("GET", headers), stored: stored, now: now)
    }

    /// Whether a response, so many seconds after it came, is used without asking.
    static func reuses(
        _ headers: HTTPHeaders, status: Int = 200, after seconds: Int64 = 3, _ policy: HTTPCachePolicy = .standard
    ) -> Bool {
        var site = Site(policy)
        site.receive(headers, status: status)
        site.now += .seconds(seconds)
        return site.decide().isServed
    }

    /// Whether a response is stored.
    static func stores(
        _ headers: HTTPHeaders, status: Int = 200, to request: CacheRequest? = nil,
        _ policy: HTTPCachePolicy = .standard
    ) -> Bool {
        var site = Site(policy)
        site.receive(headers, status: status, to: request)
        return !site.stored.isEmpty
    }
}

extension CacheDecision {
    var isServed: Bool {
        switch self {
        case .serve, .serveAndRevalidate: true
        case .revalidate, .forward, .unavailable: false
        }
    }

    /// What is sent to ask, if anything is.
    var conditions: HTTPHeaders? {
        switch self {
        case .revalidate(_, let headers), .serveAndRevalidate(_, _, let headers): headers
        case .serve, .forward, .unavailable: nil
        }
    }
}

extension HTTPCachePolicy {
    static let shared: HTTPCachePolicy = {
        var policy = HTTPCachePolicy()
        policy.isShared = true
        return policy
    }()

    func with(_ change: (inout HTTPCachePolicy) -> Void) -> HTTPCachePolicy {
        var policy = self
        change(&policy)
        return policy
    }
}
