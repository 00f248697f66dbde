public import VitrineCore

/// Reads a file.
///
/// The key is the path, so a changed file is read again only when its entry expires or is refreshed. Originals are not
/// stored for other formats, because the file exists already.
public struct FileFetcher<Value: CacheableValue>: Fetcher {
    /// The file.
    package let path: String
    /// The key of the value. Default: the path.
    public let key: CacheKey
    /// The most bytes to accept.
    package let limit: ByteCount
    private let executor: BlockingExecutor

    /// Creates a fetcher for a file.
    ///
    /// - Parameters:
    ///   - path: The path. Symbolic links are followed.
    ///   - key: The key of the value. Default nil: the path.
    ///   - limit: The maximum size. A larger file is `FileError.tooLarge`.
    ///   - executor: The threads that read the file.
    public init(
        path: String, key: CacheKey? = nil, limit: ByteCount = .unlimited, executor: BlockingExecutor = .shared
    ) {
        self.path = path
        self.key = key ?? CacheKey(path)
        self.limit = limit
        self.executor = executor
    }

    /// False, because the file is the original.
    public var storesOriginal: Bool { false }

    /// Reads the file.
    ///
    /// - Throws: ``CacheError/file(_:)`` if it cannot be read, with `FileError.notFound` if it is missing.
    public func fetch(_ context: FetchContext) async throws -> FetchResult<Value> {
        try Task.checkCancellation()
        do {
            let bytes = try await executor.run { [path, limit] () throws(FileError) in
                try FileContents.read(path, limit: limit.bytes)
            }
            return FetchResult(bytes: bytes)
        } catch {
            throw CacheError.file(error)
        }
    }
}

/// A key, and a closure that produces its value.
public struct ValueFetcher<Value: CacheableValue>: Fetcher {
    /// The key of the value.
    public let key: CacheKey
    private let produce: @Sendable (FetchContext) async throws -> FetchResult<Value>

    /// A value that an operation produces.
    public init(key: CacheKey, load: @escaping @Sendable () async throws -> Value) {
        self.key = key
        produce = { _ in FetchResult(value: try await load()) }
    }

    /// Creates a fetcher whose closure returns a complete result.
    public init(key: CacheKey, fetch: @escaping @Sendable (FetchContext) async throws -> FetchResult<Value>) {
        self.key = key
        produce = fetch
    }

    /// Calls the closure.
    public func fetch(_ context: FetchContext) async throws -> FetchResult<Value> { try await produce(context) }
}
