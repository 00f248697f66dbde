package import VitrineCore

/// A clock that moves only by ``advance(by:)``, for tests of anything that waits or expires.
///
/// ```swift
/// let clock = ManualClock()
/// let task = Task { try await clock.sleep(for: .seconds(5)) }
/// await clock.waitForSleepers()
/// clock.advance(by: .seconds(5))  // the task continues
/// ```
package final class ManualClock: Clock, Sendable {
    /// A moment of the clock: the time it has been advanced by in all.
    package struct Instant: InstantProtocol {
        /// Since the clock was made.
        package let offset: Duration

        package init(offset: Duration) { self.offset = offset }

        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        package static func < (one: Instant, other: Instant) -> Bool { one.offset < other.offset }
    }

    private struct Sleeper {
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant(offset: .zero)
        var nextID = 0
        var sleepers: [Int: Sleeper] = [:]
        var cancelled: Set<Int> = []
        var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Locked(State())

    package init() {}

    package var now: Instant { state.withLock { $0.now } }
    package var minimumResolution: Duration { .nanoseconds(1) }

    /// How many tasks sleep.
    package var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Moves the clock and wakes those whose time has come, the earliest first.
    package func advance(by duration: Duration) {
        let woken = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }
        }
        for sleeper in woken { sleeper.value.continuation.resume() }
    }

    /// Returns when at least so many tasks sleep.
    package func waitForSleepers(_ count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                guard state.sleepers.count < count else { return true }
                state.watchers.append((count, continuation))
                return false
            }
            if isReached { continuation.resume() }
        }
    }

    /// Sleeps until the clock has been moved so far.
    ///
    /// - Throws: `CancellationError` at once when the task is cancelled.
    package func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                fallAsleep(id, until: deadline, continuation)
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                // The cancellation may come before the sleep.
                if state.sleepers[id] == nil { state.cancelled.insert(id) }
                return state.sleepers.removeValue(forKey: id)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.cancelled.remove(id) }
    }

    private func fallAsleep(_ id: Int, until deadline: Instant, _ continuation: CheckedContinuation<Void, any Error>) {
        enum Outcome { case asleep, due, cancelled }
        let (outcome, watchers) = state.withLock { state in
            if state.cancelled.remove(id) != nil { return (Outcome.cancelled, [CheckedContinuation<Void, Never>]()) }
            guard deadline > state.now else { return (.due, []) }
            state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
            let count = state.sleepers.count
            let reached = state.watchers.filter { $0.count <= count }.map(\.continuation)
            state.watchers.removeAll { $0.count <= count }
            return (.asleep, reached)
        }
        switch outcome {
        case .asleep: break
        case .due: continuation.resume()
        case .cancelled: continuation.resume(throwing: CancellationError())
        }
        for watcher in watchers { watcher.resume() }
    }
}

extension WallClock {
    /// A clock that begins at `start` and moves with a ``ManualClock``.
    package static func following(_ clock: ManualClock, from start: Duration = .zero) -> WallClock {
        WallClock { start + clock.now.offset }
    }
}
