public import VitrineCache
public import VitrineCore

/// A request for a value that can be awaited, observed and cancelled.
///
/// ```swift
/// let fetch = cache.fetch(forKey: "lake")
///     .onSuccess { cell.show($0) }       // on the main actor
///     .onFailure { print($0) }
/// let value = try await fetch.value      // the same outcome
/// ```
///
/// Handlers run on the main actor. A server, or a program whose main thread waits, chooses another queue:
/// `fetch.onEnd(on: .immediate) { … }`.
///
/// The start of a fetch decides when the main actor is called. A fetch that has ended when it is returned, as with a
/// value in memory, calls handlers within the call that adds them, if that is made on the main actor. Any other fetch
/// always calls them later, however quickly it ends.
///
/// A task ends exactly once: with a value, an error, or `CacheError.cancelled(key:)`. Handlers run one at a time in
/// the order in which they were added, including those added after the end. A task continues when it is no longer
/// referenced.
public final class FetchTask<Value: Sendable>: Sendable {
    private struct Handler: Sendable {
        let delivery: CallbackQueue
        let body: @Sendable (Result<Value, CacheError>) -> Void
    }

    private struct Storage {
        var outcome: Result<Value, CacheError>?
        var handlers: [Handler] = []
        var isDelivering = false
        var nextID = 0
        var waiters: [Int: CheckedContinuation<Result<Value, CacheError>, Never>] = [:]
        var abandoned: Set<Int> = []
        var task: Task<Void, Never>?
    }

    /// The key of the value.
    public let key: CacheKey
    private let source: PrioritySource
    private let storage: Locked<Storage>
    /// Whether the outcome was known from the start. Otherwise handlers are never called within the call that adds
    /// them, as it would depend on the speed of the disk.
    private let isImmediate: Bool

    /// A fetch that runs until ``finish(_:)`` is called.
    init(key: CacheKey, priority: RequestPriority = .normal) {
        self.key = key
        source = PrioritySource(priority)
        storage = Locked(Storage())
        isImmediate = false
    }

    /// A fetch that has ended.
    init(key: CacheKey, outcome: Result<Value, CacheError>) {
        self.key = key
        source = PrioritySource()
        storage = Locked(Storage(outcome: outcome))
        isImmediate = true
    }

    // MARK: Looking

    /// The value or the error; nil while the fetch runs. After ``cancel()`` the error is
    /// `CacheError.cancelled(key:)`.
    public var outcome: Result<Value, CacheError>? { storage.withLock { $0.outcome } }

    /// Whether the fetch has ended with a value.
    package var hasSucceeded: Bool { if case .success = outcome { true } else { false } }
    /// Whether the fetch has ended without one.
    package var hasFailed: Bool { if case .failure = outcome { true } else { false } }

    /// The priority of the request. It can change during the fetch: shared work runs at the highest priority of its
    /// subscribers.
    public var priority: RequestPriority {
        get { source.value }
        set { source.value = newValue }
    }

