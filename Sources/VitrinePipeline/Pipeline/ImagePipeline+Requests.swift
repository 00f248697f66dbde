import VitrineCache
import VitrineCore
import VitrineImaging

/// The way of a task from enqueueing to a job, and its end.
extension ImagePipeline {
    /// Begins with a task.
    func admit(_ task: ImageTask) {
        if let identity = task.request.source.knownIdentity { return take(task, identity) }
        guard CallingThread.mayBlock else { return identify(task) }
        do throws(ImagePipelineError) {
            guard let identity = try task.request.source.identityBlocking() else { return identify(task) }
            take(task, identity)
        } catch {
            task.finish(.failure(error))
        }
    }

    /// Requests the identity of the source, where it may be asked.
    private func identify(_ task: ImageTask) {
        task.becomeToldLater()
        let slot = QueueSlot(PrioritySource(task.priority))
        let id = state.withLock { state in
            let id = state.scheduler.newID()
            state.identifications[ObjectIdentifier(task)] = (id, slot)
            return id
        }
        // It may have been cancelled before it could be found here.
        guard !task.state.isFinal else { return leave(task) }
        findIdentity(of: task.request.source, id, slot) { [self] result in
            guard endIdentification(of: task) else { return }
            switch result {
            case .success(let identity): take(task, identity)
            case .failure(let error): task.finish(.failure(error))
            }
        }
    }

    /// Asks a source for its identity in its turn: on a thread if it blocks, else in a task.
    ///
    /// - Parameter deliver: Receives the identity or the error. After a timeout it may be called a second time.
    func findIdentity(
        of source: any ImageSource, _ id: Int, _ slot: QueueSlot,
        deliver: @escaping @Sendable (Result<CacheKey, ImagePipelineError>) -> Void
    ) {
        let onFailure: @Sendable (_ error: (_ source: String) -> ImagePipelineError) -> Void = { error in
            deliver(.failure(error("\(type(of: source))")))
        }
        guard source.isAskedInTasks else {
            return call(id, slot, on: identifying, body: {
                do throws(ImagePipelineError) {
                    if let identity = try source.identityBlocking() { deliver(.success(identity)) }
                } catch {
                    deliver(.failure(error))
                }
            }, onFailure: onFailure)
        }
        callInTask(id, slot, on: identifying, body: {
            do throws(ImagePipelineError) {
                deliver(.success(try await source.identity()))
            } catch {
                deliver(.failure(error))
            }
        }, onFailure: onFailure)
    }

    private func endIdentification(of task: ImageTask) -> Bool {
        state.withLock { $0.identifications.removeValue(forKey: ObjectIdentifier(task)) } != nil
    }

    /// Makes a small call of a source in its turn.
    ///
    /// - Parameter onFailure: Called in place of, or beside, `body` if that took too long or cannot be called.
    func call(
        _ id: Int, _ slot: QueueSlot, on queue: WorkQueue, onMainActor: Bool = false, body: @escaping @Sendable () -> Void,
        onFailure: @escaping @Sendable (_ error: (_ source: String) -> ImagePipelineError) -> Void
    ) {
        enqueue(slot, on: queue, onFailure: onFailure) { [self] onTimeout in
            callPool.call(
                id, priority: .normal, onMainActor: onMainActor,
                body: { [self] in
                    callPool.didBegin(id)
                    body()
                    slot.finish()
                }, onTimeout: onTimeout)
        }
    }

    /// Makes a small call of a source in its turn, in a task.
    func callInTask(
        _ id: Int, _ slot: QueueSlot, on queue: WorkQueue, body: @escaping @Sendable () async -> Void,
        onFailure: @escaping @Sendable (_ error: (_ source: String) -> ImagePipelineError) -> Void
    ) {
        enqueue(slot, on: queue, onFailure: onFailure) { [self] onTimeout in
            callPool.callInTask(
                id,
                body: { [self] in
                    callPool.didBegin(id)
                    await body()
                    slot.finish()
                }, onTimeout: onTimeout)
        }
    }

