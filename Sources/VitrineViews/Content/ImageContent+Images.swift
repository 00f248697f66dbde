#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineImaging
public import VitrineNetwork
public import VitrinePipeline

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

    /// The image of a request, and until it is there the previews of its source. A request without a size gets that of
    /// the target.
    ///
    /// - Parameters:
    ///   - request: What is wanted.
    ///   - pipeline: Makes it. Default: the shared one.
    public static func request(_ request: ImageRequest, in pipeline: ImagePipeline = .shared) -> ImageContent {
        ImageContent { geometry in
            var request = request
            if request.size.mode == .none, let geometry { request.size = geometry.resizer }
            let wanted = request
            let identity = request.source.knownIdentity.map { key in
                ContentIdentity(
                    owner: ObjectIdentifier(pipeline), key: key, form: "\(wanted.size) \(wanted.processors)")
            }
            return Prepared(identity: identity ?? .unique()) {
                pipeline.cachedImage(for: wanted).map { ($0, true) }
            } start: { priority, report in
                var started = wanted
                started.priority = priority
                let task = ImageTask(started)
                task.onPreview { report(.interim($0)) }
                task.onImage { report(.done($0.mapError { $0 })) }
                pipeline.start(task)
                return ContentLoad(cancel: { task.cancel() }, priority: { task.priority = $0 })
            }
        }
    }
}

extension ImageBinding where Target.Value == Image {
    /// Shows the image of a request, and until it is there the previews of its source. A request without a size gets
    /// that of the target.
    ///
    /// - Parameters:
    ///   - request: What is wanted; nil for nothing: then the placeholder is shown.
    ///   - pipeline: Makes it. Default: the shared one.
    ///   - onSuccess: Called when it is shown, before this returns if it is in memory.
    ///   - onFailure: Called if there is no image.
    public func set(
        _ request: ImageRequest?, in pipeline: ImagePipeline = .shared, onSuccess: (@MainActor (Image) -> Void)? = nil,
        onFailure: (@MainActor (any Error) -> Void)? = nil
    ) {
        set(request.map { .request($0, in: pipeline) }, onSuccess: onSuccess, onFailure: onFailure)
    }
}
