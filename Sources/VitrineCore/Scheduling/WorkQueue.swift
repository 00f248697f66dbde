/// Decides what runs next: at most so many at once, the most urgent first, first come first served within a priority.
///
/// The queue hands out *slots*; it has no threads of its own. Work may be asynchronous, blocking on a
/// ``BlockingExecutor``, or anything that is started by a closure and says when it is done:
///
/// ```swift
/// let decoding = WorkQueue(limit: 4, reserved: [.high: 1])
/// let image = try await decoding.run(priority: .high) { try await decode(file) }
/// ```
///
/// Changing a priority and cancelling take constant time, whether the item waits or runs (R92-R94).
///
/// **Reserved slots.** `reserved: [.high: 1]` keeps one slot that only `.high` and above may use, so that a burst of
/// prefetching can never make the screen wait for a whole decode. Reservations of several priorities add up. Every
/// priority can always use at least one slot, whatever is reserved.
public final class WorkQueue: Sendable {
    /// How many items wait and run.
    public struct Counts: Sendable, Equatable {
        /// Items that have no slot yet.
        public let queued: Int
        /// Items that have a slot.
        public let running: Int

        public init(queued: Int, running: Int) {
            self.queued = queued
            self.running = running
        }
    }

    private let state: Locked<WorkQueueState>

    /// A queue.
    ///
    /// - Parameters:
    ///   - limit: How many items may run at once; values below 1 count as 1, which is the default (R94).
    ///   - reserved: Slots that only a priority and those above it may use.
    ///   - isSuspended: Whether to wait for ``resume()`` before anything starts.
    public init(limit: Int = 1, reserved: [Priority: Int] = [:], isSuspended: Bool = false) {
        state = Locked(WorkQueueState(limit: limit, reserved: reserved, isSuspended: isSuspended))
    }

    // MARK: Limits

    /// How many items may run at once. A lower limit does not stop what runs; a higher one starts more at once.
    public var limit: Int {
        get { state.withLock { $0.limit } }
        set {
            state.withLock { $0.limit = max(1, newValue) }
            startReady()
        }
    }

    /// Starts nothing more until ``resume()``. What runs goes on.
    public func suspend() {
        state.withLock { $0.isSuspended = true }
    }

    /// Ends a suspension.
    public func resume() {
        state.withLock { $0.isSuspended = false }
        startReady()
    }

    /// Whether the queue is suspended.
    public var isSuspended: Bool { state.withLock { $0.isSuspended } }

    /// How many items wait and run, of one moment.
    public var counts: Counts { state.withLock { Counts(queued: $0.queuedCount, running: $0.runningCount) } }

    /// How many items wait at one priority.
    public func queuedCount(at priority: Priority) -> Int {
        state.withLock { $0.lines[priority.rawValue].count }
    }

    /// Returns when nothing waits and nothing runs. On a suspended queue with waiting items that is after a resume.
    public func waitUntilIdle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                guard !state.isIdle else { return true }
                state.idleWaiters.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }

    // MARK: Enqueueing

    /// Enqueues work that a closure starts and ``WorkItem/finish()`` ends: the form all others are made of.
    ///
    /// - Parameters:
    ///   - priority: How urgent it is.
    ///   - onCancel: Called once if the item is cancelled before it ends, on the thread that cancels.
    ///   - start: Called once a slot is free, on the thread that made it free, possibly before this call returns.
    ///     It must return quickly and never block: nothing else on this queue starts meanwhile. The item must be
    ///     finished exactly once, also after a cancellation; a start that comes to nothing still has to finish it.
    /// - Returns: The item.
    @discardableResult
    public func enqueue(
        priority: Priority = .normal,
        onCancel: (@Sendable () -> Void)? = nil,
        start: @escaping @Sendable (WorkItem) -> Void
    ) -> WorkItem {
        let item = WorkItem(queue: self, priority: priority)
        let startsNow = state.withLock { state in
            state.insert(item, priority: priority, start: start, onCancel: onCancel)
        }
        if startsNow {
            start(item)
            endDraining()
        }
        return item
    }

    // MARK: What items call

    func setPriority(_ priority: Priority, of item: WorkItem) {
        let mayStart = state.withLock { $0.setPriority(priority, of: item) }
        if mayStart { startReady() }
    }

    func cancel(_ item: WorkItem) {
        // What is taken out is released and called outside the lock: it may run code of the user's.
        let (handler, waiters, record) = state.withLock { state in
            let (handler, record) = state.cancel(item)
            return (handler, state.takeIdleWaiters(), record)
        }
        _ = record
        handler?()
        for waiter in waiters { waiter.resume() }
    }

    func finish(_ item: WorkItem) {
        let (record, waiters, mayStart) = state.withLock { state in
            let record = state.finish(item)
            return (record, state.takeIdleWaiters(), state.queuedCount > 0)
        }
        _ = record
        if mayStart { startReady() }
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Starting

    /// Starts what may start. One thread at a time does so; another's call makes that thread look once more. So a
    /// long line of items that end within their own start is a loop here, never a recursion.
    private func startReady() {
        let isMine = state.withLock { $0.beginDraining() }
        if isMine { endDraining() }
    }

    private func endDraining() {
        while let (item, start) = state.withLock({ $0.nextToStart() }) {
            start(item)
        }
    }
}
