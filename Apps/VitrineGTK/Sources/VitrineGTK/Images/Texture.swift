import CGTK
public import VitrineImaging

/// An image in the form that GDK draws. It shares the memory of a `PixelImage` by default.
///
/// Create textures on any thread. Shared memory is deallocated when GDK and all images that share it have released it.
///
/// Unchecked: a texture never changes. Its last reference is released on the main thread, because that can touch the
/// cache of the renderer.
public final class Texture: @unchecked Sendable {
    /// The `GdkTexture`.
    public let pointer: OpaquePointer
    /// The size in pixels.
    public let size: PixelSize
    /// The owner of the memory.
    package let pixels: PixelStorage

    /// The owner of a texture's memory.
    public enum Memory: Sendable, Hashable {
        /// The image.
        case shared
        /// The texture: a copy with three bytes a pixel if the image is opaque. GTK 4.8 draws with cairo from a copy
        /// that it makes for every frame, which is several times faster for this format.
        case packed
    }

    /// Creates the texture of an image.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - memory: The owner of the memory. Default: the image.
    public init(_ image: PixelImage, memory: Memory = .shared) {
        size = image.size
        pixels = image.sharedPixels
        let isPacked = memory == .packed && image.alpha == .opaque
        let bytes = isPacked ? Self.pack(image) : Self.share(image.sharedPixels)
        // GTK 4.8 converts straight RGBA to its own format several times faster than premultiplied formats.
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

    private static func pack(_ image: PixelImage) -> OpaquePointer? {
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
                    from += 4
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
