/// The tasks that wait for the next change of a ``Broadcast``, as a part of its state.
package struct BroadcastWaiters: Sendable {
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    private var cancelled: Set<Int> = []
    private var nextID = 0

    /// Creates an empty set of waiters.
    package init() {}

    /// Removes all waiters, to be resumed after the lock is released.
    fileprivate mutating func takeAll() -> [CheckedContinuation<Void, Never>] {
        defer { waiting = [:] }
        return Array(waiting.values)
    }

    fileprivate mutating func begin() -> Int {
        nextID += 1
        return nextID
    }

    /// - Returns: Whether the task waits now: false if it was cancelled before.
    fileprivate mutating func add(_ id: Int, _ continuation: CheckedContinuation<Void, Never>) -> Bool {
        guard cancelled.remove(id) == nil else { return false }
        waiting[id] = continuation
        return true
    }

    fileprivate mutating func cancel(_ id: Int) -> CheckedContinuation<Void, Never>? {
        // The cancellation may come before the wait.
        if waiting[id] == nil { cancelled.insert(id) }
        return waiting.removeValue(forKey: id)
    }

    fileprivate mutating func end(_ id: Int) { cancelled.remove(id) }
}

/// The state of a ``Broadcast``, which counts its changes.
package protocol BroadcastState {
    /// Increases with each change.
    var version: Int { get }
    /// Whether the state changes no more, so that no task needs to wait.
    var isClosed: Bool { get }
    /// The tasks that wait for the next change.
    var waiters: BroadcastWaiters { get set }
}

/// State behind a lock whose changes any number of tasks can await.
///
/// A subscriber sees the newest state and may miss the ones between. No queue grows for slow subscribers.
package protocol Broadcast: AnyObject, Sendable {
    associatedtype State: BroadcastState

    /// Runs a body under the lock.
    func withState<R: Sendable>(_ body: (inout State) -> R) -> R
}

extension Broadcast {
    /// Changes the state and resumes the waiting tasks.
    package func change(_ body: (inout State) -> Void) {
        let waiters = withState { state in
            body(&state)
            return state.waiters.takeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the state has changed since a version, is closed, or the task is cancelled.
    package func waitForChange(since version: Int) async {
        let id = withState { $0.waiters.begin() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = withState { state in
                    guard state.version == version, !state.isClosed else { return false }
                    return state.waiters.add(id, continuation)
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            withState { $0.waiters.cancel(id) }?.resume()
        }
        withState { $0.waiters.end(id) }
    }
}
