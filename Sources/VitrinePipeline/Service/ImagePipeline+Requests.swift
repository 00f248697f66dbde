import VitrineCore
import VitrineImaging

/// The way of a task from enqueueing to a job, and its end.
extension ImagePipeline {
    /// Begins with a task.
    func admit(_ task: ImageTask) {
        if let identity = task.request.source.knownIdentity { return take(task, identity) }
        guard CallingThread.mayBlock else { return identify(task) }
        do throws(ImagePipelineError) {
            take(task, try task.request.source.identity())
        } catch {
            task.finish(.failure(error))
        }
    }

    /// Asks the source who it is, on a thread that may block.
    private func identify(_ task: ImageTask) {
        let turn = QueueSlot(PrioritySource(task.priority))
        let id = state.withLock { state in
            let id = state.board.newID()
            state.identifications[ObjectIdentifier(task)] = (id, turn)
            return id
        }
        // It may have been cancelled before it could be found here.
        guard !task.state.isFinal else { return leave(task) }
        call(id, turn, on: identifying) { [self] in
            let result = Result { () throws(ImagePipelineError) in try task.request.source.identity() }
            guard endIdentification(of: task) else { return }
            switch result {
            case .success(let identity): take(task, identity)
            case .failure(let error): task.finish(.failure(error))
            }
        } onFailure: { [self] error in
            guard endIdentification(of: task) else { return }
            task.finish(.failure(error("\(type(of: task.request.source))")))
        }
    }

    private func endIdentification(of task: ImageTask) -> Bool {
        state.withLock { $0.identifications.removeValue(forKey: ObjectIdentifier(task)) } != nil
    }

    /// Makes a small call of a source in its turn.
    ///
    /// - Parameter onFailure: Called in place of, or beside, `body` if that took too long or cannot be called.
    func call(
        _ id: Int, _ turn: QueueSlot, on queue: WorkQueue, onMainActor: Bool = false, body: @escaping @Sendable () -> Void,
        onFailure: @escaping @Sendable (_ error: (_ source: String) -> ImagePipelineError) -> Void
    ) {
        turn.enqueue(on: queue) { [self] in
            let isMade = crew.call(id, priority: .normal, onMainActor: onMainActor) { [self] in
                crew.didBegin(id)
                body()
                turn.finish()
            } onTimeout: {
                turn.finish()
                onFailure { .timedOut(source: $0) }
            }
            guard !isMade else { return }
            Self.ending.submit { [self] in
                turn.finish()
                onFailure { .tooManyAbandonedThreads(source: $0, count: crew.stuckCount) }
            }
        }
    }

    /// Goes on with a task whose source is known.
    func take(_ task: ImageTask, _ identity: CacheKey) {
        if let image = memoryHit(task.request, identity) { return task.finish(.success(image), from: .memory) }
        if let error = task.request.invalidity(identity) { return task.finish(.failure(error)) }
        makeWantedPlaceholder(of: task, identity)
        join(task, task.request.source, identity, task.request.spec)
        // It may have been cancelled before it had joined.
        if task.state.isFinal { leave(task) }
    }

    /// The thumbnail in memory, if the task and the service may use that.
    func memoryHit(_ request: ImageRequest, _ identity: CacheKey) -> Image? {
        guard configuration.usesMemoryCache, request.cacheLevels.contains(.memory) else { return nil }
        return cache[request.spec.key(for: identity)]
    }

    /// Adds a subscriber to the job for a thumbnail, and starts that if it is new.
    func join(
        _ subscriber: any JobSubscriber, _ source: any ImageSource, _ identity: CacheKey,
        _ spec: ResultSpec
    ) {
        let (id, turn, preview) = change { board, effects in
            let (id, turn) = board.join(subscriber, source, identity, spec, &effects)
            return (id, turn, subscriber.isProgressive ? board.jobs[id]?.preview : nil)
        }
        if let turn { return beginLookup(id, turn) }
        if let preview { subscriber.previewDidArrive(preview) }
        if subscriber.isProgressive { startPreviews(ofJob: id) }
    }

    // MARK: Changes and ends

    /// A task's priority was set.
    func priorityDidChange(_ task: ImageTask) {
        let priority = task.priority
        let (turn, placeholder) = state.withLock { state in
            let id = ObjectIdentifier(task)
            let turn = state.identifications[id]?.turn
            return (turn?.priority.store(priority) == true ? turn : nil, state.placeholders[id])
        }
        turn?.priority.publish()
        placeholder?.setPriority(priority)
        change { board, effects in board.refresh(task, &effects) }
    }

    /// A task has ended in whatever way.
    func taskDidEnd(_ task: ImageTask, _ result: Result<Image, ImagePipelineError>, from origin: Origin?) {
        state.withLock { state in
            switch result {
            case .success: if let origin { state.statistics.count(origin) }
            case .failure(let error): state.statistics.count(error)
            }
        }
        leave(task)
    }

    /// Takes a subscriber out of whatever it waits for.
    func leave(_ subscriber: any JobSubscriber) {
        let id = ObjectIdentifier(subscriber)
        let (identification, placeholder) = state.withLock {
            ($0.identifications.removeValue(forKey: id), $0.placeholders.removeValue(forKey: id))
        }
        if let (id, turn) = identification {
            turn.cancel()
            crew.abandon(id) { turn.finish() }
        }
        placeholder?.leave()
        change { board, effects in board.leave(subscriber, &effects) }
    }

    /// Changes the board, and then does what follows from that.
    @discardableResult
    func change<T>(_ body: (inout RequestScheduler, inout RequestScheduler.Effects) -> sending T) -> T {
        var effects = RequestScheduler.Effects()
        let result = state.withLock { state in body(&state.board, &effects) }
        for turn in effects.reprioritized { turn.priority.publish() }
        for turn in effects.cancelled { turn.cancel() }
        for load in effects.cancelledLoads { load.cancel() }
        for (id, batch) in effects.abandoned {
            batch.cancellation.cancel()
            crew.abandon(id) { batch.turn.finish() }
        }
        return result
    }
}
