import VitrineCore

/// A pending write of a ``KeyValueStore``.
///
/// Reads see the value at once. To learn when it is stored, call ``committed()`` or add a completion. A task
/// may also be ignored: failures are logged, and ``KeyValueStore/flush()`` throws the first one.
public final class WriteTask: Sendable {
    private struct State {
        var result: Result<Void, StoreError>?
        var completions: [@Sendable (Result<Void, StoreError>) -> Void] = []
    }

    private let state = Locked(State())

    init() {}

    init(failed error: StoreError) { state.withLock { $0.result = .failure(error) } }

    func finish(_ result: Result<Void, StoreError>) {
        let completions = state.withLock { state in
            guard state.result == nil else { return [@Sendable (Result<Void, StoreError>) -> Void]() }
            state.result = result
            defer { state.completions = [] }
            return state.completions
        }
        for completion in completions { completion(result) }
    }

    /// Calls a closure when the value is stored or the write has failed.
    ///
    /// The closure runs on the writer's thread, or immediately if the write has already finished. It must be short and
    /// must not wait for the store.
    @discardableResult
    public func onCompletion(_ body: @escaping @Sendable (Result<Void, StoreError>) -> Void) -> Self {
        let result = state.withLock { state in
            if state.result == nil { state.completions.append(body) }
            return state.result
        }
        if let result { body(result) }
        return self
    }

    /// Returns when the value is stored.
    ///
    /// - Throws: The ``StoreError`` of the write.
    public func committed() async throws(StoreError) {
        let result = await withCheckedContinuation { continuation in
            onCompletion { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// Blocks until the value is stored, like ``committed()``.
    package func waitUntilCommitted() throws(StoreError) {
        let promise = AsyncPromise<Result<Void, StoreError>>()
        onCompletion { promise.fulfill($0) }
        try promise.wait().get()
    }
}
