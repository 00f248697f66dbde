// The parts of this module that the adapters use.
public import VitrineCore

public enum CacheError: Error { case notFound(key: CacheKey) }

public struct ValueFetcher<Value: Sendable>: Sendable {
    public init(key: CacheKey, load: @escaping @Sendable () async throws -> Value) {}
}
