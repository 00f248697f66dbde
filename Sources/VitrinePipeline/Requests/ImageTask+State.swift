import VitrineCache
import VitrineCore
import VitrineImaging

/// The mutable state of an ``ImageTask``.
struct TaskProgress {
    /// A closure of the user's, and where it is called.
    struct Handler<Argument> {
        let queue: CallbackQueue
        let body: @Sendable (Argument) -> Void
    }

    /// How far the preview is.
    enum SourcePreview {
        /// It was not requested.
        case unwanted
        /// Somebody will want it as soon as the request is enqueued, or waits for it now.
        case wanted
        /// It is being made.
        case coming
        /// It was made, there is none, or it came to nothing.
        case settled(PixelImage?)

        var isSettled: Bool {
            if case .settled = self { return true }
            return false
        }
    }

    /// A receiver of previews of the bytes received so far.
    struct PreviewReceiver {
        enum Destination {
            case handler(Handler<PixelImage>)
            case stream(AsyncStream<PixelImage>.Continuation)
        }

        let destination: Destination
        /// The number of the last preview it received; 0 for none.
        var received = 0
    }

    var state = ImageTask.State.new
    var priority = RequestPriority.normal
    var executionPriority = RequestPriority.low

    var imageHandlers: [Handler<Result<PixelImage, ImagePipelineError>>] = []
    var sourcePreviewHandlers: [Handler<PixelImage>] = []
    var sourcePreview = SourcePreview.unwanted
    var previewReceivers: [PreviewReceiver] = []
    /// The latest preview of the bytes received so far.
    var preview: JobPreview?
    /// Whether a thread delivers previews. It delivers those that arrive meanwhile, and then the result that waits.
    var isDeliveringPreviews = false
    /// The result, from the moment it is told.
    var result: Result<PixelImage, ImagePipelineError>?
    /// A result that waits for the preview to be told first.
    var withheld: (result: Result<PixelImage, ImagePipelineError>, origin: Origin?)?
    /// Called when the task has ended.
    var endObservers: [@Sendable () -> Void] = []
    /// Called with the result.
    var waiters: [@Sendable (Result<PixelImage, ImagePipelineError>) -> Void] = []
    /// Called with the preview, nil for none.
    var sourcePreviewWaiters: [@Sendable (PixelImage?) -> Void] = []
    /// Set by ``ImageTask/cancel()``: closures on their way to another thread are not called any more.
    var isSilenced = false

    /// Whether the task waits for more than memory. Its closures are then never called within the call that adds them,
    /// as that would depend on the speed of the disk.
    var isToldLater = false

    /// Set from enqueueing to the end.
    var pipeline: ImagePipeline?
    /// Whether a group says when it is enqueued.
    var isGrouped = false

    /// Ends it.
    ///
    /// - Returns: The state before, with the observers to notify.
    mutating func end(_ result: Result<PixelImage, ImagePipelineError>, as state: ImageTask.State) -> TaskProgress {
        let before = self
        self.state = state
        self.result = result
        withheld = nil
        imageHandlers = []
        sourcePreviewHandlers = []
        previewReceivers = []
        preview = nil
        waiters = []
        sourcePreviewWaiters = []
        endObservers = []
        pipeline = nil
        return before
    }
}

/// The steps of a request's life, as its pipeline takes them.
extension ImageTask {
    /// Takes the request into a pipeline.
    ///
    /// - Parameter group: Whether a group starts the task. Only the group starts the tasks of a group.
    /// - Returns: Whether the request was new.
    func begin(in pipeline: ImagePipeline, byGroup: Bool) -> Bool {
        progress.withLock { progress in
            guard progress.state == .new, progress.isGrouped == byGroup else { return false }
            progress.state = .queued
            progress.pipeline = pipeline
            return true
        }
    }

    /// Gives the request to a group. false if it has one, or was enqueued.
    func joinGroup() -> Bool {
        progress.withLock { progress in
            guard !progress.isGrouped, progress.state == .new || progress.state.isFinal else { return false }
            progress.isGrouped = true
            return true
        }
    }

    /// The source is at work.
    func markRunning() {
        progress.withLock { if $0.state == .queued { $0.state = .running } }
    }

    // MARK: The end

    /// Ends the task with the image or the error.
    func finish(_ result: Result<PixelImage, ImagePipelineError>, from origin: Origin? = nil) {
        switch result {
        case .success: end(result, as: .finished, from: origin)
        case .failure(let error): end(result, as: error.isCancellation ? .cancelled : .failed)
        }
    }

    /// Ends the task, once. The result waits for a preview that is being made.
    func end(_ result: Result<PixelImage, ImagePipelineError>, as state: State, from origin: Origin? = nil) {
        let ended: TaskProgress? = progress.withLock { progress in
            guard !progress.state.isFinal else { return nil }
            var mustWait = progress.isDeliveringPreviews
            if case .coming = progress.sourcePreview { mustWait = true }
            if state != .cancelled, mustWait {
                progress.withheld = (result, origin)
                return nil
            }
            return progress.end(result, as: state)
        }
        guard let ended else { return }
        // The transfer may be one that another request began, or there was none.
        if let progress = (request.source as? URLImageSource)?.progress {
            if case .success = result { progress.end(isComplete: true) } else { progress.end(isComplete: false) }
        }
        ended.pipeline?.taskDidEnd(self, result, from: origin)
        // Before the result, so that nobody waits for another preview when it is told.
        for receiver in ended.previewReceivers { if case .stream(let stream) = receiver.destination { stream.finish() } }
        if state != .cancelled { for handler in ended.imageHandlers { call(handler, result) } }
        for waiter in ended.waiters { waiter(result) }
        for waiter in ended.sourcePreviewWaiters { waiter(nil) }
        for observer in ended.endObservers { observer() }
    }

