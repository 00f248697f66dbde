#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineImaging
public import VitrineNetwork

/// Images by their URLs, from memory, from disk or from the network (R83–R88).
///
/// ```swift
/// view.image = Shared.imageURLs.image(at: url, observer: view)      // from memory, or nil now and a call later
/// ```
public typealias ImageURLCache = ResourceCache<Image>

extension Shared {
    /// Images by their URLs, kept in `Shared.images`. Of what servers send only `image/*` is accepted.
    public static let imageURLs = ImageURLCache.images(in: images)
}

extension ResourceCache where Value == Image {
    /// Images by their URLs.
    ///
    /// - Parameters:
    ///   - cache: Where they are kept.
    ///   - options: How they are loaded. Content types other than `image/*` are refused, unless it names some itself
    ///     (R75).
    public static func images(in cache: Cache<Image>, options: FetchOptions = .default) -> ImageURLCache {
        var options = options
        if options.contentTypes.isEmpty { options.contentTypes = ["image/*"] }
        return ImageURLCache(cache, options: options)
    }

    /// The image of a URL if it is in memory; otherwise nil, and the observer is told later. See
    /// `ResourceCache.value(at:format:depth:priority:observer:)`.
    public func image(
        at url: URL?, format: FormatName = .original, depth: Depth = .source, priority: Priority = .normal,
        observer: (any ResourceObserver<Image>)?
    ) -> Image? {
        value(at: url, format: format, depth: depth, priority: priority, observer: observer)
    }

    /// The image of a URL. See `ResourceCache.value(at:format:depth:priority:)`.
    public func image(
        at url: URL, format: FormatName = .original, depth: Depth = .source, priority: Priority = .normal
    ) async throws(CacheError) -> Image {
        try await value(at: url, format: format, depth: depth, priority: priority)
    }
}
