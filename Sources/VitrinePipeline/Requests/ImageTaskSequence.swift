import VitrineCore
public import VitrineImaging

/// Requests that are made strictly one after another (R99): a small preview first, then the large picture.
///
/// ```swift
/// let sequence = ImageTaskSequence([
///     ImageTask(ImageRequest(page, size: .fit(150))), ImageTask(ImageRequest(page, size: .fit(1_024))),
/// ])
/// pipeline.start(sequence)
/// for try await stage in sequence.stages { view.image = stage.image }
/// ```
///
/// The next one is enqueued when the one before has ended, in whatever way. Requests keep their closures and
/// priorities. An empty sequence is finished as soon as it is enqueued.
public final class ImageTaskSequence: ImageTaskGroup {
    /// One thumbnail of a sequence.
    public struct Stage: Sendable {
        /// The request's place in the sequence, from 0.
        public let index: Int
        /// The thumbnail.
        public let image: Image
    }

    private struct Progress {
        var tasks: [ImageTask] = []
        /// How many were given to the service, and how many of these have ended.
        var given = 0
        var ended = 0
        var isStarted = false
        var isCancelled = false
        var waiters: [@Sendable () -> Void] = []
        var streams: [AsyncThrowingStream<Stage, any Error>.Continuation] = []
        var stages: [Stage] = []

        var isFinished: Bool { isStarted && ended == tasks.count || isCancelled && ended == given }
    }

    private let progress = Locked(Progress())

    /// A sequence. Requests that were enqueued or belong to a group already are left out, with a word in the log.
    public init(_ tasks: some Sequence<ImageTask> = []) {
        for task in tasks { add(task) }
    }

    /// Adds a request at the end.
    ///
    /// - Returns: false, and nothing changes, if the request was enqueued or belongs to a group already, or the
    ///   sequence is finished.
    @discardableResult
    public func add(_ task: ImageTask) -> Bool {
        guard !isFinished, task.joinGroup() else {
            Log.logger("thumbnails").warning("A request was not added to a sequence: one of the two has begun or ended")
            return false
        }
        return progress.withLock { progress in
            guard !progress.isCancelled else { return false }
            progress.tasks.append(task)
            return true
        }
    }

    // MARK: Waiting

    /// Whether all tasks have ended, or the sequence was cancelled.
    public var isFinished: Bool { progress.withLock { $0.isFinished } }

    /// Returns when the sequence is finished; any number may wait.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled. The sequence goes on.
    public func finished() async throws {
        let pending = Promise<Void>()
        observeFinish { pending.fulfill(()) }
        try await pending.cancellableValue()
    }

    /// As ``finished()``, for threads that may block.
    public func waitUntilFinished() {
        let promise = Promise<Void>()
        observeFinish { promise.fulfill(()) }
        promise.wait()
    }

    private func observeFinish(_ body: @escaping @Sendable () -> Void) {
        let isFinished = progress.withLock { progress in
            if !progress.isFinished { progress.waiters.append(body) }
            return progress.isFinished
        }
        if isFinished { body() }
    }

    /// The thumbnails in order, from the first one on whenever this is called. Requests without one are passed over.
    ///
    /// Ends with the sequence: by an error if its last request has one, by a `CancellationError` if it was cancelled.
    public var stages: AsyncThrowingStream<Stage, any Error> {
        AsyncThrowingStream { continuation in
            let isFinished = progress.withLock { progress in
                for stage in progress.stages { continuation.yield(stage) }
                if !progress.isFinished { progress.streams.append(continuation) }
                return progress.isFinished
            }
            if isFinished { continuation.finish(throwing: failure) }
        }
    }

    /// What the stages end with.
    private var failure: (any Error)? {
        let (last, isCancelled) = progress.withLock { ($0.tasks.last, $0.isCancelled) }
        guard case .failure(let error)? = last?.progress.withLock({ $0.result }) else {
            return isCancelled ? CancellationError() : nil
        }
        return error.isCancellation ? CancellationError() : error
    }

    // MARK: What the service calls

    public func nextTasks() -> [ImageTask] {
        let next: ImageTask? = progress.withLock { progress in
            progress.isStarted = true
            guard !progress.isCancelled, progress.given == progress.ended, progress.given < progress.tasks.count
            else { return nil }
            progress.given += 1
            return progress.tasks[progress.given - 1]
        }
        if next == nil { tellFinish() }
        return next.map { [$0] } ?? []
    }

    public func taskDidEnd(_ task: ImageTask) {
        let result = task.progress.withLock { $0.result }
        progress.withLock { progress in
            progress.ended += 1
            guard case .success(let image)? = result else { return }
            let stage = Stage(index: progress.ended - 1, image: image)
            progress.stages.append(stage)
            for stream in progress.streams { stream.yield(stage) }
        }
        tellFinish()
    }

    public func cancel() {
        let tasks = progress.withLock { progress in
            guard !progress.isFinished else { return [ImageTask]() }
            progress.isCancelled = true
            return progress.tasks
        }
        for task in tasks.reversed() { task.cancel() }
        tellFinish()
    }

    private func tellFinish() {
        let (waiters, streams) = progress.withLock { progress in
            guard progress.isFinished else {
                return ([@Sendable () -> Void](), [AsyncThrowingStream<Stage, any Error>.Continuation]())
            }
            defer {
                progress.waiters = []
                progress.streams = []
            }
            return (progress.waiters, progress.streams)
        }
        for stream in streams { stream.finish(throwing: failure) }
        for waiter in waiters { waiter() }
    }
}
