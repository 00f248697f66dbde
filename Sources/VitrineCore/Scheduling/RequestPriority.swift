/// The urgency of work, relative to other work on the same queue.
public enum RequestPriority: Int, Sendable, Hashable, Codable, CaseIterable, Comparable {
    /// For work whose result may never be used, such as warming a cache.
    case veryLow
    /// For results that are not visible yet, such as prefetching ahead of scrolling.
    case low
    /// The default.
    case normal
    /// For visible content.
    case high
    /// For a result that a user is waiting for.
    case veryHigh

    /// Returns whether the first priority is less urgent.
    public static func < (one: RequestPriority, other: RequestPriority) -> Bool { one.rawValue < other.rawValue }
}

/// The current priority of shared work.
///
/// Work with many subscribers runs at the highest of their priorities, which changes while the work waits. ``value`` is
/// the current one.
public final class PrioritySource: Sendable {
    // Observers are called one at a time and in order. The last call always has the last value: two threads that set
    // the priority at once cannot leave a stale one behind.
    private struct State {
        var value: RequestPriority
        var nextID = 0
        var observers: [(id: Int, handler: @Sendable (RequestPriority) -> Void)] = []
        var isPublishing = false
        var isStale = false
    }

    /// Identifies an observer for ``remove(_:)``.
    @usableFromInline
    package struct Registration: Sendable {
        fileprivate let id: Int
    }

    private let state: Locked<State>

    /// Creates a source with an initial value.
    public init(_ value: RequestPriority = .normal) {
        state = Locked(State(value: value))
    }

    /// The current priority.
    ///
    /// The setter calls the observers before it returns. If another thread is calling them at that moment, that thread
    /// passes the new value on instead.
    public var value: RequestPriority {
        get { state.withLock { $0.value } }
        set { if store(newValue) { publish() } }
    }

    /// Calls `observer` with the current value and on every change, until ``remove(_:)``.
    @usableFromInline @discardableResult
    package func observe(_ observer: @escaping @Sendable (RequestPriority) -> Void) -> Registration {
        let id = state.withLock { state in
            state.nextID += 1
            state.observers.append((state.nextID, observer))
            return state.nextID
        }
        publish()
        return Registration(id: id)
    }

    /// Removes an observer. A call of it that is in progress is not waited for.
    @usableFromInline
    package func remove(_ registration: Registration) {
        let removed = state.withLock { state in
            let index = state.observers.firstIndex { $0.id == registration.id }
            return index.map { state.observers.remove(at: $0) }
        }
        // Released here, outside the lock: deinitializers of its captures may run any code.
        _ = removed
    }

    /// Stores a value without calling observers, for owners that change it under a lock of their own.
    ///
    /// - Returns: Whether the value changed. ``publish()`` must then follow outside that lock.
    @usableFromInline
    package func store(_ value: RequestPriority) -> Bool {
        state.withLock { state in
            guard state.value != value else { return false }
            state.value = value
            return true
        }
    }

    /// Stores a value if it is higher than the current one, as ``store(_:)`` does.
    @usableFromInline
    func raise(to value: RequestPriority) -> Bool {
        state.withLock { state in
            guard state.value < value else { return false }
            state.value = value
            return true
        }
    }

    /// Calls the observers with the value, one publisher at a time.
    @usableFromInline
    package func publish() {
        let isFirst = state.withLock { state in
            guard !state.isPublishing else {
                state.isStale = true
                return false
            }
            guard !state.observers.isEmpty else { return false }
            state.isPublishing = true
            return true
        }
        guard isFirst else { return }
        while true {
            let (value, observers) = state.withLock { state in
                state.isStale = false
                return (state.value, state.observers)
            }
            for observer in observers { observer.handler(value) }
            let isDone = state.withLock { state in
                if !state.isStale { state.isPublishing = false }
                return !state.isStale
            }
            if isDone { return }
        }
    }
}
