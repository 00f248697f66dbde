import VitrineCore
import VitrineImaging

/// The way of a request from enqueueing to a job, and its end.
extension ThumbnailService {
    /// Begins with a request.
    func admit(_ request: ThumbnailRequest) {
        if let identity = request.source.knownIdentity { return take(request, identity) }
        guard CallingThread.mayBlock else { return identify(request) }
        do throws(ThumbnailError) {
            take(request, try request.source.identity())
        } catch {
            request.finish(.failure(error))
        }
    }

    /// Asks the source who it is, on a thread that may block.
    private func identify(_ request: ThumbnailRequest) {
        let turn = Turn(PrioritySource(request.queuePriority))
        let id = state.withLock { state in
            let id = state.board.newID()
            state.identifications[ObjectIdentifier(request)] = (id, turn)
            return id
        }
        // It may have been cancelled before it could be found here.
        guard !request.state.isFinal else { return leave(request) }
        call(id, turn, on: identifying) { [self] in
            let result = Result { () throws(ThumbnailError) in try request.source.identity() }
            guard endIdentification(of: request) else { return }
            switch result {
            case .success(let identity): take(request, identity)
            case .failure(let error): request.finish(.failure(error))
            }
        } onFailure: { [self] error in
            guard endIdentification(of: request) else { return }
            request.finish(.failure(error("\(type(of: request.source))")))
        }
    }

    private func endIdentification(of request: ThumbnailRequest) -> Bool {
        state.withLock { $0.identifications.removeValue(forKey: ObjectIdentifier(request)) } != nil
    }

    /// Makes a small call of a source in its turn.
    ///
    /// - Parameter onFailure: Called in place of, or beside, `body` if that took too long or cannot be called.
    func call(
        _ id: Int, _ turn: Turn, on queue: WorkQueue, onMainActor: Bool = false, body: @escaping @Sendable () -> Void,
        onFailure: @escaping @Sendable (_ error: (_ source: String) -> ThumbnailError) -> Void
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
                onFailure { .tooManyStuck(source: $0, count: crew.stuckCount) }
            }
        }
    }

    /// Goes on with a request whose source is known.
    func take(_ request: ThumbnailRequest, _ identity: CacheKey) {
        if let image = memoryHit(request, identity) { return request.finish(.success(image), from: .memory) }
        if let error = request.invalidity(identity) { return request.finish(.failure(error)) }
        makeWantedPlaceholder(of: request, identity)
        join(request, request.source, identity, request.spec)
        // It may have been cancelled before it had joined.
        if request.state.isFinal { leave(request) }
    }

    /// The thumbnail in memory, if the request and the service may use that.
    func memoryHit(_ request: ThumbnailRequest, _ identity: CacheKey) -> Image? {
        guard configuration.usesMemoryCache, request.cacheOptions.contains(.memory) else { return nil }
        return thumbnails[request.spec.key(for: identity)]
    }

    /// Adds a subscriber to the job for a thumbnail, and starts that if it is new.
    func join(
        _ subscriber: any ThumbnailSubscriber, _ source: any ThumbnailSource, _ identity: CacheKey,
        _ spec: ThumbnailSpec
    ) {
        let (id, turn) = change { board, effects in
            let (id, turn) = board.join(subscriber, source, identity, spec, &effects)
            return (id, turn)
        }
        if let turn { beginLookup(id, turn) }
    }

    // MARK: Changes and ends

    /// A request's priority was set.
    func priorityDidChange(_ request: ThumbnailRequest) {
        let priority = request.queuePriority
        let (turn, placeholder) = state.withLock { state in
            let id = ObjectIdentifier(request)
            let turn = state.identifications[id]?.turn
            return (turn?.priority.store(priority) == true ? turn : nil, state.placeholders[id])
        }
        turn?.priority.publish()
        placeholder?.setPriority(priority)
        change { board, effects in board.refresh(request, &effects) }
    }

    /// A request has ended in whatever way.
    func requestDidEnd(_ request: ThumbnailRequest, _ result: Result<Image, ThumbnailError>, from origin: Origin?) {
        state.withLock { state in
            switch result {
            case .success: if let origin { state.statistics.count(origin) }
            case .failure(let error): state.statistics.count(error)
            }
        }
        leave(request)
    }

    /// Takes a subscriber out of whatever it waits for.
    func leave(_ subscriber: any ThumbnailSubscriber) {
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
    func change<T>(_ body: (inout ThumbnailBoard, inout ThumbnailBoard.Effects) -> sending T) -> T {
        var effects = ThumbnailBoard.Effects()
        let result = state.withLock { state in body(&state.board, &effects) }
        for turn in effects.reprioritized { turn.priority.publish() }
        for turn in effects.cancelled { turn.cancel() }
        for (id, batch) in effects.abandoned {
            batch.cancellation.cancel()
            crew.abandon(id) { batch.turn.finish() }
        }
        return result
    }
}

extension ThumbnailRequest {
    /// Why the request cannot be met, whatever the source.
    func invalidity(_ identity: CacheKey) -> ThumbnailError? {
        let size = pixelSize
        switch mode {
        case .none: return nil
        case .limit where size.width >= 0 && size.height >= 0: return nil
        case .limit, .fill, .aspectFit, .aspectFill, .crop: break
        }
        guard size.isEmpty else { return nil }
        return .underlying(
            source: identity.sourceName, error: ImageError.invalidRequest(reason: "a thumbnail cannot be \(size)"))
    }
}
