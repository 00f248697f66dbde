#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork

/// A source whose content is loaded before an image can be made from it: a URL, an object in a database or a store.
///
/// The pipeline calls ``load(_:)`` when no cache has the result. It is asynchronous, so that any number of loads may
/// wait without a thread, and it runs once for all requests that wait for the same identity. The source it returns then
/// makes the images, in its turn, as a local one.
package protocol RemoteImageSource: ImageSource {
    /// Loads the content.
    ///
    /// Must not block. The task is cancelled when no request wants the content any more.
    ///
    /// - Throws: ``ImagePipelineError``, or any error of your own.
    func load(_ context: SourceLoadContext) async throws -> LoadedSource

    /// The conditions that can end a load early without changing the content, as `Fetcher.bounds`. Default: empty.
    var bounds: String { get }

    /// The identity, which may take a look at a file.
    func identity() throws(ImagePipelineError) -> CacheKey
}

extension RemoteImageSource {
    package var bounds: String { "" }

    package func identity() throws(ImagePipelineError) -> CacheKey {
        guard let known = knownIdentity else {
            throw .unreadable(source: "\(type(of: self))", reason: "it has no identity: implement knownIdentity")
        }
        return known
    }

    /// Loads the content without any cache, and makes one image of it; a pipeline does not call this.
    package func image(_ request: RenderRequest) async throws -> PixelImage {
        let source = try await load(SourceLoadContext()).source
        return try await BlockingExecutor.shared.run { try source.image(request) }
    }
}

/// Bytes that a closure loads.
struct LoadedBytesSource: RemoteImageSource, IdentifiableSource {
    /// Identifies the bytes.
    var identifier: CacheKey?
    /// The page of a document, or the moment of a video.
    let part: SourceDetector.Options
    let bytes: @Sendable () async throws -> [UInt8]

    func load(_ context: SourceLoadContext) async throws -> LoadedSource {
        let input = ImageInput.bytes(try await bytes(), name: identifier?.description ?? "bytes")
        let part = part
        return LoadedSource(
            try await ImagePipeline.lookupExecutor.run { () throws(ImagePipelineError) in
                try SourceDetector.source(for: input, part)
            })
    }
}

/// The context in which a remote source loads its content.
package struct SourceLoadContext: Sendable {
    /// The highest priority of the requests. Changes while the load runs.
    package let priority: PrioritySource
    /// The pipeline's cache of original bytes; nil for a load that is to use none.
    package let originals: ValueCache<Data>?
    /// Whether the content is to be loaded anew even if stored bytes are fresh.
    package let isRefresh: Bool
    /// Receives the bytes while they are transferred; nil if no request is progressive.
    var arriving: ArrivingBytes?

    /// Creates a context, for sources that call others.
    package init(
        priority: PrioritySource = PrioritySource(), originals: ValueCache<Data>? = nil, isRefresh: Bool = false
    ) {
        self.priority = priority
        self.originals = originals
        self.isRefresh = isRefresh
    }
}

/// The content of a remote source: the local source that makes its images, and how long results may be kept.
package struct LoadedSource: Sendable {
    /// Makes the images. Its identity is not used: results are stored under that of the remote source.
    package var source: any BlockingImageSource
    /// When results made from it stop being fresh, since 1970; nil, the default, for never.
    package var expires: Duration?
    /// The cache levels that may keep results. Default: all.
    package var levels: CacheLevels
    /// Removes the content from the cache it came from. Called when no image can be made from it.
    package var discard: @Sendable () async -> Void

    /// Creates the content of a remote source.
    package init(
        _ source: any BlockingImageSource, expires: Duration? = nil, levels: CacheLevels = .all,
        discard: @escaping @Sendable () async -> Void = {}
    ) {
        self.source = source
        self.expires = expires
        self.levels = levels
        self.discard = discard
    }

    var lifetime: ResultLifetime { ResultLifetime(expires: expires, levels: levels) }
}

/// How long, and on which levels, a result may be kept.
struct ResultLifetime: Sendable {
    /// When it stops being fresh, since 1970; nil for never.
    var expires: Duration?
    var levels = CacheLevels.all

    /// Results of local sources, whose identity changes with their content.
    static let unlimited = ResultLifetime()
    /// Results that are not to be kept.
    static let none = ResultLifetime(levels: [])

    /// The time to live of a result that is stored now; nil for no limit.
    func timeToLive(at now: Duration) -> Duration? { expires.map { $0 - now } }

    /// Whether nothing is left to keep at `now`.
    func isOver(at now: Duration) -> Bool { levels.isEmpty || expires.map { $0 <= now } == true }
}
