import VitrineCache
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// The cache of `vitrine fetch`: bodies as received.
struct FetchCache: Sendable {
    /// A body with its origin.
    struct Answer: Sendable {
        let bytes: [UInt8]
        let origin: FetchOrigin
        /// The head of the response, if there was one.
        let head: StoredResponse?
    }

    /// Larger bodies go to files only.
    static let limit = ByteCount.mebibytes(32)

    private let loader: NetworkLoader
    private let depth: CacheLevel
    private let refreshes: Bool
    private let cache: ValueCache<[UInt8]>

    /// - Parameters:
    ///   - loader: Sends the requests.
    ///   - depth: The last level to search.
    ///   - refreshes: Whether fresh entries are revalidated too.
    init(loader: NetworkLoader, depth: CacheLevel, refreshes: Bool) {
        self.loader = loader
        self.depth = depth
        self.refreshes = refreshes
        var configuration = CacheConfiguration()
        configuration.memoryPressure = nil
        // Expired entries can be revalidated this long.
        configuration.expiredRetention = .seconds(30 * 86_400)
        cache = ValueCache(name: "fetched", configuration: configuration)
    }

    /// Returns the body for a request.
    ///
    /// - Throws: ``NetworkError/bodyTooLarge(url:limit:)`` as the source's error above ``limit``.
    func body(
        _ request: HTTPRequest, id: String?, _ progress: TransferProgress
    ) async throws(CacheError) -> Answer {
        var options = FetchOptions(loader: loader)
        options.maximumBodySize = Self.limit
        // The user waits on purpose: a slow line is no attack.
        options.totalTimeout = .seconds(3600)
        let fetcher = RecordedFetcher(
            fetcher: NetworkFetcher<[UInt8]>(request: request, id: id, options: options, progress: progress),
            mayLoad: depth == .source)
        if depth == .memory {
            guard let bytes = cache[fetcher.key] else { throw .notFound(key: fetcher.key) }
            return Answer(bytes: bytes, origin: .cache, head: nil)
        }
        let bytes = refreshes ? try await cache.refresh(from: fetcher) : try await cache.value(from: fetcher)
        return Answer(bytes: bytes, origin: fetcher.record.origin, head: fetcher.record.head)
    }

    /// Returns when all entries are on disk.
    func flush() async { try? await cache.flush() }
}

/// A fetcher that records the origin of its answer, and that can be limited to stored entries.
private struct RecordedFetcher<Value: CacheableValue>: Fetcher {
    /// The origin of the answer.
    final class Record: Sendable {
        private let state = Locked<(origin: FetchOrigin, head: StoredResponse?)?>(nil)

        /// The origin of the value.
        var origin: FetchOrigin { state.withLock { $0?.origin } ?? .cache }
        /// The head of the response, if there was one.
        var head: StoredResponse? { state.withLock { $0?.head } }

        func set(_ origin: FetchOrigin, validator: [UInt8]) {
            let head = try? StoredResponse(bytes: validator)
            state.withLock { $0 = (origin, head) }
        }
    }

    let fetcher: NetworkFetcher<Value>
    /// Whether requests are allowed.
    let mayLoad: Bool
    let record = Record()

    var key: CacheKey { fetcher.key }
    var storesOriginal: Bool { fetcher.storesOriginal }
    var revalidates: Bool { fetcher.revalidates }
    var bounds: String { fetcher.bounds }

    func fetch(_ context: FetchContext) async throws -> FetchResult<Value> {
        guard mayLoad else {
            guard let stored = context.stored else { throw CacheError.notFound(key: key) }
            record.set(.stale, validator: stored.validator)
            return .stale(refreshing: false)
        }
        let fetched = try await fetcher.fetch(context)
        switch fetched.content {
        case .unchanged: record.set(.revalidated, validator: fetched.validator)
        case .stale: record.set(.stale, validator: context.stored?.validator ?? [])
        case .value, .bytes, .both, .gone: record.set(.network, validator: fetched.validator)
        }
        return fetched
    }
}
