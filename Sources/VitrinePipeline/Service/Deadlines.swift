import VitrineCore

/// Tells of things that take longer than a certain time, one and the same for all. Costs next to nothing for those that
/// do not: a task sleeps for the first one alone.
final class Deadlines: Sendable {
    private struct State {
        var entries: ArraySlice<(id: Int, time: ContinuousClock.Instant)> = []
        var isWatched = false
    }

    private let duration: Duration
    private let isOpen: @Sendable (Int) -> Bool
    private let expire: @Sendable (Int) -> Void
    private let state = Locked(State())

    /// - Parameters:
    ///   - duration: How long each may take.
    ///   - isOpen: Whether a thing has not ended yet.
    ///   - expire: Called for each that has not ended in time, on any thread; also for a few that have just ended.
    init(
        _ duration: Duration, isOpen: @escaping @Sendable (Int) -> Bool, expire: @escaping @Sendable (Int) -> Void
    ) {
        self.duration = duration
        self.isOpen = isOpen
        self.expire = expire
    }

    /// The time of a thing begins now.
    func add(_ id: Int) {
        let (isFirst, isLong) = state.withLock { state in
            // Under the lock, so that they are in order.
            state.entries.append((id, .now + duration))
            defer { state.isWatched = true }
            return (!state.isWatched, state.entries.count.isMultiple(of: 1_024))
        }
        if isLong { forgetEnded() }
        if isFirst { watch() }
    }

    private func forgetEnded() {
        let ids = state.withLock { $0.entries.map(\.id) }
        let ended = Set(ids.filter { !isOpen($0) })
        state.withLock { $0.entries.removeAll { ended.contains($0.id) } }
    }

    private func watch() {
        Task { [weak self] in
            while let time = self?.next() { try? await Task.sleep(until: time, clock: .continuous) }
        }
    }

    /// Reports the entries that are due.
    ///
    /// - Returns: The time of the next one; nil, and the watching ends, if there is none.
    private func next() -> ContinuousClock.Instant? {
        while true {
            let (due, time) = state.withLock { state -> (Int?, ContinuousClock.Instant?) in
                guard let first = state.entries.first else {
                    state.isWatched = false
                    return (nil, nil)
                }
                guard first.time <= .now || !isOpen(first.id) else { return (nil, first.time) }
                state.entries.removeFirst()
                return (first.id, nil)
            }
            guard let due else { return time }
            if isOpen(due) { expire(due) }
        }
    }
}
