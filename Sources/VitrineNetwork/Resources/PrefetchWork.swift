#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// The work of a ``Prefetcher``. What runs holds on to this and not to the prefetcher, which ends it when it goes.
final class PrefetchWork<Value: CacheableValue>: Sendable {
    private struct Entry {
        let id: Int
        let progress: TransferProgress
        var item: WorkItem?
        var isRunning = false
    }

    private struct State {
        var lastID = 0
        var entries: [CacheKey: Entry] = [:]
        /// Of what has ended.
        var totals = Prefetcher<Value>.Statistics()
    }

    let queue: WorkQueue
    private let resources: ObservedCache<Value>
    private let format: FormatName
    private let depth: CacheLevel
    private let priority: Priority
    private let delivery: CallbackQueue
    private let onEnd: (@Sendable (URL, CacheError?) -> Void)?
    private let state = Locked(State())

    init(
        _ resources: ObservedCache<Value>, _ format: FormatName, _ depth: CacheLevel, _ priority: Priority,
        _ queue: WorkQueue, _ delivery: CallbackQueue, _ onEnd: (@Sendable (URL, CacheError?) -> Void)?
    ) {
        self.resources = resources
        self.format = format
        self.depth = depth
        self.priority = priority
        self.queue = queue
        self.delivery = delivery
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
            // It may have ended already.
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
            // What is in place has no copy on disk.
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
        delivery.perform { [failure] in onEnd(url, failure) }
    }

    /// - Returns: Whether it had not ended before.
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
