import Logging
import VitrineCache
import VitrineCore
import VitrineImaging

/// The results of a pipeline in memory and on disk, and smaller ones that are derived from these.
final class ResultStore: Sendable {
    /// One job, as its lookup sees it.
    struct Plan {
        let key: CacheKey
        let identity: CacheKey
        let spec: ResultSpec
        let source: any ImageSource
        let options: CacheLevels
        let wantsImage: Bool
    }

    private let cache: ValueCache<PixelImage>
    private let configuration: ImagePipeline.Configuration
    private let derivedSizes = DerivedSizeIndex()
    private let log: Logger

    init(_ cache: ValueCache<PixelImage>, configuration: ImagePipeline.Configuration, log: Logger) {
        self.cache = cache
        self.configuration = configuration
        self.log = log
    }

    // MARK: Lookups

    /// Whether ``find(_:)`` may find more than memory has.
    func needsLookup(_ plan: Plan) -> Bool {
        plan.options.contains(.readDisk) || configuration.externalThumbnails != nil
            || !derivedSizes.candidates(for: plan.spec, of: plan.identity).known.isEmpty
    }

    /// The cached image, or one derived from a larger cached image, and how long it may be kept.
    func find(_ plan: Plan) async -> (made: Made, lifetime: ResultLifetime)? {
        if plan.options.contains(.readMemory), let found = inMemory(plan) { return found }
        let readsDisk = plan.options.contains(.readDisk)
        if readsDisk, plan.wantsImage {
            if let image = await fromDisk(plan.key, plan.options) {
                derivedSizes.add(plan.spec, of: plan.identity)
                return (Made(image: image, origin: .disk), .unlimited)
            }
        } else if readsDisk {
            if await isOnDisk(plan.key) { return (Made(image: nil, origin: .disk), .unlimited) }
            if let found = inMemory(plan) { return found }
        }
        let (known, possible) = derivedSizes.candidates(for: plan.spec, of: plan.identity)
        if let found = sharedOrDerivedInMemory(plan, from: known) { return found }
        guard readsDisk else { return nil }
        for spec in known + possible {
            let key = spec.key(for: plan.identity)
            guard let larger = await fromDisk(key, .disk), let image = try? plan.spec.reduced(larger) else { continue }
            return (Made(image: image, origin: .derived), await lifetimeOnDisk(of: key, plan.source))
        }
        return nil
    }

    /// Does the same on the calling thread, for an image that is wanted of a source with unlimited results. Must not be
    /// called on the threads for lookups, which also carry out the writes that this may wait for.
    func findBlocking(_ plan: Plan) -> Made? {
        if plan.options.contains(.readMemory), let found = inMemory(plan) { return found.made }
        let readsDisk = plan.options.contains(.readDisk)
        if readsDisk, let image = cache.valueOnDiskBlocking(forKey: plan.key, levels: diskLevels(plan.options)) {
            derivedSizes.add(plan.spec, of: plan.identity)
            return Made(image: image, origin: .disk)
        }
        let (known, possible) = derivedSizes.candidates(for: plan.spec, of: plan.identity)
        if let found = sharedOrDerivedInMemory(plan, from: known) { return found.made }
        guard readsDisk else { return nil }
        for spec in known + possible {
            let larger = cache.valueOnDiskBlocking(forKey: spec.key(for: plan.identity), levels: .disk)
            if let larger, let image = try? plan.spec.reduced(larger) { return Made(image: image, origin: .derived) }
        }
        return nil
    }

    private func inMemory(_ plan: Plan) -> (made: Made, lifetime: ResultLifetime)? {
        guard let image = cache[plan.key] else { return nil }
        return (Made(image: image, origin: .memory), lifetimeInMemory(of: plan.key, plan.source))
    }

    /// A thumbnail that programs share, or an image made from a larger one in memory.
    private func sharedOrDerivedInMemory(
        _ plan: Plan, from known: [ResultSpec]
    ) -> (made: Made, lifetime: ResultLifetime)? {
        if let image = configuration.externalThumbnails?.thumbnail(of: plan.source, for: render(plan)) {
            return (Made(image: image, origin: .shared), .unlimited)
        }
        return derivedInMemory(plan, from: known).map { (Made(image: $0.image, origin: .derived), $0.lifetime) }
    }

