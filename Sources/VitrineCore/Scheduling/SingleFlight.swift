import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Coalesces identical work: one run per key, with any number of subscribers that share its result.
///
/// ```swift
/// let thumbnails = SingleFlight<CacheKey, PixelImage>()
/// let image = try await thumbnails.value(for: key, priority: .high) { _ in try await makeThumbnail(key) }
/// ```
///
/// - Each subscriber has a priority. The run always has the highest of them.
/// - A subscriber that leaves receives a `CancellationError` at once; the others are not affected. When the last one
///   leaves, the run is cancelled and forgotten: the next subscriber of its key starts a new run, even if the old one
///   has not stopped yet.
/// - Every subscriber receives exactly one result.
public final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// The closure that receives the result of a subscriber, once.
    @usableFromInline
    package typealias ResultHandler = @Sendable (Result<Value, any Error>) -> Void

    @usableFromInline let flights = Locked<[Key: Flight<Key, Value>]>([:])

    /// Creates a single flight without runs.
    @inlinable
    public init() {}

    /// The number of runs in progress.
    public var count: Int { flights.withLock { $0.count } }

    /// Returns the number of subscribers of a key.
    public func subscriberCount(for key: Key) -> Int {
        flights.withLock { $0[key] }?.subscribers.withLock { $0.count } ?? 0
    }

    /// Returns the priority of the run for a key, or nil if there is none.
    package func priority(for key: Key) -> RequestPriority? {
        flights.withLock { $0[key] }?.priority.value
    }

    /// Returns the number of subscribers of all keys that a predicate is true for.
    package func subscriberCount(where isCounted: (Key) -> Bool) -> Int {
        flights.withLock { flights in
            flights.reduce(0) { sum, flight in
                isCounted(flight.key) ? sum + flight.value.subscribers.withLock { $0.count } : sum
            }
        }
    }

    /// Returns the highest priority of the runs for keys that a predicate is true for, or nil if there is none.
    package func priority(where isCounted: (Key) -> Bool) -> RequestPriority? {
        flights.withLock { flights in
            flights.filter { isCounted($0.key) }.map(\.value.priority.value).max()
        }
    }

    // MARK: Subscribing

    /// Joins the run for a key, and starts one if there is none.
    ///
    /// - Parameters:
    ///   - key: The identity of the work.
    ///   - priority: The priority of this subscriber.
    ///   - start: Starts the work if there is no run yet. It is called on this thread before `join` returns. The work
    ///     ends with ``Flight/finish(_:)``, which `start` may call itself.
    ///   - deliver: Receives the value, the error, or a `CancellationError` after ``FlightSubscription/leave()``. It is
    ///     called exactly once, on any thread, possibly before `join` returns. It must not block.
    @inlinable
    @discardableResult
    package func join(
        _ key: Key,
        priority: RequestPriority = .normal,
        start: (Flight<Key, Value>) -> Void,
        deliver: @escaping ResultHandler
    ) -> FlightSubscription<Key, Value> {
        let (flight, id, isNew, isMoreUrgent) = subscribe(key, priority: priority, deliver: deliver)
        if isNew { start(flight) }
        if isMoreUrgent { flight.priority.publish() }
        return FlightSubscription(flight: flight, id: id)
    }

    /// Joins the run for a key, as ``join(_:priority:start:deliver:)``.
    ///
    /// - Parameter subscribed: Receives the subscription before the work starts. The work does not start if the
    ///   subscriber leaves in the call and no other subscriber has joined.
    @inlinable
    func join(
        _ key: Key,
        priority: RequestPriority,
        subscribed: (FlightSubscription<Key, Value>) -> Void,
        start: (Flight<Key, Value>) -> Void,
        deliver: @escaping ResultHandler
    ) {
        let (flight, id, isNew, isMoreUrgent) = subscribe(key, priority: priority, deliver: deliver)
        subscribed(FlightSubscription(flight: flight, id: id))
        if isNew, !flight.cancellation.isCancelled { start(flight) }
        if isMoreUrgent { flight.priority.publish() }
    }

    /// Adds a subscriber to the run for a key, or to a new run.
    @inlinable
    func subscribe(
        _ key: Key, priority: RequestPriority, deliver: @escaping ResultHandler
    ) -> (flight: Flight<Key, Value>, id: Int, isNew: Bool, isMoreUrgent: Bool) {
        flights.withLock { flights in
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
    }

    // MARK: Calls of flights and subscriptions

    /// Removes a run.
    ///
    /// - Returns: The subscribers that have no result yet.
    @inlinable
    func end(_ flight: Flight<Key, Value>) -> Flight<Key, Value>.Subscribers {
        flights.withLock { flights in
            // Another run may have taken the key after this one was cancelled.
            guard let index = flights.index(forKey: flight.key), flights.values[index] === flight else {
                return Flight.Subscribers()
            }
            flights.remove(at: index)
            return flight.subscribers.withLock { subscribers in
                var ended = Flight<Key, Value>.Subscribers()
                swap(&ended, &subscribers)
                return ended
            }
        }
    }

    @inlinable
    func leave(_ flight: Flight<Key, Value>, _ id: Int, throwing error: any Error) {
        let (departed, isLast, isChanged) = flights.withLock { flights in
            flight.subscribers.withLock { subscribers -> (Flight<Key, Value>.Subscriber?, Bool, Bool) in
                guard let departed = subscribers.remove(id) else { return (nil, false, false) }
                if subscribers.count == 0 {
                    // This subscriber was the last one, so the key still belongs to this run.
                    flights[flight.key] = nil
                    return (departed, true, false)
                }
                return (departed, false, flight.priority.store(subscribers.highestPriority))
            }
        }
        departed?.deliver(.failure(error))
        if isLast { flight.cancellation.cancel() }
        if isChanged { flight.priority.publish() }
    }
}

