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
    /// listen keeps the thread. A source that does not block, such as a URL, makes the image as if the task had been
    /// started, and the call waits for it.
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
            // A source that is asked in tasks makes the image in its turn.
            guard let source = task.request.source as? any BlockingImageSource else {
                admit(task)
                return try task.blocking.value()
            }
            try checkPlace(source)
            let identity = try source.identity()
            if let image = memoryHit(task.request, key(of: task.request, identity: identity)) {
                task.finish(.success(image), from: .memory)
            } else if let error = task.request.invalidity(identity) {
                throw error
            } else {
                execute(task, of: source, identity: identity)
            }
        } catch {
            task.finish(.failure(error))
        }
        return try task.blocking.value()
    }

    private func checkPlace(_ source: any BlockingImageSource) throws(ImagePipelineError) {
        guard source.requiresMainActor, !CallbackQueue.isMainActor else { return }
        throw .underlying(source: "\(type(of: source))", error: RequiresMainActorError())
    }

    private func execute(_ task: ImageTask, of source: any BlockingImageSource, identity: CacheKey) {
        let spec = task.request.spec
        sourcePreviewMaker.makeWantedPreviewBlocking(of: task, identity, source: source)
        let (job, work) = change { scheduler, effects in
            let id = scheduler.join(
                task, source: source, identity: identity, spec: spec, key: spec.key(for: identity), effects: &effects
            ).id
            return (id, scheduler.takeOver(id, &effects))
        }
        if task.state.isFinal { leave(task) }
        guard let work else {
            // It runs elsewhere. On the main actor that cannot be waited for.
            if source.requiresMainActor { executeBeside(task, of: source, identity: identity) }
            return
        }
        if let plan = plan(for: job), let made = store.findBlocking(plan) {
            if let image = made.image, made.origin != .disk {
                store.insertBlocking(image, plan: plan, lifetime: .unlimited)
            }
            tell(job, .success(made))
            return change { $0.end(batch: work.batch, &$1) }
        }
        let timer = Task {
            let limit = configuration.timeLimit * (source.boundsItsCalls ? Deadline.wallFactor : 1)
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            fail(work.batch) { .timedOut(source: $0) }
        }
        let results = make(work, from: source)
        timer.cancel()
        complete(results)
    }

    /// Makes an image that is being made elsewhere once more, for its request alone.
    private func executeBeside(_ task: ImageTask, of source: any BlockingImageSource, identity: CacheKey) {
        leave(task)
        let work = Work(
            batch: 0, source: source, identity: identity,
            parts: [Work.Part(job: 0, spec: task.request.spec, key: task.request.spec.key(for: identity))],
            slot: QueueSlot(PrioritySource()), cancellation: CancellationToken())
        task.finish(make(work, from: source).results[0], from: .source)
    }

    /// The form of ``contains(_:at:)`` for the disk and for threads that may block.
    package func isOnDisk(_ request: ImageRequest) -> Bool {
        guard configuration.usesDiskCache, request.cacheLevels.contains(.readDisk),
            let identity = request.source.knownIdentity ?? request.source.identityIfFound
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
