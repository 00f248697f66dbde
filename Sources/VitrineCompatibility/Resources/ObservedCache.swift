#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineNetwork

/// Loads URLs for observers, such as reusable cells, from memory, disk or the network.
///
/// ```swift
/// let pictures = ObservedCache(cache)
/// view.image = pictures.value(at: url, observer: view)          // from memory, or nil now and a call later
/// pictures.cancel(url, observer: view)                          // scrolled away; the transfer continues
/// ```
///
/// - A value that is in memory, or alive anywhere in the process, is returned at once. The observer is not called.
///   Otherwise it is called exactly once, unless it is deinitialized or cancels before.
/// - Concurrent requests for one URL share one load. A request that may look further extends the load.
/// - If no request waits any more, received bytes are stored without being decoded.
///
/// The cache decides about limits, formats and expiry. Several objects of this type may share a cache.
///
/// `file:` and `data:` URLs are read in place: for them, depth `.disk` includes the source. Removing the
/// values of a `file:` URL from the cache never removes the file.
///
/// ## Topics
/// ### Requesting
/// - ``value(at:format:depth:priority:observer:)``
/// - ``value(at:format:depth:priority:)``
/// - ``cancel(_:format:observer:policy:)``
/// - ``depth(of:format:)``
/// ### Lists and lazy values
/// - ``values(at:format:secondaryDepth:priority:)``
/// - ``lazyValue(for:format:)``
/// ### Keys
/// - ``key(for:)``
public final class ObservedCache<Value: CacheableValue>: Sendable {
    /// The cache that stores the values.
    package let cache: ValueCache<Value>
    let makeFetcher: @Sendable (_ url: URL, _ progress: TransferProgress) -> any Fetcher<Value>
    let loads: ResourceLoads<Value>
    private let keys = KeyCache()

    /// Creates an observed cache that loads with fetchers of your own.
    ///
    /// - Parameters:
    ///   - cache: The cache that stores the values.
    ///   - fetcher: Returns a fetcher for a URL, which reports to the progress. The key of a URL must never change.
    public init(
        _ cache: ValueCache<Value>,
        fetcher: @escaping @Sendable (_ url: URL, _ progress: TransferProgress) -> any Fetcher<Value>
    ) {
        self.cache = cache
        makeFetcher = fetcher
        loads = ResourceLoads(cache)
    }

    /// Creates an observed cache that loads each URL with a `NetworkFetcher`.
    ///
    /// - Parameters:
    ///   - cache: The cache that stores the values.
    ///   - options: The options of the fetchers.
    public convenience init(_ cache: ValueCache<Value>, options: FetchOptions = .default) {
        self.init(cache) { url, progress in NetworkFetcher(url: url, options: options, progress: progress) }
    }

    /// Returns the key of a URL's values in the cache, for example to remove them or to retain them in an audit.
    public func key(for url: URL) -> CacheKey {
        keys.key(for: url) { makeFetcher(url, TransferProgress()).key }
    }

    // MARK: Requesting

    /// Returns a value that is in memory; otherwise returns nil and notifies the observer later.
    ///
    /// The call never blocks. A second request of an observer for the same URL and format replaces the first.
    ///
    /// - Parameters:
    ///   - url: The URL. For nil and the empty URL the call returns nil and does not notify the observer.
    ///   - format: The format of the value.
    ///   - depth: The furthest cache level. With `.memory` the observer is never called. With `.disk` a missing value
    ///     is `CacheError.notFound(key:)`, unless a load from the source is already running: then the request joins it.
    ///   - priority: The priority. A load runs at the highest priority of its requests.
    ///   - observer: The observer, which is called on the main actor and held weakly. A request without an observer
    ///     loads the value into memory and cannot be cancelled.
    public func value(
        at url: URL?, format: FormatName = .original, depth: CacheLevel = .source, priority: RequestPriority = .normal,
        observer: (any LoadObserver<Value>)?
    ) -> Value? {
        guard let url, !url.absoluteString.isEmpty else { return nil }
        if let value = cache[key(for: url), format] { return value }
        guard depth > .memory else { return nil }
        join(ResourceSubscriber(observer: observer), url: url, format: format, depth: depth, priority: priority)
        return nil
    }

