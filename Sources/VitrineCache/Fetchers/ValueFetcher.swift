public import VitrineCore

/// A key and what produces its value (R8, R10).
public struct ValueFetcher<Value: CacheableValue>: Fetcher {
    public let key: CacheKey
    private let produce: @Sendable (FetchContext) async throws -> FetchResult<Value>

    /// A value that is computed only if no level has it, on the cache's executor.
    public init(key: CacheKey, value: @autoclosure @escaping @Sendable () throws -> Value) {
        self.key = key
        produce = { _ in FetchResult(value: try value()) }
    }

    /// A value that an operation produces.
    public init(key: CacheKey, load: @escaping @Sendable () async throws -> Value) {
        self.key = key
        produce = { _ in FetchResult(value: try await load()) }
    }

    /// Whatever an operation finds.
    public init(key: CacheKey, fetch: @escaping @Sendable (FetchContext) async throws -> FetchResult<Value>) {
        self.key = key
        produce = fetch
    }

    public func fetch(_ context: FetchContext) async throws -> FetchResult<Value> { try await produce(context) }
}