extension SingleFlight {
    /// Lets the run for a key, or a new one, come to its end without a 
    public func start(
        _ key: Key, priority: RequestPriority = .normal,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) {
        // Not on this thread, which has other work. This subscriber never leaves.
        join(key, priority: priority) {
            Self.run($0, on: globalConcurrentExecutor, operation: operation)
        } deliver: { _ in
        }
    }

    /// Cancels all runs. Their subscribers receive an error.
    public func cancelAll(throwing error: any Error = CancellationError()) {
        for flight in flights.withLock({ Array($0.values) }) {
            flight.finish(.failure(error))
            flight.cancellation.cancel()
        }
    }

    /// Returns the value for a key, from the run in progress or from a new one.
    ///
    /// - Parameters:
    ///   - key: The identity of the work.
    ///   - priority: The priority of this caller.
    ///   - executor: The preferred executor of a new run. Default: the global pool, where it must not block.
    ///   - operation: The work of a new run. Its task is cancelled when the last caller leaves.
    /// - Throws: `CancellationError` at once when the calling task is cancelled, and the errors of `operation`.
    @inlinable
    public func value(
        for key: Key,
        priority: RequestPriority = .normal,
        on executor: (any TaskExecutor)? = nil,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) async throws -> Value {
        let waiter = FlightWaiter<Key, Value>(priority)
        return try await value(for: key, waiter: waiter, on: executor, operation: operation)
    }

    /// Returns the value for a key, for a caller whose priority can change while it waits.
    @inlinable
    package func value(
        for key: Key,
        following priority: PrioritySource,
        on executor: (any TaskExecutor)? = nil,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) async throws -> Value {
        let waiter = FlightWaiter<Key, Value>(priority.value, following: priority)
        return try await value(for: key, waiter: waiter, on: executor, operation: operation)
    }

    /// Returns the value for a key, for a caller that leaves at a deadline.
    ///
    /// - Throws: ``FlightTimeout`` at the deadline.
    public func value(
        for key: Key,
        priority: RequestPriority = .normal,
        deadline: ContinuousClock.Instant,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) async throws -> Value {
        let waiter = FlightWaiter<Key, Value>(priority)
        let timer = Task {
            try await Task.sleep(until: deadline, clock: .continuous)
            waiter.leave(.timedOut)
        }
        defer { timer.cancel() }
        return try await value(for: key, waiter: waiter, on: nil, operation: operation)
    }

