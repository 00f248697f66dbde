import VitrineCache
import VitrineCore
import VitrineFleet
import VitrineImaging

/// Keeps the results of this node, and gives them to the other nodes of a fleet.
final class ResultCache: Sendable {
    /// Whether other nodes learn of a result.
    enum Sharing: Sendable {
        case none
        /// The store has it already.
        case known
        case new
    }

    /// The results by source, options and format.
    let values: ValueCache<RenderedImage>
    /// The errors of the last seconds.
    let failures: RecentFailures
    /// The results that other nodes share; nil for none.
    let remote: RemoteResults?
    private let fence: PurgeFence
    private let configuration: Renderer.Configuration

    init(
        _ configuration: Renderer.Configuration, values: ValueCache<RenderedImage>, fence: PurgeFence,
        remote: RemoteResults?
    ) {
        self.configuration = configuration
        self.values = values
        self.fence = fence
        self.remote = remote
        failures = RecentFailures(configuration.failures, clock: configuration.clock)
    }

    /// The levels of the cache that results are kept in.
    var levels: CacheLevels { configuration.resultDisk.bytes > 0 ? .all : .memory }

    /// The result with these bytes, which is as fresh as its source.
    func rendered(
        _ bytes: [UInt8], mediaType: String, format: ImageFormat?, size: PixelSize?, _ original: SourceTable.Original
    ) -> RenderedImage {
        let now = configuration.clock.now
        var image = RenderedImage(
            bytes: bytes, mediaType: mediaType, format: format, size: size,
            source: RenderedImage.SourceState(
                version: original.version, freshUntil: freshUntil(original, now), lastModified: original.lastModified,
                confirmed: now))
        image.sourceCaching = original.caching
        image.canonicalPath = original.canonicalPath
        return image
    }

    /// The result with the bytes of an encoder.
    func finished(_ bytes: [UInt8], image: PixelImage, original: SourceTable.Original) -> RenderedImage {
        let format = ImageFormat.detect(Array(bytes.prefix(64)))
        return rendered(
            bytes, mediaType: format?.mediaType ?? "application/octet-stream", format: format, size: image.size,
            original)
    }

    /// Until when a result of a source is fresh.
    func freshUntil(_ original: SourceTable.Original, _ now: Duration) -> Duration {
        // A hundred years for what never changes.
        let end = original.expires ?? now + .seconds(3_155_760_000)
        if original.isLocal { return end }
        let least = now + configuration.minimumFreshness
        return original.isStale ? least : max(end, least)
    }

    /// Stores a result, unless its source must not be stored.
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
            _ = try? await values.set(image, forKey: key, tags: all, levels: levels)
        }
    }

    /// Gives other nodes a result, as ``keep(_:forKey:_:tags:levels:sharing:)`` says, within the fence.
    private func share(_ image: RenderedImage, job: RenderJob, tags: [String], sharing: Sharing) {
        guard let remote, sharing != .none else { return }
        if job.source.isLocal, job.sharedVersion != image.source.version {
            // The file has changed meanwhile, or other nodes have other files.
            job.lease?.lease.release()
            return
        }
        let fence = fence
        let (all, began) = (job.source.tags + tags, job.began)
        // A version of a file does not change.
        let freshness = job.source.isLocal ? .seconds(86_400) : image.source.freshUntil - configuration.clock.now
        let staleness = job.source.isLocal ? .zero : configuration.staleWhileRevalidate
        remote.put(
            SharedResult(image, tags: tags), job, freshFor: freshness, staleFor: staleness, isNew: sharing == .new,
            isCurrent: { fence.epoch(of: all) <= began })
    }
}