    /// Does the same for a listener, which is called on the thread of the load.
    func value(
        at url: URL, format: FormatName, depth: CacheLevel, priority: RequestPriority,
        listener: any ResourceListener<Value>
    ) -> Value? {
        if let value = cache[key(for: url), format] { return value }
        guard depth > .memory else { return nil }
        join(ResourceSubscriber(listener: listener), url: url, format: format, depth: depth, priority: priority)
        return nil
    }

    /// Returns the value of a URL.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - format: The format of the value.
    ///   - depth: The furthest cache level, as in ``value(at:format:depth:priority:observer:)``.
    ///   - priority: The priority.
    /// - Throws: `CacheError.notFound(key:)` if the value is not at these levels, `CacheError.source(key:underlying:)`
    ///   with a `NetworkError` if the load fails, or `CacheError.cancelled(key:)` if the task is cancelled.
    ///   Cancellation ends the transfer if no other request waits.
    public func value(
        at url: URL, format: FormatName = .original, depth: CacheLevel = .source, priority: RequestPriority = .normal
    ) async throws(CacheError) -> Value {
        let key = key(for: url)
        if let value = cache[key, format] { return value }
        guard depth > .memory else { throw .notFound(key: key) }
        let outcome = FetchTask<Value>(key: key)
        let subscriber = ResourceSubscriber<Value> { outcome.finish($0) }
        return try await withTaskCancellationHandler { () async -> Result<Value, CacheError> in
            join(subscriber, url: url, format: format, depth: depth, priority: priority)
            do throws(CacheError) { return .success(try await outcome.value) } catch { return .failure(error) }
        } onCancel: {
            loads.leave(key, subscriber)
        }.get()
    }

    private func join(
        _ subscriber: ResourceSubscriber<Value>, url: URL, format: FormatName, depth: CacheLevel,
        priority: RequestPriority
    ) {
        let progress = TransferProgress()
        // A local resource is read in place and has no copy on disk.
        let depth = url.isReadInPlace ? .source : depth
        loads.join(
            subscriber, url: url, format: format, depth: depth, priority: priority, fetcher: makeFetcher(url, progress),
            progress: progress)
    }

    /// Cancels the requests of an observer for a URL. The observer is not called.
    ///
    /// Other requests continue.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - format: The format, or nil for all.
    ///   - observer: The observer.
    ///   - policy: Decides about a transfer that no other request waits for. By default it continues, and its bytes are
    ///     stored.
    public func cancel(
        _ url: URL?, format: FormatName? = nil, observer: any LoadObserver<Value>,
        policy: CancellationPolicy = .processing
    ) {
        guard let url else { return }
        cancel(url, format: format, observer: ObjectIdentifier(observer), policy: policy)
    }

    func cancel(_ url: URL, format: FormatName?, observer: ObjectIdentifier, policy: CancellationPolicy) {
        loads.cancel(key(for: url), format: format, observer: observer, policy: policy)
    }

    /// Returns the nearest cache level with a value of the URL. A `file:` URL outside memory is at `.disk` if the file
    /// exists.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - format: The format of the value.
    public func depth(of url: URL, format: FormatName = .original) async -> CacheLevel {
        let depth = await cache.depth(of: key(for: url), format: format)
        guard depth > .disk, url.isReadInPlace else { return depth }
        guard url.isFileURL else { return .disk }
        guard let path = try? FileLoader.path(of: url) else { return .source }
        return await cache.configuration.executor.run { FilePath.resolved(path) != nil } ? .disk : .source
    }

    // MARK: Lazy values

