import VitrineCore

/// Lets asynchronous operations run one after the other, in the order in which they came.
package final class SerialTurns: Sendable {
    private struct State {
        var isTaken = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Locked(State())

    package init() {}

    /// How many wait for their turn. For tests.
    package var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Runs an operation when those before it are done.
    package func run<T, E: Error>(_ operation: () async throws(E) -> T) async throws(E) -> T {
        await enter()
        defer { leave() }
        return try await operation()
    }

    private func enter() async {
        await withCheckedContinuation { continuation in
            let isMine = state.withLock { state in
                guard state.isTaken else {
                    state.isTaken = true
                    return true
                }
                state.waiters.append(continuation)
                return false
            }
            if isMine { continuation.resume() }
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiters.isEmpty else {
                state.isTaken = false
                return nil
            }
            return state.waiters.removeFirst()
        }
        next?.resume()
    }
}
