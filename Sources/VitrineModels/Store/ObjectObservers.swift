internal import VitrineCore

/// Those who want to hear of changes.
final class ObjectObservers: Sendable {
    private struct State {
        var next = 0
        var observers: [Int: (group: ObjectGroup, continuation: AsyncStream<ObjectChange>.Continuation)] = [:]
    }

    private let state = Locked(State())

    /// Adds an observer of a group and those below it, until its stream ends.
    func add(_ group: ObjectGroup, _ continuation: AsyncStream<ObjectChange>.Continuation) -> Int {
        state.withLock { state in
            state.next += 1
            state.observers[state.next] = (group, continuation)
            return state.next
        }
    }

    func remove(_ identifier: Int) { state.withLock { _ = $0.observers.removeValue(forKey: identifier) } }

    func tell(_ changes: [ObjectChange]) {
        // Under the lock, so that every observer hears of changes in one order.
        state.withLock { state in
            for change in changes {
                for observer in state.observers.values where change.concerns(observer.group) {
                    observer.continuation.yield(change)
                }
            }
        }
    }
}

extension ObjectStore {
    /// The changes in a group and those below it, from now on, after they were committed.
    ///
    /// Changes by others on the same file are noticed within `interval`, as ``ObjectChange/elsewhere``.
    ///
    /// - Parameters:
    ///   - group: Default: the root group, so all changes.
    ///   - interval: How often the file is looked at for changes by others. Default 0.25 s.
    public func changes(
        in group: ObjectGroup = .root, interval: Duration = .milliseconds(250)
    ) -> AsyncStream<ObjectChange> {
        AsyncStream { continuation in
            let identifier = observers.add(group, continuation)
            let seen = changesOfOthers()
            let looking = Task.detached { [weak self] in
                var seen = seen
                while (try? await Task.sleep(for: interval)) != nil {
                    guard let self else { return continuation.finish() }
                    guard let now = self.changesOfOthers(), now != seen else { continue }
                    if seen != nil { continuation.yield(.elsewhere) }
                    seen = now
                }
            }
            continuation.onTermination = { [observers] _ in
                looking.cancel()
                observers.remove(identifier)
            }
        }
    }
}