    /// The value, when it is there.
    ///
    /// - Throws: Why there is none; `CacheError.cancelled(key:)` at once when the awaiting task is cancelled, which
    ///   leaves the fetch running for the others.
    public var value: Value {
        get async throws(CacheError) {
            let id = storage.withLock { storage in
                storage.nextID += 1
                return storage.nextID
            }
            let result = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in wait(id, continuation) }
            } onCancel: {
                abandon(id)
            }
            return try result.get()
        }
    }

    private func wait(_ id: Int, _ continuation: CheckedContinuation<Result<Value, CacheError>, Never>) {
        let known: Result<Value, CacheError>? = storage.withLock { storage in
            if let outcome = storage.outcome { return outcome }
            if storage.abandoned.remove(id) != nil { return .failure(.cancelled(key: key)) }
            storage.waiters[id] = continuation
            return nil
        }
        if let known { continuation.resume(returning: known) }
    }

    private func abandon(_ id: Int) {
        let waiter = storage.withLock { storage in
            let waiter = storage.waiters.removeValue(forKey: id)
            // The cancellation may come before the wait.
            if waiter == nil, storage.outcome == nil { storage.abandoned.insert(id) }
            return waiter
        }
        waiter?.resume(returning: .failure(.cancelled(key: key)))
    }

    // MARK: Being told

    /// Calls `handler` with the value on the main actor.
    ///
    /// If the value was there at the start and the caller is on the main actor, `handler` runs before this method
    /// returns.
    @discardableResult
    public func onSuccess(_ handler: @escaping @MainActor @Sendable (Value) -> Void) -> Self {
        onEnd { if case .success(let value) = $0 { handler(value) } }
    }

    /// Calls `handler` with the value where `delivery` says.
    @discardableResult
    package func onSuccess(on delivery: CallbackQueue, _ handler: @escaping @Sendable (Value) -> Void) -> Self {
        onEnd(on: delivery) { if case .success(let value) = $0 { handler(value) } }
    }

    /// Calls `handler` on the main actor with the error if there is no value.
    @discardableResult
    public func onFailure(_ handler: @escaping @MainActor @Sendable (CacheError) -> Void) -> Self {
        onEnd { if case .failure(let error) = $0 { handler(error) } }
    }

    /// Calls `handler` with the error, if there is no value, where `delivery` says.
    @discardableResult
    package func onFailure(on delivery: CallbackQueue, _ handler: @escaping @Sendable (CacheError) -> Void) -> Self {
        onEnd(on: delivery) { if case .failure(let error) = $0 { handler(error) } }
    }

    /// Calls `handler` once with the outcome on the main actor.
    ///
    /// If the outcome was known at the start and the caller is on the main actor, `handler` runs before this method
    /// returns.
    @discardableResult
    public func onEnd(_ handler: @escaping @MainActor @Sendable (Result<Value, CacheError>) -> Void) -> Self {
        onEnd(on: .main) { outcome in MainActor.assumeIsolated { handler(outcome) } }
    }

    /// Calls `handler` once with the outcome.
    ///
    /// - Parameters:
    ///   - delivery: The queue on which `handler` runs.
    ///   - handler: Receives the outcome.
    @discardableResult
    public func onEnd(
        on delivery: CallbackQueue, _ handler: @escaping @Sendable (Result<Value, CacheError>) -> Void
    ) -> Self {
        let isFirst = storage.withLock { storage in
            storage.handlers.append(Handler(delivery: delivery, body: handler))
            return Self.beginDelivering(&storage)
        }
        if isFirst { deliver() }
        return self
    }

    private static func beginDelivering(_ storage: inout Storage) -> Bool {
        guard storage.outcome != nil, !storage.isDelivering, !storage.handlers.isEmpty else { return false }
        storage.isDelivering = true
        return true
    }

    /// Runs the handlers one by one, each where it belongs. One thread at a time is here.
    private func deliver() {
        let next: (Handler, Result<Value, CacheError>)? = storage.withLock { storage in
            guard let outcome = storage.outcome, !storage.handlers.isEmpty else {
                storage.isDelivering = false
                return nil
            }
            return (storage.handlers.removeFirst(), outcome)
        }
        guard let (handler, outcome) = next else { return }
        handler.delivery.perform(isWithinCall: isImmediate) {
            handler.body(outcome)
            self.deliver()
        }
    }

    // MARK: Ending

    /// Ends the fetch with `CacheError.cancelled(key:)`, unless it has ended. The work goes on if others wait for it
    /// and stops otherwise.
    public func cancel() {
        let task = storage.withLock { $0.task }
        finish(.failure(.cancelled(key: key)))
        task?.cancel()
    }

    /// Runs work in a task of its own, whose outcome ends the fetch. ``cancel()`` cancels the task.
    ///
    /// - Parameter work: Receives the priority to follow.
    func run(_ work: @escaping @Sendable (PrioritySource) async throws(CacheError) -> Value) {
        let source = source
        let task = Task {
            let outcome: Result<Value, CacheError>
            do throws(CacheError) { outcome = .success(try await work(source)) } catch { outcome = .failure(error) }
            finish(outcome)
        }
        let isOver = storage.withLock { storage in
            guard storage.outcome == nil else { return true }
            storage.task = task
            return false
        }
        // Ended before the task was known: cancelled in between, or the task is done.
        if isOver { task.cancel() }
    }

    /// Gives the outcome. Only the first call counts.
    package func finish(_ outcome: Result<Value, CacheError>) {
        let (waiters, isFirst) = storage.withLock { storage in
            guard storage.outcome == nil else {
                return ([CheckedContinuation<Result<Value, CacheError>, Never>](), false)
            }
            storage.outcome = outcome
            storage.task = nil
            storage.abandoned = []
            defer { storage.waiters = [:] }
            return (storage.waiters.sorted { $0.key < $1.key }.map(\.value), Self.beginDelivering(&storage))
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
        if isFirst { deliver() }
    }
}
