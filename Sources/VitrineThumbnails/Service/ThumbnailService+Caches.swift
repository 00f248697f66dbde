public import VitrineCache
import VitrineCore
public import VitrineImaging

extension ThumbnailService {
    /// The thumbnail in memory, at once.
    ///
    /// - Returns: nil if there is none, or the source first has to be asked who it is and the caller is on the main
    ///   actor or in a task, where nothing may block; see ``ThumbnailSource/knownIdentity``.
    public func cachedThumbnail(
        for source: any ThumbnailSource, size: PixelSize, scale: Double = 1, mode: ImageResizer.Mode = .aspectFit,
        allowsUpscaling: Bool = true
    ) -> Image? {
        let known = source.knownIdentity ?? (CallingThread.mayBlock ? try? source.identity() : nil)
        guard let known else { return nil }
        let request = ThumbnailRequest(
            source, size: size, scale: scale, mode: mode, allowsUpscaling: allowsUpscaling)
        return memoryHit(request, known)
    }

    /// Whether a request's thumbnail is in memory, and the request and the service may use that.
    public func hasMemoryCache(for request: ThumbnailRequest) async -> Bool {
        guard configuration.usesMemoryCache, request.cacheOptions.contains(.memory),
            let identity = try? await identity(of: request.source)
        else { return false }
        return await thumbnails.contains(request.spec.key(for: identity), at: .memory)
    }

    /// Whether a request's thumbnail is on disk, and the request and the service may use that.
    public func hasDiskCache(for request: ThumbnailRequest) async -> Bool {
        guard configuration.usesDiskCache, request.cacheOptions.contains(.disk),
            let identity = try? await identity(of: request.source)
        else { return false }
        return await isOnDisk(request.spec.key(for: identity))
    }

    /// Removes all thumbnails and placeholders from the levels whose write bits are given, whether or not the service
    /// uses them. Thumbnails that are being made are stored when they are there.
    ///
    /// - Throws: Why the disk could not be cleared; the rest is.
    public func clear(_ levels: CacheLevels = .all) async throws(CacheError) {
        siblings.removeAll()
        var failure: CacheError?
        for cache in [thumbnails, placeholders] {
            do throws(CacheError) {
                try await cache.removeAll(levels: levels)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// A source's identity, asked for on a thread that may block.
    func identity(of source: any ThumbnailSource) async throws -> CacheKey {
        if let known = source.knownIdentity { return known }
        let pending = PendingValue<CacheKey>()
        let id = state.withLock { $0.board.newID() }
        let turn = Turn(PrioritySource())
        call(id, turn, on: identifying) {
            pending.settle(Result { try source.identity() })
        } onFailure: { error in
            pending.settle(.failure(error("\(type(of: source))")))
        }
        do {
            return try await pending.wait()
        } catch {
            if error is CancellationError {
                turn.cancel()
                crew.abandon(id) { turn.finish() }
            }
            throw error
        }
    }
}
