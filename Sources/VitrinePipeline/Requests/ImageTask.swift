public import VitrineCache
public import VitrineCore
public import VitrineImaging

/// A running ``ImageRequest``: its result, its previews, its priority and its end.
///
/// ```swift
/// let task = ImagePipeline.shared.start(ImageRequest(.video("video.mp4", at: .poster), resizing: .fit(320)))
/// for await preview in task.previews { view.image = preview }
/// view.image = try await task.value
/// task.priority = .high
/// task.cancel()
/// ```
///
/// A task ends exactly once: with an image, an error, or by ``cancel()``, after which no closure is called. Equal
/// requests share the work, which runs at the highest of their priorities and stops with the last of them.
///
/// ## Topics
/// ### Results
/// - ``value``
/// - ``previews``
/// - ``onImage(_:)``
/// - ``onPreview(_:)``
/// - ``blocking``
/// ### Urgency
/// - ``priority``
/// ### Ending
/// - ``cancel()``
/// - ``state``
public final class ImageTask: Sendable {
    /// How far a task is.
    public enum State: Sendable, Hashable {
        /// Not started yet.
        case new
        /// Waiting for its turn, or for the content of its source.
        case queued
        /// The source makes the image.
        case running
        /// Ended with an image.
        case finished
        /// Ended with an error.
        case failed
        /// Cancelled.
        case cancelled

        /// Whether the task has ended.
        package var isFinal: Bool { self == .finished || self == .failed || self == .cancelled }
    }

    /// The request.
    public let request: ImageRequest
    let progress: Locked<TaskProgress>

    /// A task that ``ImagePipeline/start(_:)-(ImageTask)`` or a group starts later. For a task that starts at once,
    /// call ``ImagePipeline/start(_:)-(ImageRequest)``.
    public init(_ request: ImageRequest) {
        self.request = request
        var progress = TaskProgress()
        progress.priority = request.priority
        progress.executionPriority = request.executionPriority
        self.progress = Locked(progress)
    }

    // MARK: Urgency

    /// How urgent the task is among all that waits. May be changed at any time.
    public var priority: RequestPriority {
        get { progress.withLock { $0.priority } }
        set {
            progress.withLock { $0.priority = newValue }
            pipeline?.priorityDidChange(self)
        }
    }

    /// The share of the processor the work may claim. Counts from the moment the work starts.
    package var executionPriority: RequestPriority {
        get { progress.withLock { $0.executionPriority } }
        set {
            progress.withLock { $0.executionPriority = newValue }
            pipeline?.priorityDidChange(self)
        }
    }

    var cacheLevels: CacheLevels { request.cacheLevels }

    // MARK: State

    /// How far the task is.
    public var state: State { progress.withLock { $0.state } }

    /// Ends the task without a result. The work stops unless another task needs it.
    ///
    /// After this call, no closure of ``onImage(_:)`` or ``onPreview(_:)`` starts on the main actor if it was made
    /// there; on other queues one that is running may still complete. ``value`` throws `CancellationError`. A task that
    /// has ended keeps its result.
    public func cancel() {
        progress.withLock { $0.isSilenced = true }
        end(.failure(.cancelled(source: "\(type(of: request.source))")), as: .cancelled)
    }

    var pipeline: ImagePipeline? { progress.withLock { $0.pipeline } }
}

extension ImageTask {
    /// Calls `handler` on the main actor with the image or the error; not after ``cancel()``.
    ///
    /// May be called at any time and several times. On the main actor, a task whose image was in memory when it started
    /// calls it before this returns. Any other task calls it later, however quickly it ends. The main actor needs a running main loop; see ``onImage(on:_:)`` for programs without one.
    ///
    /// - Returns: The task.
    @discardableResult
    public func onImage(
        _ handler: @escaping @MainActor @Sendable (Result<PixelImage, ImagePipelineError>) -> Void
    ) -> Self {
        onImage(on: .main) { result in MainActor.assumeIsolated { handler(result) } }
    }

    /// Calls `handler` on a queue of your choice with the image or the error; not after ``cancel()``.
    ///
    /// - Returns: The task.
    @discardableResult
    public func onImage(
        on queue: CallbackQueue, _ handler: @escaping @Sendable (Result<PixelImage, ImagePipelineError>) -> Void
    ) -> Self {
        let handler = TaskProgress.Handler(queue: queue, body: handler)
        let result = progress.withLock { progress in
            if !progress.state.isFinal { progress.imageHandlers.append(handler) }
            return progress.state == .cancelled ? nil : progress.result
        }
        if let result { call(handler, result) }
        return self
    }

    /// Calls `handler` on the main actor with previews of the image, before the image itself is delivered.
    ///
    /// The source may have a preview. With ``ImageRequest/isProgressive``, a URL has one after another while it is
    /// transferred. The handler is not called if there is no preview, or if the image was in memory. Without a handler
    /// no preview is made.
    ///
    /// - Returns: The task.
    @discardableResult
    public func onPreview(_ handler: @escaping @MainActor @Sendable (PixelImage) -> Void) -> Self {
        onPreview(on: .main) { image in MainActor.assumeIsolated { handler(image) } }
    }

