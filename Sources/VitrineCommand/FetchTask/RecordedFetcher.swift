import VitrineCache
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// A fetcher that remembers what it answered, and that may be kept from asking anybody.
struct RecordedFetcher<Value: CacheableValue>: Fetcher {
    /// What became of the question, if it was asked at all.
    final class Record: Sendable {
        private let state = Locked<(origin: FetchOrigin, head: StoredResponse?)?>(nil)

        /// Where the value came from.
        var origin: FetchOrigin { state.withLock { $0?.origin } ?? .cache }
        /// The head of the response it came with, where it was asked for.
        var head: StoredResponse? { state.withLock { $0?.head } }

        func set(_ origin: FetchOrigin, tag: [UInt8]) {
            let head = try? StoredResponse(bytes: tag)
            state.withLock { $0 = (origin, head) }
        }
    }

    let fetcher: NetworkFetcher<Value>
    /// Whether what is not stored may be loaded.
    let mayLoad: Bool
    let record = Record()

    var key: CacheKey { fetcher.key }
    var storesOriginal: Bool { fetcher.storesOriginal }
    var revalidates: Bool { fetcher.revalidates }

    func fetch(_ context: FetchContext) async throws -> FetchResult<Value> {
        guard mayLoad else {
            guard let stored = context.stored else { throw CacheError.notFound(key: key) }
            record.set(.stale, tag: stored.tag)
            return .stale(refreshing: false)
        }
        let fetched = try await fetcher.fetch(context)
        switch fetched.content {
        case .unchanged: record.set(.revalidated, tag: fetched.tag)
        case .stale: record.set(.stale, tag: context.stored?.tag ?? [])
        case .value, .bytes, .both: record.set(.network, tag: fetched.tag)
        }
        return fetched
    }
}
