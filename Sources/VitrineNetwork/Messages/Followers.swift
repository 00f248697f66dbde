/// The tasks that wait for the next change of a state, as a part of that state.
package struct Followers: Sendable {
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    private var cancelled: Set<Int> = []
    private var nextID = 0

    package init() {}

    /// Removes the waiting tasks, to be resumed after the lock has been released.
    fileprivate mutating func takeAll() -> [CheckedContinuation<Void, Never>] {
        defer { waiting = [:] }
        return Array(waiting.values)
    }

    fileprivate mutating func begin() -> Int {
        nextID += 1
        return nextID
    }

    /// - Returns: Whether the task waits; false if it was cancelled before.
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

/// A state behind a lock that counts its changes.
package protocol FollowedState {
    /// The number of changes.
    var version: Int { get }
    /// Whether the state is final, so that no task has to wait.
    var isClosed: Bool { get }
    var followers: Followers { get set }
}

/// An object whose changes tasks can wait for.
package protocol Followed: AnyObject, Sendable {
    associatedtype State: FollowedState

    /// Runs a closure under the lock.
    func withState<R: Sendable>(_ body: (inout State) -> R) -> R
}

extension Followed {
    /// Changes the state and resumes the waiting tasks.
    package func change(_ body: (inout State) -> Void) {
        let followers = withState { state in
            body(&state)
            return state.followers.takeAll()
        }
        for follower in followers { follower.resume() }
    }

    /// Returns when the state has changed since a version, is final, or the task is cancelled.
    package func waitForChange(since version: Int) async {
        let id = withState { $0.followers.begin() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = withState { state in
                    guard state.version == version, !state.isClosed else { return false }
                    return state.followers.add(id, continuation)
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            withState { $0.followers.cancel(id) }?.resume()
        }
        withState { $0.followers.end(id) }
    }
}
