/// A priority that can change, and those who follow it.
///
/// Work that has many subscribers is as urgent as the most urgent of them, which changes while the work waits (R92).
/// Observers are called one at a time and in order, and the last call always carries the last value: two threads
/// that change the priority at once cannot leave a stale one behind.
public final class PrioritySource: Sendable {
    private struct State {
        var value: Priority
        var nextID = 0
        var observers: [(id: Int, handler: @Sendable (Priority) -> Void)] = []
        var isPublishing = false
        var isStale = false
    }

    /// A handle for taking an observer back.
    public struct Registration: Sendable {
        fileprivate let id: Int
    }

    private let state: Locked<State>

    /// A source with a first value.
    public init(_ value: Priority = .normal) {
        state = Locked(State(value: value))
    }

    /// The priority now. Setting it calls the observers before the call returns, unless another thread is calling
    /// them just then, which will pass the new value on.
    public var value: Priority {
        get { state.withLock { $0.value } }
        set { if store(newValue) { publish() } }
    }

    /// Calls `observer` with the value now and on every change, until ``remove(_:)``.
    @discardableResult
    public func observe(_ observer: @escaping @Sendable (Priority) -> Void) -> Registration {
        let id = state.withLock { state in
            state.nextID += 1
            state.observers.append((state.nextID, observer))
            return state.nextID
        }
        publish()
        return Registration(id: id)
    }

    /// Forgets an observer. A call of it that is under way is not waited for.
    public func remove(_ registration: Registration) {
        let removed = state.withLock { state in
            let index = state.observers.firstIndex { $0.id == registration.id }
            return index.map { state.observers.remove(at: $0) }
        }
        // Released here, outside the lock: what the observer captured may run code when it goes.
        _ = removed
    }

    /// Stores a value without telling observers, for owners that change it under a lock of their own.
    ///
    /// - Returns: Whether the value changed; ``publish()`` must then follow outside that lock.
    @usableFromInline
    package func store(_ value: Priority) -> Bool {
        state.withLock { state in
            guard state.value != value else { return false }
            state.value = value
            return true
        }
    }

    /// Stores a value if it is higher, as ``store(_:)`` does.
    @usableFromInline
    func raise(to value: Priority) -> Bool {
        state.withLock { state in
            guard state.value < value else { return false }
            state.value = value
            return true
        }
    }

    /// Tells the observers the value, one publisher at a time.
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
