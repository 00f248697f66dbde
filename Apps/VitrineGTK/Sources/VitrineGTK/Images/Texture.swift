import CGTK
public import VitrineImaging

/// A picture as GDK draws it, on the memory of an `Image`: nothing is copied unless that is asked for.
///
/// Made on any thread. Shared memory is given back when GDK and all images that share it have let go of it.
///
/// Unchecked: a texture never changes, and its last reference is dropped on the main thread, as that may concern the
/// renderer's cache.
public final class Texture: @unchecked Sendable {
    /// The `GdkTexture`.
    public let pointer: OpaquePointer
    /// In pixels.
    public let size: PixelSize
    /// Whose memory it is.
    package let pixels: PixelStorage

    /// Whose memory a texture is on.
    public enum Memory: Sendable, Hashable {
        /// The image's.
        case shared
        /// Its own, three bytes a pixel, if the image is opaque. GTK 4.8 draws by cairo from a copy that it makes for
        /// every frame, and makes that of these several times as fast.
        case packed
    }

    /// The texture of a picture.
    ///
    /// - Parameters:
    ///   - image: The picture.
    ///   - memory: Whose memory it is on. Default: the image's.
    public init(_ image: Image, memory: Memory = .shared) {
        size = image.size
        pixels = image.sharedPixels
        let isPacked = memory == .packed && image.alpha == .opaque
        let bytes = isPacked ? Self.pack(image) : Self.share(image.sharedPixels)
        // GTK 4.8 converts straight RGBA to its own format several times as fast as anything premultiplied.
        let format =
            isPacked
            ? GDK_MEMORY_R8G8B8
            : image.alpha == .premultiplied ? GDK_MEMORY_R8G8B8A8_PREMULTIPLIED : GDK_MEMORY_R8G8B8A8
        pointer = gdk_memory_texture_new(
            Int32(image.width), Int32(image.height), format, bytes,
            gsize(isPacked ? image.width * 3 : image.bytesPerRow))
        g_bytes_unref(bytes)
    }

    private static func share(_ pixels: PixelStorage) -> OpaquePointer? {
        g_bytes_new_with_free_func(
            pixels.sharedBytes.baseAddress, gsize(pixels.sharedBytes.count),
            { Unmanaged<PixelStorage>.fromOpaque($0!).release() }, Unmanaged.passRetained(pixels).toOpaque())
    }

    private static func pack(_ image: Image) -> OpaquePointer? {
        let count = image.width * image.height * 3
        guard let memory = g_malloc(gsize(count)) else { return nil }
        let target = memory.assumingMemoryBound(to: UInt8.self)
        image.withUnsafeBytes { bytes in
            var to = 0
            for y in 0..<image.height {
                var from = y * image.bytesPerRow
                for _ in 0..<image.width {
                    target[to] = bytes[from]
                    target[to + 1] = bytes[from + 1]
                    target[to + 2] = bytes[from + 2]
                    to += 3
                    from += Image.bytesPerPixel
                }
            }
        }
        return g_bytes_new_take(memory, gsize(count))
    }

    deinit {
        let texture = UnsafeMutableRawPointer(pointer)
        if MainLoop.isFirstThread {
            g_object_unref(texture)
        } else {
            g_idle_add(
                { texture in
                    g_object_unref(texture)
                    return 0
                }, texture)
        }
    }
}
