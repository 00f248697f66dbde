import VitrineCache
import VitrineCore

/// One resource's way to the server and back, with what is stored of it in hand.
struct CachedLoad: Sendable {
    /// What a cache makes of it.
    enum Answer: Sendable {
        /// These bytes, which may be kept at some levels.
        case body([UInt8], timeToLive: Duration?, tag: [UInt8], CacheLevels)
        /// What is stored, confirmed.
        case unchanged(timeToLive: Duration, tag: [UInt8])
        /// What is stored, although its time has passed.
        case stale(refreshing: Bool)
    }

    private var request: DataRequest
    private let options: FetchOptions
    private let progress: TransferProgress?
    private let cache: HTTPCache

    init(_ request: DataRequest, _ options: FetchOptions, _ progress: TransferProgress?) {
        self.request = request
        self.options = options
        self.progress = progress
        cache = HTTPCache(policy: options.caching)
        self.request.maximumBodySize = min(request.maximumBodySize, options.maximumBodySize)
        // The cache has conditions of its own.
        self.request.ifRange = nil
        self.request.headers.removeAll { Self.conditions.contains($0.name.lowercased()) }
        if !options.contentTypes.isEmpty, !request.headers.contains("Accept") {
            self.request.headers.append("Accept", options.contentTypes.joined(separator: ", "))
        }
    }

