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
        let call = caller.newCall(PrioritySource(task.priority))
        state.withLock { $0.identifications[ObjectIdentifier(task)] = call }
        // It may have been cancelled before it could be found here.
        guard !task.state.isFinal else { return leave(task) }
        caller.findIdentity(of: task.request.source, call) { [self] result in
            guard endIdentification(of: task) else { return }
            switch result {
            case .success(let identity): take(task, identity)
            case .failure(let error): task.finish(.failure(error))
            }
        }
    }

    private func endIdentification(of task: ImageTask) -> Bool {
        state.withLock { $0.identifications.removeValue(forKey: ObjectIdentifier(task)) } != nil
    }

    /// Goes on with a task whose source is known.
    func take(_ task: ImageTask, _ identity: CacheKey) {
        let spec = task.request.spec
        let key = spec.key(for: identity)
        if let image = memoryHit(task.request, key) { return task.finish(.success(image), from: .memory) }
        if let error = task.request.invalidity(identity) { return task.finish(.failure(error)) }
        task.becomeToldLater()
        sourcePreviewMaker.makeWantedPreview(of: task, identity)
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
        let id = ObjectIdentifier(task)
        let slot = state.withLock { $0.identifications[id]?.slot }
        if let slot, slot.priority.store(priority) { slot.priority.publish() }
        sourcePreviewMaker.setPriority(priority, of: id)
        change { scheduler, effects in scheduler.refresh(task, &effects) }
    }

    /// A task has ended.
    func taskDidEnd(_ task: ImageTask, _ result: Result<PixelImage, ImagePipelineError>, from origin: Origin?) {
        leave(task) { statistics in
            switch result {
            case .success: if let origin { statistics.count(origin) }
            case .failure(let error): statistics.count(error)
            }
        }
    }

    /// Removes a subscriber from all that it waits for.
    func leave(_ subscriber: any JobSubscriber, counting count: (inout PipelineStatistics) -> Void = { _ in }) {
        let id = ObjectIdentifier(subscriber)
        let identification = changeState { state, effects in
            count(&state.statistics)
            state.scheduler.leave(subscriber, &effects)
            return state.identifications.removeValue(forKey: id)
        }
        if let identification { caller.cancel(identification) }
        sourcePreviewMaker.leave(id)
    }

    /// Changes the scheduler, and then carries out the effects of the change.
    @discardableResult
    func change<T>(_ body: (inout RequestScheduler, inout RequestScheduler.Effects) -> sending T) -> T {
        changeState { state, effects in body(&state.scheduler, &effects) }
    }

    private func changeState<T>(_ body: (inout State, inout RequestScheduler.Effects) -> sending T) -> T {
        var effects = RequestScheduler.Effects()
        let result = state.withLock { state in body(&state, &effects) }
        for slot in effects.reprioritized { slot.priority.publish() }
        for slot in effects.cancelled { slot.cancel() }
        for load in effects.cancelledLoads { load.cancel() }
        for (id, batch) in effects.abandoned {
            batch.cancellation.cancel()
            caller.abandon(SourceCaller.Call(id: id, slot: batch.slot))
        }
        return result
    }

    /// Starts the previews of a task's job, unless they have been started.
    func startPreviews(of task: ImageTask) {
        guard let id = state.withLock({ $0.scheduler.job(of: task) }) else { return }
        startPreviews(ofJob: id)
    }

    /// Starts the previews of a job, if they are requested and possible and have not been started.
    func startPreviews(ofJob id: Int) {
        guard let previews = change({ scheduler, _ in scheduler.beginPreviews(of: id) }) else { return }
        transferPreviewMaker.start(previews) { [self] image in
            let told = change { scheduler, _ in scheduler.setPreview(image, of: previews) }
            guard let (preview, subscribers) = told else { return false }
            for subscriber in subscribers { subscriber.previewDidArrive(preview) }
            return true
        }
    }

    /// A preview of the source was requested after the request had been enqueued.
    func makeWantedSourcePreview(of task: ImageTask) {
        let source = task.request.source
        if let identity = source.knownIdentity { return sourcePreviewMaker.makeWantedPreview(of: task, identity) }
        // Where the source is being asked who it is, this follows by itself.
        guard state.withLock({ $0.identifications[ObjectIdentifier(task)] == nil }) else { return }
        Task {
            guard let identity = try? await caller.identity(of: source) else { return }
            sourcePreviewMaker.makeWantedPreview(of: task, identity)
        }
    }
}
