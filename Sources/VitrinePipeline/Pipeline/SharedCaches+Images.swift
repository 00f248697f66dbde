public import VitrineCache
import VitrineCore
public import VitrineImaging

extension SharedCaches {
    private static let imagePlace = Replaceable { ValueCache<PixelImage>(name: "shared-images") }

    /// A cache of images by key, for programs that use caches without a pipeline. Default: a cache named
    /// "shared-images". Can be replaced at any time.
    public static var images: ValueCache<PixelImage> {
        get { imagePlace.value }
        set { imagePlace.value = newValue }
    }
}
