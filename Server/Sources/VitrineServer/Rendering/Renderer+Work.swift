import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// The work on a result: from its source to the caches.
extension Renderer {
    func make(
        _ job: RenderJob, stored: RenderedImage?, alternative: ImageFormat?, priority: SharedPriority,
        isRefresh: Bool = false
    ) async throws(RequestError) -> Made {
        priority.queue.end()
        if let remote, !job.source.isLocal {
            return try await makeShared(
                job, stored: stored, alternative: alternative, priority: priority, isRefresh: isRefresh, remote: remote)
        }
        if let stored, job.source.isLocal, let made = try await confirmedFile(job, stored) { return made }
        // Files of this machine are those of another one only if the operator says so.
        if let remote, configuration.sources.isLocalShared,
            let version = try await sources.localVersion(of: job.source)
        {
            return try await makeSharedFile(
                job, version: version, alternative: alternative, priority: priority, remote: remote)
        }
        return try await makeHere(job, stored: stored, alternative: alternative, priority: priority)
    }

    /// Makes a result on this node.
    func makeHere(
        _ job: RenderJob, stored: RenderedImage?, alternative: ImageFormat?, priority: SharedPriority
    ) async throws(RequestError) -> Made {
        if job.kind == .header, let made = try await localHeader(job) { return made }
        if let made = try await tile(job, priority) { return made }
        let (outcome, waited) = try await groups.outcome(
            of: job, storedVersion: stored?.sourceVersion, priority: priority)
        var made = try await rememberedResult(of: outcome, job: job, stored: stored, alternative: alternative)
        (made.times.queue, made.times.fetch, made.times.waits) = (waited.queue, waited.fetch, waited.waits)
        return made
    }

    /// The stored result of a file that has not changed since.
    private func confirmedFile(_ job: RenderJob, _ stored: RenderedImage) async throws(RequestError) -> Made? {
        guard try await sources.localVersion(of: job.source) == stored.sourceVersion else { return nil }
        let now = configuration.clock.now
        let image = stored.confirmed(until: now + configuration.sources.localFreshness, at: now, lastModified: nil)
        // The disk need not know: it is looked at once, and then again by its file.
        await keep(image, forKey: job.key, job, levels: .memory)
        return Made(image: image, isConfirmed: true)
    }

    /// ``result(of:_:_:_:)``, whose error is kept for a while.
    private func rememberedResult(
        of outcome: SourceGroups.Outcome, job: RenderJob, stored: RenderedImage?, alternative: ImageFormat?
    ) async throws(RequestError) -> Made {
        do throws(RequestError) {
            return try await result(of: outcome, job: job, stored: stored, alternative: alternative)
        } catch {
            // Another size of the same content is damaged as well.
            if error.isDamage, case .render(_, _, let loaded, _) = outcome {
                failures.add(error, for: job.contentKey, format: loaded.header?.format)
            } else {
                failures.add(error, for: job.key)
            }
            throw error
        }
    }

    private func result(
        of outcome: SourceGroups.Outcome, job: RenderJob, stored: RenderedImage?, alternative: ImageFormat?
    ) async throws(RequestError) -> Made {
        switch outcome {
        case .unchanged(let loaded):
            guard let stored else { throw .sourceNotFound }
            let original = loaded.original
            let now = configuration.clock.now
            let image = stored.confirmed(
                until: freshUntil(original, now), at: now, lastModified: original.lastModified,
                caching: original.caching)
            await store(image, job: job, original: original, sharing: .known)
            return Made(image: image, isConfirmed: true)
        case .passThrough(let loaded):
            let original = loaded.original
            if job.kind == .header, let header = loaded.header {
                return await made(header, job: job, original: original)
            }
            let bytes = original.bytes
            let image = rendered(
                bytes, mediaType: SourceHeader.mediaType(of: bytes),
                format: ImageFormat.detect(Array(bytes.prefix(4_096))), size: loaded.header?.size, original)
            await store(image, job: job, original: original)
            return Made(image: image)
        case .render(let task, _, let loaded, let place):
            return try await render(job, task: task, loaded: loaded, place: place, alternative: alternative)
        }
    }

