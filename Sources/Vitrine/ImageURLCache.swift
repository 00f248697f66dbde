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
public typealias ImageURLCache = ObservedCache<Image>

extension Shared {
    private static let imageURLPlace = Locked<(chosen: ImageURLCache?, made: ImageURLCache?)>((nil, nil))

    /// Images by their URLs, kept in `Shared.images`. Only responses of the type `image/*` are accepted.
    ///
    /// Can be replaced at any time. Until then it follows a replacement of `Shared.images`.
    public static var imageURLs: ImageURLCache {
        get {
            let images = images
            let (cache, replaced) = imageURLPlace.withLock { place -> (ImageURLCache, ImageURLCache?) in
                if let chosen = place.chosen { return (chosen, nil) }
                if let made = place.made, made.cache === images { return (made, nil) }
                let made = ImageURLCache.images(in: images)
                defer { place.made = made }
                return (made, place.made)
            }
            // Released outside the lock.
            _ = replaced
            return cache
        }
        set {
            let replaced = imageURLPlace.withLock { place in
                defer { place = (newValue, nil) }
                return place
            }
            _ = replaced
        }
    }
}

extension ObservedCache where Value == Image {
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
    /// `ObservedCache.value(at:format:depth:priority:observer:)`.
    public func image(
        at url: URL?, format: FormatName = .original, depth: CacheLevel = .source, priority: Priority = .normal,
        observer: (any LoadObserver<Image>)?
    ) -> Image? {
        value(at: url, format: format, depth: depth, priority: priority, observer: observer)
    }

    /// The image of a URL. See `ObservedCache.value(at:format:depth:priority:)`.
    public func image(
        at url: URL, format: FormatName = .original, depth: CacheLevel = .source, priority: Priority = .normal
    ) async throws(CacheError) -> Image {
        try await value(at: url, format: format, depth: depth, priority: priority)
    }
}
