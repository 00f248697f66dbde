import VitrineCore

extension ImageDecoder {
    /// Adds a decoder for a further file format, for the whole process and at once.
    ///
    /// Registered decoders are asked before the built-in formats, the latest first. A decoder can therefore claim a
    /// variety of a built-in container, such as camera files in TIFF. A decoder replaces an earlier one of the same
    /// format name. Running decodes finish with the decoder they began with, and cached results are kept.
    ///
    /// Registered decoders run in this process. With ``Isolation/always``, decoding their formats throws
    /// ``ImageError/unsupported(input:reason:)``. Can be called from any thread.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for a format without a name or with the name of a built-in one.
    public static func register(_ decoder: some ImageFormatDecoder) throws(ImageError) {
        try RegisteredDecoders.shared.add(decoder)
    }

    /// Removes the decoder of a format.
    ///
    /// - Returns: Whether a decoder was registered.
    @discardableResult
    public static func unregister(_ format: ImageFormat) -> Bool {
        RegisteredDecoders.shared.remove(format)
    }

    /// The formats of registered decoders, in the order in which the decoders are asked.
    package static var registeredFormats: [ImageFormat] { RegisteredDecoders.shared.all.map(\.format) }
}
