import VitrineCore

/// Lets so many bytes a second pass, over all who ask. The limit can be changed while they wait.
///
/// What passes is paid for afterwards: after more was taken than there was, all wait until that is made up for. After a
/// pause a quarter of a second's bytes pass at once.
final class RateLimit: Sendable {
    private struct State {
        var bytesPerSecond: Int?
        /// Until when what was taken is paid for.
        var paidUntil: ContinuousClock.Instant
    }

    private let state: Locked<State>
    private static let burst = Duration.milliseconds(250)
    /// No wait is longer, so that a change of the limit is noticed.
    private static let longestNap = Duration.milliseconds(200)

    /// - Parameter bytesPerSecond: nil for as many as come.
    init(_ bytesPerSecond: Int?) {
        state = Locked(State(bytesPerSecond: bytesPerSecond, paidUntil: .now - Self.burst))
    }

    /// The bytes that pass in a second; nil for as many as come.
    var bytesPerSecond: Int? {
        get { state.withLock { $0.bytesPerSecond } }
        set {
            state.withLock { state in
                state.bytesPerSecond = newValue
                // What was taken under the old limit is not paid for under the new one.
                state.paidUntil = min(state.paidUntil, .now)
            }
        }
    }

    /// Takes bytes that have come.
    func take(_ count: Int) {
        state.withLock { state in
            guard let rate = state.bytesPerSecond, rate > 0 else { return }
            state.paidUntil = max(state.paidUntil, .now - Self.burst) + .seconds(Double(count) / Double(rate))
        }
    }

    /// Returns when everything that was taken is paid for.
    ///
    /// - Throws: `CancellationError`.
    func wait() async throws {
        while true {
            let (rate, wait) = state.withLock { ($0.bytesPerSecond, $0.paidUntil - .now) }
            guard let rate, wait > .zero || rate <= 0 else { return }
            try await Task.sleep(for: min(max(wait, .milliseconds(1)), Self.longestNap))
        }
    }
}
