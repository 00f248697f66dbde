import VitrineCore
public import VitrineImaging

/// A group of tasks that decides itself when each of them starts.
///
/// A pipeline asks ``nextTasks()`` when the group is enqueued and after the end of each of its requests, until
/// `isFinished` is true. The group learns of each end, also of an error or a cancellation, so
/// that no group can stall. The calls come one at a time, on any thread, and must not block.
///
/// ``ImageTaskSequence`` is the one that most need.
package protocol ImageTaskGroup: AnyObject, Sendable {
    /// Returns the tasks to start now; none to wait for one that is running. Each task is returned once.
    func nextTasks() -> [ImageTask]

    /// A task of the group has ended, as its ``ImageTask/state`` says.
    func taskDidEnd(_ task: ImageTask)

    /// Whether no task follows and none is running. A group that has no running task, returns none and is not
    /// finished is asked again only when ``GroupRun/proceed()`` is called again.
    var isFinished: Bool { get }

    /// Cancels all tasks of the group, started or not, and finishes the group.
    func cancel()
}

/// Requests that are made strictly one after another: a small preview first, then the large image.
///
/// ```swift
/// let sequence = ImageTaskSequence([
///     ImageTask(ImageRequest(page, resizing: .fit(150))), ImageTask(ImageRequest(page, resizing: .fit(1_024))),
/// ])
/// pipeline.start(sequence)
/// for try await stage in sequence.stages { view.image = stage.image }
/// ```
///
/// Each task starts when the previous one has ended, also with an error. Tasks keep their closures and
/// priorities. An empty sequence is finished as soon as it is enqueued.
public final class ImageTaskSequence: ImageTaskGroup {
    private typealias Stage = (index: Int, image: PixelImage)

    private struct Progress {
        var tasks: [ImageTask] = []
        /// How many were given to the pipeline, and how many of these have ended.
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
    package var isFinished: Bool { progress.withLock { $0.isFinished } }

    /// Returns when the sequence is finished; any number may wait.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled. The sequence goes on.
    public func finished() async throws {
        let pending = AsyncPromise<Void>()
        observeFinish { pending.fulfill(()) }
        try await pending.cancellableValue()
    }

    /// As ``finished()``, for threads that may block.
    public func waitUntilFinished() {
        let promise = AsyncPromise<Void>()
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

    /// The images in order, from the first one on whenever this is called. Requests without one are passed over.
    ///
    /// `index` is the place of the request in the sequence, from 0.
    ///
    /// Ends with the sequence: by an error if its last request has one, by a `CancellationError` if it was cancelled.
    public var stages: AsyncThrowingStream<(index: Int, image: PixelImage), any Error> {
        AsyncThrowingStream { continuation in
            let isFinished = progress.withLock { progress in
                for stage in progress.stages { continuation.yield(stage) }
                if !progress.isFinished { progress.streams.append(continuation) }
                return progress.isFinished
            }
            if isFinished { continuation.finish(throwing: failure) }
        }
    }

    /// The error with which the stages end.
    private var failure: (any Error)? {
        let (last, isCancelled) = progress.withLock { ($0.tasks.last, $0.isCancelled) }
        guard case .failure(let error)? = last?.progress.withLock({ $0.result }) else {
            return isCancelled ? CancellationError() : nil
        }
        return error.isCancellation ? CancellationError() : error
    }

    // MARK: Calls of the pipeline

    package func nextTasks() -> [ImageTask] {
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

    package func taskDidEnd(_ task: ImageTask) {
        let result = task.progress.withLock { $0.result }
        progress.withLock { progress in
            progress.ended += 1
            guard case .success(let image)? = result else { return }
            let stage: Stage = (index: progress.ended - 1, image: image)
            progress.stages.append(stage)
            for stream in progress.streams { stream.yield(stage) }
        }
        tellFinish()
    }

    /// Cancels all tasks of the sequence, started or not, and finishes it.
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

/// Takes the requests of one group through a pipeline: asks the group, from one thread at a time, whenever one has
/// ended.
final class GroupRun: Sendable {
    private struct State {
        var isRunning = false
        var mustLookAgain = false
        var ended: [ImageTask] = []
    }

    private let group: any ImageTaskGroup
    private let pipeline: ImagePipeline
    private let state = Locked(State())

    init(_ group: any ImageTaskGroup, _ pipeline: ImagePipeline) {
        self.group = group
        self.pipeline = pipeline
    }

    /// Goes on. A long line of requests that end within their enqueueing is a loop here, never a recursion.
    func proceed() {
        let isMine = state.withLock { state in
            state.mustLookAgain = true
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard isMine else { return }
        while let ended = next() {
            for task in ended { group.taskDidEnd(task) }
            for task in group.nextTasks() { start(task) }
        }
    }

    private func next() -> [ImageTask]? {
        state.withLock { state in
            guard state.mustLookAgain else {
                state.isRunning = false
                return nil
            }
            state.mustLookAgain = false
            defer { state.ended = [] }
            return state.ended
        }
    }

    private func start(_ task: ImageTask) {
        _ = task.joinGroup()
        if task.begin(in: pipeline, byGroup: true) { pipeline.admit(task) }
        task.observeEnd { [self] in
            state.withLock { $0.ended.append(task) }
            proceed()
        }
    }
}
