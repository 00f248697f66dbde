import VitrineCore

/// Queues writes for the disk in order without waiting. Writes that do not fit into the queue of the disk wait here,
/// until a thread that may block passes them on.
package final class PendingWrites: Sendable {
    private struct State {
        /// With the disk's epoch: a write that was requested before everything was removed is dropped.
        var pending: [(operation: Operation, key: CacheKey, epoch: Int)] = []
        var isDraining = false
        var waiters: [AsyncPromise<Void>] = []
    }

    private let disk: DiskCache
    private let executor: BlockingExecutor
    private let state = Locked(State())

    init(_ disk: DiskCache, executor: BlockingExecutor) {
        self.disk = disk
        self.executor = executor
    }

    /// Queues a change, at once or in its turn.
    ///
    /// - Returns: The change it takes the place of, to be released outside of all locks: it may hold a user's value.
    @discardableResult
    func send(_ operation: Operation, forKey key: CacheKey) -> Operation? {
        var replaced: Operation?
        if trySend(operation, forKey: key, replacing: &replaced) { return replaced }
        let isFirst = state.withLock { state in
            state.pending.append((operation, key, disk.engine.queue.epoch))
            defer { state.isDraining = true }
            return !state.isDraining
        }
        if isFirst { executor.submit { self.drain() } }
        return nil
    }

    /// Queues a change if that is possible at once.
    ///
    /// - Parameter replaced: Gets the change it takes the place of, to be released outside of all locks.
    private func trySend(_ operation: Operation, forKey key: CacheKey, replacing replaced: inout Operation?) -> Bool {
        // Under the lock, so that nothing overtakes what begins to wait here.
        let (isSent, earlier) = state.withLock { state -> (Bool, Operation?) in
            var earlier: Operation?
            let isSent = !state.isDraining && disk.engine.tryEnqueue(
                operation, forKey: disk.entryKey(key), replacing: &earlier)
            return (isSent, earlier)
        }
        replaced = earlier
        return isSent
    }

    /// Queues a change in one step with `body`, waiting until that is possible.
    ///
    /// - Parameter body: Given a closure that queues the change if it can; returns whether all is done. Called again
    ///   when there may be room.
    func send(_ operation: Operation, forKey key: CacheKey, within body: (() -> Bool) -> Bool) async {
        while true {
            // Released here, after the locks that `body` takes.
            var replaced: Operation?
            let isDone = body { trySend(operation, forKey: key, replacing: &replaced) }
            if isDone { return }
            await waitUntilIdle()
            await disk.engine.queue.waitForSpace(for: operation)
        }
    }

    /// Whether nothing waits here.
    var isEmpty: Bool { state.withLock { !$0.isDraining } }

    /// Returns when no write waits here. Reads of the disk then see all earlier writes.
    package func waitUntilIdle() async { await drained()?.value() }

    /// Does the same for a thread that may block.
    func waitUntilIdleBlocking() { drained()?.wait() }

    /// Fulfilled when no write waits here; nil if none does.
    private func drained() -> AsyncPromise<Void>? {
        state.withLock { state in
            guard state.isDraining else { return nil }
            let drained = AsyncPromise<Void>()
            state.waiters.append(drained)
            return drained
        }
    }

    /// Discards the waiting writes, because the disk is being emptied.
    package func drop() {
        let dropped = state.withLock { state in
            defer { state.pending = [] }
            return state.pending
        }
        // Released outside the lock.
        _ = dropped
    }

    private func drain() {
        while true {
            let (next, waiters) = state.withLock {
                state -> ((operation: Operation, key: CacheKey, epoch: Int)?, [AsyncPromise<Void>]) in
                guard state.pending.isEmpty else { return (state.pending.removeFirst(), []) }
                state.isDraining = false
                defer { state.waiters = [] }
                return (nil, state.waiters)
            }
            for waiter in waiters { waiter.fulfill(()) }
            guard let next else { return }
            disk.engine.enqueueBlocking(next.operation, forKey: disk.entryKey(next.key), since: next.epoch)
        }
    }
}
