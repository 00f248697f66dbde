// Code that others inline names Locked as what it stands for.
import Synchronization

/// One piece of work per identity, any number of subscribers: whoever asks while it runs shares its result.
///
/// ```swift
/// let thumbnails = SingleFlight<CacheKey, Image>()
/// let image = try await thumbnails.value(for: key, priority: .high) { flight in
///     try await queue.run(following: flight.priority) { try await makeThumbnail(key) }
/// }
/// ```
///
/// - A subscriber has its own priority; the run has the highest of them, always (R92).
/// - A subscriber that leaves gets a `CancellationError` at once; the others notice nothing. The last one to leave
///   cancels the run (R93). A cancelled run is forgotten at that moment: who joins its key next starts a new one,
///   even if the old one has not stopped yet.
/// - Every subscriber gets exactly one result.
public final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// What a subscriber is called with, once.
    public typealias CallbackQueue = @Sendable (Result<Value, any Error>) -> Void

    @usableFromInline let flights = Locked<[Key: Flight<Key, Value>]>([:])

    @inlinable
    public init() {}

    /// How many runs are under way.
    public var count: Int { flights.withLock { $0.count } }

    /// How many subscribers wait for a key.
    public func subscriberCount(for key: Key) -> Int {
        flights.withLock { $0[key] }?.subscribers.withLock { $0.all.count } ?? 0
    }

    /// The priority of a key's run; nil when there is none.
    public func priority(for key: Key) -> Priority? {
        flights.withLock { $0[key] }?.priority.value
    }

    // MARK: Subscribing

    /// Joins the run for a key, and starts one if there is none.
    ///
    /// - Parameters:
    ///   - key: What is wanted.
    ///   - priority: How urgent it is for this subscriber.
    ///   - start: Starts the work; called before `join` returns, on this thread, only if there is no run yet. The
    ///     work ends with ``Flight/finish(_:)``, which `start` may call itself.
    ///   - deliver: Called exactly once, with the value, the error, or a `CancellationError` after
    ///     ``FlightSubscription/leave()``; possibly before `join` returns, on any thread. Must not block.
    @inlinable
    @discardableResult
    public func join(
        _ key: Key,
        priority: Priority = .normal,
        start: (Flight<Key, Value>) -> Void,
        deliver: @escaping CallbackQueue
    ) -> FlightSubscription<Key, Value> {
        let (flight, id, isNew, isMoreUrgent) = flights.withLock { flights in
            if let flight = flights[key] {
                let (id, isMoreUrgent) = flight.subscribers.withLock { subscribers in
                    (subscribers.add(priority, deliver), flight.priority.raise(to: priority))
                }
                return (flight, id, false, isMoreUrgent)
            }
            let flight = Flight(key: key, priority: priority, owner: self)
            flights[key] = flight
            return (flight, flight.subscribers.withLock { $0.add(priority, deliver) }, true, false)
        }
        if isNew { start(flight) }
        if isMoreUrgent { flight.priority.publish() }
        return FlightSubscription(flight: flight, id: id)
    }

    // MARK: What flights and subscriptions call

    /// Takes a run out.
    ///
    /// - Returns: Those who are still to get a result.
    @inlinable
    func end(_ flight: Flight<Key, Value>) -> [Flight<Key, Value>.Subscriber] {
        flights.withLock { flights in
            // Another run may have taken the key after this one was cancelled.
            guard let index = flights.index(forKey: flight.key), flights.values[index] === flight else { return [] }
            flights.remove(at: index)
            return flight.subscribers.withLock { $0.removeAll() }
        }
    }

    @inlinable
    func leave(_ flight: Flight<Key, Value>, _ id: Int) {
        let (gone, isLast, isChanged) = flights.withLock { flights in
            flight.subscribers.withLock { subscribers -> (Flight<Key, Value>.Subscriber?, Bool, Bool) in
                guard let gone = subscribers.remove(id) else { return (nil, false, false) }
                if subscribers.all.isEmpty {
                    // A subscriber was left until now, so the key is still this run's.
                    flights[flight.key] = nil
                    return (gone, true, false)
                }
                return (gone, false, flight.priority.store(subscribers.highestPriority))
            }
        }
        gone?.deliver(.failure(CancellationError()))
        if isLast { flight.cancellation.cancel() }
        if isChanged { flight.priority.publish() }
    }
}
