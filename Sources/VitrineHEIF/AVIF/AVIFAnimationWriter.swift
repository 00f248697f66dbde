#if SystemCodecs
import CVitrineAVIF
import VitrineImageCore

/// Writes AVIF sequences.
final class AVIFAnimationWriter: AnimationWriting {
    private let animation: OpaquePointer
    private let size: PixelSize

    /// The speed of libavif's encoder, of 10. It takes a tenth to a quarter less time than 8 for the same size and
    /// quality; 10 is the same in libaom 3.6.
    private static let speed: Int32 = 9
    private static let maximumSide = 65_535

    init(_ parameters: AnimationParameters) throws(ImageError) {
        let size = parameters.size
        guard size.longestSide <= Self.maximumSide else {
            throw .encodingFailed(format: .avif, reason: "a side is longer than \(Self.maximumSide) pixels")
        }
        var encoding = cavif_encoding()
        encoding.width = UInt32(size.width)
        encoding.height = UInt32(size.height)
        encoding.stride = UInt32(size.width * PixelImage.bytesPerPixel)
        encoding.has_alpha = parameters.isOpaque ? 0 : 1
        encoding.quantizer = Int32(LibAVIFEncoder.quantizer(for: parameters.quality))
        encoding.speed = Self.speed
        var reason: UnsafePointer<CChar>?
        guard let animation = cavif_animation_create(&encoding, Int32(parameters.loopCount), &reason) else {
            throw Self.failure(reason)
        }
        self.animation = animation
        self.size = size
    }

    deinit { cavif_animation_destroy(animation) }

    func add(_ image: PixelImage, _ changed: PixelRect, milliseconds: Int) throws(ImageError) {
        let image = image.bytesPerRow == size.width * PixelImage.bytesPerPixel ? image : image.packed
        var reason: UnsafePointer<CChar>?
        let isAdded = image.withUnsafeBytes { pixels in
            cavif_animation_add(
                animation, pixels.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(clamping: milliseconds),
                &reason)
        }
        guard isAdded != 0 else { throw Self.failure(reason) }
    }

    func finish() throws(ImageError) -> [UInt8] {
        var count = 0
        var reason: UnsafePointer<CChar>?
        guard let file = cavif_animation_finish(animation, &count, &reason) else { throw Self.failure(reason) }
        defer { cavif_free(file) }
        return [UInt8](UnsafeBufferPointer(start: file, count: count))
    }

    private static func failure(_ reason: UnsafePointer<CChar>?) -> ImageError {
        .encodingFailed(format: .avif, reason: reason.map { String(cString: $0) } ?? "libavif gave no reason")
    }
}

extension PixelImage {
    /// The same pixels in rows without gaps.
    fileprivate var packed: PixelImage {
        PixelImage(width: width, height: height, alpha: alpha) { target in
            withUnsafeBytes { source in
                for y in 0..<height {
                    let row = UnsafeRawBufferPointer(rebasing: source[(y * bytesPerRow)...].prefix(4 * width))
                    UnsafeMutableRawBufferPointer(rebasing: target[(y * 4 * width)...].prefix(4 * width))
                        .copyMemory(from: row)
                }
            }
        }
    }
}
#endif
