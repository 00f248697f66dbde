#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Fetches a URL for a `Cache`, under the rules of HTTP caching.
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
    /// The key of the value: the id, or the URL's identity with a digest of the request's own header fields.
    ///
    /// If the loader's policy refuses private addresses, the key has one more part. The fetcher then never returns a
    /// value that a loader with access to private addresses stored, and never joins its loads.
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
    ///   - id: The identity of the value, which replaces the URL in the key. Use it for signed URLs.
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
    ///   - id: The identity of the value, which replaces the URL in the key.
    ///   - options: The options.
    ///   - progress: Receives the progress of the body, if one is loaded.
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

    /// Whether stored values are revalidated: true for HTTP.
    public var revalidates: Bool { resource == .http }

    /// Fetches the value.
    ///
    /// - Parameter context: The stored value, if there is one, and the reason for the fetch.
    /// - Throws: ``NetworkError``, or `CancellationError` if the task is cancelled.
    public func fetch(_ context: FetchContext) async throws -> FetchResult<Value> {
        do throws(NetworkError) {
            var load = CachedLoad(request, key, options, progress, arriving)
            load.willHold = willHold
            load.excerpt = excerpt
            let answer = try await load.answer(context, resource)
            progress?.end(isComplete: true)
            switch answer {
            case .body(let bytes, let timeToLive, let validator, let levels):
                return FetchResult(bytes: bytes, timeToLive: timeToLive, validator: validator, levels: levels)
            case .unchanged(let timeToLive, let validator):
                return .unchanged(timeToLive: timeToLive, validator: validator)
            case .stale(let refreshing): return .stale(refreshing: refreshing)
            }
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

    // MARK: Keys

    /// Fields that do not select another resource, in lowercase.
    private static let silentFields: Set<String> = [
        "cache-control", "pragma", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
        "range", "accept-encoding",
    ]
    /// Longer identities are replaced by a digest, because the length of keys is limited.
    private static let longestIdentity = 2048

    /// Returns the key of a request's resource. Secrets in it, such as passwords and header fields, are digested.
    static func key(of request: HTTPRequest, _ identity: (@Sendable (URL) -> String?)?) -> CacheKey {
        let text = identity?(request.url) ?? HTTPCache.identity(of: request.url)
        let bare = SourceURL.withoutCredentials(text)
        let name = bare.utf8.count <= longestIdentity ? bare : digest(bare)
        let differences = differences(request, hasCredentials: bare.utf8.count != text.utf8.count ? text : nil)
        return differences.isEmpty ? CacheKey(name) : CacheKey(name, digest(differences.joined(separator: "\n")))
    }

    /// Returns the parts of a request that select another resource than the URL alone.
    private static func differences(_ request: HTTPRequest, hasCredentials: String?) -> [String] {
        var differences: [String] = []
        if let hasCredentials { differences.append(hasCredentials) }
        if request.method != "GET" { differences.append(request.method) }
        if let body = request.body { differences.append(Hexadecimal.text(SHA256Digest.digest(of: body))) }
        if let range = request.range {
            differences.append("\(range.lowerBound)-\(range.upperBound == .max ? -1 : range.upperBound)")
        }
        let fields = request.headers.fields.map { ($0.name.lowercased(), $0.value) }
            .filter { !silentFields.contains($0.0) }
        return differences + fields.map { $0.0 + ":" + $0.1 }.sorted()
    }

    private static func digest(_ text: String) -> String {
        "sha256:" + Hexadecimal.text(SHA256Digest.digest(of: text))
    }
}
