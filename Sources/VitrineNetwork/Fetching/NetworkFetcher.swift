#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Fetches a URL for a `ValueCache`, under the rules of HTTP caching.
///
/// ```swift
/// let image = try await cache.value(from: NetworkFetcher(url: url), format: "small")
/// ```
///
/// - The original bytes are stored with the head of the response. A stale response is revalidated with its validators
///   and renewed if it has not changed.
/// - A stale response is returned while it is revalidated if it permits that (`stale-while-revalidate`). It is also
///   returned if the server fails or cannot be reached, unless it forbids that.
/// - Responses with an error status, another media type, a truncated body or bytes that are not a value are not stored.
///   Responses with `no-store` are not stored. The next request loads again.
/// - An interrupted transfer of a large body is resumed by the next request, see ``FetchOptions/resumesLargeBodies``.
/// - `file:` and `data:` URLs are read in place and kept in memory only. A changed file is read again after it has left
///   memory, or by the cache's `refresh(from:)`.
public struct NetworkFetcher<Value: CacheableValue>: Fetcher {
    /// The request.
    package let request: HTTPRequest
    /// The key of the value: the id, or the URL's identity, with a digest of all else that can change the answer.
    ///
    /// That is the method, the body, the range, and the user name and password in the URL. It is also the header fields
    /// of the request and of the loader, the loader's ``NetworkLoader/Configuration/identity`` and policy, and the
    /// options. The key of a plain request with the default options is the normalized URL. The fetcher never returns a
    /// value that was loaded under another key, and never joins its load.
    public private(set) var key: CacheKey
    private let options: FetchOptions
    private let progress: TransferProgress?
    /// Receives the body while it is transferred; nil, the default, for none.
    package var arriving: ArrivingBytes?
    /// Called before bytes of the body are kept in memory, with their number in all. It may wait, which delays the
    /// transfer, and its error ends it. Bodies that are received into files are not announced. Default: nil.
    @_spi(HTTPCacheEngine)
    public var willHold: (@Sendable (_ bytes: Int) async throws(NetworkError) -> Void)?
    private let resource: Resource
    /// The part of the body that stands for all of it; nil, the default, for all of it.
    private var excerpt: BodyExcerpt?

    /// Creates a fetcher for a URL.
    ///
    /// - Parameters:
    ///   - url: The URL, whose scheme is `http`, `https`, `file`, `data`, or one registered with the loader.
    ///   - id: The identity of the resource, which replaces the URL in the key. Use it for signed URLs.
    ///   - options: The options.
    ///   - progress: Receives the progress of the body, if one is loaded.
    public init(
        url: URL, id: String? = nil, options: FetchOptions = .default, progress: TransferProgress? = nil
    ) {
        self.init(request: HTTPRequest(url: url), id: id, options: options, progress: progress)
    }

    /// Creates a fetcher for a request with header fields, timeouts or limits of its own.
    ///
    /// The cache replaces the request's conditions and priority. Responses to methods other than `GET` are not stored.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - id: The identity of the resource, which replaces the URL in the key.
    ///   - options: The options.
    ///   - progress: Receives the progress of the body, if one is loaded.
    public init(
        request: HTTPRequest, id: String? = nil, options: FetchOptions = .default, progress: TransferProgress? = nil
    ) {
        self.request = request
        self.options = options
        self.progress = progress
        resource = Resource(request.url)
        key = LoadIdentity(request, id: id, options: options).key
    }

    /// Returns a fetcher of a part of the body, with a key of its own.
    package func fetching(_ excerpt: BodyExcerpt) -> NetworkFetcher {
        var fetcher = self
        fetcher.excerpt = excerpt
        fetcher.key = key.appending(excerpt.name)
        return fetcher
    }

    /// Whether original bytes are stored: false for `file:` and `data:` URLs.
    public var storesOriginal: Bool { !resource.isLocal }

    /// The cache levels: memory only for `file:` and `data:` URLs.
    public var levels: CacheLevels { resource.isLocal ? .memory : .all }

    /// The limits of time of the request, the options and the loader.
    public var bounds: String { options.bounds(of: request) }

    /// Whether stored values are revalidated: true for HTTP.
    public var revalidates: Bool { resource == .http }

    /// Fetches the value.
    ///
    /// - Parameter context: The stored value, if there is one, and the reason for the fetch.
    /// - Throws: ``NetworkError``, or `CancellationError` if the task is cancelled.
    public func fetch(_ context: FetchContext) async throws -> FetchResult<Value> {
        do throws(NetworkError) {
            var load = CachedLoad(request, key: key, options: options, progress: progress, arriving: arriving)
            load.willHold = willHold
            load.excerpt = excerpt
            let answer = try await load.answer(context, resource)
            if case .gone = answer { progress?.end(isComplete: false) } else { progress?.end(isComplete: true) }
            return answer.result()
        } catch {
            progress?.end(isComplete: false)
            if case .cancelled = error, Task.isCancelled { throw CancellationError() }
            throw error
        }
    }
}

/// The kind of a URL's source.
enum Resource: Sendable {
    case http, file, inline, registered

    init(_ url: URL) {
        switch url.scheme?.lowercased() {
        case "http", "https": self = .http
        case "file": self = .file
        case "data": self = .inline
        default: self = .registered
        }
    }

    /// Whether the source is local, so that a copy is not worth storing.
    var isLocal: Bool { self == .file || self == .inline }
}

extension CachedLoad.Answer {
    /// The result for the cache. This is the only place that applies the consequences of a response to stored values:
    /// they are stored, confirmed or removed.
    fileprivate func result<Value>() -> FetchResult<Value> {
        switch self {
        case .body(let bytes, let timeToLive, let validator, let levels, let outdated):
            var result = FetchResult<Value>(bytes: bytes, timeToLive: timeToLive, validator: validator, levels: levels)
            result.outdated = outdated
            return result
        case .unchanged(let timeToLive, let validator, let levels):
            var result = FetchResult<Value>.unchanged(timeToLive: timeToLive, validator: validator)
            result.levels = levels
            return result
        case .stale(let refreshing): return .stale(refreshing: refreshing)
        case .gone(let error): return .gone(error)
        }
    }
}
