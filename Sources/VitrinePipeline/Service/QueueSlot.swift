import VitrineCore

/// A place on a ``WorkQueue`` whose urgency may change before, while and after it is taken.
final class QueueSlot: Sendable {
    private struct State {
        var item: WorkItem?
        var isCancelled = false
        var isFinished = false
    }

    /// How urgent it is.
    let priority: PrioritySource
    private let state = Locked(State())

    init(_ priority: PrioritySource) { self.priority = priority }

    /// Waits for a slot. `start` must return quickly; ``finish()`` gives the slot back.
    func enqueue(on queue: WorkQueue, start: @escaping @Sendable () -> Void) {
        let item = queue.enqueue(priority: priority.value) { item in
            self.attach(item)
            start()
        }
        attach(item)
        priority.observe { item.priority = $0 }
    }

    /// Leaves the queue if there is no slot yet.
    func cancel() {
        let item = state.withLock { state in
            state.isCancelled = true
            return state.item
        }
        item?.cancel()
    }

    /// Gives the slot back. May be called any number of times.
    func finish() {
        let item = state.withLock { state in
            state.isFinished = true
            return state.item
        }
        item?.finish()
    }

    private func attach(_ item: WorkItem) {
        let (isCancelled, isFinished) = state.withLock { state in
            state.item = item
            return (state.isCancelled, state.isFinished)
        }
        if isCancelled { item.cancel() }
        if isFinished { item.finish() }
    }
}
