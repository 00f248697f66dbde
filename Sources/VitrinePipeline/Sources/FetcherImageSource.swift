#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
import VitrineCore
public import VitrineImaging

/// An image that a fetcher of a cache provides, as bytes of a file or as pixels.
struct FetcherImageSource: RemoteImageSource, IdentifiableSource {
    var identifier: CacheKey?
    /// The fetcher's key, and the part of the content.
    let key: CacheKey
    let content: @Sendable (SourceLoadContext) async throws -> LoadedSource

    var knownIdentity: CacheKey? { identifier ?? key }

    func load(_ context: SourceLoadContext) async throws -> LoadedSource { try await content(context) }
}

/// A fetcher whose key is apart from those of URLs, which stand in the same cache.
private struct KeyedFetcher<Base: Fetcher>: Fetcher {
    typealias Value = Base.Value
    let base: Base

    var key: CacheKey { CacheKey(parts: ["fetcher"] + base.key.parts) }
    var storesOriginal: Bool { base.storesOriginal }
    var levels: CacheLevels { base.levels }
    var revalidates: Bool { base.revalidates }

    func fetch(_ context: FetchContext) async throws -> FetchResult<Value> { try await base.fetch(context) }
}

extension ImageSource where Self == BuiltInSource {
    /// The bytes of a file that a fetcher provides, for example from a database with times and validators of its own.
    ///
    /// ```swift
    /// let avatar = ImageRequest(.fetcher(AvatarFetcher(user: 5)), resizing: .fit(96))
    /// ```
    ///
    /// The bytes are kept in the pipeline's cache of originals as the fetcher says, so that all sizes are made from one
    /// fetch. Results are kept no longer than the bytes are fresh. The fetcher's key identifies the image.
    ///
    /// - Parameters:
    ///   - fetcher: The source of the bytes. The content decides how they are read.
    ///   - page: The page of a document, or the frame of an animation, from 1.
    ///   - moment: The moment of a video. Another page than the first goes before it.
    public static func fetcher(
        _ fetcher: some Fetcher<Data>, page: Int = 1, at moment: VideoMoment = .poster
    ) -> BuiltInSource {
        let keyed = KeyedFetcher(base: fetcher), name = fetcher.key.description
        var key = keyed.key
        if page != 1 { key = key.appending("page \(page)") }
        if case .second(let second) = moment { key = key.appending("second \(second)") }
        return BuiltInSource(
            FetcherImageSource(key: key) { context in
                let original = try await bytes(of: keyed, name, context)
                let discard: @Sendable () async -> Void = { [originals = context.originals, key = keyed.key] in
                    await originals?.remove(key)
                }
                do {
                    let source = try await ImagePipeline.lookupExecutor.run { () throws(ImagePipelineError) in
                        try SourceDetector.source(
                            for: .bytes(original.bytes, name: name), .init(page: page, moment: moment))
                    }
                    return LoadedSource(
                        source, expires: original.expires, levels: original.isStale ? [] : original.levels,
                        discard: discard)
                } catch {
                    await discard()
                    throw error
                }
            })
    }

    /// The pixels that a fetcher provides, for example a drawing.
    ///
    /// Results are kept as long, and on the levels, that the fetcher says. The fetcher's key identifies the image.
    public static func fetcher(_ fetcher: some Fetcher<PixelImage>) -> BuiltInSource {
        let key = KeyedFetcher(base: fetcher).key, name = fetcher.key.description
        return BuiltInSource(
            FetcherImageSource(key: key) { context in
                let result = try await ImagePipelineError.naming(name) {
                    try await fetcher.fetch(FetchContext(priority: context.priority))
                }
                let image = try await ImagePipeline.lookupExecutor.run { () throws(ImagePipelineError) in
                    try pixels(of: result, name)
                }
                let now = WallClock.system.now
                return LoadedSource(
                    ImageFileSource(image, identifier: key), expires: result.timeToLive.map { now + $0 },
                    levels: result.levels.intersection(fetcher.levels))
            })
    }

    private static func bytes<Base: Fetcher<Data>>(
        of fetcher: KeyedFetcher<Base>, _ name: String, _ context: SourceLoadContext
    ) async throws -> OriginalBytes {
        // A cache that keeps nothing answers a load that is to use none.
        var nothing = CacheConfiguration()
        nothing.levels = []
        let originals = context.originals ?? ValueCache(name: "none", configuration: nothing)
        return try await ImagePipelineError.naming(name) {
            try await originals.originalBytes(from: fetcher, following: context.priority)
        }
    }

    private static func pixels(of result: FetchResult<PixelImage>, _ name: String) throws(ImagePipelineError) -> PixelImage {
        switch result.content {
        case .value(let image), .both(let image, _): return image
        case .bytes(let bytes):
            do {
                return try PixelImage(cacheBytes: bytes)
            } catch {
                throw ImagePipelineError(thrown: error, source: name)
            }
        case .gone(let error): throw .underlying(source: name, error: error)
        case .unchanged, .stale:
            throw .unreadable(source: name, reason: "the fetcher names a stored value, and there is none")
        }
    }
}
