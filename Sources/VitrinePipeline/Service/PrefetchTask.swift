import VitrineCore

/// Thumbnails being put on disk before anybody wants to see them: a handle to watch and to stop it.
public final class PrefetchTask: Sendable {
    /// How far it is.
    public struct Progress: Sendable, Hashable {
        /// How many thumbnails were asked for.
        public let total: Int
        /// Made and stored.
        public var made = 0
        /// On disk already.
        public var skipped = 0
        /// Not to be had.
        public var failed = 0

        /// How many are dealt with.
        public var completed: Int { made + skipped + failed }
    }

    private struct State {
        var progress: Progress
        var isEnded = false
        var streams: [AsyncStream<Progress>.Continuation] = []
    }

    private let state: Locked<State>
    let cancellation = CancellationToken()

    init(total: Int) {
        state = Locked(State(progress: Progress(total: total)))
        if total == 0 { end() }
    }

    /// How far it is now.
    public var current: Progress { state.withLock { $0.progress } }

    /// The progress, beginning with the present one. The sequence ends with the prefetch. An iteration that begins later
    /// gets the last progress, and a slow one skips some.
    public var progress: AsyncStream<Progress> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let isEnded = state.withLock { state in
                continuation.yield(state.progress)
                if !state.isEnded { state.streams.append(continuation) }
                return state.isEnded
            }
            if isEnded { continuation.finish() }
        }
    }

    /// The last progress, once it is all done or cancelled.
    public var finished: Progress {
        get async {
            for await _ in progress {}
            return current
        }
    }

    /// Cancels the prefetch. Running work stops unless a task needs it.
    public func cancel() {
        cancellation.cancel()
        end()
    }

    // MARK: What the service calls

    func update(_ change: (inout Progress) -> Void) {
        let isLast = state.withLock { state in
            guard !state.isEnded else { return false }
            change(&state.progress)
            for stream in state.streams { stream.yield(state.progress) }
            return state.progress.completed == state.progress.total
        }
        if isLast { end() }
    }

    private func end() {
        let streams = state.withLock { state in
            state.isEnded = true
            defer { state.streams = [] }
            return state.streams
        }
        for stream in streams { stream.finish() }
    }
}
