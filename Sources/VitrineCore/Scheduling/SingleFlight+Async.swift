import Synchronization

extension SingleFlight {
    /// The value for a key, from the run under way or from a new one.
    ///
    /// - Parameters:
    ///   - key: What is wanted.
    ///   - priority: How urgent it is for this caller.
    ///   - executor: Where a new run prefers to be; nil for the global pool, where it must not block.
    ///   - operation: The work of a new run, in a task of its own, which is cancelled when the last caller leaves.
    /// - Throws: `CancellationError` at once when the calling task is cancelled; else what `operation` throws.
    @inlinable
    public func value(
        for key: Key,
        priority: Priority = .normal,
        on executor: (any TaskExecutor)? = nil,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) async throws -> Value {
        try await value(for: key, priority: priority, following: nil, on: executor, operation: operation)
    }

    /// The same for a caller whose priority can change while it waits.
    @inlinable
    public func value(
        for key: Key,
        following priority: PrioritySource,
        on executor: (any TaskExecutor)? = nil,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) async throws -> Value {
        try await value(
            for: key, priority: priority.value, following: priority, on: executor, operation: operation)
    }

    @inlinable
    func value(
        for key: Key,
        priority: Priority,
        following source: PrioritySource?,
        on executor: (any TaskExecutor)?,
        operation: @escaping @Sendable (Flight<Key, Value>) async throws -> Value
    ) async throws -> Value {
        try Task.checkCancellation()
        let waiter = FlightWaiter<Key, Value>()
        return try await withTaskCancellationHandler {
            let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
                let subscription = join(key, priority: priority) { flight in
                    Self.run(flight, on: executor, operation: operation)
                } deliver: { result in
                    continuation.resume(returning: result)
                }
                waiter.begin(subscription, following: source)
            }
            waiter.end(following: source)
            return try result.get()
        } onCancel: {
            waiter.cancel()
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
