import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Limits how much work runs at once. The highest priority starts first, in FIFO order within a priority.
///
/// The queue hands out *slots* and has no threads of its own. Work may be asynchronous, block on a
/// ``BlockingExecutor``, or be started by a closure and report its end:
///
/// ```swift
/// let decoding = WorkQueue(limit: 4, reserved: [.high: 1])
/// let slot = try await decoding.slot(priority: .high)
/// defer { slot.finish() }
/// let image = try await decode(file)
/// ```
///
/// Changing a priority and cancelling take constant time, whether the item waits or runs.
///
/// **Reserved slots.** `reserved: [.high: 1]` keeps one slot for `.high` and above, so that a burst of prefetching
/// cannot delay visible images by a whole decode. Reservations of several priorities add up. Every priority can always
/// use at least one slot.
///
/// **Costs and groups.** Items may have a cost, such as the bytes that they need. Running items have at most a capacity
/// together; one that costs more runs alone. No later item passes one whose cost does not fit, so that it starts some
/// day. Items of a group, such as the requests to a host, may have a limit of their own. Those that wait for their
/// group only delay no others.
public final class WorkQueue: Sendable {
    /// The numbers of waiting and running items.
    public struct Counts: Sendable, Equatable {
        /// Items that have no slot yet.
        public let queued: Int
        /// Items that have a slot.
        public let running: Int
        /// The cost of the running items, and the cost that others have kept.
        public let cost: Int

        /// Creates the counts.
        package init(queued: Int, running: Int, cost: Int = 0) {
            (self.queued, self.running, self.cost) = (queued, running, cost)
        }
    }

    private let state: Locked<WorkQueueState>

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of running items. Values below 1 count as 1, which is the default.
    ///   - bounds: The bounds of costs, groups and waiting items. Default: none.
    ///   - reserved: Slots that only a priority and those above it may use.
    public init(limit: Int = 1, bounds: Bounds = Bounds(), reserved: [RequestPriority: Int] = [:]) {
        state = Locked(WorkQueueState(limit: limit, bounds: bounds, reserved: reserved))
    }

    /// Bounds in addition to the number of running items.
    public struct Bounds: Sendable {
        let capacity: Int
        let perGroup: Int
        let queued: Int

        /// Creates bounds.
        ///
        /// - Parameters:
        ///   - capacity: The cost of all running items together. Default: no bound, as for the others.
        ///   - perGroup: The running items of one group.
        ///   - queued: The waiting items. One more is refused.
        public init(capacity: Int = .max, perGroup: Int = .max, queued: Int = .max) {
            (self.capacity, self.perGroup, self.queued) = (max(1, capacity), max(1, perGroup), max(0, queued))
        }
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
    public var counts: Counts {
        state.withLock { Counts(queued: $0.queuedCount, running: $0.runningCount, cost: $0.usedCost) }
    }

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
    ///   - onCancel: Called once if the item is cancelled before it ends, on the thread that cancels. An item that a
    ///     full queue refuses counts as cancelled.
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
        if !enqueue(item, onCancel: onCancel, start: start) { onCancel?() }
        return item
    }

    /// - Returns: Whether the queue had room for the item.
    private func enqueue(
        _ item: WorkItem, onCancel: (@Sendable () -> Void)?, start: @escaping @Sendable (WorkItem) -> Void
    ) -> Bool {
        let insertion = state.withLock { $0.insert(item, start: start, onCancel: onCancel) }
        if insertion == .started {
            start(item)
            endDraining()
        }
        return insertion != .refused
    }

    // MARK: Calls of items

    func setPriority(_ priority: RequestPriority, of item: WorkItem) {
        let mayStart = state.withLock { $0.setPriority(priority, of: item) }
        if mayStart { startReady() }
    }

