public import VitrineCache
import VitrineCore
public import VitrineImaging

/// Lookups in the caches, before a source is called.
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
    func beginLookup(_ id: Int, _ slot: QueueSlot) {
        guard let plan = plan(for: id) else { return }
        let hasDerivedSizes = !derivedSizes.candidates(for: plan.spec, of: plan.identity).known.isEmpty
        guard plan.options.contains(.readDisk) || hasDerivedSizes || configuration.externalThumbnails != nil else {
            return proceed(id)
        }
        slot.enqueue(on: lookups) { [self] in
            Task(executorPreference: Self.lookupExecutor) {
                await self.lookUp(id)
                slot.finish()
            }
        }
    }

    /// The plan of a job; nil if the job has ended.
    func plan(for id: Int) -> Plan? {
        state.withLock { state in
            guard let job = state.scheduler.jobs[id] else { return nil }
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
            if made.origin != .disk { await store(image, plan: plan, lifetime: lifetime) }
            return tell(id, .success(made))
        }
    }

    /// The cached image, or one derived from a larger cached image, and how long it may be kept.
    func find(_ plan: Plan) async -> (made: Made, lifetime: ResultLifetime)? {
        if plan.options.contains(.readMemory), let image = cache[plan.key] {
            return (Made(image: image, origin: .memory), lifetimeInMemory(of: plan.key, plan.source))
        }
        if plan.options.contains(.readDisk) {
            if plan.wantsImage {
                if let image = await fromDisk(plan.key, plan.options) {
                    derivedSizes.add(plan.spec, of: plan.identity)
                    return (Made(image: image, origin: .disk), .unlimited)
                }
            } else {
                if await isOnDisk(plan.key) { return (Made(image: nil, origin: .disk), .unlimited) }
                if let image = cache[plan.key] {
                    return (Made(image: image, origin: .memory), lifetimeInMemory(of: plan.key, plan.source))
                }
            }
        }
        if let image = externalThumbnail(plan) { return (Made(image: image, origin: .shared), .unlimited) }
        return await fromDerived(plan).map { (Made(image: $0.image, origin: .derived), $0.lifetime) }
    }

    /// Does the same on a thread that may block, for an image that is wanted of a source with unlimited results.
    func findBlocking(_ plan: Plan) -> Made? {
        if plan.options.contains(.readMemory), let image = cache[plan.key] { return Made(image: image, origin: .memory) }
        let readsDisk = plan.options.contains(.readDisk)
        if readsDisk, let image = cache.valueOnDiskBlocking(forKey: plan.key, levels: diskLevels(plan.options)) {
            derivedSizes.add(plan.spec, of: plan.identity)
            return Made(image: image, origin: .disk)
        }
        if let image = externalThumbnail(plan) { return Made(image: image, origin: .shared) }
        let (known, possible) = derivedSizes.candidates(for: plan.spec, of: plan.identity)
        let inMemory = derivedInMemory(
            plan.spec, identity: plan.identity, known: known, source: plan.source, options: plan.options)
        if let (image, _) = inMemory { return Made(image: image, origin: .derived) }
        guard readsDisk else { return nil }
        for spec in known + possible {
            let larger = cache.valueOnDiskBlocking(forKey: spec.key(for: plan.identity), levels: .disk)
            if let larger, let image = try? plan.spec.reduced(larger) { return Made(image: image, origin: .derived) }
        }
        return nil
    }

    /// A thumbnail that programs share.
    private func externalThumbnail(_ plan: Plan) -> PixelImage? {
        configuration.externalThumbnails?.thumbnail(
            of: plan.source, for: plan.spec.render(limits: configuration.limits, cancellation: CancellationToken()))
    }

    /// How long an image in memory may be kept. Results of local sources have no limit.
    func lifetimeInMemory(of key: CacheKey, _ source: any ImageSource) -> ResultLifetime {
        guard source is any RemoteImageSource else { return .unlimited }
        let area = cache.original
        return ResultLifetime(expires: area.memory.expiry(forKey: area.slot(key)))
    }

    /// Whether an image is on disk, without reading it.
    func isOnDisk(_ key: CacheKey) async -> Bool {
        await cache.original.pendingWrites.waitUntilIdle()
        let disk = cache.original.disk
        return await Self.lookupExecutor.run { (try? disk.blocking.contains(key)) ?? false }
    }

    /// An image on disk. One that is damaged was removed, and is made again.
    private func fromDisk(_ key: CacheKey, _ options: CacheLevels) async -> PixelImage? {
        try? await cache.value(forKey: key, depth: .disk, levels: diskLevels(options))
    }

    /// The levels for a look at the disk, which memory keeps if the options say so.
    private func diskLevels(_ options: CacheLevels) -> CacheLevels {
        options.contains(.writeMemory) ? [.readDisk, .writeMemory] : .readDisk
    }

    // MARK: Siblings

    /// An image made from a larger one of the same source.
    private func fromDerived(_ plan: Plan) async -> (image: PixelImage, lifetime: ResultLifetime)? {
        let (known, possible) = derivedSizes.candidates(for: plan.spec, of: plan.identity)
        if let found = derivedInMemory(
            plan.spec, identity: plan.identity, known: known, source: plan.source, options: plan.options)
        {
            return found
        }
        guard plan.options.contains(.readDisk) else { return nil }
        for spec in known + possible {
            let key = spec.key(for: plan.identity)
            guard let larger = await fromDisk(key, .disk), let image = try? plan.spec.reduced(larger) else { continue }
            guard plan.source is any RemoteImageSource else { return (image, .unlimited) }
            // Gone meanwhile: its time is not known any more.
            guard let info = try? await cache.info(forKey: key) else { return (image, .none) }
            return (image, ResultLifetime(expires: info.expires))
        }
        return nil
    }

    /// The same without the disk.
    func derivedInMemory(
        _ spec: ResultSpec, identity: CacheKey, known: [ResultSpec], source: any ImageSource,
        options: CacheLevels
    ) -> (image: PixelImage, lifetime: ResultLifetime)? {
        guard options.contains(.readMemory) else { return nil }
        for other in known {
            let key = other.key(for: identity)
            guard let larger = cache[key] else { continue }
            let lifetime = lifetimeInMemory(of: key, source)
            if let image = try? spec.reduced(larger) { return (image, lifetime) }
        }
        return nil
    }

    // MARK: Storing

    /// Keeps an image where its requests, the pipeline and the source say, for as long as its original is fresh.
    func store(_ image: PixelImage, plan: Plan, lifetime: ResultLifetime) async {
        guard let (levels, timeToLive) = storage(plan, lifetime) else { return }
        do throws(CacheError) {
            try await cache.set(image, forKey: plan.key, timeToLive: timeToLive, levels: levels)
        } catch {
            log.debug("An image was not stored: \(error)")
        }
    }

    /// Does the same on a thread that may block.
    func storeBlocking(_ image: PixelImage, plan: Plan, lifetime: ResultLifetime) {
        guard let (levels, timeToLive) = storage(plan, lifetime) else { return }
        do throws(CacheError) {
            try cache.setBlocking(image, forKey: plan.key, timeToLive: timeToLive, levels: levels)
        } catch {
            log.debug("An image was not stored: \(error)")
        }
    }

    /// The levels of an image and its time to live; nil if it is not to be kept.
    private func storage(_ plan: Plan, _ lifetime: ResultLifetime) -> (levels: CacheLevels, timeToLive: Duration?)? {
        let now = cache.configuration.clock.now
        guard !lifetime.isOver(at: now) else { return nil }
        derivedSizes.add(plan.spec, of: plan.identity)
        var levels: CacheLevels = []
        if plan.options.contains(.writeDisk) {
            levels = .writeDisk
            // What may not be written is removed by the cache; for a prefetched one that is in memory there is no need.
            if plan.options.contains(.writeMemory) || cache[plan.key] != nil { levels.insert(.writeMemory) }
        } else if plan.options.contains(.writeMemory) {
            levels = .writeMemory
        }
        levels.formIntersection(lifetime.levels)
        return levels.isEmpty ? nil : (levels, lifetime.timeToLive(at: now))
    }
}

