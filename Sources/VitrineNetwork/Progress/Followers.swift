/// Tasks that wait for the next change of a state, as a part of that state.
package struct Followers: Sendable {
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    private var cancelled: Set<Int> = []
    private var nextID = 0

    package init() {}

    /// Those who wait, to be resumed once the lock is let go of.
    fileprivate mutating func takeAll() -> [CheckedContinuation<Void, Never>] {
        defer { waiting = [:] }
        return Array(waiting.values)
    }

    fileprivate mutating func begin() -> Int {
        nextID += 1
        return nextID
    }

    /// - Returns: Whether it waits now; not if it was cancelled before.
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

/// What tasks follow: a state behind a lock, which counts its changes.
package protocol FollowedState {
    /// Goes up with each change.
    var version: Int { get }
    /// Whether nothing changes any more, so that nobody need wait.
    var isClosed: Bool { get }
    var followers: Followers { get set }
}

/// Something whose changes tasks can wait for.
package protocol Followed: AnyObject, Sendable {
    associatedtype State: FollowedState

    /// Runs a body under the lock.
    func withState<R: Sendable>(_ body: (inout State) -> R) -> R
}

extension Followed {
    /// Changes the state, and wakes those who wait for that.
    package func change(_ body: (inout State) -> Void) {
        let followers = withState { state in
            body(&state)
            return state.followers.takeAll()
        }
        for follower in followers { follower.resume() }
    }

    /// Returns when something has changed since a version, the task is cancelled, or nothing can change any more.
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