    /// How long an image in memory may be kept. Results of local sources have no limit.
    private func lifetimeInMemory(of key: CacheKey, _ source: any ImageSource) -> ResultLifetime {
        guard source is any RemoteImageSource else { return .unlimited }
        let area = cache.original
        return ResultLifetime(expires: area.memory.expiry(forKey: area.slot(key)))
    }

    /// How long an image made from one on disk may be kept.
    private func lifetimeOnDisk(of key: CacheKey, _ source: any ImageSource) async -> ResultLifetime {
        guard source is any RemoteImageSource else { return .unlimited }
        // Gone meanwhile: its time is not known any more.
        guard let info = try? await cache.info(forKey: key) else { return .none }
        return ResultLifetime(expires: info.expires)
    }

    /// Whether an image is on disk, without reading it.
    func isOnDisk(_ key: CacheKey) async -> Bool {
        await cache.original.pendingWrites.waitUntilIdle()
        let disk = cache.original.disk
        return await ImagePipeline.lookupExecutor.run { (try? disk.blocking.contains(key)) ?? false }
    }

    /// An image on disk. One that is damaged was removed, and is made again.
    private func fromDisk(_ key: CacheKey, _ options: CacheLevels) async -> PixelImage? {
        try? await cache.value(forKey: key, depth: .disk, levels: diskLevels(options))
    }

    /// The levels for a look at the disk, which memory keeps if the options say so.
    private func diskLevels(_ options: CacheLevels) -> CacheLevels {
        options.contains(.writeMemory) ? [.readDisk, .writeMemory] : .readDisk
    }

    // MARK: Derived sizes

    /// An image made from a larger one of the same source in memory.
    func derivedInMemory(_ plan: Plan) -> (image: PixelImage, lifetime: ResultLifetime)? {
        derivedInMemory(plan, from: derivedSizes.candidates(for: plan.spec, of: plan.identity).known)
    }

    private func derivedInMemory(
        _ plan: Plan, from known: [ResultSpec]
    ) -> (image: PixelImage, lifetime: ResultLifetime)? {
        guard plan.options.contains(.readMemory) else { return nil }
        for other in known {
            let key = other.key(for: plan.identity)
            guard let larger = cache[key] else { continue }
            let lifetime = lifetimeInMemory(of: key, plan.source)
            if let image = try? plan.spec.reduced(larger) { return (image, lifetime) }
        }
        return nil
    }

    // MARK: Storing

    /// Keeps an image where its requests, the pipeline and the source say, for as long as its original is fresh.
    func insert(_ image: PixelImage, plan: Plan, lifetime: ResultLifetime) async {
        guard let (levels, timeToLive) = storage(plan, lifetime) else { return }
        do throws(CacheError) {
            try await cache.set(
                image, forKey: plan.key, timeToLive: timeToLive, levels: levels, encoding: plan.spec.encoding)
        } catch {
            log.debug("An image was not stored: \(error)")
        }
    }

    /// Does the same on a thread that may block, but for the threads for lookups.
    func insertBlocking(_ image: PixelImage, plan: Plan, lifetime: ResultLifetime) {
        guard let (levels, timeToLive) = storage(plan, lifetime) else { return }
        do throws(CacheError) {
            try cache.setBlocking(
                image, forKey: plan.key, timeToLive: timeToLive, levels: levels, encoding: plan.spec.encoding)
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

    /// Offers an image of a source to the thumbnails that programs share.
    func share(_ image: PixelImage, plan: Plan) {
        guard let shared = configuration.externalThumbnails else { return }
        shared.store(image, of: plan.source, for: render(plan))
    }

    private func render(_ plan: Plan) -> RenderRequest {
        plan.spec.render(limits: configuration.limits, cancellation: CancellationToken())
    }

    // MARK: Removing

    /// Removes the known results of a source whose content was loaded anew or is gone.
    func removeResults(of identity: CacheKey) async {
        for spec in derivedSizes.remove(identity) { await cache.remove(spec.key(for: identity)) }
    }

    /// Forgets the derived sizes: the caches are cleared.
    func forgetDerivedSizes() { derivedSizes.removeAll() }
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
