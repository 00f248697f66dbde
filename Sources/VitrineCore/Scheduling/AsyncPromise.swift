/// A value that is set once. Any number of tasks and threads can wait for it, before or after that.
public final class AsyncPromise<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var lastID = 0
        var tasks: [(id: Int, continuation: CheckedContinuation<Value?, Never>)] = []
        var threads: [BlockedThread] = []
    }

    private let state = Locked(State())

    /// Creates a promise without a value.
    public init() {}

    /// Sets the value and resumes all waiting tasks and threads. Only the first call has an effect.
    public func fulfill(_ value: Value) {
        let (tasks, threads) = state.withLock { state in
            guard state.value == nil else { return (State().tasks, State().threads) }
            state.value = value
            defer { (state.tasks, state.threads) = ([], []) }
            return (state.tasks, state.threads)
        }
        for task in tasks { task.continuation.resume(returning: value) }
        for thread in threads { thread.resume() }
    }

    /// Returns the value once it is set. Blocks the calling thread.
    package func wait() -> Value {
        let thread = BlockedThread()
        while true {
            let value: Value? = state.withLock { state in
                if state.value == nil { state.threads.append(thread) }
                return state.value
            }
            if let value { return value }
            thread.wait()
        }
    }

    /// Returns the value once it is set, even if the calling task is cancelled meanwhile.
    public nonisolated(nonsending) func value() async -> Value {
        while true {
            let found = await withCheckedContinuation { add($0, id: 0, isCancellable: false) }
            // Only `cancelWait(_:)` resumes with nil, and never with this identifier.
            if let found { return found }
        }
    }

    /// Returns the value once it is set.
    ///
    /// - Throws: `CancellationError` at once when the calling task is cancelled.
    package nonisolated(nonsending) func cancellableValue() async throws -> Value {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let found = await withTaskCancellationHandler {
            await withCheckedContinuation { add($0, id: id, isCancellable: true) }
        } onCancel: {
            cancelWait(id)
        }
        guard let found else { throw CancellationError() }
        return found
    }

    private func add(_ continuation: CheckedContinuation<Value?, Never>, id: Int, isCancellable: Bool) {
        let (isSettled, value) = state.withLock { state -> (Bool, Value?) in
            if let value = state.value { return (true, value) }
            // A cancellation after this check waits for the lock and then finds the continuation.
            if isCancellable, Task.isCancelled { return (true, nil) }
            state.tasks.append((id, continuation))
            return (false, nil)
        }
        if isSettled { continuation.resume(returning: value) }
    }

    private func cancelWait(_ id: Int) {
        let continuation = state.withLock { state in
            state.tasks.firstIndex { $0.id == id }.map { state.tasks.remove(at: $0).continuation }
        }
        continuation?.resume(returning: nil)
    }
}

/// A thread that blocks until another one resumes it.
///
/// Unchecked: a lock type. The flag is accessed under `monitor` only.
private final class BlockedThread: @unchecked Sendable {
    private let monitor = Monitor()
    private var isResumed = false

    func wait() {
        monitor.lock()
        defer { monitor.unlock() }
        while !isResumed { monitor.wait() }
    }

    func resume() {
        monitor.lock()
        isResumed = true
        monitor.unlock()
        monitor.signal()
    }
}