    /// Starts a call when it has a slot.
    ///
    /// - Parameter start: Receives the closure for a call that takes too long; returns whether the call could be made.
    private func enqueue(
        _ slot: QueueSlot, on queue: WorkQueue,
        onFailure: @escaping @Sendable (_ error: (_ source: String) -> ImagePipelineError) -> Void,
        start: @escaping @Sendable (_ onTimeout: @escaping @Sendable () -> Void) -> Bool
    ) {
        slot.enqueue(on: queue) { [self] in
            let isMade = start {
                slot.finish()
                onFailure { .timedOut(source: $0) }
            }
            guard !isMade else { return }
            Self.endingExecutor.submit { [self] in
                slot.finish()
                onFailure { .tooManyAbandonedThreads(source: $0, count: callPool.stuckCount) }
            }
        }
    }

    /// Goes on with a task whose source is known.
    func take(_ task: ImageTask, _ identity: CacheKey) {
        let spec = task.request.spec
        let key = spec.key(for: identity)
        if let image = memoryHit(task.request, key) { return task.finish(.success(image), from: .memory) }
        if let error = task.request.invalidity(identity) { return task.finish(.failure(error)) }
        task.becomeToldLater()
        makeWantedSourcePreview(of: task, identity)
        join(task, source: task.request.source, identity: identity, spec: spec, key: key)
        // It may have been cancelled before it had joined.
        if task.state.isFinal { leave(task) }
    }

    /// The image in memory under the key of a request, if the request and the pipeline may use that.
    func memoryHit(_ request: ImageRequest, _ key: CacheKey) -> PixelImage? {
        guard configuration.usesMemoryCache, request.cacheLevels.contains(.readMemory) else { return nil }
        return cache[key]
    }

    /// Adds a subscriber to the job for an image, and starts that if it is new.
    func join(
        _ subscriber: any JobSubscriber, source: any ImageSource, identity: CacheKey, spec: ResultSpec,
        key: CacheKey
    ) {
        let (id, slot, preview) = change { scheduler, effects in
            let (id, slot) = scheduler.join(
                subscriber, source: source, identity: identity, spec: spec, key: key, effects: &effects)
            return (id, slot, subscriber.isProgressive ? scheduler.jobs[id]?.preview : nil)
        }
        if let slot { return beginLookup(id, slot) }
        if let preview { subscriber.previewDidArrive(preview) }
        if subscriber.isProgressive { startPreviews(ofJob: id) }
    }

    // MARK: Changes and ends

    /// A task's priority was set.
    func priorityDidChange(_ task: ImageTask) {
        let priority = task.priority
        let (slot, sourcePreview) = state.withLock { state in
            let id = ObjectIdentifier(task)
            let slot = state.identifications[id]?.slot
            return (slot?.priority.store(priority) == true ? slot : nil, state.sourcePreviews[id])
        }
        slot?.priority.publish()
        sourcePreview?.setPriority(priority)
        change { scheduler, effects in scheduler.refresh(task, &effects) }
    }

    /// A task has ended.
    func taskDidEnd(_ task: ImageTask, _ result: Result<PixelImage, ImagePipelineError>, from origin: Origin?) {
        state.withLock { state in
            switch result {
            case .success: if let origin { state.statistics.count(origin) }
            case .failure(let error): state.statistics.count(error)
            }
        }
        leave(task)
    }

    /// Removes a subscriber from all that it waits for.
    func leave(_ subscriber: any JobSubscriber) {
        let id = ObjectIdentifier(subscriber)
        let (identification, sourcePreview) = state.withLock {
            ($0.identifications.removeValue(forKey: id), $0.sourcePreviews.removeValue(forKey: id))
        }
        if let (id, slot) = identification {
            slot.cancel()
            callPool.abandon(id) { slot.finish() }
        }
        sourcePreview?.leave()
        change { scheduler, effects in scheduler.leave(subscriber, &effects) }
    }

    /// Changes the scheduler, and then carries out the effects of the change.
    @discardableResult
    func change<T>(_ body: (inout RequestScheduler, inout RequestScheduler.Effects) -> sending T) -> T {
        var effects = RequestScheduler.Effects()
        let result = state.withLock { state in body(&state.scheduler, &effects) }
        for slot in effects.reprioritized { slot.priority.publish() }
        for slot in effects.cancelled { slot.cancel() }
        for load in effects.cancelledLoads { load.cancel() }
        for (id, batch) in effects.abandoned {
            batch.cancellation.cancel()
            callPool.abandon(id) { batch.slot.finish() }
        }
        return result
    }
}

