public import VitrineCore

/// A committed change in a store.
public enum ObjectChange: Sendable, Equatable {
    /// A value was stored.
    case put(key: String, group: GroupPath)
    /// A value was removed. It is reported even if there was no value.
    case removed(key: String, group: GroupPath)
    /// A group and all groups below it were removed.
    case removedGroup(GroupPath)
    /// All values were removed, or all outside the group `reserve`.
    case removedAll
    /// Another process, or another store on the same file, changed values.
    case elsewhere

    /// Returns whether the change affects a group or a group below it.
    func concerns(_ observed: GroupPath?) -> Bool {
        guard let observed else { return true }
        return switch self {
        case .put(_, let group), .removed(_, let group): observed.contains(group)
        case .removedGroup(let group): observed.contains(group) || group.contains(observed)
        case .removedAll, .elsewhere: true
        }
    }
}

/// The subscribers to changes.
final class ObjectObservers: Sendable {
    private struct State {
        var next = 0
        var observers: [Int: (group: GroupPath?, continuation: AsyncStream<ObjectChange>.Continuation)] = [:]
    }

    private let state = Locked(State())

    /// Adds a subscriber to a group and the groups below it.
    func add(_ group: GroupPath?, _ continuation: AsyncStream<ObjectChange>.Continuation) -> Int {
        state.withLock { state in
            state.next += 1
            state.observers[state.next] = (group, continuation)
            return state.next
        }
    }

    func remove(_ identifier: Int) { state.withLock { _ = $0.observers.removeValue(forKey: identifier) } }

    func tell(_ changes: [ObjectChange]) {
        // Under the lock, so that all subscribers receive changes in the same order.
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
    /// Returns the changes in a group and the groups below it, from now on, after their commit.
    ///
    /// Changes by other processes or stores appear within `interval`, as ``ObjectChange/elsewhere``.
    ///
    /// - Parameters:
    ///   - group: Default: nil, for all changes.
    ///   - interval: The interval at which the file is polled for changes by others. Default 0.25 s.
    public func changes(
        in group: GroupPath? = nil, interval: Duration = .milliseconds(250)
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
