#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Loads URLs into a cache before they are needed, with low priority and a few at a time.
///
/// ```swift
/// let prefetcher = Prefetcher(pictures)          // to disk, two at a time
/// prefetcher.start(upcoming)
/// prefetcher.cancel(scrolledAway)
/// ```
///
/// URLs are processed in FIFO order. A request for a URL that is being prefetched joins its load and raises its
/// priority. Deinitialization cancels the remaining URLs.
public final class Prefetcher<Value: CacheableValue>: Sendable {
    /// The numbers of URLs by state.
    public struct Statistics: Sendable, Hashable {
        /// The URLs that wait.
        public internal(set) var waiting = 0
        /// The URLs that are being loaded.
        public internal(set) var running = 0
        /// The URLs that are in the cache.
        public internal(set) var succeeded = 0
        /// The URLs that failed.
        public internal(set) var failed = 0
        /// The URLs that were cancelled.
        public internal(set) var cancelled = 0
        /// The bytes of bodies that were received.
        public internal(set) var received = ByteCount.zero
    }

    private let work: PrefetchWork<Value>

    /// Creates a prefetcher.
    ///
    /// - Parameters:
    ///   - resources: The cache.
    ///   - format: The format to prepare.
    ///   - depth: The level to load to: `.disk` stores bytes without decoding them, `.memory` decodes.
    ///   - limit: The most loads at a time.
    ///   - priority: The priority of the loads.
    ///   - isPaused: Whether to wait for ``resume()``.
    ///   - onEnd: Called on the main actor for each URL that was not cancelled, with the error if there is one.
    public init(
        _ resources: ObservedCache<Value>, format: FormatName = .original, to depth: CacheLevel = .disk, limit: Int = 2,
        priority: Priority = .veryLow, isPaused: Bool = false,
        onEnd: (@MainActor @Sendable (URL, CacheError?) -> Void)? = nil
    ) {
        let queue = WorkQueue(limit: limit, isSuspended: isPaused)
        work = PrefetchWork(resources, format, depth, priority, queue, onEnd)
    }

    deinit { work.cancelAll() }

    /// Adds URLs to the end of the queue. URLs that wait or are being loaded are ignored.
    public func start(_ urls: [URL]) { for url in urls { work.start(url) } }

    /// Cancels URLs that wait or are being loaded. Other requests for them continue.
    public func cancel(_ urls: [URL]) { for url in urls { work.cancel(url) } }

    /// Cancels all URLs.
    public func cancelAll() { work.cancelAll() }

    /// Starts no further load until ``resume()``. Running loads continue.
    public func pause() { work.queue.suspend() }

    /// Continues after ``pause()``.
    public func resume() { work.queue.resume() }

    /// Whether the prefetcher is paused.
    public var isPaused: Bool { work.queue.isSuspended }

    /// The most loads at a time.
    public var limit: Int {
        get { work.queue.limit }
        set { work.queue.limit = newValue }
    }

    /// The numbers of URLs by state.
    public var statistics: Statistics { work.statistics }

    /// Returns when no URL waits or is being loaded. While paused with waiting URLs, it does not return.
    public func waitUntilIdle() async { await work.queue.waitUntilIdle() }
}

/// The work of a ``Prefetcher``. Running loads retain this object and not the prefetcher, whose deinitialization ends
/// it.
private final class PrefetchWork<Value: CacheableValue>: Sendable {
    private struct Entry {
        let id: Int
        let progress: TransferProgress
        var item: WorkItem?
        var isRunning = false
    }

    private struct State {
        var lastID = 0
        var entries: [CacheKey: Entry] = [:]
        /// The numbers of URLs that have ended.
        var totals = Prefetcher<Value>.Statistics()
    }

    let queue: WorkQueue
    private let resources: ObservedCache<Value>
    private let format: FormatName
    private let depth: CacheLevel
    private let priority: Priority
    private let onEnd: (@MainActor @Sendable (URL, CacheError?) -> Void)?
    private let state = Locked(State())

    init(
        _ resources: ObservedCache<Value>, _ format: FormatName, _ depth: CacheLevel, _ priority: Priority,
        _ queue: WorkQueue, _ onEnd: (@MainActor @Sendable (URL, CacheError?) -> Void)?
    ) {
        self.resources = resources
        self.format = format
        self.depth = depth
        self.priority = priority
        self.queue = queue
        self.onEnd = onEnd
    }

    var statistics: Prefetcher<Value>.Statistics {
        state.withLock { state in
            var statistics = state.totals
            for entry in state.entries.values {
                if entry.isRunning { statistics.running += 1 } else { statistics.waiting += 1 }
                statistics.received += ByteCount(entry.progress.current.received)
            }
            return statistics
        }
    }

    func start(_ url: URL) {
        let progress = TransferProgress()
        let fetcher = resources.makeFetcher(url, progress)
        let key = fetcher.key
        let id: Int? = state.withLock { state in
            guard state.entries[key] == nil else { return nil }
            state.lastID += 1
            state.entries[key] = Entry(id: state.lastID, progress: progress)
            return state.lastID
        }
        guard let id else { return }
        let item = queue.enqueue(operation: { [self] in await run(url, fetcher, key, id) })
        let isCancelled = state.withLock { state in
            // The operation may have ended already.
            guard state.entries[key]?.id == id else { return true }
            state.entries[key]?.item = item
            return false
        }
        if isCancelled { item.cancel() }
    }

    private func run(_ url: URL, _ fetcher: any Fetcher<Value>, _ key: CacheKey, _ id: Int) async {
        let isWanted = state.withLock { state in
            guard state.entries[key]?.id == id else { return false }
            state.entries[key]?.isRunning = true
            return true
        }
        guard isWanted else { return }
        var failure: CacheError?
        do throws(CacheError) {
            // Local resources have no copy on disk.
            if depth == .memory || !Resource(url).isLocal {
                try await resources.cache.prefetch(from: fetcher, format: format, to: depth, priority: priority)
            }
        } catch {
            failure = error
        }
        let hasEnded = end(key, id) { totals in
            if failure == nil { totals.succeeded += 1 } else { totals.failed += 1 }
        }
        guard hasEnded, let onEnd else { return }
        CallbackQueue.main.perform { [failure] in MainActor.assumeIsolated { onEnd(url, failure) } }
    }

    /// - Returns: Whether the entry had not ended before.
    @discardableResult
    private func end(_ key: CacheKey, _ id: Int?, _ count: (inout Prefetcher<Value>.Statistics) -> Void) -> Bool {
        let entry: Entry? = state.withLock { state in
            guard let entry = state.entries[key], id == nil || entry.id == id else { return nil }
            state.entries[key] = nil
            state.totals.received += ByteCount(entry.progress.current.received)
            count(&state.totals)
            return entry
        }
        if id == nil { entry?.item?.cancel() }
        return entry != nil
    }

    func cancel(_ url: URL) { end(resources.key(for: url), nil) { $0.cancelled += 1 } }

    func cancelAll() {
        for key in state.withLock({ Array($0.entries.keys) }) { end(key, nil) { $0.cancelled += 1 } }
    }
}
