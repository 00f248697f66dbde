import VitrineCore

/// Decodes a file while its bytes arrive.
package protocol ArrivalDecoding: Sendable {
    /// - Parameters:
    ///   - name: The name of the input in errors.
    ///   - target: The size the images will be scaled to, in the orientation the file stores; nil if it is not known.
    init(name: String, target: PixelSize?, limits: ImageLimits, cancellation: CancellationToken)

    /// Whether ``nextImage(until:)`` will never return another image.
    var isFinished: Bool { get }

    /// Takes the next bytes of the file.
    ///
    /// - Throws: ``ImageError/limitExceeded(input:limit:actual:allowed:)`` with ``ImageLimits/Kind/inputBytes``.
    mutating func append(_ chunk: [UInt8]) throws(ImageError)

    /// The next better image that the bytes so far give; nil if there is none. Damage ends the images.
    ///
    /// Takes as long as decoding does.
    ///
    /// - Parameter token: Cancels this call; nil for the token of the whole work.
    /// - Throws: ``ImageError/cancelled(input:)`` and nothing else.
    mutating func nextImage(until token: CancellationToken?) throws(ImageError) -> DecodedImage?
}

/// A drawing as it is drawn: without references to other files, of a size that renderers accept.
package protocol CheckedDrawing: Sendable {
    /// - Throws: ``ImageError/unsupported(input:reason:)`` for a document that cannot be told to keep to itself, and
    ///   the errors of reading it.
    init(_ source: ByteSource, _ limits: ImageLimits) throws(ImageError)

    /// The document.
    var bytes: [UInt8] { get }
    /// The references that were left out, each kind once, such as "a reference to another file".
    var leftOut: [String] { get }
}
