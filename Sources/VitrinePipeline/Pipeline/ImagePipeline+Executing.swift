import VitrineCache
import VitrineCore
public import VitrineImaging

extension ImagePipeline {
    /// Makes an image on the calling thread, without waiting for a slot. Must not be called in a task, which must not
    /// block.
    ///
    /// Cached images are returned without calling the source. Work that waits for a slot is taken over, and its other
    /// requests served as well; work that runs already is waited for. The result is cached as any other. The thread
    /// keeps the priority it has. The source is told to stop after ``Configuration/timeLimit``; one that does not
    /// listen keeps the thread. The image of a URL, of a fetcher or of loaded bytes is made as if it had been started,
    /// and waited for.
    ///
    /// A request that was enqueued before is waited for.
    ///
    /// - Returns: The image. The handlers of the task get it, too.
    /// - Throws: ``ImagePipelineError``; with `RequiresMainActorError` for a source that needs the main actor,
    ///   anywhere else.
    @discardableResult
    public func execute(_ task: ImageTask) throws(ImagePipelineError) -> PixelImage {
        guard task.begin(in: self, byGroup: false) else { return try task.blocking.value() }
        do throws(ImagePipelineError) {
            // Its content is loaded in a task. The image is made of that in its turn.
            guard !(task.request.source is any RemoteImageSource) else {
                admit(task)
                return try task.blocking.value()
            }
            try checkPlace(task.request.source)
            let identity = try task.request.source.identity()
            if let image = memoryHit(task.request, key(of: task.request, identity: identity)) {
                task.finish(.success(image), from: .memory)
            } else if let error = task.request.invalidity(identity) {
                throw error
            } else {
                execute(task, identity)
            }
        } catch {
            task.finish(.failure(error))
        }
        return try task.blocking.value()
    }

    private func checkPlace(_ source: any ImageSource) throws(ImagePipelineError) {
        guard source.requiresMainActor, !CallbackQueue.isMainActor else { return }
        throw .underlying(source: "\(type(of: source))", error: RequiresMainActorError())
    }

    private func execute(_ task: ImageTask, _ identity: CacheKey) {
        let (spec, source) = (task.request.spec, task.request.source)
        if task.beginSourcePreview() {
            let render = spec.render(limits: configuration.limits, cancellation: CancellationToken())
            let key = spec.key(for: identity).appending("sourcePreview")
            let preview = try? sourcePreview(
                key, source: source, render: render, onMainActor: source.requiresMainActor)
            task.settleSourcePreview(preview ?? nil)
        }
        let (job, work) = change { scheduler, effects in
            let id = scheduler.join(
                task, source: source, identity: identity, spec: spec, key: spec.key(for: identity), effects: &effects
            ).id
            return (id, scheduler.takeOver(id, &effects))
        }
        if task.state.isFinal { leave(task) }
        guard let work else {
            // It runs elsewhere. On the main actor that cannot be waited for.
            if source.requiresMainActor { executeBeside(task, identity) }
            return
        }
        if let plan = plan(for: job), let made = findBlocking(plan) {
            if let image = made.image, made.origin != .disk { storeBlocking(image, plan: plan, lifetime: .unlimited) }
            tell(job, .success(made))
            return change { $0.end(batch: work.batch, &$1) }
        }
        let timer = Task {
            let limit = configuration.timeLimit * (work.source.boundsItsCalls ? Deadline.wallFactor : 1)
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            fail(work.batch) { .timedOut(source: $0) }
        }
        let results = make(work)
        timer.cancel()
        complete(results)
    }

    /// Makes an image that is being made elsewhere once more, for its request alone.
    private func executeBeside(_ task: ImageTask, _ identity: CacheKey) {
        leave(task)
        let work = Work(
            batch: 0, source: task.request.source, identity: identity,
            parts: [Work.Part(job: 0, spec: task.request.spec, key: task.request.spec.key(for: identity))],
            slot: QueueSlot(PrioritySource()), cancellation: CancellationToken())
        task.finish(make(work).results[0], from: .source)
    }

    /// The form of ``contains(_:at:)`` for the disk and for threads that may block.
    package func isOnDisk(_ request: ImageRequest) -> Bool {
        guard configuration.usesDiskCache, request.cacheLevels.contains(.readDisk),
            let identity = try? request.source.identity()
        else { return false }
        return cache.isOnDiskBlocking(request.spec.key(for: identity))
    }
}

/// A programming error: a source that needs the main actor was called for on another thread, where the caller would
/// have to wait for the main thread. Enqueue the request, or execute it on the main actor.
package struct RequiresMainActorError: Error, Sendable, CustomStringConvertible {
    /// A description of the error and its remedy.
    package var description: String {
        "the source needs the main actor: enqueue its requests, or execute them on the main actor"
    }
}
