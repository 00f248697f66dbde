import VitrineCore

/// A change of a ``KeyValueStore`` that is on its way to the disk (R26).
///
/// Reads see it already. Whoever must know that it is stored awaits it, blocks for it, or leaves a closure; whoever
/// need not lets it go: failures are logged, and reported by ``KeyValueStore/flush()``.
public final class WriteTask: Sendable {
    private struct State {
        var result: Result<Void, CacheError>?
        var completions: [@Sendable (Result<Void, CacheError>) -> Void] = []
    }

    private let state = Locked(State())

    init() {}

    init(failed error: CacheError) { state.withLock { $0.result = .failure(error) } }

    func finish(_ result: Result<Void, CacheError>) {
        let completions = state.withLock { state in
            guard state.result == nil else { return [@Sendable (Result<Void, CacheError>) -> Void]() }
            state.result = result
            defer { state.completions = [] }
            return state.completions
        }
        for completion in completions { completion(result) }
    }

    /// Calls a closure once the change is stored or has failed: on the writer's thread, or at once if that was before.
    /// It must be short and must not block for the store.
    @discardableResult
    public func onCompletion(_ body: @escaping @Sendable (Result<Void, CacheError>) -> Void) -> Self {
        let result = state.withLock { state in
            if state.result == nil { state.completions.append(body) }
            return state.result
        }
        if let result { body(result) }
        return self
    }

    /// Returns when the change is stored.
    ///
    /// - Throws: Why it was not.
    public func committed() async throws(CacheError) {
        let result = await withCheckedContinuation { continuation in
            onCompletion { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    /// ``committed()`` for threads that may block.
    public func waitUntilCommitted() throws(CacheError) {
        let promise = Promise<Result<Void, CacheError>>()
        onCompletion { promise.fulfill($0) }
        try promise.wait().get()
    }
}
