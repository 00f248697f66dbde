/// How the file of an animation is written.
package struct AnimationParameters: Sendable {
    package let size: PixelSize
    /// From 0 to 1.
    package let quality: Double
    /// Whether all frames are opaque.
    package let isOpaque: Bool
    /// How often the animation is shown; 0 for endless loops.
    package let loopCount: Int

    package init(size: PixelSize, quality: Double, isOpaque: Bool, loopCount: Int) {
        (self.size, self.quality, self.isOpaque, self.loopCount) = (size, quality, isOpaque, loopCount)
    }
}

/// Writes the file of an animation frame by frame. For one thread.
package protocol AnimationWriting: AnyObject {
    /// Adds an image, of which only `changed` differs from the previous one.
    func add(_ image: PixelImage, _ changed: PixelRect, milliseconds: Int) throws(ImageError)
    func finish() throws(ImageError) -> [UInt8]
}
