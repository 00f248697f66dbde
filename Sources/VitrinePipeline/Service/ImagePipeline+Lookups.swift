import VitrineCache
import VitrineCore
import VitrineImaging

/// What the caches have, before any source is called.
extension ImagePipeline {
    /// One job, as its lookup sees it.
    struct Plan {
        let key: CacheKey
        let identity: CacheKey
        let spec: ResultSpec
        let source: any ImageSource
        let options: CacheLevels
        let wantsImage: Bool
    }

    /// Lets a new job look at the caches in its turn, or puts it in line for its source if there are none to look at.
    func beginLookup(_ id: Int, _ turn: QueueSlot) {
        guard let plan = plan(for: id) else { return }
        let hasSiblings = !siblings.candidates(for: plan.spec, of: plan.identity).known.isEmpty
        guard plan.options.contains(.disk) || hasSiblings || configuration.shared != nil else {
            return proceed(id)
        }
        turn.enqueue(on: lookups) { [self] in
            Task(executorPreference: Self.looking) {
                await self.lookUp(id)
                turn.finish()
            }
        }
    }

    /// What is to be looked for; nil if nobody wants it any more.
    func plan(for id: Int) -> Plan? {
        state.withLock { state in
            guard let job = state.board.jobs[id] else { return nil }
            return Plan(
                key: job.key, identity: job.identity, spec: job.spec, source: job.source,
                options: job.options.intersection(configuration.options), wantsImage: job.wantsImage)
        }
    }

    private func lookUp(_ id: Int) async {
        while let plan = plan(for: id) {
            guard let (made, lifetime) = await find(plan) else { return proceed(id) }
            guard let image = made.image else {
                // Somebody who wants to see it may have joined meanwhile.
                guard let subscribers = change({ $0.endUnseen(id, &$1) }) else { continue }
                for subscriber in subscribers { subscriber.jobDidEnd(.success(made)) }
                return
            }
            if made.origin != .disk { await store(image, plan, lifetime) }
            return tell(id, .success(made))
        }
    }

    /// The thumbnail as the caches have it, or one made from what they have, and how long it may be kept.
    func find(_ plan: Plan) async -> (made: Made, lifetime: ResultLifetime)? {
        if plan.options.contains(.memory), let image = cache[plan.key] {
            return (Made(image: image, origin: .memory), lifetimeInMemory(of: plan.key, plan.source))
        }
        if plan.options.contains(.disk) {
            if plan.wantsImage {
                if let image = await fromDisk(plan.key, plan.options) {
                    siblings.add(plan.spec, of: plan.identity)
                    return (Made(image: image, origin: .disk), .unlimited)
                }
            } else {
                if await isOnDisk(plan.key) { return (Made(image: nil, origin: .disk), .unlimited) }
                if let image = cache[plan.key] {
                    return (Made(image: image, origin: .memory), lifetimeInMemory(of: plan.key, plan.source))
                }
            }
        }
        if let image = configuration.shared?.thumbnail(
            of: plan.source, for: plan.spec.render(limits: configuration.limits, cancellation: CancellationToken()))
        {
            return (Made(image: image, origin: .shared), .unlimited)
        }
        return await fromDerived(plan).map { (Made(image: $0.image, origin: .sibling), $0.lifetime) }
    }

    /// How long what is in memory may be kept; the results of local sources for ever.
    func lifetimeInMemory(of key: CacheKey, _ source: any ImageSource) -> ResultLifetime {
        guard source is any RemoteImageSource else { return .unlimited }
        let area = cache.original
        return ResultLifetime(expires: area.memory.expiry(forKey: area.slot(key)))
    }

    /// Whether a thumbnail is on disk, without reading it.
    func isOnDisk(_ key: CacheKey) async -> Bool {
        await cache.original.pendingWrites.waitUntilIdle()
        let disk = cache.original.disk
        return await Self.looking.run { (try? disk.blocking.contains(key)) ?? false }
    }

    /// A thumbnail on disk. One that is damaged was removed, and is made again (R50).
    private func fromDisk(_ key: CacheKey, _ options: CacheLevels) async -> Image? {
        var levels: CacheLevels = .readDisk
        if options.contains(.memory) { levels.insert(.writeMemory) }
        return try? await cache.value(forKey: key, depth: .disk, levels: levels)
    }

    // MARK: Siblings

    /// A thumbnail made from a larger one of the same source.
    private func fromDerived(_ plan: Plan) async -> (image: Image, lifetime: ResultLifetime)? {
        let (known, possible) = siblings.candidates(for: plan.spec, of: plan.identity)
        if let found = derivedInMemory(plan.spec, plan.identity, known, plan.source, plan.options) { return found }
        guard plan.options.contains(.disk) else { return nil }
        for spec in known + possible {
            let key = spec.key(for: plan.identity)
            guard let sibling = await fromDisk(key, .disk), let image = try? plan.spec.reduced(sibling) else { continue }
            guard plan.source is any RemoteImageSource else { return (image, .unlimited) }
            // Gone meanwhile: its time is not known any more.
            guard let info = try? await cache.info(forKey: key) else { return (image, .none) }
            return (image, ResultLifetime(expires: info.expires))
        }
        return nil
    }

    /// The same without the disk.
    func derivedInMemory(
        _ spec: ResultSpec, _ identity: CacheKey, _ known: [ResultSpec], _ source: any ImageSource,
        _ options: CacheLevels
    ) -> (image: Image, lifetime: ResultLifetime)? {
        guard options.contains(.memory) else { return nil }
        for other in known {
            let key = other.key(for: identity)
            guard let sibling = cache[key] else { continue }
            let lifetime = lifetimeInMemory(of: key, source)
            if let image = try? spec.reduced(sibling) { return (image, lifetime) }
        }
        return nil
    }

    // MARK: Storing

    /// Keeps a thumbnail where its requests, the service and the source say, for as long as its original is fresh.
    func store(_ image: Image, _ plan: Plan, _ lifetime: ResultLifetime) async {
        let now = cache.configuration.clock.now
        guard !lifetime.isOver(at: now) else { return }
        siblings.add(plan.spec, of: plan.identity)
        var levels: CacheLevels = []
        if plan.options.contains(.disk) {
            levels = .writeDisk
            // What may not be written is removed by the cache; for a precached one that is in memory there is no need.
            if plan.options.contains(.memory) || cache[plan.key] != nil { levels.insert(.writeMemory) }
        } else if plan.options.contains(.memory) {
            levels = .writeMemory
        }
        levels.formIntersection(lifetime.levels)
        guard !levels.isEmpty else { return }
        do throws(CacheError) {
            try await cache.set(image, forKey: plan.key, timeToLive: lifetime.timeToLive(at: now), levels: levels)
        } catch {
            log.debug("A thumbnail was not stored: \(error)")
        }
    }
}
