public import VitrineCache
import VitrineCore
public import VitrineImaging

extension ImagePipeline {
    /// Returns the image of a request if it is in memory.
    ///
    /// - Returns: nil also if the identity of the source has to be looked up first and the caller is on the main actor
    ///   or in a task, where nothing may block; see ``ImageSource/knownIdentity``.
    public func cachedImage(for request: ImageRequest) -> Image? {
        let known = request.source.knownIdentity ?? (CallingThread.mayBlock ? try? request.source.identity() : nil)
        return known.flatMap { memoryHit(request, $0) }
    }

    /// Returns whether the image of a request is in memory or on disk, on a level that the request and the pipeline use.
    ///
    /// - Parameter level: `.memory` or `.disk` for that level alone; `.source` for either.
    public func contains(_ request: ImageRequest, at level: CacheLevel = .source) async -> Bool {
        guard let identity = try? await identity(of: request.source) else { return false }
        let key = request.spec.key(for: identity)
        if level != .disk, configuration.usesMemoryCache, request.cacheLevels.contains(.memory),
            await cache.contains(key, at: .memory)
        {
            return true
        }
        guard level != .memory, configuration.usesDiskCache, request.cacheLevels.contains(.disk) else { return false }
        return await isOnDisk(key)
    }

    /// Removes all thumbnails, placeholders and original bytes of URLs from the levels whose write bits are given, whether or not the service
    /// uses them. Thumbnails that are being made are stored when they are there.
    ///
    /// - Throws: Why the disk could not be cleared; the rest is.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        siblings.removeAll()
        var failure: CacheError?
        for cache in [cache, placeholders] {
            do throws(CacheError) {
                try await cache.removeAll(levels: levels)
            } catch {
                failure = failure ?? error
            }
        }
        do throws(CacheError) {
            try await originals.removeAll(levels: levels)
        } catch {
            failure = failure ?? error
        }
        if let failure { throw failure }
    }

    /// A source's identity, asked for on a thread that may block.
    func identity(of source: any ImageSource) async throws -> CacheKey {
        if let known = source.knownIdentity { return known }
        let pending = Promise<Result<CacheKey, any Error>>()
        let id = state.withLock { $0.board.newID() }
        let turn = QueueSlot(PrioritySource())
        call(id, turn, on: identifying) {
            pending.fulfill(Result { try source.identity() })
        } onFailure: { error in
            pending.fulfill(.failure(error("\(type(of: source))")))
        }
        do {
            return try await pending.cancellableValue().get()
        } catch {
            if error is CancellationError {
                turn.cancel()
                crew.abandon(id) { turn.finish() }
            }
            throw error
        }
    }
}