    /// Calls `handler` on a queue of your choice with previews of the image.
    ///
    /// - Returns: The task.
    @discardableResult
    public func onPreview(on queue: CallbackQueue, _ handler: @escaping @Sendable (PixelImage) -> Void) -> Self {
        let handler = TaskProgress.Handler(queue: queue, body: handler)
        let known: PixelImage? = progress.withLock { progress in
            switch progress.sourcePreview {
            case .settled(let image): return progress.state == .cancelled ? nil : image
            case .unwanted, .wanted, .coming:
                if !progress.state.isFinal { progress.sourcePreviewHandlers.append(handler) }
                return nil
            }
        }
        if let known { call(handler, known) } else { wantSourcePreview() }
        if request.isProgressive { addPreviewReceiver(.handler(handler)) }
        return self
    }

    /// The image, once it is made. Does not start the task. Any number of tasks may wait.
    ///
    /// - Throws: ``ImagePipelineError``; `CancellationError` when the request or the waiting task is cancelled.
    ///   Cancelling the task leaves the request as it is.
    public var value: PixelImage {
        get async throws {
            let pending = AsyncPromise<Result<PixelImage, any Error>>()
            observeResult { result in
                pending.fulfill(result.mapError { $0.isCancellation ? CancellationError() as any Error : $0 })
            }
            return try await pending.cancellableValue().get()
        }
    }

    /// The previews of the image: the one that its source has, and with ``ImageRequest/isProgressive`` one after
    /// another while a URL is transferred.
    ///
    /// The sequence ends before the task does. It is empty if the source has no preview or the image was in memory. An
    /// iteration that begins late starts with the latest preview, and a slow one skips previews. Previews are made only
    /// for tasks whose previews are observed. Any number of iterations may run.
    public var previews: AsyncStream<PixelImage> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            addPreviewReceiver(.stream(continuation))
            observeSourcePreview { image in
                if let image { continuation.yield(image) }
            }
        }
    }

    /// The preview of the source; nil if it has none, or if the image came first.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled.
    package var sourcePreview: PixelImage? {
        get async throws {
            let pending = AsyncPromise<PixelImage?>()
            observeSourcePreview { pending.fulfill($0) }
            return try await pending.cancellableValue()
        }
    }

    /// The same results for threads that may block.
    public var blocking: Blocking { Blocking(task: self) }

    /// A request's results for threads that may block: never for tasks.
    public struct Blocking: Sendable {
        let task: ImageTask

        /// Waits for the image and returns it.
        ///
        /// A programming error on the main thread for a source that needs the main actor: both would wait for ever.
        ///
        /// - Throws: ``ImagePipelineError``.
        public func value() throws(ImagePipelineError) -> PixelImage {
            checkThread()
            let promise = AsyncPromise<Result<PixelImage, ImagePipelineError>>()
            task.observeResult { promise.fulfill($0) }
            return try promise.wait().get()
        }

        /// Returns the preview of the source; nil if it has none, or if the image came first.
        public func preview() -> PixelImage? {
            checkThread()
            let promise = AsyncPromise<PixelImage?>()
            task.observeSourcePreview { promise.fulfill($0) }
            return promise.wait()
        }

        private func checkThread() {
            precondition(
                !(task.request.source.needsMainActor && CallbackQueue.isMainActor) || task.state.isFinal,
                "The main thread cannot wait for a thumbnail that is made on the main actor.")
        }
    }

    // MARK: Observing

    /// Calls `body` once with the result, on any thread, after the request's own closures were sent off.
    func observeResult(_ body: @escaping @Sendable (Result<PixelImage, ImagePipelineError>) -> Void) {
        let result = progress.withLock { progress in
            if progress.result == nil { progress.waiters.append(body) }
            return progress.result
        }
        if let result { body(result) }
    }

    func observeSourcePreview(_ body: @escaping @Sendable (PixelImage?) -> Void) {
        let known: PixelImage?? = progress.withLock { progress in
            if case .settled(let image) = progress.sourcePreview { return .some(image) }
            if progress.state.isFinal { return .some(nil) }
            progress.sourcePreviewWaiters.append(body)
            return nil
        }
        if let known { body(known) } else { wantSourcePreview() }
    }

    /// Calls `body` once when the task has ended, at once if it has ended already.
    func observeEnd(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = progress.withLock { progress in
            if !progress.state.isFinal { progress.endObservers.append(body) }
            return progress.state.isFinal
        }
        if hasEnded { body() }
    }
}

extension ImagePipelineError {
    /// Whether it stands for a cancellation.
    var isCancellation: Bool {
        if case .cancelled = self { return true }
        return false
    }
}
