import Synchronization

/// Limits how much work runs at once. The highest priority starts first, in FIFO order within a priority.
///
/// The queue hands out *slots* and has no threads of its own. Work may be asynchronous, block on a
/// ``BlockingExecutor``, or be started by a closure and report its end:
///
/// ```swift
/// let decoding = WorkQueue(limit: 4, reserved: [.high: 1])
/// let image = try await decoding.run(priority: .high) { try await decode(file) }
/// ```
///
/// Changing a priority and cancelling take constant time, whether the item waits or runs.
///
/// **Reserved slots.** `reserved: [.high: 1]` keeps one slot for `.high` and above, so that a burst of prefetching
/// cannot delay visible images by a whole decode. Reservations of several priorities add up. Every priority can always
/// use at least one slot.
package final class WorkQueue: Sendable {
    /// The numbers of waiting and running items.
    package struct Counts: Sendable, Equatable {
        /// Items that have no slot yet.
        package let queued: Int
        /// Items that have a slot.
        package let running: Int

        /// Creates the counts.
        package init(queued: Int, running: Int) {
            self.queued = queued
            self.running = running
        }
    }

    private let state: Locked<WorkQueueState>

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of running items. Values below 1 count as 1, which is the default.
    ///   - reserved: Slots that only a priority and those above it may use.
    ///   - isSuspended: Whether items start only after ``resume()``.
    package init(limit: Int = 1, reserved: [RequestPriority: Int] = [:], isSuspended: Bool = false) {
        state = Locked(WorkQueueState(limit: limit, reserved: reserved, isSuspended: isSuspended))
    }

    // MARK: Limits

    /// The maximum number of running items. Lowering it does not stop running items; raising it starts more at once.
    package var limit: Int {
        get { state.withLock { $0.limit } }
        set {
            state.withLock { $0.limit = max(1, newValue) }
            startReady()
        }
    }

    /// Starts no more items until ``resume()``. Running items continue.
    package func suspend() {
        state.withLock { $0.isSuspended = true }
    }

    /// Ends a suspension.
    package func resume() {
        state.withLock { $0.isSuspended = false }
        startReady()
    }

    /// The numbers of waiting and running items at one moment.
    package var counts: Counts { state.withLock { Counts(queued: $0.queuedCount, running: $0.runningCount) } }

    /// Returns the number of items that wait at one priority.
    package func queuedCount(at priority: RequestPriority) -> Int {
        state.withLock { $0.lines[priority.rawValue].count }
    }

    /// Returns when no item waits or runs. On a suspended queue with waiting items, that is after a resume.
    package func waitUntilIdle() async {
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

    /// Enqueues work that a closure starts and ``WorkItem/finish()`` ends. All other forms are made of this one.
    ///
    /// - Parameters:
    ///   - priority: The priority of the work.
    ///   - onCancel: Called once if the item is cancelled before it ends, on the thread that cancels.
    ///   - start: Called once a slot is free, on the thread that made it free, possibly before this call returns.
    ///     It must return quickly and never block: no other item of this queue starts meanwhile. The item must be
    ///     finished exactly once, also after a cancellation and when its start fails.
    /// - Returns: The item.
    @discardableResult
    package func enqueue(
        priority: RequestPriority = .normal,
        onCancel: (@Sendable () -> Void)? = nil,
        start: @escaping @Sendable (WorkItem) -> Void
    ) -> WorkItem {
        let item = WorkItem(queue: self, priority: priority)
        enqueue(item, priority: priority, onCancel: onCancel, start: start)
        return item
    }

    private func enqueue(
        _ item: WorkItem, priority: RequestPriority, onCancel: (@Sendable () -> Void)?,
        start: @escaping @Sendable (WorkItem) -> Void
    ) {
        let startsNow = state.withLock { state in
            state.insert(item, priority: priority, start: start, onCancel: onCancel)
        }
        if startsNow {
            start(item)
            endDraining()
        }
    }

    // MARK: Calls of items

    func setPriority(_ priority: RequestPriority, of item: WorkItem) {
        let mayStart = state.withLock { $0.setPriority(priority, of: item) }
        if mayStart { startReady() }
    }

    func cancel(_ item: WorkItem) {
        // The removed closures are released and called outside the lock: they may run user code.
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

    /// Starts the items that may start.
    ///
    /// One thread at a time does so; a call on another thread makes that thread look again. A long row of items that
    /// end within their own start is therefore a loop and no recursion.
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

extension WorkQueue {
    /// Runs an asynchronous operation in the calling task once a slot is free, and returns its result.
    ///
    /// - Parameters:
    ///   - priority: The priority of the work.
    ///   - operation: The work. The slot is held until it returns, wherever it suspends.
    /// - Throws: `CancellationError` at once if the calling task is cancelled before the operation has started, and the
    ///   errors of `operation`.
    package nonisolated(nonsending) func run<T>(
        priority: RequestPriority = .normal,
        operation: nonisolated(nonsending) () async throws -> T
    ) async throws -> T {
        let (item, _) = try await admission(priority: priority, following: nil)
        defer { item.finish() }
        return try await operation()
    }

    /// Runs an operation at a priority that can change while the operation waits and runs.
    package nonisolated(nonsending) func run<T>(
        following priority: PrioritySource,
        operation: nonisolated(nonsending) () async throws -> T
    ) async throws -> T {
        let (item, registration) = try await admission(priority: priority.value, following: priority)
        defer {
            if let registration { priority.remove(registration) }
            item.finish()
        }
        return try await operation()
    }

    /// Waits for a slot.
    private nonisolated(nonsending) func admission(
        priority: RequestPriority, following source: PrioritySource?
    ) async throws -> (WorkItem, PrioritySource.Registration?) {
        try Task.checkCancellation()
        let item = WorkItem(queue: self, priority: priority)
        if state.withLock({ $0.admit(item, priority: priority) }) {
            return (item, source?.observe { item.priority = $0 })
        }
        let admission = Promise<Bool>()
        enqueue(
            item, priority: priority,
            onCancel: { admission.fulfill(false) },
            start: { _ in admission.fulfill(true) })
        let registration = source?.observe { item.priority = $0 }
        if item.state == .running { return (item, registration) }
        let isAdmitted = await withTaskCancellationHandler {
            await admission.value()
        } onCancel: {
            item.cancel()
        }
        guard isAdmitted, !Task.isCancelled else {
            // Does nothing for an item that left the queue; gives the slot back if the cancellation came just after.
            item.finish()
            if let source, let registration { source.remove(registration) }
            throw CancellationError()
        }
        return (item, registration)
    }
}

/// A piece of work on a ``WorkQueue``: the handle for its priority, its cancellation and, after `start`, its end.
package final class WorkItem: Sendable {
    /// The state of an item.
    package enum State: Int, Sendable {
        /// Waiting for a slot.
        case queued
        /// Has a slot.
        case running
        /// Has ended and given its slot back.
        case finished
        /// Was cancelled before it started, or while it ran, and has ended since.
        case cancelled
    }

    private let queue: WorkQueue
    /// Index of the queue's record of this item, -1 when it has none. Written under the queue's lock only.
    let slot = Atomic<Int>(-1)
    /// Raw value of ``State``. Written under the queue's lock only.
    let rawState = Atomic<Int>(State.queued.rawValue)
    /// Raw value of the priority. Written under the queue's lock only.
    let rawPriority: Atomic<Int>
    let cancelFlag = Atomic<Bool>(false)

    init(queue: WorkQueue, priority: RequestPriority) {
        self.queue = queue
        rawPriority = Atomic(priority.rawValue)
    }

    /// The current state.
    package var state: State { State(rawValue: rawState.load(ordering: .acquiring)) ?? .finished }

    /// Whether ``cancel()`` was called before the item ended. Cheap enough for an inner loop.
    package var isCancelled: Bool { cancelFlag.load(ordering: .relaxed) }

    /// The priority of the item.
    ///
    /// Setting it moves a queued item to the end of its new priority, in constant time. For a running item it changes
    /// which reserved slots the item counts against.
    package var priority: RequestPriority {
        get { RequestPriority(rawValue: rawPriority.load(ordering: .relaxed)) ?? .normal }
        set { queue.setPriority(newValue, of: self) }
    }

    /// Cancels the item, in constant time.
    ///
    /// A queued item leaves the queue and never starts. A running item is notified and keeps its slot until it ends. An
    /// item that has ended does not change.
    package func cancel() {
        queue.cancel(self)
    }

    /// Ends an item that was enqueued with a `start` closure, and gives its slot to the next. Later calls do nothing.
    package func finish() {
        queue.finish(self)
    }
}