    private static let conditions: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range",
    ]

    /// Asks, or finds that there is no need to.
    func answer(_ context: FetchContext, _ resource: Resource) async throws(NetworkError) -> Answer {
        var load = self
        load.request.priority = context.priority.value
        guard resource == .http else { return try await load.local() }
        let stored = context.stored.flatMap { try? StoredResponse(bytes: $0.tag) }
        return try await load.exchange(stored, context)
    }

    /// Other places than servers know no rules for caches.
    private func local() async throws(NetworkError) -> Answer {
        let response = try await options.loader.load(request, progress: progress)
        // Files do not say what they are.
        if response.head.contentType != nil { try check(response) }
        let bytes = try await response.body.collect()
        return .body(bytes, timeToLive: nil, tag: [], .all)
    }

    // MARK: HTTP

    private var wanted: CacheRequest {
        CacheRequest(method: request.method, url: request.url, headers: request.headers)
    }

    private func exchange(
        _ stored: StoredResponse?, _ context: FetchContext
    ) async throws(NetworkError) -> Answer {
        let wanted = wanted
        var sent = request
        var isConditional = false
        switch cache.decide(wanted, stored: stored.map { [$0] } ?? [], now: options.clock.now) {
        case .serve(_, let freshness) where !freshness.isFresh && !context.isRefresh: return .stale(refreshing: false)
        case .serveAndRevalidate where !context.isRefresh: return .stale(refreshing: true)
        case .serve, .serveAndRevalidate, .revalidate:
            // The cache's entry has expired, or is to be refreshed, whatever the response says.
            guard let stored else { break }
            sent.headers = cache.conditions(for: stored, wanted)
            isConditional = true
        case .forward: break
        case .unavailable:
            throw .unavailable(url: displayURL, reason: "only what is stored is wanted, and there is nothing to use")
        }
        if context.isRefresh, !context.isBackground, !sent.headers.contains("Cache-Control") {
            // Caches on the way are asked to ask as well.
            sent.headers.append("Cache-Control", "no-cache")
        }
        do throws(NetworkError) {
            let requestTime = options.clock.now
            let response = try await options.loader.load(sent, checking: .nothing, progress: progress)
            let exchange = CacheExchange(
                request: wanted, status: response.head.status, headers: response.head.headers,
                requestTime: requestTime, responseTime: options.clock.now, stored: stored.map { [$0] } ?? [],
                revalidated: isConditional ? 0 : nil)
            return try await answer(response, to: sent, exchange, context)
        } catch {
            guard let stored, !context.isRefresh, error.isWithoutAnswer,
                cache.canServeStale(stored, to: wanted, afterFailureAt: options.clock.now)
            else { throw error }
            return .stale(refreshing: false)
        }
    }

    private func answer(
        _ response: DataResponse, to sent: DataRequest, _ exchange: CacheExchange, _ context: FetchContext
    ) async throws(NetworkError) -> Answer {
        let update = cache.update(after: exchange)
        switch update.answer {
        case .confirmed(let index):
            await response.body.discard()
            let confirmed = update.refreshed[index] ?? exchange.stored[index]
            return .unchanged(timeToLive: timeToLive(of: confirmed), tag: confirmed.tag)
        case .stale where !context.isRefresh:
            await response.body.discard()
            return .stale(refreshing: false)
        case .repetition:
            await response.body.discard()
            return try await self.exchange(nil, context)
        case .stale, .response: return try await body(of: response, to: sent, storing: nil)
        case .storing(let stored): return try await body(of: response, to: sent, storing: stored)
        }
    }

    private func body(
        of response: DataResponse, to sent: DataRequest, storing stored: StoredResponse?
    ) async throws(NetworkError) -> Answer {
        var failure = ResponseCheck.failure(response.head, to: sent, policy: options.loader.configuration.policy)
        if failure == nil, response.head.status == 304 { failure = .status(url: displayURL, response.head) }
        if let failure {
            // What is read now is no part of what is wanted.
            progress?.end(isComplete: false)
            await response.body.discard()
            throw failure
        }
        try check(response)
        let bytes = try await response.body.collect()
        guard var stored else { return .body(bytes, timeToLive: nil, tag: [], .none) }
        stored.bodyLength = bytes.count
        return .body(bytes, timeToLive: timeToLive(of: stored), tag: stored.tag, .all)
    }

    /// The content type, before anything is kept (R75).
    private func check(_ response: DataResponse) throws(NetworkError) {
        guard !options.contentTypes.isEmpty else { return }
        var policy = SourcePolicy.userInitiated
        policy.contentTypes = options.contentTypes
        guard !policy.accepts(contentType: response.head.contentType) else { return }
        progress?.end(isComplete: false)
        response.body.cancel()
        throw .contentType(url: displayURL, type: response.head.contentType)
    }

    private var displayURL: String { SourceURL.withoutCredentials(request.url.absoluteString) }

    /// A hundred years: more than that the disk's times do not hold.
    private static let longestLife = Duration.seconds(3_155_760_000)

    /// How long a response needs no asking from now on.
    private func timeToLive(of response: StoredResponse) -> Duration {
        let policy = cache.policy
        let (directives, _) = policy.directives(of: response.headers)
        if policy.requiresValidation(response, directives) { return .zero }
        return min(policy.freshness(of: response, now: options.clock.now).remaining, Self.longestLife)
    }
}

extension StoredResponse {
    /// Beyond this many bytes only what decides is kept of a header.
    private static let longestTag = 8 << 10

    /// Fields that later decisions need, in small letters.
    private static let decisive: Set<String> = [
        "age", "cache-control", "content-encoding", "content-language", "content-length", "content-type", "date",
        "etag", "expires", "last-modified", "pragma", "vary", "cdn-cache-control",
    ]

    /// The head as the tag of a cache's entry.
    fileprivate var tag: [UInt8] {
        let tag = bytes()
        guard tag.count > Self.longestTag else { return tag }
        var short = self
        short.headers = HTTPHeaders(headers.filter { Self.decisive.contains($0.name.lowercased()) })
        return short.bytes()
    }
}

extension NetworkError {
    /// Whether nobody answered, or not to the end: not whether the answer was bad.
    fileprivate var isWithoutAnswer: Bool {
        switch self {
        case .nameNotResolved, .notConnected, .insecure, .timedOut, .truncated, .unavailable: true
        default: false
        }
    }
}
