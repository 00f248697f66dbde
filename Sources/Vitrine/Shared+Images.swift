public import VitrineCache
public import VitrineImaging

extension Shared {
    /// Images, named "shared-images" (R3).
    public static let images = Cache<Image>(name: "shared-images")
}
