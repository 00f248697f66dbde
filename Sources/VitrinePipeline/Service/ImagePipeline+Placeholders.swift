import VitrineCache
import VitrineCore
import VitrineImaging

/// What is shown until a thumbnail is there (R90).
extension ImagePipeline {
    /// A placeholder was asked for after the request had been enqueued.
    func makeWantedPlaceholder(of task: ImageTask) {
        if let identity = task.request.source.knownIdentity { return makeWantedPlaceholder(of: task, identity) }
        // Where the source is being asked who it is, this follows by itself.
        guard state.withLock({ $0.identifications[ObjectIdentifier(task)] == nil }) else { return }
        Task {
            if let identity = try? await self.identity(of: task.request.source) {
                self.makeWantedPlaceholder(of: task, identity)
            }
        }
    }

    /// Makes the placeholder if one is wanted and not on its way. Equal ones are made once.
    func makeWantedPlaceholder(of task: ImageTask, _ identity: CacheKey) {
        guard task.beginPlaceholder() else { return }
        let (spec, source) = (task.request.spec, task.request.source)
        let subscription = placeholderFlights.join(
            spec.key(for: identity).appending("placeholder"), priority: task.priority
        ) { flight in
            begin(flight, source, spec)
        } deliver: { [self] result in
            state.withLock { _ = $0.placeholders.removeValue(forKey: ObjectIdentifier(task)) }
            task.settlePlaceholder((try? result.get()) ?? nil)
        }
        guard !task.placeholderIsSettled else { return }
        state.withLock { $0.placeholders[ObjectIdentifier(task)] = subscription }
        // Either may have come before the subscription could be found.
        guard task.state.isFinal || task.placeholderIsSettled else { return }
        state.withLock { _ = $0.placeholders.removeValue(forKey: ObjectIdentifier(task)) }
        subscription.leave()
    }

    private func begin(
        _ flight: Flight<CacheKey, Image?>, _ source: any ImageSource, _ spec: ResultSpec
    ) {
        let id = state.withLock { $0.board.newID() }
        let turn = QueueSlot(flight.priority)
        flight.cancellation.onCancel { [self] in
            turn.cancel()
            crew.abandon(id) { turn.finish() }
        }
        let render = spec.render(limits: configuration.limits, cancellation: flight.cancellation)
        call(id, turn, on: placing, onMainActor: source.requiresMainActor) { [self] in
            guard !flight.cancellation.isCancelled else { return }
            flight.finish(Result { try placeholder(flight.key, source, render) })
        } onFailure: { error in
            flight.finish(.failure(error("\(type(of: source))")))
        }
    }

    /// The placeholder from its cache, or from the source. May block, but for the main actor, where the disk is left
    /// out.
    func placeholder(_ key: CacheKey, _ source: any ImageSource, _ render: RenderRequest) throws -> Image? {
        guard configuration.cachesPlaceholders else { return try source.placeholder(render) }
        if let image = placeholders[key] { return image }
        let onMainActor = source.requiresMainActor
        if !onMainActor, configuration.usesDiskCache {
            let found = Promise<Image?>()
            Task {
                found.fulfill(try? await placeholders.value(forKey: key))
            }
            if let image = found.wait() { return image }
        }
        guard let image = try source.placeholder(render) else { return nil }
        if onMainActor || !configuration.usesDiskCache {
            placeholders[key] = image
        } else {
            let stored = Promise<Void>()
            Task {
                _ = try? await placeholders.set(image, forKey: key)
                stored.fulfill(())
            }
            stored.wait()
        }
        return image
    }
}

extension ImageTask {
    /// Whether the placeholder has been told, or is known not to come.
    var placeholderIsSettled: Bool { progress.withLock { $0.placeholder.isSettled } }
}
