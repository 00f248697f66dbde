import Synchronization
import VitrineCore

/// Runs one task for all requests that want the same at the same time: ``SingleFlight`` with the errors of requests.
struct SharedWork<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Identifies work by its key. Equal requests share the run of the first one, and the queues that it waits in.
    private struct Run: Hashable {
        let key: Key
        let queue = QueueTime()

        init(_ key: Key) { self.key = key }

        static func == (one: Run, other: Run) -> Bool { one.key == other.key }
        func hash(into hasher: inout Hasher) { hasher.combine(key) }
    }

    private typealias Outcome = (value: Value, queue: QueueTime)
    private typealias Work = @Sendable (Flight<Run, Outcome>) async throws -> Outcome

    private let flights = SingleFlight<Run, Outcome>()
    private let overloaded: @Sendable () -> RequestError

    /// - Parameter overloaded: Returns the error of callers whose time has passed in queues of this server.
    init(overloaded: @escaping @Sendable () -> RequestError) { self.overloaded = overloaded }

    /// The number of keys with work under way.
    var count: Int { flights.count }

    /// The number of callers that wait for a key.
    func waiters(for key: Key) -> Int { flights.subscriberCount(for: Run(key)) }

    /// Returns the value of the work that runs for a key, or of `body` if none does.
    ///
    /// - Parameters:
    ///   - key: Identifies the work.
    ///   - priority: Raises that of the work.
    ///   - deadline: When this caller stops waiting; nil for never.
    ///   - body: The work. It may ask for its priority whenever it needs it.
    /// - Returns: The value, and whether the work had been started by another caller.
    /// - Throws: The error of the work; ``RequestError/cancelled`` for this caller. At the deadline
    ///   ``RequestError/deadlineExceeded``, or 503 if queues of this server are the reason.
    func value(
        for key: Key, priority: RequestPriority = .normal, deadline: ContinuousClock.Instant? = nil,
        _ body: @escaping @Sendable (SharedPriority) async throws(RequestError) -> Value
    ) async throws(RequestError) -> (value: Value, isShared: Bool) {
        let (run, began) = (Run(key), ContinuousClock.now)
        do {
            let work: Work = { flight in try await Self.outcome(of: body, flight, queue: run.queue) }
            let (value, queue) =
                if let deadline {
                    try await flights.value(for: run, priority: priority, deadline: deadline, operation: work)
                } else {
                    try await flights.value(for: run, priority: priority, operation: work)
                }
            return (value, queue !== run.queue)
        } catch let timeout as FlightTimeout<Run> {
            throw timeout.key.queue.isReason(since: began) ? overloaded() : .deadlineExceeded
        } catch {
            throw error as? RequestError ?? .cancelled
        }
    }

    /// Starts work that no request waits for, unless there is some for the key.
    func start(
        for key: Key, priority: RequestPriority,
        _ body: @escaping @Sendable (SharedPriority) async throws(RequestError) -> Value
    ) {
        let run = Run(key)
        flights.start(run, priority: priority) { flight in try await Self.outcome(of: body, flight, queue: run.queue) }
    }

    private static func outcome(
        of body: @Sendable (SharedPriority) async throws(RequestError) -> Value,
        _ flight: Flight<Run, Outcome>, queue: QueueTime
    ) async throws(RequestError) -> Outcome {
        (try await body(SharedPriority(flight.priority, queue: queue)), queue)
    }

    /// Cancels all work. Its callers get ``RequestError/shuttingDown``.
    func cancelAll() { flights.cancelAll(throwing: RequestError.shuttingDown) }
}

/// The highest priority of all that wait for a piece of work.
struct SharedPriority: Sendable {
    private let source: PrioritySource
    /// The time that the work waits for places, and for its begin.
    let queue: QueueTime

    init(_ source: PrioritySource, queue: QueueTime = QueueTime()) {
        (self.source, self.queue) = (source, queue)
        queue.begin()
    }

    var value: RequestPriority { source.value }

    /// Raises the priority. One at a time may do so.
    func raise(to priority: RequestPriority) { source.value = max(source.value, priority) }
}

extension Task where Failure == Never {
    /// The value, or nil if it takes longer.
    func value(within time: Duration) async -> Success? {
        let first = AsyncPromise<Success?>()
        let timer = Task<Void, any Error> {
            try await Task<Never, Never>.sleep(for: time)
            first.fulfill(nil)
        }
        Task<Void, Never> { first.fulfill(await value) }
        defer { timer.cancel() }
        return await first.value()
    }
}

/// The results that are completed in the background, of which there is a limited number.
final class BackgroundEncodes: Sendable {
    private let keys = Mutex<Set<CacheKey>>([])
    private let limit: Int

    init(limit: Int) { self.limit = max(0, limit) }

    /// Takes a place for a result; false if there is none, or the result has one already.
    func begin(_ key: CacheKey) -> Bool {
        keys.withLock { $0.count < limit && $0.insert(key).inserted }
    }

    func end(_ key: CacheKey) { keys.withLock { _ = $0.remove(key) } }

    func isRunning(_ key: CacheKey) -> Bool { keys.withLock { $0.contains(key) } }
}
