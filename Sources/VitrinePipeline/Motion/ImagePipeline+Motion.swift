#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore
public import VitrineImaging

/// Animations and clips.
extension ImagePipeline {
    /// Opens the animation of a request, with frames of the request's size and processors.
    ///
    /// Frames are decoded when they are asked for, and are not stored in the caches of the pipeline.
    ///
    /// - Returns: nil for a still image, for one frame of an animation, for documents and videos.
    /// - Throws: ``ImagePipelineError``.
    public func animation(for request: ImageRequest) async throws -> AnimatedImage? {
        let identity = try await caller.identity(of: request.source)
        if let error = request.invalidity(identity) { throw error }
        if animationOpener.isKnownStill(identity) { return nil }
        let source: any ImageSource
        if let remote = request.source as? any RemoteImageSource {
            let context = beginLoad(levels: request.cacheLevels, priority: PrioritySource(request.priority))
            source = try await remote.load(context).source
        } else {
            source = request.source
        }
        return try await animationOpener.animation(of: source, for: request, identity: identity)
    }

    /// Opens the animation of a request whose image is shown, unless that takes more than a look at a file or at the
    /// cache of original bytes.
    package func availableAnimation(for request: ImageRequest) async -> AnimatedImage? {
        guard mayBeAnimated(request), let identity = try? await caller.identity(of: request.source),
            !animationOpener.isKnownStill(identity)
        else { return nil }
        var source = request.source
        if let remote = source as? URLImageSource {
            guard let local = await remote.storedSource(in: originals) else { return nil }
            source = local
        }
        return try? await animationOpener.animation(of: source, for: request, identity: identity)
    }

    /// Whether a request may have an animation, as far as that is known without a look at its file.
    package func mayBeAnimated(_ request: ImageRequest) -> Bool {
        guard request.source is URLImageSource || request.source.mayBeAnimated else { return false }
        return request.source.knownIdentity.map { !animationOpener.isKnownStill($0) } ?? true
    }

    /// Returns a clip, a short animation that shows an animation or a video, as a file.
    ///
    /// Equal requests share their work. The file is kept in a cache of its own, under the limits of the pipeline's
    /// configuration.
    ///
    /// - Throws: ``ImagePipelineError``; ``ImagePipelineError/unsupported(source:reason:)`` for a still image, and
    ///   `CancellationError` when the calling task is cancelled.
    public func clip(for request: ClipRequest) async throws -> [UInt8] {
        try Task.checkCancellation()
        let identity = try await caller.identity(of: request.source)
        let name = identity.sourceName
        if let error = request.invalidity { throw ImagePipelineError.underlying(source: name, error: error) }
        if let error = ImageRequest(request.source, resizing: request.resizing).invalidity(identity) { throw error }
        let fetcher = ClipFetcher(pipeline: self, request: request, key: request.key(for: identity), name: name)
        let levels = request.cacheLevels.intersection(configuration.options)
        do throws(CacheError) {
            return Array(try await clips.value(from: fetcher, levels: levels, priority: request.priority))
        } catch {
            if error.isCancellation { throw CancellationError() }
            guard case .source(_, let underlying) = error else { throw error }
            throw ImagePipelineError(thrown: underlying, source: name)
        }
    }

    /// The key of a preview's file, for a source whose identity is known. For tests.
    package func key(of request: ClipRequest, identity: CacheKey) -> CacheKey { request.key(for: identity) }
}

/// Makes the encoder when the first frame tells whether there is transparency.
private final class AnimationEncoderBox {
    private let format: OutputFormat
    private var encoder: AnimationEncoder?

    init(_ format: OutputFormat) { self.format = format }

    func add(_ image: PixelImage, seconds: Double) throws(ImageError) {
        if encoder == nil { encoder = try AnimationEncoder(as: format, isOpaque: image.alpha == .opaque) }
        try encoder?.add(image, seconds: seconds)
    }

    func finish() throws(ImageError) -> [UInt8] {
        guard let encoder else { throw .invalidRequest(reason: "the preview has no frame") }
        return try encoder.finish()
    }
}

/// Makes clips for their cache.
private struct ClipFetcher: Fetcher {
    let pipeline: ImagePipeline
    let request: ClipRequest
    let key: CacheKey
    let name: String

