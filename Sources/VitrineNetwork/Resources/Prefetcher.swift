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
    ///   - onEnd: Called where the cache delivers for each URL that was not cancelled, with the error if there is one.
    public init(
        _ resources: ResourceCache<Value>, format: FormatName = .original, to depth: Depth = .disk, limit: Int = 2,
        priority: Priority = .veryLow, isPaused: Bool = false,
        onEnd: (@Sendable (URL, CacheError?) -> Void)? = nil
    ) {
        work = PrefetchWork(resources, format, depth, priority, WorkQueue(limit: limit, isSuspended: isPaused), onEnd)
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
