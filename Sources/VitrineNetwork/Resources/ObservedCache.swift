#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// What URLs stand for, from memory, from disk or from where they lead, for observers that come and go.
///
/// ```swift
/// let pictures = ObservedCache(cache)
/// view.image = pictures.value(at: url, observer: view)          // from memory, or nil now and a call later
/// pictures.cancel(url, observer: view, policy: .processing)     // scrolled away: bytes still arrive
/// ```
///
/// - **Memory answers at once.** A value in memory, or alive anywhere in the process, is returned, and the observer is
///   not called (R84). Otherwise it is called exactly once, unless it goes or cancels before.
/// - **Everything is loaded once.** Who asks for what is being loaded waits for the same load; one that may look
///   further lets it go further (R80).
/// - **Nobody waits, nothing is decoded.** Bytes that arrive then are stored all the same (R85).
///
/// What is kept, where and how long is the ``cache``'s affair: its audits, limits and formats are those of all its
/// entries. Objects of this type are independent of each other and may share a cache.
///
/// `file:` and `data:` URLs are where they are: for them depth `.disk` reaches as far as `.source`, and removing them
/// forgets what was made of them, never the file.
///
/// ## Topics
/// ### Asking
/// - ``value(at:format:depth:priority:observer:)``
/// - ``value(at:format:depth:priority:)``
/// - ``cancel(_:format:observer:policy:)``
/// - ``depth(of:format:)``
/// ### Lists and later
/// - ``values(at:format:secondaryDepth:priority:)``
/// - ``provider(for:format:)``
/// - ``Prefetcher``
/// ### Changing
/// - ``remove(_:)``
/// - ``removeAll(levels:)``
/// - ``audit(_:dryRun:sparesMemory:progress:)``
/// - ``preserveList()``
public final class ObservedCache<Value: CacheableValue>: Sendable {
    /// Makes what loads a URL, and tells the progress how far it is.
    public typealias FetcherMaker = @Sendable (_ url: URL, _ progress: TransferProgress) -> any Fetcher<Value>

    /// Where everything is kept.
    public let cache: Cache<Value>
    let makeFetcher: FetcherMaker
    let loads: ResourceLoads<Value>
    private let keys = KeyCache()

    /// - Parameters:
    ///   - cache: Where everything is kept.
    ///   - fetcher: Makes what loads a URL. For one URL it must always have the same key.
    public init(_ cache: Cache<Value>, fetcher: @escaping FetcherMaker) {
        self.cache = cache
        makeFetcher = fetcher
        loads = ResourceLoads(cache)
    }

    /// The same with a ``NetworkFetcher`` for every URL.
    public convenience init(_ cache: Cache<Value>, options: FetchOptions = .default) {
        self.init(cache) { url, progress in NetworkFetcher(url: url, options: options, progress: progress) }
    }

    /// What a URL's values are stored under in the ``cache``.
    public func key(for url: URL) -> CacheKey {
        keys.key(for: url) { makeFetcher(url, TransferProgress()).key }
    }

    // MARK: Asking

    /// The value of a URL if it is in memory; otherwise nil, and the observer is told later (R83–R86).
    ///
    /// Never blocks. An observer that asks again for what it waits for waits once, as deep as it asked at most.
    ///
    /// - Parameters:
    ///   - url: What is wanted. nil and the empty URL give nil, and nobody is called.
    ///   - format: In which form.
    ///   - depth: How far to look. With `.memory` nobody is ever called. With `.disk` a value that is not stored is
    ///     `CacheError.notFound(key:)`, unless somebody who looks further waits for it already: then it is the same
    ///     value, when it is there.
    ///   - priority: How urgent it is; the load is as urgent as the most urgent of those who wait.
    ///   - observer: Told on the main actor, and held weakly. nil brings the value into memory for later requests; such
    ///     a request cannot be cancelled.
    public func value(
        at url: URL?, format: FormatName = .original, depth: CacheLevel = .source, priority: Priority = .normal,
        observer: (any LoadObserver<Value>)?
    ) -> Value? {
        guard let url, !url.absoluteString.isEmpty else { return nil }
        if let value = cache[key(for: url), format] { return value }
        guard depth > .memory else { return nil }
        join(ResourceSubscriber(observer: observer), url, format, depth, priority)
        return nil
    }

    /// The same for a listener, which is told on the thread on which the outcome became known.
    func value(
        at url: URL, _ format: FormatName, _ depth: CacheLevel, _ priority: Priority,
        listener: any ResourceListener<Value>
    ) -> Value? {
        if let value = cache[key(for: url), format] { return value }
        guard depth > .memory else { return nil }
        join(ResourceSubscriber(listener: listener), url, format, depth, priority)
        return nil
    }

