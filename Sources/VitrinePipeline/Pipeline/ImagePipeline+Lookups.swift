public import VitrineCache
import VitrineCore
public import VitrineImaging

/// Lookups in the caches, before a source is called.
extension ImagePipeline {
    /// Lets a new job look at the caches in its turn, or puts it in line for its source if there are none to look at.
    func beginLookup(_ id: Int, _ slot: QueueSlot) {
        guard let plan = plan(for: id) else { return }
        guard store.needsLookup(plan) else { return proceed(id) }
        slot.enqueue(on: lookups) { [self] in
            Task(executorPreference: Self.lookupExecutor) {
                await self.lookUp(id)
                slot.finish()
            }
        }
    }

    /// The plan of a job; nil if the job has ended.
    func plan(for id: Int) -> ResultStore.Plan? {
        state.withLock { state in
            guard let job = state.scheduler.jobs[id] else { return nil }
            return ResultStore.Plan(
                key: job.key, identity: job.identity, spec: job.spec, source: job.source,
                options: job.options.intersection(configuration.options), wantsImage: job.wantsImage)
        }
    }

    private func lookUp(_ id: Int) async {
        while let plan = plan(for: id) {
            guard let (made, lifetime) = await store.find(plan) else { return proceed(id) }
            guard let image = made.image else {
                // Somebody who wants to see it may have joined meanwhile.
                guard let subscribers = change({ $0.endUnseen(id, &$1) }) else { continue }
                for subscriber in subscribers { subscriber.jobDidEnd(.success(made)) }
                return
            }
            if made.origin != .disk { await store.insert(image, plan: plan, lifetime: lifetime) }
            return tell(id, .success(made))
        }
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
        guard let identity = try? await caller.identity(of: request.source) else { return false }
        let key = request.spec.key(for: identity)
        if level != .disk, configuration.usesMemoryCache, request.cacheLevels.contains(.readMemory),
            await cache.contains(key, at: .memory)
        {
            return true
        }
        guard level != .memory, configuration.usesDiskCache, request.cacheLevels.contains(.readDisk) else {
            return false
        }
        return await store.isOnDisk(key)
    }

    /// Removes all images, previews, clips and original bytes of URLs from the given levels. Running work still stores its
    /// results.
    ///
    /// - Throws: The first error of the disk; the other caches are cleared.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        store.forgetDerivedSizes()
        let errors = [
            await cache.removeAllError(levels), await sourcePreviews.removeAllError(levels),
            await originals.removeAllError(levels), await clips.removeAllError(levels),
        ]
        if let error = errors.lazy.compactMap(\.self).first { throw error }
    }
}

extension ValueCache {
    /// Removes all entries from the given levels.
    ///
    /// - Returns: The error, if that failed.
    fileprivate func removeAllError(_ levels: CacheLevels) async -> CacheError? {
        do throws(CacheError) {
            try await removeAll(levels: levels)
            return nil
        } catch {
            return error
        }
    }
}