extension ImagePipeline {
    /// Returns the image of a request if it is in memory.
    ///
    /// - Returns: nil also if the identity of the source has to be looked up first and the caller is on the main actor
    ///   or in a task, where nothing may block; see ``ImageSource/knownIdentity``. The bindings of VitrineViews show
    ///   the image of a file as it was at the last look, until a new look has confirmed or replaced it.
    public func cachedImage(for request: ImageRequest) -> PixelImage? {
        let known = request.source.knownIdentity ?? (CallingThread.mayBlock ? request.source.identityIfFound : nil)
        return known.flatMap { memoryHit(request, request.spec.key(for: $0)) }
    }

    /// Returns the image of a request with a view's identity if it is in memory.
    package func cachedImage(for request: ImageRequest, _ identity: ImageRequest.ViewIdentity?) -> PixelImage? {
        guard case .image(let key) = identity else { return cachedImage(for: request) }
        return memoryHit(request, key)
    }

    /// Returns the image of a request that memory has for its file as it was at the last look. Never blocks.
    ///
    /// The file may have changed since: show the image, and start the request, which verifies it.
    package func rememberedImage(for request: ImageRequest) -> PixelImage? {
        guard let source = request.source as? any FileBackedSource, let identity = try? source.identity(.remembered)
        else { return nil }
        return memoryHit(request, request.spec.key(for: identity))
    }

