import VitrineCore

/// How far a transfer has come, for any number of followers (R82).
///
/// ```swift
/// let progress = TransferProgress()
/// async let response = loader.load(request, progress: progress)
/// for await step in progress { print(step.fraction ?? 0) }
/// ```
///
/// A follower sees the newest state, not every one in between; who begins to follow later sees the state at once, and
/// who follows after the end sees the end.
public final class TransferProgress: AsyncSequence, Sendable, Broadcast {
    /// A state of a transfer.
    public struct Step: Sendable, Hashable {
        /// Bytes of body handed on so far.
        public var received = 0
        /// How many there will be; nil as long as it is not known.
        public var total: Int?
        /// Whether the head of the response is there.
        public var isAnswered = false
        /// How many times the transfer began again.
        public var retries = 0
        /// Whether it has ended; and well, with all bytes.
        public var isFinished = false, isComplete = false

        /// From 0 to 1; nil as long as the total is not known.
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
        /// A follower of what has ended has seen the end, and does not wait.
        package var isClosed: Bool { false }
    }

    private let state = Locked(State())

    public init() {}

    package func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    /// The state now.
    public var current: Step { state.withLock { $0.step } }

    /// Changes the state, for loaders. After the end nothing changes any more.
    public func update(_ change: @Sendable (inout Step) -> Void) {
        self.change { state in
            guard !state.step.isFinished else { return }
            change(&state.step)
            state.version += 1
        }
    }

    /// Ends what has not ended yet.
    func end(isComplete: Bool) {
        update { step in
            step.isFinished = true
            step.isComplete = isComplete
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(progress: self) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let progress: TransferProgress
        private var version = -1
        private var isAtEnd = false

        fileprivate init(progress: TransferProgress) { self.progress = progress }

        /// The state, once it is another than the last one; nil after the end, and when the task is cancelled.
        public mutating func next() async -> Step? {
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

/// A body whose bytes are counted.
final class CountedBody: BodySource {
    private let body: any BodySource
    private let progress: TransferProgress

    init(_ body: any BodySource, _ progress: TransferProgress) {
        self.body = body
        self.progress = progress
    }

    deinit { progress.update { $0.isFinished = true } }

    func next() async throws(NetworkError) -> [UInt8]? { try await next(reusing: []) }

    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        do throws(NetworkError) {
            let chunk = try await body.next(reusing: spare)
            count(chunk?.count)
            return chunk
        } catch {
            progress.update { $0.isFinished = true }
            throw error
        }
    }

    func collect(upTo limit: ByteCount) async throws(NetworkError) -> [UInt8] {
        // Piece by piece, so that there is something to see.
        try await collectChunks(upTo: limit, url: "")
    }

    private func count(_ count: Int?) {
        progress.update { step in
            if let count {
                step.received += count
            } else {
                step.isFinished = true
                step.isComplete = true
            }
        }
    }

    func cancel() { body.cancel() }
}