    /// The value of a URL.
    ///
    /// - Parameters:
    ///   - url: What is wanted.
    ///   - format: In which form.
    ///   - depth: How far to look, as with ``value(at:format:depth:priority:observer:)``.
    ///   - priority: How urgent it is.
    /// - Throws: Why there is none: `CacheError.notFound(key:)` if it is not as near as that,
    ///   `CacheError.source(key:underlying:)` with a ``NetworkError``; `CacheError.cancelled(key:)` when the task is
    ///   cancelled, which ends the transfer if nobody else waits.
    public func value(
        at url: URL, format: FormatName = .original, depth: CacheLevel = .source, priority: Priority = .normal
    ) async throws(CacheError) -> Value {
        let key = key(for: url)
        if let value = cache[key, format] { return value }
        guard depth > .memory else { throw .notFound(key: key) }
        let outcome = FetchTask<Value>(key: key)
        let party = ResourceSubscriber<Value> { outcome.finish($0) }
        return try await withTaskCancellationHandler { () async -> Result<Value, CacheError> in
            join(party, url, format, depth, priority)
            do throws(CacheError) { return .success(try await outcome.value) } catch { return .failure(error) }
        } onCancel: {
            loads.leave(key, party)
        }.get()
    }

    private func join(
        _ party: ResourceSubscriber<Value>, _ url: URL, _ format: FormatName, _ depth: CacheLevel, _ priority: Priority
    ) {
        let progress = TransferProgress()
        // What is in place is as near as the disk, which has no copy of it.
        let depth = Resource(url).isLocal ? .source : depth
        loads.join(party, url, format, depth, priority, makeFetcher(url, progress), progress)
    }

    /// An observer wants a URL no more, and hears nothing (R87).
    ///
    /// Others who wait notice nothing. If nobody else does, `policy` says what becomes of the transfer.
    ///
    /// - Parameters:
    ///   - url: What it asked for.
    ///   - format: In which form; nil for all.
    ///   - observer: Who. One that did not ask changes nothing.
    ///   - policy: Default: the bytes still arrive and are stored.
    public func cancel(
        _ url: URL?, format: FormatName? = nil, observer: any LoadObserver<Value>,
        policy: CancellationPolicy = .processing
    ) {
        guard let url else { return }
        cancel(url, format, ObjectIdentifier(observer), policy)
    }

    func cancel(_ url: URL, _ format: FormatName?, _ observer: ObjectIdentifier, _ policy: CancellationPolicy) {
        loads.cancel(key(for: url), format, observer, policy)
    }

    /// How far a lookup of a URL has to go (R22). For a `file:` URL that is not in memory: `.disk` if there is a file.
    public func depth(of url: URL, format: FormatName = .original) async -> CacheLevel {
        let depth = await cache.depth(of: key(for: url), format: format)
        guard depth > .disk, Resource(url).isLocal else { return depth }
        guard url.isFileURL else { return .disk }
        guard let path = try? FileLoader.path(of: url) else { return .source }
        return await cache.configuration.executor.run { FilePath.resolved(path) != nil } ? .disk : .source
    }

    // MARK: Changing

    /// Forgets a URL in memory and on disk, in all formats. A load that runs now still tells those who wait for it, but
    /// keeps nothing.
    public func remove(_ url: URL) async { await cache.removeAll(forKey: key(for: url)) }

    /// Forgets everything, as `Cache.removeAll(levels:)` does.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        try await cache.removeAll(levels: levels)
    }

    /// Looks at every entry and removes those a policy says no to, as `Cache.audit(_:dryRun:sparesMemory:progress:)`
    /// does (R53). Keys of entries are those ``key(for:)`` gives.
    @discardableResult
    public func audit(
        _ policy: AuditPolicy, dryRun: Bool = false, sparesMemory: Bool = true,
        progress: (@Sendable (AuditProgress) -> Void)? = nil
    ) async throws(CacheError) -> AuditReport {
        try await cache.audit(policy, dryRun: dryRun, sparesMemory: sparesMemory, progress: progress)
    }

    /// An empty list of what is to stay when everything else is removed (R55).
    public func preserveList() -> RetainSet<Value> { RetainSet(of: cache) }

    // MARK: Later

    /// A value that is loaded when it is first asked for (R88); nil for no URL.
    public func provider(for url: URL?, format: FormatName = .original) -> LazyValue<Value>? {
        guard let url, !url.absoluteString.isEmpty else { return nil }
        return LazyValue(key: key(for: url)) { [self] () async throws(CacheError) -> Value in
            try await value(at: url, format: format)
        }
    }

    // MARK: For tests

    /// How many loads run.
    package var runningLoads: Int { loads.count }

    /// How many wait for a URL.
    package func waiters(for url: URL) -> Int { loads.waiters(key(for: url)) }

    /// How far the transfer of a URL is; nil if it is not being loaded.
    package func transfer(of url: URL) -> TransferProgress.Step? { loads.transfer(key(for: url)) }

    /// How urgent the load of a URL is; nil if there is none.
    package func loadPriority(of url: URL, format: FormatName = .original) -> Priority? {
        loads.priority(key(for: url), format)
    }
}
