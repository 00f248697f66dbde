import Synchronization

/// One piece of work on a ``WorkQueue``: the handle for its priority, its cancellation and, for work that was
/// started by a closure, its end.
public final class WorkItem: Sendable {
    /// Where an item is in its life.
    public enum State: Int, Sendable {
        /// Waiting for a slot.
        case queued
        /// Has a slot.
        case running
        /// Has ended and given its slot back.
        case finished
        /// Was cancelled before it started, or while it ran and has ended since.
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

    init(queue: WorkQueue, priority: Priority) {
        self.queue = queue
        rawPriority = Atomic(priority.rawValue)
    }

    /// Where the item is now.
    public var state: State { State(rawValue: rawState.load(ordering: .acquiring)) ?? .finished }

    /// Whether ``cancel()`` came before the item ended. Cheap enough for an inner loop.
    public var isCancelled: Bool { cancelFlag.load(ordering: .relaxed) }

    /// How urgent the item is. Setting it moves a queued item to the end of its new priority's line, in constant
    /// time; for a running item it changes which reserved slots it counts against.
    public var priority: Priority {
        get { Priority(rawValue: rawPriority.load(ordering: .relaxed)) ?? .normal }
        set { queue.setPriority(newValue, of: self) }
    }

    /// Cancels the item, in constant time. A queued item leaves the queue and never starts. A running one is told;
    /// it keeps its slot until it ends. An item that has ended stays as it is.
    public func cancel() {
        queue.cancel(self)
    }

    /// Ends an item that was enqueued with a `start` closure and gives its slot to the next. Later calls do nothing.
    public func finish() {
        queue.finish(self)
    }
}
