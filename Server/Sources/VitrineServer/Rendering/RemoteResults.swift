import Foundation
import Logging
import NIOCore
import Synchronization
import VitrineCache
import VitrineCore
package import VitrineFleet
import VitrineImaging

/// A result on its way to other nodes, with the tags that the server of its source names.
struct SharedResult: Sendable {
    var image: RenderedImage
    var tags: [String]

    private static let version = "vitrine-shared-1"
    /// The media type of values in the tier and in the store.
    static let mediaType = "application/vnd.vitrine.result"

    /// The bytes are not those of a result.
    struct Damaged: Error {}

    init(_ image: RenderedImage, tags: [String]) { (self.image, self.tags) = (image, tags) }

    /// A line with the version, one with the number of tags, one for each tag, then the result.
    var bytes: [UInt8] {
        let lines = [Self.version, "\(tags.count)"] + tags.map { $0.filter { !$0.isNewline } }
        return Array((lines.joined(separator: "\n") + "\n").utf8) + image.cacheBytes()
    }

    init(bytes: [UInt8]) throws {
        var rest = bytes[...]
        func line() throws -> String {
            guard let end = rest.firstIndex(of: 10), end - rest.startIndex <= 4_096 else { throw Damaged() }
            defer { rest = rest[(end + 1)...] }
            return String(decoding: rest[..<end], as: UTF8.self)
        }
        guard try line() == Self.version, let count = Int(try line()), (0...64).contains(count) else {
            throw Damaged()
        }
        tags = try (0..<count).map { _ in try line() }
        image = try RenderedImage(cacheBytes: Array(rest))
    }

    /// Reads a result that any client of the tier or the store may have written.
    ///
    /// - Throws: ``Damaged`` also for a value that cannot be a result of the job, such as a page in the place of an
    ///   image, or an image of another type than it says.
    init(bytes: [UInt8], for job: RenderJob) throws {
        try self.init(bytes: bytes)
        guard image.isResult(of: job) else { throw Damaged() }
    }
}

extension RenderedImage {
    /// Whether the bytes can be those of the job, and are of the type that the result says.
    fileprivate func isResult(of job: RenderJob) -> Bool {
        let head = Array(bytes.readableBytesView.prefix(4_096))
        switch job.kind {
        case .image:
            let detected = ImageFormat.detect(head)
            if let detected { return format == detected && mediaType == detected.mediaType }
            // The source as it is, whose type is told by its bytes. Its answer is confined.
            let all = Array(bytes.readableBytesView)
            return job.options.isRaw && format == nil && mediaType == SourceHeader.mediaType(of: all)
        case .summary, .header:
            let data = Data(bytes.readableBytesView)
            return format == nil && mediaType == "application/json"
                && (try? JSONSerialization.jsonObject(with: data)) is [String: Any]
        }
    }
}

/// A lease of the tier for a result.
struct ResultLease: Sendable {
    let lease: Lease
    /// Whether other nodes use an older result until this one is stored.
    let replacesResult: Bool

    /// Whether the result was purged since.
    var isRevoked: Bool { lease.isRevoked }

    /// Ends the lease after an error.
    ///
    /// - Parameter time: How long the error counts. Nodes that wait then make the result themselves, at the same time.
    func end(afterErrorFor time: Duration?) {
        guard let time, time > .zero, !replacesResult else { return lease.release() }
        lease.decline(for: time)
    }
}

