#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineImaging
public import VitrineNetwork
public import VitrineThumbnails

/// Images at the size of the target that shows them, kept in a format of that size: see `Cache.format(for:processors:)`.
extension ImageContent<Image> {
    /// The image of a URL at the target's size.
    ///
    /// - Parameters:
    ///   - url: `http`, `https`, `file`, `data`, or a scheme registered with the loader.
    ///   - id: What it is known by instead of the URL: for one that is signed or changes otherwise.
    ///   - cache: Where it is kept.
    ///   - processors: What is done to it at that size, off the main thread, for example rounding its corners (R145).
    ///   - options: How to load, and how long it is fresh.
    public static func url(
        _ url: URL, id: String? = nil, in cache: Cache<Image>, processors: [ImageProcessor] = [],
        options: FetchOptions = .default
    ) -> ImageContent {
        fetcher(NetworkFetcher<Image>(url: url, id: id, options: options), in: cache, processors: processors)
    }

    /// What a fetcher brings, at the target's size.
    public static func fetcher(
        _ fetcher: some Fetcher<Image>, in cache: Cache<Image>, processors: [ImageProcessor] = []
    ) -> ImageContent {
        cached(cache, fetcher.key, { cache.format(for: $0, processors: processors) }) {
            cache.fetch(from: fetcher, format: $0, priority: $1)
        }
    }

    /// The image of a file at the target's size.
    public static func file(
        _ path: String, in cache: Cache<Image>, processors: [ImageProcessor] = []
    ) -> ImageContent {
        fetcher(FileFetcher(path: path), in: cache, processors: processors)
    }

    /// An image that is computed, on a thread that may block, unless the cache has it, at the target's size.
    public static func value(
        _ value: @autoclosure @escaping @Sendable () throws -> Image, forKey key: CacheKey, in cache: Cache<Image>,
        processors: [ImageProcessor] = []
    ) -> ImageContent {
        fetcher(computing(value, key, on: cache), in: cache, processors: processors)
    }

    /// The thumbnail of a source at the target's size, and until it is there the source's placeholder.
    ///
    /// - Parameters:
    ///   - source: What it is made from.
    ///   - service: Makes it.
    ///   - size: In pixels; nil for the target's. Default nil.
    ///   - mode: How it is brought to the size; nil for the target's. Default nil.
    public static func thumbnail(
        of source: any ThumbnailSource, by service: ThumbnailService, size: PixelSize? = nil,
        mode: ImageResizer.Mode? = nil
    ) -> ImageContent {
        ImageContent { box in
            let size = size ?? box?.size ?? PixelSize(256), mode = mode ?? box?.mode ?? .aspectFit
            let allowsUpscaling = box?.allowsUpscaling ?? true
            let identity = source.knownIdentity.map { key in
                ContentIdentity(
                    owner: ObjectIdentifier(service), key: key, form: "\(size) \(mode) \(allowsUpscaling)")
            }
            return Prepared(identity: identity ?? .unique()) {
                service.cachedThumbnail(for: source, size: size, mode: mode, allowsUpscaling: allowsUpscaling)
                    .map { ($0, true) }
            } start: { priority, report in
                let request = ThumbnailRequest(source, size: size, mode: mode, allowsUpscaling: allowsUpscaling)
                request.delivery = .main
                request.queuePriority = priority
                request.onPlaceholder { image in MainActor.assumeIsolated { report(.interim(image)) } }
                request.onThumbnail { result in
                    MainActor.assumeIsolated { report(.done(result.mapError { $0 })) }
                }
                service.enqueue(request)
                return ContentLoad(cancel: { request.cancel() }, priority: { request.queuePriority = $0 })
            }
        }
    }
}
