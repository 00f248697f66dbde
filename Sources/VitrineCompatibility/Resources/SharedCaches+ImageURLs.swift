public import VitrineCache
import VitrineCore
public import VitrineImaging
public import VitrineNetwork
import VitrinePipeline

extension SharedCaches {
    private static let imageURLPlace = Locked<(chosen: ObservedCache<PixelImage>?, made: ObservedCache<PixelImage>?)>((nil, nil))

    /// Images by URL for observers, at their original size, kept in `SharedCaches.images`. Only responses of the
    /// type `image/*` are accepted.
    ///
    /// ```swift
    /// view.image = SharedCaches.imageURLs.value(at: url, observer: view)    // from memory, or nil now and a call later
    /// ```
    ///
    /// `ImagePipeline` is the usual way to load a URL. Can be replaced at any time. Until then it
    /// follows a replacement of `SharedCaches.images`.
    public static var imageURLs: ObservedCache<PixelImage> {
        get {
            let images = images
            let (cache, replaced) = imageURLPlace.withLock { place -> (ObservedCache<PixelImage>, ObservedCache<PixelImage>?) in
                if let chosen = place.chosen { return (chosen, nil) }
                if let made = place.made, made.cache === images { return (made, nil) }
                let made = ObservedCache<PixelImage>.images(in: images)
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

extension ObservedCache where Value == PixelImage {
    /// Creates a cache of images by URL.
    ///
    /// - Parameters:
    ///   - cache: The cache that keeps the images.
    ///   - options: How they are loaded. Unless it names content types, only `image/*` and types that say nothing are
    ///     accepted.
    public static func images(in cache: ValueCache<PixelImage>, options: FetchOptions = .default) -> ObservedCache<PixelImage> {
        var options = options
        if options.contentTypes.isEmpty {
            options.contentTypes = ["image/*"]
            options.sniffsContent = true
        }
        return ObservedCache<PixelImage>(cache, options: options)
    }
}
