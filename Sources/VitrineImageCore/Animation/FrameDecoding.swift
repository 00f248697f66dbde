import VitrineCore

/// Decodes the frames of one animation in order, each composed with those before it.
///
/// For one thread at a time. An error leaves it in a state that only its release ends.
package protocol FrameDecoding: AnyObject {
    /// Decodes the next frame.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``ImageError``.
    func advance(_ cancellation: CancellationToken) throws(ImageError) -> Bool

    /// Returns the samples of the frame decoded last, as stored, at the requested size or above. Not called before the
    /// first frame.
    ///
    /// - Throws: ``ImageError``.
    func samples(_ cancellation: CancellationToken) throws(ImageError) -> DecodedImage
}

extension ImageDecoding {
    /// Opens an animation to decode its frames in order. By default the decoder reads none.
    ///
    /// - Parameter request: Its page is not used; its token stops the opening only.
    /// - Throws: ``ImageError/unsupported(input:reason:)`` for a variety it does not read, whereupon the next decoder
    ///   of the format is asked; any other ``ImageError`` ends the decode.
    package func frames(of source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> any FrameDecoding {
        throw .unsupported(input: source.name, reason: "this decoder reads no animations")
    }
}

extension PixelPlane {
    /// The plane with a copy of its samples, for a canvas that changes afterwards.
    package func copied() -> PixelPlane {
        var copy = self
        copy.storage = PixelStorage(copying: UnsafeRawBufferPointer(storage.bytes))
        return copy
    }
}