    /// The image is not in memory, or its identity is not known: closures are called later from now on.
    func becomeToldLater() { progress.withLock { $0.isToldLater = true } }

    /// Calls a closure of the user's on its queue, unless the task is cancelled before.
    func call<Argument: Sendable>(_ handler: TaskProgress.Handler<Argument>, _ argument: Argument) {
        handler.queue.perform(isWithinCall: !progress.withLock { $0.isToldLater }) {
            guard !self.progress.withLock({ $0.isSilenced }) else { return }
            handler.body(argument)
        }
    }

    // MARK: The preview

    /// Asks for a preview, now or when the request is enqueued.
    func wantSourcePreview() {
        let pipeline: ImagePipeline? = progress.withLock { progress in
            guard case .unwanted = progress.sourcePreview, !progress.state.isFinal else { return nil }
            progress.sourcePreview = .wanted
            return progress.pipeline
        }
        pipeline?.makeWantedSourcePreview(of: self)
    }

    /// Whether a preview is requested and not being made yet. The caller then makes it.
    func beginSourcePreview() -> Bool {
        progress.withLock { progress in
            guard case .wanted = progress.sourcePreview, !progress.state.isFinal else { return false }
            progress.sourcePreview = .coming
            return true
        }
    }

    /// Tells the preview, nil for none, and then the result that waited for it.
    func settleSourcePreview(_ image: PixelImage?) {
        while true {
            let before: TaskProgress? = progress.withLock { progress in
                guard !progress.state.isFinal, !progress.sourcePreview.isSettled else { return nil }
                let before = progress
                // Settled only when everybody has been told: till then the result waits.
                if before.sourcePreviewHandlers.isEmpty, before.sourcePreviewWaiters.isEmpty {
                    progress.sourcePreview = .settled(image)
                }
                progress.sourcePreviewHandlers = []
                progress.sourcePreviewWaiters = []
                return before
            }
            guard let before else { return }
            let (handlers, waiters) = (before.sourcePreviewHandlers, before.sourcePreviewWaiters)
            if handlers.isEmpty, waiters.isEmpty {
                if let (result, origin) = before.withheld { finish(result, from: origin) }
                return
            }
            if let image { for handler in handlers { call(handler, image) } }
            for waiter in waiters { waiter(image) }
        }
    }

    // MARK: Previews of the bytes received so far

    /// Whether a preview would be delivered to anyone.
    var wantsPreviews: Bool { request.isProgressive && progress.withLock { !$0.previewReceivers.isEmpty } }

    /// Adds a receiver, which gets the latest preview at once and the later ones until the task ends.
    func addPreviewReceiver(_ destination: TaskProgress.PreviewReceiver.Destination) {
        let (isOver, pipeline, mustDeliver) = progress.withLock { progress in
            guard !progress.state.isFinal else { return (true, ImagePipeline?.none, false) }
            progress.previewReceivers.append(TaskProgress.PreviewReceiver(destination: destination))
            return (false, progress.pipeline, progress.beginDeliveringPreviews())
        }
        if isOver, case .stream(let stream) = destination { stream.finish() }
        if mustDeliver { deliverPreviews() }
        if request.isProgressive { pipeline?.startPreviews(of: self) }
    }

    /// Delivers a preview, unless a later one came before it.
    func previewDidArrive(_ preview: JobPreview) {
        let mustDeliver = progress.withLock { progress in
            guard !progress.state.isFinal, progress.withheld == nil, preview.number > progress.preview?.number ?? 0
            else { return false }
            progress.preview = preview
            return progress.beginDeliveringPreviews()
        }
        if mustDeliver { deliverPreviews() }
    }

    /// One thread at a time delivers, so that previews keep their order and come before the result.
    private func deliverPreviews() {
        while true {
            let (preview, receivers, withheld) = progress.withLock { $0.takePreview() }
            guard let preview else {
                if let (result, origin) = withheld { finish(result, from: origin) }
                return
            }
            for receiver in receivers {
                switch receiver.destination {
                case .handler(let handler): call(handler, preview.image)
                case .stream(let stream): stream.yield(preview.image)
                }
            }
        }
    }
}

extension TaskProgress {
    /// Whether there is a preview that the calling thread has to deliver.
    fileprivate mutating func beginDeliveringPreviews() -> Bool {
        guard preview != nil, !previewReceivers.isEmpty, !isDeliveringPreviews else { return false }
        isDeliveringPreviews = true
        return true
    }

    /// The receivers that have not received the latest preview; without any, delivery ends.
    fileprivate mutating func takePreview() -> (
        JobPreview?, [PreviewReceiver], (result: Result<PixelImage, ImagePipelineError>, origin: Origin?)?
    ) {
        guard !state.isFinal, let preview, previewReceivers.contains(where: { $0.received < preview.number }) else {
            isDeliveringPreviews = false
            return (nil, [], withheld)
        }
        let waiting = previewReceivers.filter { $0.received < preview.number }
        for index in previewReceivers.indices { previewReceivers[index].received = preview.number }
        return (preview, waiting, nil)
    }
}
