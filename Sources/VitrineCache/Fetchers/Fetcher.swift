public import VitrineCore

/// Produces the value of one key when no cache has it: from the network, a file, a computation (R7, R71).
///
/// ```swift
/// struct WeatherFetcher: Fetcher {
///     let city: String
///     var key: CacheKey { CacheKey("weather", city) }
///     func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
///         FetchResult(value: try await weather.report(city), timeToLive: .seconds(600))
///     }
/// }
/// let report = try await cache.value(from: WeatherFetcher(city: "Bremen"))
/// ```
///
/// One fetch per key runs at a time in a cache, whoever and how many formats ask (R80). It is a task of its own that
/// is cancelled when the last of them leaves.
public protocol Fetcher<Value>: Sendable {
    /// What is fetched.
    associatedtype Value: CacheableValue

    /// What the value is known by, in every format.
    var key: CacheKey { get }

    /// Whether an original that was fetched for the sake of another format is worth keeping: false where asking again
    /// is as cheap as reading the cache. Default: true.
    var storesOriginal: Bool { get }

    /// Where values of the fetcher may be looked for and kept, in any format; the request may narrow this further.
    /// Default: everywhere.
    var levels: CacheLevels { get }

    /// Whether the fetcher can tell that the stored original is still valid: it is then told what is stored, see
    /// ``FetchContext/stored``. Default: false, which saves a look at the disk.
    var revalidates: Bool { get }

    /// Fetches.
    ///
    /// Must not block the calling thread: blocking work goes to `BlockingExecutor`. Stops soon after the task is
    /// cancelled.
    ///
    /// - Throws: Why there is no value. Who asked gets it as ``CacheError/source(key:underlying:)``, or as it is if it
    ///   is a ``CacheError``.
    func fetch(_ context: FetchContext) async throws -> FetchResult<Value>
}

extension Fetcher {
    public var storesOriginal: Bool { true }
    public var levels: CacheLevels { .all }
    public var revalidates: Bool { false }
}