    func cancel(_ item: WorkItem) {
        // The removed closures are released and called outside the lock: they may run user code.
        let (handler, waiters, record, mayStart) = state.withLock { state in
            let (handler, record) = state.cancel(item)
            // The next one may fit where this one did not.
            return (handler, state.takeIdleWaiters(), record, record != nil && state.hasRoomForQueued)
        }
        _ = record
        handler?()
        if mayStart { startReady() }
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

    func keep(_ cost: Int, of item: WorkItem) {
        let (waiters, mayStart) = state.withLock { state in
            state.keep(cost, of: item)
            return (state.takeIdleWaiters(), state.queuedCount > 0)
        }
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
        let item = WorkItem(queue: self, priority: priority)
        if try !begins(item) { try await wait(for: item) }
        defer { item.finish() }
        return try await operation()
    }

    /// Runs an operation at a priority that can change while the operation waits and runs.
    package nonisolated(nonsending) func run<T>(
        following priority: PrioritySource,
        operation: nonisolated(nonsending) () async throws -> T
    ) async throws -> T {
        let item = WorkItem(queue: self, priority: priority.value)
        let isRunning = try begins(item)
        let registration = priority.observe { item.priority = $0 }
        defer {
            priority.remove(registration)
            item.finish()
        }
        if !isRunning { try await wait(for: item) }
        return try await operation()
    }

    /// Waits for a slot for work that ``WorkItem/finish()`` ends.
    ///
    /// The slot is held until then, whether the item is referenced or not.
    ///
    /// - Parameters:
    ///   - priority: The priority of the work.
    ///   - cost: Counts against the capacity of the queue.
    ///   - group: Counts against the bound of groups; nil for work without one.
    ///   - deadline: When the work leaves the queue; nil for never.
    /// - Throws: ``WorkQueueError``, and `CancellationError` at once if the calling task is cancelled.
    public nonisolated(nonsending) func slot(
        priority: RequestPriority = .normal, cost: Int = 0, group: String? = nil,
        deadline: ContinuousClock.Instant? = nil
    ) async throws -> WorkItem {
        let item = WorkItem(queue: self, priority: priority, cost: cost, group: group)
        if try !begins(item) { try await wait(for: item, deadline: deadline) }
        return item
    }

    /// Gives a new item a slot, if one is free.
    private func begins(_ item: WorkItem) throws -> Bool {
        try Task.checkCancellation()
        return state.withLock { $0.admit(item) }
    }

    /// Waits for a slot for a new item.
    private nonisolated(nonsending) func wait(
        for item: WorkItem, deadline: ContinuousClock.Instant? = nil
    ) async throws {
        let admission = AsyncPromise<Bool>()
        let isQueued = enqueue(
            item,
            onCancel: { admission.fulfill(false) },
            start: { _ in admission.fulfill(true) })
        guard isQueued else { throw WorkQueueError.full }
        if item.isRunning { return }
        let timer = deadline.map { deadline in
            Task {
                try await Task.sleep(until: deadline, clock: .continuous)
                item.cancel()
            }
        }
        defer { timer?.cancel() }
        let isAdmitted = await withTaskCancellationHandler {
            await admission.value()
        } onCancel: {
            item.cancel()
        }
        guard isAdmitted, !Task.isCancelled else {
            // Does nothing for an item that left the queue; gives the slot back if the cancellation came just after.
            item.finish()
            if Task.isCancelled { throw CancellationError() }
            throw WorkQueueError.timedOut
        }
    }
}

/// The reason why a ``WorkQueue`` has no slot for an item.
public enum WorkQueueError: Error {
    /// As many items wait as may.
    case full
    /// The deadline of the item has passed.
    case timedOut
}

extension WorkQueueError: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// A sentence that says why the work was not begun.
    public var description: String {
        switch self {
        case .full: "The queue is full. Try again later, or let more items wait."
        case .timedOut: "The work waited for a slot until its deadline."
        }
    }
}

/// A piece of work on a ``WorkQueue``: the handle for its priority, its cancellation and, after `start`, its end.
public final class WorkItem: Sendable {
    /// The state of an item.
    package enum State: Int, Sendable {
        /// Waiting for a slot.
        case queued
        /// Has a slot.
        case running
        /// Has given its slot back, and keeps a part of its cost.
        case keepingCost
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
    let cost: Int
    let group: String?

    init(queue: WorkQueue, priority: RequestPriority, cost: Int = 0, group: String? = nil) {
        self.queue = queue
        // Sums of these cannot overflow.
        self.cost = min(max(0, cost), 1 << 48)
        self.group = group
        rawPriority = Atomic(priority.rawValue)
    }

    /// The current state.
    package var state: State { State(rawValue: rawState.load(ordering: .acquiring)) ?? .finished }
    /// Whether the item has a slot.
    public var isRunning: Bool { state == .running }

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

    /// Ends an item of a `start` closure or of ``WorkQueue/slot(priority:cost:group:deadline:)``, and gives its slot to
    /// the next. Later calls do nothing.
    public func finish() {
        queue.finish(self)
    }

    /// Gives the slot of a running item back and keeps a part of its cost until ``finish()``, for work that continues
    /// beside the queue.
    public func keep(cost: Int) {
        queue.keep(cost, of: self)
    }
}
