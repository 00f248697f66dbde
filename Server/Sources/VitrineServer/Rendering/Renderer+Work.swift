import Foundation
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
        if let made = try await tiles.tile(job, priority) { return made }
        let (outcome, waited) = try await groups.outcome(
            of: job, storedVersion: stored?.source.version, priority: priority)
        var made = try await rememberedResult(of: outcome, job: job, stored: stored, alternative: alternative)
        (made.times.queue, made.times.fetch, made.times.waits) = (waited.queue, waited.fetch, waited.waits)
        return made
    }

    /// The stored result of a file that has not changed since.
    private func confirmedFile(_ job: RenderJob, _ stored: RenderedImage) async throws(RequestError) -> Made? {
        guard try await sources.localVersion(of: job.source) == stored.source.version else { return nil }
        let now = configuration.clock.now
        let image = stored.confirmed(until: now + configuration.sources.localFreshness, at: now, lastModified: nil)
        // The disk need not know: it is looked at once, and then again by its file.
        await cache.keep(image, forKey: job.key, job, levels: .memory)
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
            guard case .render(_, _, let loaded, _) = outcome else {
                cache.failures.add(error, for: job.key)
                throw error
            }
            let version = loaded.original.version
            if error.isDamage {
                cache.failures.add(error, for: job.contentKey, format: loaded.header?.format, version: version)
            } else {
                cache.failures.add(error, for: job.key, version: version)
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
                until: cache.freshUntil(original, now), at: now, lastModified: original.lastModified,
                caching: original.caching)
            await cache.store(image, job: job, original: original, sharing: .known)
            return Made(image: image, isConfirmed: true)
        case .passThrough(let loaded):
            let original = loaded.original
            if job.kind == .header, let header = loaded.header {
                return await made(header, job: job, original: original)
            }
            let bytes = original.bytes
            let image = cache.rendered(
                bytes, mediaType: SourceHeader.mediaType(of: bytes),
                format: ImageFormat.detect(Array(bytes.prefix(4_096))), size: loaded.header?.size, original)
            await cache.store(image, job: job, original: original)
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
            let json = try await encoder.executor.run { () throws(RequestError) in
                try ImageSummary(header, source: source, image: image).json()
            }
            made = Made(
                image: cache.rendered(json, mediaType: "application/json", format: nil, size: nil, loaded.original))
            await cache.store(made.image, job: job, original: loaded.original)
        case .header: made = await self.made(header, job: job, original: loaded.original)
        case .image:
            let plan = EncodingPlan(
                job.options, negotiated: job.format, header: header, settings: configuration.settings)
            var original = loaded.original
            original.canonicalPath = try job.options.sourceRules?.iiif?.canonicalPath(for: header.ofIIIF.size)
            made = Made(
                image: try await encoder.encoded(
                    ResultEncoder.Picture(image: image, job: job, original: original, alternative: alternative),
                    plan: plan, place: place))
        }
        made.times.decode = decoded - began
        made.times.decoding = .init(began: began, duration: decoded - began)
        made.times.encode = ContinuousClock.now - decoded
        made.times.encoding = .init(began: decoded, duration: made.times.encode)
        return made
    }

    /// The header of a local image, of which no more is read than it needs; nil for other sources.
    private func localHeader(_ job: RenderJob) async throws(RequestError) -> Made? {
        guard case .local(let names) = job.source.place, let root = sources.root else { return nil }
        let limits = configuration.limits, most = configuration.sources.maximumBytes
        let found = try await sources.executor.run { () throws(RequestError) in
            try root.header(of: names, limits, upTo: most)
        }
        guard let found else { return nil }
        return await made(found.header, job: job, original: sources.original(of: found))
    }

    /// The description of a header.
    private func made(_ header: SourceHeader, job: RenderJob, original: SourceTable.Original) async -> Made {
        let json = (try? JSONEncoder().encode(SourceFacts(header))) ?? Data()
        let image = cache.rendered(
            [UInt8](json), mediaType: "application/json", format: nil, size: nil, original)
        await cache.store(image, job: job, original: original)
        return Made(image: image)
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

    /// Identifies work that requests share: not across a purge, which requests after it must not be answered from.
    func workKey(of job: RenderJob, _ alternative: ImageFormat?) -> CacheKey {
        let key = alternative.map { job.key.appending($0.rawValue) } ?? job.key
        return job.epoch == 0 ? key : key.appending("purge \(job.epoch)")
    }
}
