import Synchronization

/// One subscriber's part in a run of ``SingleFlight``.
public struct FlightSubscription<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let flight: Flight<Key, Value>
    @usableFromInline let id: Int

    @inlinable
    init(flight: Flight<Key, Value>, id: Int) {
        self.flight = flight
        self.id = id
    }

    /// Changes how urgent the run is for this subscriber. Does nothing once the subscriber has its result.
    @inlinable
    public func setPriority(_ priority: Priority) {
        let isChanged = flight.subscribers.withLock { subscribers in
            guard subscribers.setPriority(priority, of: id) else { return false }
            return flight.priority.store(subscribers.highestPriority)
        }
        if isChanged { flight.priority.publish() }
    }

    /// Leaves: the subscriber gets a `CancellationError` before the call returns, unless it already has its result.
    /// The last one to leave cancels the run.
    @inlinable
    public func leave() {
        flight.owner.leave(flight, id)
    }
}