/// The results that the nodes of a fleet share: a tier in Redis, and a store that survives it.
///
/// Both only make things faster. Each failure is a miss.
package final class RemoteResults: Sendable {
    /// The tier; nil for none.
    package let tier: RemoteTier?
    /// The store; nil for none.
    package let durable: DurableResults?
    private let wait: Duration
    private let damaged = Mutex(0)
    private let following = Mutex<Task<Void, Never>?>(nil)

    /// - Parameter wait: How long a request waits for the result of another node.
    package init(tier: RemoteTier?, durable: DurableResults?, wait: Duration) {
        (self.tier, self.durable, self.wait) = (tier, durable, wait)
    }

    deinit { following.withLock { $0 }?.cancel() }

    /// Values of the tier with a right checksum that are no results.
    package var damagedResults: Int { damaged.withLock { $0 } }

    /// Applies the purges of all nodes, one after the other.
    package func follow(_ apply: @escaping @Sendable (RemoteTier.Invalidation) async -> Void) {
        guard let invalidations = tier?.invalidations else { return }
        let task = Task { for await invalidation in invalidations { await apply(invalidation) } }
        following.withLock { $0 = task }
    }

    /// Whether results are shared with other nodes.
    ///
    /// Results that are made while a purge from before the connection is applied would not be shared. While a purge of
    /// this node could not be announced, other nodes show the results that it removes.
    package var isUp: Bool { tier.map { $0.status == .up && $0.isCaughtUp && !$0.hasUnannouncedPurges } ?? false }

    /// Waits until results are shared with other nodes.
    ///
    /// - Throws: The reason for which they are not after five seconds.
    package func connect() async throws(RedisError) {
        guard let tier else { return }
        let end = ContinuousClock.now + .seconds(5)
        try await tier.connect(within: .seconds(5))
        while !tier.isCaughtUp {
            guard ContinuousClock.now < end else { throw .timedOut }
            try? await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Completes writes, for some seconds, and ends all connections.
    package func shutDown() async {
        await durable?.flush(atMost: .seconds(5))
        await tier?.shutDown()
    }

    // MARK: Look-up

    enum Found: Sendable {
        /// The tier does not help.
        case none
        /// A result, and the lease to make it anew.
        case result(SharedResult, isStale: Bool, refresh: Lease?)
        /// This node is the one to make it.
        case lease(Lease)
    }

    private static func name(_ job: RenderJob, _ key: CacheKey) -> RemoteKey {
        RemoteKey(group: job.source.key.description, name: key.description)
    }

    /// Looks in the tier, and waits for another node that makes the result.
    func find(_ job: RenderJob, _ clock: WallClock) async -> Found {
        guard let tier else { return .none }
        switch await tier.lookup(Self.name(job, job.remoteKey), deadline: .now + wait) {
        case .bypass: return .none
        case .lease(let lease): return .lease(lease)
        case .value(let value, let refresh):
            guard let result = result(of: value, job, clock) else {
                refresh?.release()
                return .none
            }
            return .result(result, isStale: value.isStale, refresh: refresh)
        }
    }

    private func result(of value: RemoteTier.Value, _ job: RenderJob, _ clock: WallClock) -> SharedResult? {
        guard value.contentType == SharedResult.mediaType,
            var result = try? SharedResult(bytes: Array(value.contents.readableBytesView), for: job)
        else {
            damaged.withLock { $0 += 1 }
            return nil
        }
        // By the clock of the tier's server: those of nodes may differ.
        let now = clock.now
        result.image.source.freshUntil = now + value.freshness
        result.image.source.confirmed = now - value.age
        return result
    }

    /// The result in a quicker format, if another node is still making the better one.
    func provisional(_ job: RenderJob, key: CacheKey, clock: WallClock) async -> SharedResult? {
        guard let tier else { return nil }
        switch await tier.lookup(Self.name(job, key), deadline: .now + wait / 4) {
        case .bypass: return nil
        case .lease(let lease):
            lease.release()
            return nil
        case .value(let value, let refresh):
            refresh?.release()
            guard !value.isStale, var result = result(of: value, job, clock) else { return nil }
            result.image.isProvisional = true
            return result
        }
    }

    /// Gives other nodes a result in a quicker format, so that they do not wait for the better one.
    ///
    /// - Parameter time: How long they use it.
    func shareProvisional(
        _ result: SharedResult, job: RenderJob, key: CacheKey, for time: Duration, isBeingMade: Bool
    ) {
        guard let tier, let held = job.lease, !held.replacesResult else { return }
        Task {
            if case .lease(let lease) = await tier.lookup(Self.name(job, key), deadline: .now) {
                let bytes = ByteBuffer(bytes: result.bytes)
                lease.store(bytes, contentType: SharedResult.mediaType, freshFor: time)
            }
            if isBeingMade { held.lease.excuse(for: .seconds(60)) } else { held.lease.decline(for: time) }
        }
    }

    // MARK: Results

    /// Gives a result to the tier, and to the store unless that has it.
    ///
    /// - Parameters:
    ///   - freshFor: How long it needs no look at its source.
    ///   - staleFor: How long it is used afterwards while it is made anew.
    ///   - isNew: Whether the store may not have it.
    ///   - isCurrent: Whether nothing that it was made from was purged since.
    func put(
        _ result: SharedResult, _ job: RenderJob, freshFor: Duration, staleFor: Duration, isNew: Bool,
        isCurrent: @escaping @Sendable () -> Bool
    ) {
        let isStored = isNew && durable != nil
        guard isStored || job.lease != nil else { return }
        let bytes = result.bytes
        job.lease?.lease.store(
            ByteBuffer(bytes: bytes), contentType: SharedResult.mediaType, freshFor: freshFor, staleFor: staleFor)
        if isStored {
            durable?.put(bytes, for: job.remoteKey.description, replacing: !job.isAbsentFromStore, isCurrent: isCurrent)
        }
    }

    /// Purges a tag on all nodes, in the tier and in the store.
    ///
    /// - Parameter tag: The tag; nil for everything.
    /// - Returns: Whether the other nodes learn of it. Otherwise, it is announced as soon as the tier can be reached.
    /// - Throws: ``RequestError`` 500 if the store could not be told.
    func purge(_ tag: String?) async throws(RequestError) -> Bool {
        let digest = tag.map { PurgeTag.digest(in: $0) }
        let isDone = await durable?.purge(digest) ?? true
        let invalidation: RemoteTier.Invalidation =
            if let tag, let digest { tag.hasPrefix("source ") ? .group(digest) : .tag(digest) } else { .all }
        let isAnnounced = await tier?.purge(invalidation) ?? true
        guard isDone else {
            throw RequestError(
                500, code: "cache-failed", reason: "the purge could not be written to the store of results")
        }
        return isAnnounced
    }
}

extension Renderer {
    /// Makes a result, unless another node or the store has it.
    ///
    /// - Parameters:
    ///   - stored: The result on this node, whose time has passed.
    ///   - isRefresh: Whether no request waits.
    func makeShared(
        _ job: RenderJob, stored: RenderedImage?, alternative: ImageFormat?, priority: SharedPriority,
        isRefresh: Bool, remote: RemoteResults
    ) async throws(RequestError) -> Made {
        var job = job
        var known = stored
        switch await remote.find(job, configuration.clock) {
        case .none:
            if let provisional = await provisional(job, alternative: alternative, remote: remote) { return provisional }
        case .lease(let lease): job.lease = ResultLease(lease: lease, replacesResult: false)
        case .result(let result, let isStale, let refresh):
            if let refresh { job.lease = ResultLease(lease: refresh, replacesResult: true) }
            if (stored?.source.freshUntil ?? .zero) < result.image.source.freshUntil {
                await cache.keep(result.image, forKey: job.key, job, tags: result.tags, levels: cache.levels)
                known = result.image
            }
            guard isRefresh, refresh != nil else {
                if refresh != nil { startRefresh(job, result.image) }
                return Made(image: known ?? result.image, origin: .shared, isStale: isStale)
            }
        }
        if known == nil, let durable = remote.durable {
            switch await durable.find(job, job.key.description) {
            case .missing(let isAbsent): job.isAbsentFromStore = isAbsent
            case .found(let result):
                known = result.image
                guard result.image.source.freshUntil > configuration.clock.now else { break }
                await cache.keep(
                    result.image, forKey: job.key, job, tags: result.tags, levels: cache.levels, sharing: .known)
                return Made(image: result.image, origin: .store)
            }
        }
        return try await makeUnderLease(
            job, known: known, hasOwn: stored != nil, alternative: alternative, priority: priority)
    }

    private func makeUnderLease(
        _ job: RenderJob, known: RenderedImage?, hasOwn: Bool, alternative: ImageFormat?,
        priority: SharedPriority
    ) async throws(RequestError) -> Made {
        do throws(RequestError) {
            return try await makeHere(job, stored: known, alternative: alternative, priority: priority)
        } catch {
            job.lease?.end(afterErrorFor: configuration.failures.lifetime(of: error))
            guard let known, !hasOwn, error.status >= 500,
                configuration.clock.now - known.source.freshUntil <= configuration.staleIfError
            else { throw error }
            return Made(image: known, origin: .shared, isStale: true)
        }
    }

    private func startRefresh(_ job: RenderJob, _ image: RenderedImage) {
        work.start(for: job.key.appending("refresh"), priority: .low) {
            [self] (priority: SharedPriority) async throws(RequestError) in
            try await makeUnderLease(job, known: image, hasOwn: true, alternative: nil, priority: priority)
        }
    }

    /// The result in a quicker format by another node, which is still making the better one.
    private func provisional(
        _ job: RenderJob, alternative: ImageFormat?, remote: RemoteResults
    ) async -> Made? {
        guard job.kind == .image, job.format == .avif || job.format == .jxl, configuration.encodeDeadline != nil
        else { return nil }
        let key = job.provisionalKey(alternative)
        guard var result = await remote.provisional(job, key: key, clock: configuration.clock) else { return nil }
        let now = configuration.clock.now
        result.image.source.freshUntil = min(result.image.source.freshUntil, now + configuration.minimumFreshness)
        await cache.keep(result.image, forKey: key, job, tags: result.tags, levels: .memory)
        return Made(image: result.image, origin: .shared)
    }

    /// Makes a result of a file that all nodes see, unless another node or the store has it of this version.
    func makeSharedFile(
        _ job: RenderJob, version: String, alternative: ImageFormat?, priority: SharedPriority,
        remote: RemoteResults
    ) async throws(RequestError) -> Made {
        var job = job
        job.sharedVersion = version
        switch await remote.find(job, configuration.clock) {
        case .none: break
        case .lease(let lease): job.lease = ResultLease(lease: lease, replacesResult: false)
        case .result(let result, _, let refresh):
            refresh?.release()
            if result.image.source.version == version {
                return await adopted(result, job: job, origin: .shared, sharing: .none)
            }
        }
        if let durable = remote.durable {
            switch await durable.find(job, job.remoteKey.description) {
            case .missing(let isAbsent): job.isAbsentFromStore = isAbsent
            case .found(let result):
                if result.image.source.version == version {
                    return await adopted(result, job: job, origin: .store, sharing: .known)
                }
            }
        }
        do throws(RequestError) {
            return try await makeHere(job, stored: nil, alternative: alternative, priority: priority)
        } catch {
            job.lease?.end(afterErrorFor: configuration.failures.lifetime(of: error))
            throw error
        }
    }

    /// The result of another node, of the present version of a file.
    private func adopted(
        _ result: SharedResult, job: RenderJob, origin: Rendering.Origin, sharing: ResultCache.Sharing
    ) async -> Made {
        let now = configuration.clock.now
        let image = result.image.confirmed(
            until: now + configuration.sources.localFreshness, at: now, lastModified: nil)
        await cache.keep(image, forKey: job.key, job, tags: result.tags, levels: cache.levels, sharing: sharing)
        return Made(image: image, origin: origin)
    }
}