    /// Returns a value that is loaded on first access; nil for nil and the empty URL.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - format: The format of the value.
    public func lazyValue(for url: URL?, format: FormatName = .original) -> LazyValue<Value>? {
        guard let url, !url.absoluteString.isEmpty else { return nil }
        return LazyValue(key: key(for: url)) { [self] () async throws(CacheError) -> Value in
            try await value(at: url, format: format)
        }
    }

    // MARK: For tests

    /// The number of running loads.
    package var runningLoads: Int { loads.count }

    /// The number of requests that wait for a URL.
    package func waiters(for url: URL) -> Int { loads.waiters(key(for: url)) }

    /// The progress of a URL's transfer; nil if it is not being loaded.
    package func transfer(of url: URL) -> TransferProgress.Step? { loads.transfer(key(for: url)) }

    /// The priority of a URL's load; nil if it is not being loaded.
    package func loadPriority(of url: URL, format: FormatName = .original) -> RequestPriority? {
        loads.priority(key(for: url), format)
    }
}

/// Receives the outcome of requests to an ``ObservedCache``, on the main actor.
///
/// ```swift
/// @MainActor final class LakeView: LoadObserver {
///     func resourceDidLoad(_ image: PixelImage, from url: URL) { show(image) }
/// }
/// ```
///
/// The cache holds an observer weakly; its deinitialization cancels its requests. Each request is answered once. Code
/// without a main loop, such as a server, awaits ``ObservedCache/value(at:format:depth:priority:)`` instead.
@MainActor
public protocol LoadObserver<Value>: AnyObject, Sendable {
    /// The type of the values.
    associatedtype Value: CacheableValue

    /// Called with the loaded value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - url: The URL of the request.
    func resourceDidLoad(_ value: Value, from url: URL)

    /// Called if the value could not be loaded. The default implementation does nothing.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - url: The URL of the request.
    func resourceDidFail(_ error: CacheError, from url: URL)
}

extension LoadObserver {
    public func resourceDidFail(_ error: CacheError, from url: URL) {}
}

/// An observer within the module that is called at once, on any thread.
protocol ResourceListener<Value>: AnyObject, Sendable {
    associatedtype Value: CacheableValue

    func resourceDidLoad(_ value: Value, from url: URL)
    func resourceDidFail(_ error: CacheError, from url: URL)
}

/// Decides about a transfer when its last request is cancelled.
///
/// A cancelled request is never answered. Bytes that have been received completely are stored without being decoded. A
/// request that has not been sent to the source is dropped.
public enum CancellationPolicy: Sendable, Hashable, CaseIterable {
    /// The transfer continues, and its bytes are stored without being decoded. Later requests join it or find the
    /// bytes.
    case processing
    /// The transfer ends unless the head of the response has been received.
    case beforeResponse
    /// The transfer ends unless the first bytes of the body have been received.
    case beforeBody
    /// The transfer ends.
    case unconditional
}

extension URL {
    /// Whether the resource is read in place, and no copy is stored.
    fileprivate var isReadInPlace: Bool { ["file", "data"].contains(scheme?.lowercased()) }
}

/// Remembers the keys of recent URLs. Parsing a URL costs more than the lookup in memory.
private final class KeyCache: Sendable {
    private let keys = Locked<[URL: CacheKey]>([:])

    /// Returns the key of a URL.
    func key(for url: URL, _ make: () -> CacheKey) -> CacheKey {
        // Inline data would be stored twice.
        guard url.absoluteString.utf8.count <= Self.longestURL else { return make() }
        if let key = keys.withLock({ $0[url] }) { return key }
        let key = make()
        keys.withLock { keys in
            if keys.count >= Self.limit { keys.removeAll(keepingCapacity: true) }
            keys[url] = key
        }
        return key
    }

    /// Enough for several screens.
    private static let limit = 2048
    private static let longestURL = 1024
}
