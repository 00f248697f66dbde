public import VitrineCore

/// Reads a file (R74).
///
/// The key is the path, so a changed file is found under the old key until it expires or is refreshed. Originals are
/// not stored for the sake of other formats: the file is there already.
public struct FileFetcher<Value: CacheableValue>: Fetcher {
    /// The file.
    public let path: String
    /// What the value is known by. Default: the path.
    public let key: CacheKey
    /// The most bytes to accept.
    public let limit: ByteCount
    private let executor: BlockingExecutor

    /// - Parameters:
    ///   - path: The file. Symbolic links are followed.
    ///   - key: What the value is known by; nil for the path.
    ///   - limit: The most bytes to accept; a larger file is `FileError.tooLarge`.
    ///   - executor: Whose threads read it.
    public init(
        path: String, key: CacheKey? = nil, limit: ByteCount = .unlimited, executor: BlockingExecutor = .shared
    ) {
        self.path = path
        self.key = key ?? CacheKey(path)
        self.limit = limit
        self.executor = executor
    }

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