    @inlinable
    func value(
        for key: Key,
        waiter: FlightWaiter<Key, Value>,
        on executor: (any TaskExecutor)?,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        return try await withTaskCancellationHandler {
            let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
                // Before the work starts, so that a cancellation during its start reaches it.
                join(key, priority: waiter.priority) { subscription in
                    waiter.begin(subscription)
                } start: { flight in
                    Self.run(flight, on: executor, operation: operation)
                } deliver: { result in
                    continuation.resume(returning: result)
                }
            }
            waiter.end()
            return try result.get()
        } onCancel: {
            waiter.leave(.cancelled)
        }
    }

    @inlinable
    static func run(
        _ flight: Flight<Key, Value>,
        on executor: (any TaskExecutor)?,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) {
        let work: @Sendable () async -> Void = {
            do {
                flight.finish(.success(try await operation(flight)))
            } catch {
                flight.finish(.failure(error))
            }
        }
        let task: Task<Void, Never>
        if executor == nil, #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // Runs on this thread up to its first suspension, which saves waking another one.
            task = Task.immediate(operation: work)
        } else {
            task = Task(executorPreference: executor, operation: work)
        }
        flight.cancellation.onCancel { task.cancel() }
    }
}

/// One run of the work for a key, as the work sees it.
///
/// The work may read ``priority``, which is the highest of all subscribers.
public final class Flight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    // Inlinable throughout: a generic type that another module cannot specialize costs several times as much.
    @usableFromInline
    struct Subscriber {
        @usableFromInline let id: Int
        @usableFromInline var priority: RequestPriority
        @usableFromInline let deliver: SingleFlight<Key, Value>.ResultHandler

        @inlinable
        init(id: Int, priority: RequestPriority, deliver: @escaping SingleFlight<Key, Value>.ResultHandler) {
            self.id = id
            self.priority = priority
            self.deliver = deliver
        }
    }

    /// The subscribers in the order in which they joined. A single one, which is the rule, needs no array.
    @usableFromInline
    struct Subscribers {
        @usableFromInline var lastID = 0
        @usableFromInline var first: Subscriber?
        @usableFromInline var others: [Subscriber] = []

        @inlinable
        init() {}

        @inlinable
        mutating func add(_ priority: RequestPriority, _ deliver: @escaping SingleFlight<Key, Value>.ResultHandler) -> Int {
            lastID += 1
            let subscriber = Subscriber(id: lastID, priority: priority, deliver: deliver)
            if count == 0 { first = subscriber } else { others.append(subscriber) }
            return lastID
        }

        @inlinable
        var count: Int { (first == nil ? 0 : 1) + others.count }

        @inlinable
        mutating func remove(_ id: Int) -> Subscriber? {
            if first?.id == id { return first.take() }
            return others.firstIndex { $0.id == id }.map { others.remove(at: $0) }
        }

        /// - Returns: Whether there is such a subscriber.
        @inlinable
        mutating func setPriority(_ priority: RequestPriority, of id: Int) -> Bool {
            if first?.id == id {
                first?.priority = priority
                return true
            }
            guard let index = others.firstIndex(where: { $0.id == id }) else { return false }
            others[index].priority = priority
            return true
        }

        @inlinable
        var highestPriority: RequestPriority {
            var highest = first?.priority ?? .veryLow
            for subscriber in others where subscriber.priority > highest { highest = subscriber.priority }
            return highest
        }
    }

    /// The identity of the work.
    @usableFromInline
    package let key: Key
    /// The highest priority among the subscribers, kept up to date while they join, leave and change.
    public let priority: PrioritySource
    /// Cancelled when the last subscriber has left.
    @usableFromInline package let cancellation = CancellationToken()

    @usableFromInline let owner: SingleFlight<Key, Value>
    /// The subscribers. Joining and removal also happen under the owner's lock, so no subscriber joins a run that is
    /// over.
    @usableFromInline let subscribers = Locked(Subscribers())

    @inlinable
    init(key: Key, priority: RequestPriority, owner: SingleFlight<Key, Value>) {
        self.key = key
        self.priority = PrioritySource(priority)
        self.owner = owner
    }

    /// Delivers the result to every subscriber, in the order in which they joined.
    ///
    /// Only the first call has an effect, and none after the run was cancelled.
    @inlinable
    package func finish(_ result: Result<Value, any Error>) {
        let ended = owner.end(self)
        ended.first?.deliver(result)
        for subscriber in ended.others { subscriber.deliver(result) }
    }
}