/// Previews of sources.
extension ImagePipeline {
    /// A preview was asked for after the request had been enqueued.
    func makeWantedSourcePreview(of task: ImageTask) {
        if let identity = task.request.source.knownIdentity { return makeWantedSourcePreview(of: task, identity) }
        // Where the source is being asked who it is, this follows by itself.
        guard state.withLock({ $0.identifications[ObjectIdentifier(task)] == nil }) else { return }
        Task {
            if let identity = try? await self.identity(of: task.request.source) {
                self.makeWantedSourcePreview(of: task, identity)
            }
        }
    }

    /// Makes the preview if one is wanted and not on its way. Equal ones are made once.
    func makeWantedSourcePreview(of task: ImageTask, _ identity: CacheKey) {
        guard task.beginSourcePreview() else { return }
        let (spec, source) = (task.request.spec, task.request.source)
        let subscription = sourcePreviewFlights.join(
            spec.key(for: identity).appending("sourcePreview"), priority: task.priority
        ) { flight in
            begin(flight, source: source, spec: spec)
        } deliver: { [self] result in
            state.withLock { _ = $0.sourcePreviews.removeValue(forKey: ObjectIdentifier(task)) }
            task.settleSourcePreview((try? result.get()) ?? nil)
        }
        guard !task.sourcePreviewIsSettled else { return }
        state.withLock { $0.sourcePreviews[ObjectIdentifier(task)] = subscription }
        // Either may have come before the subscription could be found.
        guard task.state.isFinal || task.sourcePreviewIsSettled else { return }
        state.withLock { _ = $0.sourcePreviews.removeValue(forKey: ObjectIdentifier(task)) }
        subscription.leave()
    }

    private func begin(
        _ flight: Flight<CacheKey, PixelImage?>, source: any ImageSource, spec: ResultSpec
    ) {
        let id = state.withLock { $0.scheduler.newID() }
        let slot = QueueSlot(flight.priority)
        flight.cancellation.onCancel { [self] in
            slot.cancel()
            callPool.abandon(id) { slot.finish() }
        }
        let render = spec.render(limits: configuration.limits, cancellation: flight.cancellation)
        let onFailure: @Sendable (_ error: (_ source: String) -> ImagePipelineError) -> Void = { error in
            flight.finish(.failure(error("\(type(of: source))")))
        }
        guard let blocking = source as? any BlockingImageSource else {
            return callInTask(id, slot, on: placing, body: { [self] in
                guard !flight.cancellation.isCancelled else { return }
                do {
                    flight.finish(.success(try await sourcePreview(flight.key, asking: source, render: render)))
                } catch {
                    flight.finish(.failure(error))
                }
            }, onFailure: onFailure)
        }
        call(id, slot, on: placing, onMainActor: blocking.requiresMainActor, body: { [self] in
            guard !flight.cancellation.isCancelled else { return }
            flight.finish(Result { try sourcePreview(flight.key, source: blocking, render: render) })
        }, onFailure: onFailure)
    }

    /// The preview from its cache, or from a source that is asked in tasks.
    private func sourcePreview(
        _ key: CacheKey, asking source: any ImageSource, render: RenderRequest
    ) async throws -> PixelImage? {
        guard configuration.cachesPreviews else { return try await source.preview(render) }
        if let image = try? await sourcePreviews.value(forKey: key) { return image }
        guard let image = try await source.preview(render) else { return nil }
        _ = try? await sourcePreviews.set(image, forKey: key)
        return image
    }

    /// The preview from its cache, or from the source. May block, but for the main actor, where the disk is left
    /// out.
    func sourcePreview(
        _ key: CacheKey, source: any BlockingImageSource, render: RenderRequest
    ) throws -> PixelImage? {
        guard configuration.cachesPreviews else { return try source.preview(render) }
        if let image = sourcePreviews[key] { return image }
        let usesDisk = !source.requiresMainActor && configuration.usesDiskCache
        if usesDisk, let image = sourcePreviews.valueOnDiskBlocking(forKey: key) { return image }
        guard let image = try source.preview(render) else { return nil }
        if usesDisk { try? sourcePreviews.setBlocking(image, forKey: key) } else { sourcePreviews[key] = image }
        return image
    }
}

extension ImageTask {
    /// Whether the preview has been told, or is known not to come.
    var sourcePreviewIsSettled: Bool { progress.withLock { $0.sourcePreview.isSettled } }
}
