import VitrineCache
import VitrineCore
import VitrineImaging

/// What the caches have, before any source is called.
extension ThumbnailService {
    /// One job, as its lookup sees it.
    struct Plan {
        let key: CacheKey
        let identity: CacheKey
        let spec: ThumbnailSpec
        let source: any ThumbnailSource
        let options: ThumbnailCacheOptions
        let wantsImage: Bool
    }

    /// Lets a new job look at the caches in its turn, or puts it in line for its source if there are none to look at.
    func beginLookup(_ id: Int, _ turn: Turn) {
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
            guard let made = await find(plan) else { return proceed(id) }
            guard let image = made.image else {
                // Somebody who wants to see it may have joined meanwhile.
                guard let subscribers = change({ $0.endUnseen(id, &$1) }) else { continue }
                for subscriber in subscribers { subscriber.jobDidEnd(.success(made)) }
                return
            }
            if made.origin != .disk { await store(image, plan) }
            return tell(id, .success(made))
        }
    }

    /// The thumbnail as the caches have it, or one made from what they have.
    func find(_ plan: Plan) async -> Made? {
        if plan.options.contains(.memory), let image = thumbnails[plan.key] {
            return Made(image: image, origin: .memory)
        }
        if plan.options.contains(.disk) {
            if plan.wantsImage {
                if let image = await fromDisk(plan.key, plan.options) {
                    siblings.add(plan.spec, of: plan.identity)
                    return Made(image: image, origin: .disk)
                }
            } else {
                if await isOnDisk(plan.key) { return Made(image: nil, origin: .disk) }
                if let image = thumbnails[plan.key] { return Made(image: image, origin: .memory) }
            }
        }
        if let image = configuration.shared?.thumbnail(
            of: plan.source, for: plan.spec.render(limits: configuration.limits, cancellation: CancellationToken()))
        {
            return Made(image: image, origin: .shared)
        }
        return await fromSibling(plan).map { Made(image: $0, origin: .sibling) }
    }

    /// Whether a thumbnail is on disk, without reading it.
    func isOnDisk(_ key: CacheKey) async -> Bool {
        await thumbnails.original.outbox.settle()
        let disk = thumbnails.original.disk
        return await Self.looking.run { (try? disk.blocking.contains(key)) ?? false }
    }

    /// A thumbnail on disk. One that is damaged was removed, and is made again (R50).
    private func fromDisk(_ key: CacheKey, _ options: ThumbnailCacheOptions) async -> Image? {
        var levels: CacheLevels = .readDisk
        if options.contains(.memory) { levels.insert(.writeMemory) }
        return try? await thumbnails.value(forKey: key, depth: .disk, levels: levels)
    }

    // MARK: Siblings

    /// A thumbnail made from a larger one of the same source.
    private func fromSibling(_ plan: Plan) async -> Image? {
        let (known, possible) = siblings.candidates(for: plan.spec, of: plan.identity)
        if let image = fromSiblingInMemory(plan.spec, plan.identity, known, plan.options) { return image }
        guard plan.options.contains(.disk) else { return nil }
        for spec in known + possible {
            guard let sibling = await fromDisk(spec.key(for: plan.identity), .disk) else { continue }
            if let image = try? plan.spec.reduced(sibling) { return image }
        }
        return nil
    }

    /// The same without the disk.
    func fromSiblingInMemory(
        _ spec: ThumbnailSpec, _ identity: CacheKey, _ known: [ThumbnailSpec], _ options: ThumbnailCacheOptions
    ) -> Image? {
        guard options.contains(.memory) else { return nil }
        for other in known {
            guard let sibling = thumbnails[other.key(for: identity)] else { continue }
            if let image = try? spec.reduced(sibling) { return image }
        }
        return nil
    }

    // MARK: Storing

    /// Keeps a thumbnail where its requests and the service say.
    func store(_ image: Image, _ plan: Plan) async {
        siblings.add(plan.spec, of: plan.identity)
        guard plan.options.contains(.disk) else {
            if plan.options.contains(.memory) { thumbnails[plan.key] = image }
            return
        }
        var levels: CacheLevels = .writeDisk
        // What may not be written is removed by the cache; for a precached one that is in memory there is no need.
        if plan.options.contains(.memory) || thumbnails[plan.key] != nil { levels.insert(.writeMemory) }
        do throws(CacheError) {
            try await thumbnails.set(image, forKey: plan.key, levels: levels)
        } catch {
            log.debug("A thumbnail was not stored: \(error)")
        }
    }
}