    var bounds: String {
        let bounds = (request.source as? any RemoteImageSource)?.bounds ?? ""
        return request.cacheLevels.isDisjoint(with: .readOnly) ? "refresh " + bounds : bounds
    }

    func fetch(_ context: FetchContext) async throws -> FetchResult<Data> {
        var (source, lifetime) = (request.source, ResultLifetime.unlimited)
        if let remote = source as? any RemoteImageSource {
            let loaded = try await remote.load(
                pipeline.beginLoad(levels: request.cacheLevels, priority: context.prioritySource))
            (source, lifetime) = (loaded.source, loaded.lifetime)
        }
        let bytes = try await makeClip(of: source, priority: context.prioritySource)
        let now = pipeline.configuration.clock.now
        return FetchResult(
            bytes: bytes, timeToLive: lifetime.timeToLive(at: now),
            levels: lifetime.isOver(at: now) ? [] : lifetime.levels)
    }

    /// Makes the file in a slot for calls of sources.
    private func makeClip(of source: any ImageSource, priority: PrioritySource) async throws -> [UInt8] {
        guard let moving = source as? any MovingSource else { throw notMoving }
        let cancellation = CancellationToken()
        let render = request.spec.render(limits: pipeline.configuration.limits, cancellation: cancellation)
        let caller = pipeline.caller
        do {
            return try await caller.value(priority: priority) { call, deliver in
                caller.enqueue(call, on: caller.making, body: .blocking {
                    deliver(Result { try encodedClip(of: moving, render) })
                }, onFailure: { error in
                    cancellation.cancel()
                    deliver(.failure(error(name)))
                })
            }
        } catch {
            if error is CancellationError { cancellation.cancel() }
            throw error
        }
    }

    private func encodedClip(of source: any MovingSource, _ render: RenderRequest) throws -> [UInt8] {
        let encoder = AnimationEncoderBox(request.format)
        let hasClip = try source.clip(request.clip, request: render) { image, seconds throws(ImageError) in
            try encoder.add(image, seconds: seconds)
        }
        guard hasClip else { throw notMoving }
        return try encoder.finish()
    }

    private var notMoving: ImagePipelineError {
        .unsupported(source: name, reason: "it neither moves nor is a video")
    }
}

extension ImageSource {
    /// Whether an animation may be made from the source itself, as far as that is known without a look at a file.
    fileprivate var mayBeAnimated: Bool { (self as? any MovingSource)?.mayBeAnimated ?? false }
}

/// Opens animations, and remembers the sources that are known to be none, so that views do not look at their files
/// again.
final class AnimationOpener: Sendable {
    /// Beyond this number of sources, all are forgotten.
    private static let limit = 20_000

    private let limits: ImageLimits
    private let stillSources = Locked<Set<CacheKey>>([])

    init(limits: ImageLimits) { self.limits = limits }

    /// Whether a source is known not to be an animation.
    func isKnownStill(_ identity: CacheKey) -> Bool { stillSources.withLock { $0.contains(identity) } }

    /// Notes whether the content of a remote source may be an animation, which may have changed since the last load.
    func note(_ loaded: any ImageSource, identity: CacheKey) {
        if loaded.mayBeAnimated { stillSources.withLock { _ = $0.remove(identity) } } else { noteStill(identity) }
    }

    /// Opens the animation of a source, with frames of the request's size and processors; nil if it has none.
    func animation(
        of source: any ImageSource, for request: ImageRequest, identity: CacheKey
    ) async throws -> AnimatedImage? {
        guard let moving = source as? any MovingSource else {
            noteStill(identity)
            return nil
        }
        let spec = request.spec
        let render = spec.render(limits: limits, cancellation: CancellationToken())
        let animation = try await ImagePipeline.lookupExecutor.run {
            Result { try moving.animation(render, processors: spec.processors) }
        }.get()
        if animation == nil { noteStill(identity) }
        return animation
    }

    private func noteStill(_ identity: CacheKey) {
        stillSources.withLock { identities in
            if identities.count >= Self.limit { identities.removeAll() }
            identities.insert(identity)
        }
    }
}
