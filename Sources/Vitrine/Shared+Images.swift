public import VitrineCache
public import VitrineImaging

extension Shared {
    private static let imagePlace = Replaceable { Cache<Image>(name: "shared-images") }

    /// Images. Default: a cache named "shared-images". Can be replaced at any time.
    public static var images: Cache<Image> {
        get { imagePlace.value }
        set { imagePlace.value = newValue }
    }
}
