import VitrineCache
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// What `vitrine fetch` keeps: bodies as they came.
struct FetchCache: Sendable {
    /// A body, and what became of the question for it.
    struct Answer: Sendable {
        let bytes: [UInt8]
        let origin: FetchOrigin
        /// The head of the response it came with, where it was asked for.
        let head: StoredResponse?
    }

    /// Larger bodies go to their files and nowhere else.
    static let limit = ByteCount.mebibytes(32)

    private let loader: NetworkLoader
    private let depth: CacheLevel
    private let refreshes: Bool
    private let cache: Cache<[UInt8]>

    /// - Parameters:
    ///   - loader: Asks servers.
    ///   - depth: How far to go.
    ///   - refreshes: Whether servers are asked, however fresh what is stored.
    init(loader: NetworkLoader, depth: CacheLevel, refreshes: Bool) {
        self.loader = loader
        self.depth = depth
        self.refreshes = refreshes
        var configuration = CacheConfiguration()
        configuration.memoryPressure = nil
        // For this long, what has expired needs not be loaded again if it has not changed.
        configuration.expiredRetention = .seconds(30 * 86_400)
        cache = Cache(name: "fetched", configuration: configuration)
    }

    /// What a request brings.
    ///
    /// - Throws: ``NetworkError/bodyTooLarge(url:limit:)`` as the source's error above ``limit``.
    func body(
        _ request: HTTPRequest, id: String?, _ progress: TransferProgress
    ) async throws(CacheError) -> Answer {
        var options = FetchOptions(loader: loader)
        options.maximumBodySize = Self.limit
        // Slow lines are not hostile servers.
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

    /// Returns when everything is on disk.
    func flush() async { try? await cache.flush() }
}
