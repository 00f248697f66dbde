import Synchronization
import VitrineCore

/// Runs one task for all callers that want the same at the same time.
///
/// Each caller waits until the task has ended, its own task is cancelled, or its deadline has passed. The work is
/// cancelled with the last caller.
final class SharedWork<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, RequestError>

    private struct Caller {
        let continuation: CheckedContinuation<Outcome, Never>
        /// The time that the work had waited in queues before the caller joined it.
        let queued: Duration
    }

    private struct Work {
        let id: Int
        let priority: SharedPriority
        var task: Task<Void, Never>?
        var waiters: [Int: Caller] = [:]
        /// Whether it runs to its end without anyone waiting.
        var isKept: Bool
    }

    private struct State {
        var work: [Key: Work] = [:]
        var nextID = 0
        /// Callers that ended before they could be added.
        var ended: [Int: RequestError] = [:]
    }

    private let state = Mutex(State())
    private let overloaded: @Sendable () -> RequestError

    /// - Parameter overloaded: Returns the error of callers whose time has passed in queues of this server.
    init(overloaded: @escaping @Sendable () -> RequestError) { self.overloaded = overloaded }

    /// The number of keys with work under way.
    var count: Int { state.withLock { $0.work.count } }

    /// The number of callers that wait for a key.
    func waiters(for key: Key) -> Int { state.withLock { $0.work[key]?.waiters.count ?? 0 } }

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
        let waiter = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let began = ContinuousClock.now
        let timer = deadline.map { deadline in
            Task {
                try await Task.sleep(until: deadline, clock: .continuous)
                leave(
                    key, waiter: waiter,
                    error: isQueueReason(key, waiter, since: began) ? overloaded() : .deadlineExceeded)
            }
        }
        let isShared = Mutex(false)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
                let joined = join(key, waiter: waiter, priority: priority, continuation: continuation, body: body)
                isShared.withLock { $0 = joined }
            }
        } onCancel: {
            leave(key, waiter: waiter, error: .cancelled)
        }
        timer?.cancel()
        // The cancellation may have come after the result.
        state.withLock { _ = $0.ended.removeValue(forKey: waiter) }
        return (try outcome.get(), isShared.withLock { $0 })
    }

    /// Starts work that no request waits for, unless there is some for the key.
    func start(
        for key: Key, priority: RequestPriority,
        _ body: @escaping @Sendable (SharedPriority) async throws(RequestError) -> Value
    ) {
        state.withLock { state in
            guard state.work[key] == nil else { return }
            add(key, priority: priority, isKept: true, state: &state, body: body)
        }
    }

    /// Cancels all work. Its callers get ``RequestError/shuttingDown``.
    func cancelAll() {
        let all = state.withLock { state in
            defer { state.work = [:] }
            return Array(state.work.values)
        }
        for work in all {
            work.task?.cancel()
            for waiter in work.waiters.values { waiter.continuation.resume(returning: .failure(.shuttingDown)) }
        }
    }

    // MARK: Callers

    /// Whether queues of this server are why the work of a caller has not ended.
    private func isQueueReason(_ key: Key, _ waiter: Int, since start: ContinuousClock.Instant) -> Bool {
        let (queue, caller) = state.withLock { state in
            (state.work[key]?.priority.queue, state.work[key]?.waiters[waiter])
        }
        guard let queue, let caller else { return false }
        return queue.isReason(since: start, before: caller.queued)
    }

    /// Adds a caller, and the work if there is none. Returns whether there was.
    private func join(
        _ key: Key, waiter: Int, priority: RequestPriority, continuation: CheckedContinuation<Outcome, Never>,
        body: @escaping @Sendable (SharedPriority) async throws(RequestError) -> Value
    ) -> Bool {
        let (error, isShared) = state.withLock { state -> (RequestError?, Bool) in
            if let error = state.ended.removeValue(forKey: waiter) { return (error, false) }
            if let work = state.work[key] {
                work.priority.raise(to: priority)
                state.work[key]?.waiters[waiter] = Caller(
                    continuation: continuation, queued: work.priority.queue.total)
                return (nil, true)
            }
            add(key, priority: priority, isKept: false, state: &state, body: body)
            state.work[key]?.waiters[waiter] = Caller(continuation: continuation, queued: .zero)
            return (nil, false)
        }
        if let error { continuation.resume(returning: .failure(error)) }
        return isShared
    }

    private func add(
        _ key: Key, priority: RequestPriority, isKept: Bool, state: inout State,
        body: @escaping @Sendable (SharedPriority) async throws(RequestError) -> Value
    ) {
        state.nextID += 1
        let id = state.nextID
        let shared = SharedPriority(priority)
        let task = Task { self.finish(key, id: id, outcome: await Self.outcome(of: body, shared)) }
        state.work[key] = Work(id: id, priority: shared, task: task, isKept: isKept)
    }

    private static func outcome(
        of body: @Sendable (SharedPriority) async throws(RequestError) -> Value, _ priority: SharedPriority
    ) async -> Outcome {
        do throws(RequestError) {
            return .success(try await body(priority))
        } catch {
            return .failure(error)
        }
    }

    private func finish(_ key: Key, id: Int, outcome: Outcome) {
        let waiters = state.withLock { state -> [Caller] in
            guard let work = state.work[key], work.id == id else { return [] }
            state.work[key] = nil
            return Array(work.waiters.values)
        }
        for waiter in waiters { waiter.continuation.resume(returning: outcome) }
    }

    /// Ends a caller.
    private func leave(_ key: Key, waiter: Int, error: RequestError) {
        let (continuation, task) = state.withLock {
            state -> (CheckedContinuation<Outcome, Never>?, Task<Void, Never>?) in
            guard let continuation = state.work[key]?.waiters.removeValue(forKey: waiter)?.continuation else {
                state.ended[waiter] = error
                return (nil, nil)
            }
            guard let work = state.work[key], work.waiters.isEmpty, !work.isKept else { return (continuation, nil) }
            state.work[key] = nil
            return (continuation, work.task)
        }
        task?.cancel()
        continuation?.resume(returning: .failure(error))
    }
}

/// The highest priority of all that wait for a piece of work.
final class SharedPriority: Sendable {
    private let current: Mutex<RequestPriority>
    /// The time that the work waits for places, and for its begin.
    let queue = QueueTime()

    init(_ priority: RequestPriority) {
        current = Mutex(priority)
        queue.begin()
    }

    var value: RequestPriority { current.withLock { $0 } }

    func raise(to priority: RequestPriority) { current.withLock { $0 = max($0, priority) } }
}

/// Opens once, for any number of waiting tasks.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Returns as soon as the gate is open.
    package func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    package func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for task in waiting { task.resume() }
    }
}

/// The first of several values.
package final class FirstValue<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var isSet = false
        var waiter: CheckedContinuation<Value, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    /// Sets the value, unless it is set already.
    package func set(_ value: Value) {
        let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
            guard !state.isSet else { return nil }
            (state.value, state.isSet) = (value, true)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: value)
    }

    /// The value, as soon as there is one. For one reader.
    package var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let known = state.withLock { state -> Value? in
                    if !state.isSet { state.waiter = continuation }
                    return state.value
                }
                if let known { continuation.resume(returning: known) }
            }
        }
    }
}

extension Task where Failure == Never {
    /// The value, or nil if it takes longer.
    func value(within time: Duration) async -> Success? {
        let first = FirstValue<Success?>()
        let timer = Task<Void, any Error> {
            try await Task<Never, Never>.sleep(for: time)
            first.set(nil)
        }
        Task<Void, Never> { first.set(await value) }
        defer { timer.cancel() }
        return await first.value
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
