#if SystemCodecs
import CVitrineWebP
import VitrineImageCore

/// Writes animated WebP: each frame as a still file of its changed part.
final class WebPAnimationWriter: AnimationWriting {
    private let animation: OpaquePointer
    private let quality: Double

    /// libwebp's fastest method: the file is a sixth larger than with its default, and takes half the time.
    private static let method: Int32 = 0
    private static let maximumSide = 16_383

    init(_ parameters: AnimationParameters) throws(ImageError) {
        let size = parameters.size
        guard size.longestSide <= Self.maximumSide else {
            throw .encodingFailed(format: .webp, reason: "a side is longer than \(Self.maximumSide) pixels")
        }
        guard let animation = cwebp_animation_create(Int32(size.width), Int32(size.height), Int32(parameters.loopCount)) else {
            throw .encodingFailed(format: .webp, reason: "no memory for the animation")
        }
        self.animation = animation
        quality = parameters.quality
    }

    deinit { cwebp_animation_destroy(animation) }

    func add(_ image: PixelImage, _ changed: PixelRect, milliseconds: Int) throws(ImageError) {
        var encoding = cwebp_encoding()
        encoding.width = Int32(changed.size.width)
        encoding.height = Int32(changed.size.height)
        encoding.stride = Int32(image.bytesPerRow)
        encoding.has_alpha = image.isFullyOpaque ? 0 : 1
        encoding.quality = Float(quality * 100)
        encoding.method = Self.method
        var count = 0
        var reason: UnsafePointer<CChar>?
        let file = image.withUnsafeBytes { pixels in
            encoding.rgba = pixels.baseAddress?.advanced(by: changed.y * image.bytesPerRow + changed.x * 4)
                .assumingMemoryBound(to: UInt8.self)
            return cwebp_encode(&encoding, &count, &reason)
        }
        guard let file else {
            throw .encodingFailed(format: .webp, reason: reason.map { String(cString: $0) } ?? "libwebp gave no reason")
        }
        defer { cwebp_free(file) }
        let isAdded = cwebp_animation_add(
            animation, file, count, Int32(changed.x), Int32(changed.y), Int32(clamping: milliseconds))
        guard isAdded != 0 else { throw .encodingFailed(format: .webp, reason: "libwebp refused a frame") }
    }

    func finish() throws(ImageError) -> [UInt8] {
        var count = 0
        guard let file = cwebp_animation_finish(animation, &count) else {
            throw .encodingFailed(format: .webp, reason: "libwebp refused the animation")
        }
        defer { cwebp_free(file) }
        return [UInt8](UnsafeBufferPointer(start: file, count: count))
    }
}
#endif
