import VitrineCore

extension ImageDecoder {
    /// Adds a codec for a further file format, for the whole process and at once.
    ///
    /// Registered codecs are asked before the built-in ones, the latest first. A codec can therefore claim a variety of
    /// a built-in container, such as camera files in TIFF. A codec replaces an earlier one of the same format name.
    /// Running decodes finish with the codec they began with, and cached results are kept.
    ///
    /// ``ImageInfo``, image pipelines, stores and views use registered codecs, too. Sources of URLs accept responses of
    /// their media types. Registered codecs run in this process. With ``Isolation/always``, decoding their formats throws
    /// ``ImageError/unsupported(input:reason:)``. Can be called from any thread.
    ///
    /// - Throws: ``ImageError/invalidRequest(reason:)`` for a format without a name or with the name of a built-in one.
    public static func register(_ codec: Codec) throws(ImageError) {
        try RegisteredCodecs.shared.add(codec)
    }

    /// Removes the registered codec of a format.
    ///
    /// - Returns: Whether a codec was registered.
    @discardableResult
    public static func unregister(_ format: ImageFormat) -> Bool {
        RegisteredCodecs.shared.remove(format)
    }

    /// The formats of registered codecs, in the order in which the codecs are asked.
    package static var registeredFormats: [ImageFormat] { RegisteredCodecs.shared.formats }
}
