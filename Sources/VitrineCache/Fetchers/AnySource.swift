import VitrineCore

/// A fetcher or closure without its type.
struct AnySource<Value: CacheableValue>: Sendable {
    let storesOriginal: Bool
    let revalidates: Bool
    let levels: CacheLevels
    let fetch: @Sendable (FetchContext) async throws -> FetchResult<Value>

    init(_ fetcher: some Fetcher<Value>) {
        storesOriginal = fetcher.storesOriginal
        revalidates = fetcher.revalidates
        levels = fetcher.levels
        fetch = { try await fetcher.fetch($0) }
    }

    init(timeToLive: Duration?, _ load: @escaping @Sendable () async throws -> Value) {
        storesOriginal = true
        revalidates = false
        levels = .all
        fetch = { _ in FetchResult(value: try await load(), timeToLive: timeToLive) }
    }
}