    private func render(
        _ job: RenderJob, task: ImageTask, loaded: SourceGroups.Loaded, place: Place, alternative: ImageFormat?
    ) async throws(RequestError) -> Made {
        var made: Made
        let began = ContinuousClock.now
        let image = try await value(of: task)
        let decoded = ContinuousClock.now
        guard let header = loaded.header else { throw .notAnImage }
        switch job.kind {
        case .summary:
            let source = loaded.original.bytes
            let json = try await encoders.run { () throws(RequestError) in
                try ImageSummary(header, source: source, image: image).json()
            }
            made = Made(
                image: rendered(json, mediaType: "application/json", format: nil, size: nil, loaded.original))
            await store(made.image, job: job, original: loaded.original)
        case .header: made = await self.made(header, job: job, original: loaded.original)
        case .image:
            let plan = EncodingPlan(
                job.options, negotiated: job.format, header: header, settings: configuration.settings)
            var original = loaded.original
            original.canonicalPath = try job.options.sourceRules?.iiif?.canonicalPath(for: header.ofIIIF.size)
            made = Made(
                image: try await encoded(
                    image, plan: plan, job: job, original: original, place: place, alternative: alternative))
        }
        made.times.decode = decoded - began
        made.times.decoding = .init(began: began, duration: decoded - began)
        made.times.encode = ContinuousClock.now - decoded
        made.times.encoding = .init(began: decoded, duration: made.times.encode)
        return made
    }

    private func value(of task: ImageTask) async throws(RequestError) -> PixelImage {
        do {
            return try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        } catch {
            throw RequestError(rendering: error)
        }
    }

    func rendered(
        _ bytes: [UInt8], mediaType: String, format: ImageFormat?, size: PixelSize?, _ original: SourceTable.Original
    ) -> RenderedImage {
        let now = configuration.clock.now
        var image = RenderedImage(
            bytes: bytes, mediaType: mediaType, format: format, size: size, sourceVersion: original.version,
            freshUntil: freshUntil(original, now), lastModified: original.lastModified, confirmed: now)
        image.sourceCaching = original.caching
        image.canonicalPath = original.canonicalPath
        return image
    }

    private func freshUntil(_ original: SourceTable.Original, _ now: Duration) -> Duration {
        // A hundred years for what never changes.
        let end = original.expires ?? now + .seconds(3_155_760_000)
        if original.isLocal { return end }
        let least = now + configuration.minimumFreshness
        return original.isStale ? least : max(end, least)
    }

    func store(
        _ image: RenderedImage, job: RenderJob, original: SourceTable.Original, sharing: Sharing = .new
    ) async {
        failures.remove(job.key)
        guard original.isStorable || original.isStale else {
            job.lease?.end(afterErrorFor: .seconds(60))
            return
        }
        await keep(image, forKey: job.key, job, tags: original.tags, levels: levels, sharing: sharing)
    }

    var levels: CacheLevels { configuration.resultDisk.bytes > 0 ? .all : .memory }

    /// Stores a result, unless it was purged since the work on it began.
    func keep(
        _ image: RenderedImage, forKey key: CacheKey, _ job: RenderJob, tags: [String] = [], levels: CacheLevels,
        sharing: Sharing = .none
    ) async {
        let all = job.source.tags + tags
        await fence.store(all, since: job.began) {
            guard job.lease?.isRevoked != true else { return }
            share(image, job: job, tags: tags, sharing: sharing)
            // A full disk leaves the result in memory.
            _ = try? await results.set(image, forKey: key, tags: all, levels: levels)
        }
    }

    /// Identifies work that requests share: not across a purge, which requests after it must not be answered from.
    func workKey(of job: RenderJob, _ alternative: ImageFormat?) -> CacheKey {
        let key = alternative.map { job.key.appending($0.rawValue) } ?? job.key
        return job.epoch == 0 ? key : key.appending("purge \(job.epoch)")
    }
}
