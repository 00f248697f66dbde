import VitrineCore

/// The progress of a transfer, for any number of followers.
///
/// ```swift
/// let progress = TransferProgress()
/// async let response = loader.load(request, progress: progress)
/// for await step in progress { print(step.fraction ?? 0) }
/// ```
///
/// A follower receives the newest state and skips states in between. A new follower receives the current state at once,
/// also after the end.
public final class TransferProgress: AsyncSequence, Sendable, Broadcast {
    /// A state of a transfer.
    public struct Step: Sendable, Hashable {
        /// The bytes of the body that have been read.
        public var received = 0
        /// The length of the body; nil while it is unknown.
        public var total: Int?
        /// Whether the head of the response has been received.
        package var isAnswered = false
        /// The number of retries.
        package var retries = 0
        /// Whether the transfer has ended.
        package var isFinished = false
        /// Whether the transfer has ended with the whole body.
        public var isComplete = false

        /// The received part, from 0 to 1; nil while the total is unknown.
        public var fraction: Double? {
            if isComplete { return 1 }
            guard let total, total > 0 else { return nil }
            return Swift.min(1, Double(received) / Double(total))
        }
    }

    package struct State: BroadcastState {
        fileprivate var step = Step()
        package fileprivate(set) var version = 0
        package var waiters = BroadcastWaiters()
        /// A follower of a finished transfer has seen the end and does not wait.
        package var isClosed: Bool { false }
    }

    private let state = Locked(State())

    /// Creates the progress of a transfer that has not begun.
    public init() {}

    package func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    /// The current state.
    public var current: Step { state.withLock { $0.step } }

    /// Changes the state. Call it from a fetcher or transport of your own. It has no effect after the end.
    public func update(_ change: @Sendable (inout Step) -> Void) {
        self.change { state in
            guard !state.step.isFinished else { return }
            change(&state.step)
            state.version += 1
        }
    }

    /// Marks the transfer as finished, if it is not.
    package func end(isComplete: Bool) {
        update { step in
            step.isFinished = true
            step.isComplete = isComplete
        }
    }

    public func makeAsyncIterator() -> some AsyncIteratorProtocol<Step, Never> { Iterator(progress: self) }

    /// An iterator over the states of a transfer.
    private struct Iterator: AsyncIteratorProtocol {
        let progress: TransferProgress
        private var version = -1
        private var isAtEnd = false

        init(progress: TransferProgress) { self.progress = progress }

        /// Returns the next state that differs from the last one; nil after the end or when the task is cancelled.
        mutating func next(isolation actor: isolated (any Actor)?) async -> Step? {
            guard !isAtEnd else { return nil }
            while !Task.isCancelled {
                let (step, version) = progress.state.withLock { ($0.step, $0.version) }
                if version != self.version {
                    self.version = version
                    isAtEnd = step.isFinished
                    return step
                }
                await progress.waitForChange(since: version)
            }
            return nil
        }
    }
}
