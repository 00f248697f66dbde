// Code that others inline names Locked as what it stands for.
import Synchronization

/// Brings an awaiting task's cancellation, which may come at any moment, to its subscription.
@usableFromInline
final class FlightWaiter<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var isCancelled = false
        @usableFromInline var subscription: FlightSubscription<Key, Value>?
        @usableFromInline var registration: PrioritySource.Registration?

        @inlinable
        init() {}
    }

    @usableFromInline let state = Locked(State())

    @inlinable
    init() {}

    @inlinable
    func begin(_ subscription: FlightSubscription<Key, Value>, following source: PrioritySource?) {
        let registration = source?.observe { subscription.setPriority($0) }
        let isCancelled = state.withLock { state in
            state.subscription = subscription
            state.registration = registration
            return state.isCancelled
        }
        if isCancelled { subscription.leave() }
    }

    @inlinable
    func cancel() {
        let subscription = state.withLock { state in
            state.isCancelled = true
            return state.subscription
        }
        subscription?.leave()
    }

    @inlinable
    func end(following source: PrioritySource?) {
        guard let source, let registration = state.withLock({ $0.registration }) else { return }
        source.remove(registration)
    }
}