/// One subscriber's part in a run of ``SingleFlight``.
@usableFromInline
package struct FlightSubscription<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let flight: Flight<Key, Value>
    @usableFromInline let id: Int

    @inlinable
    init(flight: Flight<Key, Value>, id: Int) {
        self.flight = flight
        self.id = id
    }

    /// Changes the priority of this subscriber. Does nothing once the subscriber has its result.
    @inlinable
    package func setPriority(_ priority: RequestPriority) {
        let isChanged = flight.subscribers.withLock { subscribers in
            guard subscribers.setPriority(priority, of: id) else { return false }
            return flight.priority.store(subscribers.highestPriority)
        }
        if isChanged { flight.priority.publish() }
    }

    /// Leaves the run. The subscriber receives an error before the call returns, unless it already has its result. When
    /// the last subscriber leaves, the run is cancelled.
    @inlinable
    package func leave(throwing error: any Error = CancellationError()) {
        flight.owner.leave(flight, id, throwing: error)
    }
}

/// The deadline of a subscriber of ``SingleFlight`` has passed.
public struct FlightTimeout<Key: Sendable>: Error {
    /// The key of the run, as its first subscriber had it.
    public let key: Key

    @usableFromInline
    init(key: Key) { self.key = key }
}

extension FlightTimeout: LocalizedError, CustomStringConvertible {
    /// The ``description``.
    public var errorDescription: String? { description }

    /// A sentence that names the key.
    public var description: String {
        ErrorText.sentence("\(ErrorText.shortened("\(key)")) was not ready at the deadline")
    }
}

/// Passes the cancellation of an awaiting task, or the end of its time, which may come at any moment, to its
/// subscription.
@usableFromInline
final class FlightWaiter<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    enum Reason: Sendable { case cancelled, timedOut }

    @usableFromInline
    struct State {
        @usableFromInline var reason: Reason?
        @usableFromInline var subscription: FlightSubscription<Key, Value>?
        @usableFromInline var registration: PrioritySource.Registration?

        @inlinable
        init() {}
    }

    @usableFromInline let priority: RequestPriority
    /// The priority if it can change.
    @usableFromInline let source: PrioritySource?
    @usableFromInline let state = Locked(State())

    @inlinable
    init(_ priority: RequestPriority, following source: PrioritySource? = nil) {
        (self.priority, self.source) = (priority, source)
    }

    @inlinable
    func begin(_ subscription: FlightSubscription<Key, Value>) {
        let registration = source?.observe { subscription.setPriority($0) }
        let reason = state.withLock { state in
            state.subscription = subscription
            state.registration = registration
            return state.reason
        }
        if let reason { Self.leave(subscription, reason) }
    }

    @inlinable
    func leave(_ reason: Reason) {
        let subscription = state.withLock { state in
            state.reason = state.reason ?? reason
            return state.subscription
        }
        if let subscription { Self.leave(subscription, reason) }
    }

    @inlinable
    static func leave(_ subscription: FlightSubscription<Key, Value>, _ reason: Reason) {
        switch reason {
        case .cancelled: subscription.leave()
        case .timedOut: subscription.leave(throwing: FlightTimeout(key: subscription.flight.key))
        }
    }

    @inlinable
    func end() {
        guard let source, let registration = state.withLock({ $0.registration }) else { return }
        source.remove(registration)
    }
}
