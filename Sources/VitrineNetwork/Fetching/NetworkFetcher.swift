#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Fetches what a URL stands for, under HTTP's rules for caches (R72, R73, R75, R77–R82).
///
/// ```swift
/// let image = try await cache.value(from: NetworkFetcher(url: url), format: "small")
/// ```
///
/// - The bytes are stored as they came (R77), with the head of the response beside them. What has expired is asked
///   for with its validators, and only renewed if it has not changed.
/// - A response that allows it is given while it is asked for again (`stale-while-revalidate`); without a connection,
///   or when the server fails, what is stored is given, unless it forbids that.
/// - Nothing is stored of a response with another status than 200 to 299, of another content type than is accepted,
///   that broke off, or whose bytes are no value; `no-store` is not kept at all. The next request tries again.
/// - A large body that broke off is gone on with by the next request, see ``FetchOptions/resumesLargeBodies``.
/// - `file:` and `data:` URLs are read in place: memory is the only level that keeps them (R78). A file that has
///   changed is found when it has left memory, or by the cache's `refresh(from:)`. Schemes that are
///   registered with the loader are stored for as long as the cache says.
public struct NetworkFetcher<Value: CacheableValue>: Fetcher {
    /// What to load.
    public let request: HTTPRequest
    /// What the value is known by: the id; or the URL's identity, see ``FetchOptions/identity``, with a digest of the
    /// request's own header fields if it has any, as other fields may bring another resource.
    ///
    /// With a loader whose policy keeps private addresses out, as ``URLAccessPolicy/publicOnly`` does, one more part says
    /// so: at no level, in no format and under no id is anything given that another loader has stored, and no load of
    /// another one is joined.
    public let key: CacheKey
    /// How to load.
    public let options: FetchOptions
    /// Told how far the body has come, if there is one to load.
    public let progress: TransferProgress?
    /// Receives the body while it is transferred, if there is one to load; nil, the default, for nothing.
    package var arriving: ArrivingBytes?
    private let resource: Resource

    /// - Parameters:
    ///   - url: What to load: `http`, `https`, `file`, `data`, or a scheme registered with the loader.
    ///   - id: What the value is known by instead of the URL: for one that is signed or changes otherwise.
    ///   - options: How to load.
    ///   - progress: Told how far the body has come, if there is one to load.
    public init(
        url: URL, id: String? = nil, options: FetchOptions = .default, progress: TransferProgress? = nil
    ) {
        self.init(request: HTTPRequest(url: url), id: id, options: options, progress: progress)
    }

    /// The same for a request with header fields, timeouts or limits of its own. Its conditions and its priority give
    /// way to those of the cache; responses to methods other than `GET` are not kept.
    public init(
        request: HTTPRequest, id: String? = nil, options: FetchOptions = .default, progress: TransferProgress? = nil
    ) {
        self.request = request
        self.options = options
        self.progress = progress
        resource = Resource(request.url)
        let key = id.map { CacheKey($0) } ?? Resource.key(of: request, options.identity)
        self.key = options.loader.configuration.policy.fence.map { key.appending($0) } ?? key
    }

    /// False for `file:` and `data:` URLs.
    public var storesOriginal: Bool { !resource.isLocal }

    /// Memory alone for `file:` and `data:` URLs.
    public var levels: CacheLevels { resource.isLocal ? .memory : .all }

    /// True for HTTP.
    public var revalidates: Bool { resource == .http }

    /// Fetches.
    ///
    /// - Throws: ``NetworkError``; `CancellationError` when the task is cancelled.
    public func fetch(_ context: FetchContext) async throws -> FetchResult<Value> {
        do throws(NetworkError) {
            let answer = try await CachedLoad(request, key, options, progress, arriving).answer(context, resource)
            progress?.end(isComplete: true)
            switch answer {
            case .body(let bytes, let timeToLive, let tag, let levels):
                return FetchResult(bytes: bytes, timeToLive: timeToLive, tag: tag, levels: levels)
            case .unchanged(let timeToLive, let tag): return .unchanged(timeToLive: timeToLive, tag: tag)
            case .stale(let refreshing): return .stale(refreshing: refreshing)
            }
        } catch {
            progress?.end(isComplete: false)
            if case .cancelled = error, Task.isCancelled { throw CancellationError() }
            throw error
        }
    }
}
