import VitrineCore

/// What one listener has not taken yet: bounded, whatever happens in the store.
final class ChangeMailbox: Sendable {
    private struct State {
        var changes: [StoreChange] = []
        var failure: StoreError?
    }

    /// The most changes that are kept.
    static let capacity = 4096

    private let state = Locked(State())
    private let signal: AsyncStream<Void>.Continuation

    init(_ signal: AsyncStream<Void>.Continuation) { self.signal = signal }

    /// Adds changes, which its reader then wakes up for.
    func add(_ changes: [StoreChange]) {
        guard !changes.isEmpty else { return }
        state.withLock { state in
            if state.changes.count + changes.count > Self.capacity {
                state.changes = [.lookAgain]
            } else if changes != [.lookAgain] || state.changes.last != .lookAgain {
                state.changes += changes
            }
        }
        signal.yield()
    }

    /// Ends the listener's sequence with an error.
    func fail(_ error: StoreError) {
        state.withLock { $0.failure = error }
        signal.finish()
    }

    /// What there is; empty for nothing yet.
    ///
    /// - Throws: The error, after all changes before it.
    func take() throws(StoreError) -> [StoreChange] {
        try state.withLock { state throws(StoreError) in
            if state.changes.isEmpty, let failure = state.failure {
                // Once: afterwards the sequence has ended.
                state.failure = nil
                throw failure
            }
            defer { state.changes = [] }
            return state.changes
        }
    }
}
