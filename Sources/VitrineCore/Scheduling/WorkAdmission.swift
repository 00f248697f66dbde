/// One wait for a slot: settled once, by admission or cancellation, before or after someone waits.
final class WorkAdmission: Sendable {
    enum Outcome: Sendable {
        case waiting
        case admitted
        case cancelled
    }

    private struct State {
        var outcome = Outcome.waiting
        var continuation: CheckedContinuation<Bool, Never>?
    }

    private let state = Locked(State())

    /// The first call decides; later ones do nothing.
    func settle(_ outcome: Outcome) {
        let continuation: CheckedContinuation<Bool, Never>? = state.withLock { state in
            guard state.outcome == .waiting else { return nil }
            state.outcome = outcome
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(returning: outcome == .admitted)
    }

    /// Whether the slot was granted.
    nonisolated(nonsending) func wait() async -> Bool {
        await withCheckedContinuation { continuation in
            let outcome = state.withLock { state in
                if state.outcome == .waiting { state.continuation = continuation }
                return state.outcome
            }
            if outcome != .waiting { continuation.resume(returning: outcome == .admitted) }
        }
    }
}
