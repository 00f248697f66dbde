#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Brings nearer what will soon be wanted, a few at a time and never in the way of what is wanted now.
///
/// ```swift
/// let prefetcher = Prefetcher(pictures)          // to disk, two at a time
/// prefetcher.start(upcoming)
/// prefetcher.cancel(scrolledAway)
/// ```
///
/// It has places of its own and the lowest priority: what is on the screen waits for none of its transfers or decodes.
/// Who asks for what it is loading joins that load, which is then as urgent as that. It works off its URLs in the order
/// in which they came, and gives up what is left when it goes.
public final class Prefetcher<Value: CacheableValue>: Sendable {
    /// What has become of the URLs.
    public struct Statistics: Sendable, Hashable {
        /// Still to come, and under way.
        public var waiting = 0, running = 0
        /// Those that are there now, or were before.
        public var succeeded = 0
        /// Those that could not be had.
        public var failed = 0
        /// Those that were cancelled before they were there.
        public var cancelled = 0
        /// What was received of bodies.
        public var received = ByteCount.zero
    }

    private let work: PrefetchWork<Value>

    /// - Parameters:
    ///   - resources: What loads.
    ///   - format: The format values will be wanted in.
    ///   - depth: How near: `.disk` stores bytes without decoding them, `.memory` decodes. Default: to disk.
    ///   - limit: How many are under way at once. Default: 2.
    ///   - priority: How urgent they are. Default: the lowest.
    ///   - isPaused: Whether to wait for ``resume()``.
    ///   - onEnd: Called on the main actor for each URL that was not cancelled, with the error if there is one.
    public convenience init(
        _ resources: ObservedCache<Value>, format: FormatName = .original, to depth: CacheLevel = .disk, limit: Int = 2,
        priority: Priority = .veryLow, isPaused: Bool = false,
        onEnd: (@MainActor @Sendable (URL, CacheError?) -> Void)? = nil
    ) {
        var told: (@Sendable (URL, CacheError?) -> Void)?
        if let onEnd { told = { url, error in MainActor.assumeIsolated { onEnd(url, error) } } }
        self.init(resources, format, depth, limit, priority, isPaused, .main, told)
    }

    /// A prefetcher that tells where `delivery` says. See
    /// ``init(_:format:to:limit:priority:isPaused:onEnd:)``.
    ///
    /// - Parameters:
    ///   - delivery: Where `onEnd` runs.
    ///   - onEnd: Called for each URL that was not cancelled, with the error if there is one.
    public convenience init(
        _ resources: ObservedCache<Value>, format: FormatName = .original, to depth: CacheLevel = .disk, limit: Int = 2,
        priority: Priority = .veryLow, isPaused: Bool = false, on delivery: CallbackQueue,
        onEnd: @escaping @Sendable (URL, CacheError?) -> Void
    ) {
        self.init(resources, format, depth, limit, priority, isPaused, delivery, onEnd)
    }

    private init(
        _ resources: ObservedCache<Value>, _ format: FormatName, _ depth: CacheLevel, _ limit: Int, _ priority: Priority,
        _ isPaused: Bool, _ delivery: CallbackQueue, _ onEnd: (@Sendable (URL, CacheError?) -> Void)?
    ) {
        let queue = WorkQueue(limit: limit, isSuspended: isPaused)
        work = PrefetchWork(resources, format, depth, priority, queue, delivery, onEnd)
    }

    deinit { work.cancelAll() }

    /// Adds URLs, after those that wait. One that waits or is under way is not added again.
    public func start(_ urls: [URL]) { for url in urls { work.start(url) } }

    /// Gives URLs up, waiting or under way. Who waits for one of them elsewhere still gets it.
    public func cancel(_ urls: [URL]) { for url in urls { work.cancel(url) } }

    /// Gives all up.
    public func cancelAll() { work.cancelAll() }

    /// Begins nothing more until ``resume()``. What is under way goes on.
    public func pause() { work.queue.suspend() }

    /// Ends a pause.
    public func resume() { work.queue.resume() }

    /// Whether it is paused.
    public var isPaused: Bool { work.queue.isSuspended }

    /// How many are under way at once.
    public var limit: Int {
        get { work.queue.limit }
        set { work.queue.limit = newValue }
    }

    /// What has become of the URLs so far.
    public var statistics: Statistics { work.statistics }

    /// Returns when nothing waits and nothing is under way; with URLs that wait in a pause that is after its end.
    public func waitUntilIdle() async { await work.queue.waitUntilIdle() }
}