    /// Returns whether the image of a request is in memory or on disk, on a level that the request and the pipeline
    /// use.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - level: `.memory` or `.disk` for that level alone; `.source` for either.
    public func contains(_ request: ImageRequest, at level: CacheLevel = .source) async -> Bool {
        guard let identity = try? await identity(of: request.source) else { return false }
        let key = request.spec.key(for: identity)
        if level != .disk, configuration.usesMemoryCache, request.cacheLevels.contains(.readMemory),
            await cache.contains(key, at: .memory)
        {
            return true
        }
        guard level != .memory, configuration.usesDiskCache, request.cacheLevels.contains(.readDisk) else {
            return false
        }
        return await isOnDisk(key)
    }

    /// Removes all images, previews, clips and original bytes of URLs from the given levels. Running work still stores its
    /// results.
    ///
    /// - Throws: The first error of the disk; the other caches are cleared.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        derivedSizes.removeAll()
        var failure: CacheError?
        for cache in [cache, sourcePreviews] {
            do throws(CacheError) {
                try await cache.removeAll(levels: levels)
            } catch {
                failure = failure ?? error
            }
        }
        for cache in [originals, clips] {
            do throws(CacheError) {
                try await cache.removeAll(levels: levels)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// A source's identity, asked for where the source may be asked.
    func identity(of source: any ImageSource) async throws -> CacheKey {
        if let known = source.knownIdentity { return known }
        let pending = Promise<Result<CacheKey, any Error>>()
        let id = state.withLock { $0.scheduler.newID() }
        let slot = QueueSlot(PrioritySource())
        findIdentity(of: source, id, slot) { result in pending.fulfill(result.mapError { $0 as any Error }) }
        do {
            return try await pending.cancellableValue().get()
        } catch {
            if error is CancellationError {
                slot.cancel()
                callPool.abandon(id) { slot.finish() }
            }
            throw error
        }
    }
}

/// The known results of each source, so that a smaller image is derived from a larger one instead of the source.
///
/// It remembers the results that were stored or found, of the last few thousand sources, and the specifications used
/// last for any source. Results of an earlier run are looked up by these.
final class DerivedSizeIndex: Sendable {
    private struct State {
        var specs: [CacheKey: [ResultSpec]] = [:]
        var older: [CacheKey: [ResultSpec]] = [:]
        var recent: [ResultSpec] = []
    }

    /// Sources remembered before the older half is forgotten.
    private static let capacity = 4_096
    /// Rules of other sources that are tried on disk.
    private static let recentCount = 4

    private let state = Locked(State())

    /// An image was stored or found.
    func add(_ spec: ResultSpec, of identity: CacheKey) {
        state.withLock { state in
            if state.recent.first != spec {
                state.recent.removeAll { $0 == spec }
                state.recent.insert(spec, at: 0)
                if state.recent.count > Self.recentCount { state.recent.removeLast() }
            }
            var specs = state.specs[identity] ?? state.older[identity] ?? []
            guard !specs.contains(spec) || state.specs[identity] == nil else { return }
            if !specs.contains(spec) { specs.append(spec) }
            state.specs[identity] = specs
            guard state.specs.count >= Self.capacity else { return }
            state.older = state.specs
            state.specs = [:]
        }
    }

    /// The rules whose images of a source may serve one of `spec`, the smallest first: those known to exist, and
    /// those worth a look on disk.
    func candidates(
        for spec: ResultSpec, of identity: CacheKey
    ) -> (known: [ResultSpec], possible: [ResultSpec]) {
        let (specs, recent) = state.withLock {
            ($0.specs[identity] ?? $0.older[identity] ?? [], $0.recent)
        }
        func useful(_ specs: [ResultSpec]) -> [ResultSpec] {
            specs.filter { $0.mayServe(spec) && $0.isLarge(for: spec) }
                .sorted { $0.size.longestSide < $1.size.longestSide }
        }
        return (useful(specs), useful(recent.filter { !specs.contains($0) }))
    }

    /// Forgets a source.
    ///
    /// - Returns: The rules of its images that may exist.
    func remove(_ identity: CacheKey) -> [ResultSpec] {
        state.withLock { state in
            let specs = (state.specs.removeValue(forKey: identity) ?? [])
                + (state.older.removeValue(forKey: identity) ?? [])
            return specs + state.recent.filter { !specs.contains($0) }
        }
    }

    /// Forgets everything: the caches were cleared.
    func removeAll() { state.withLock { $0 = State() } }
}
