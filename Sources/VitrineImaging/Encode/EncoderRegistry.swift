/// The encoders this build has, by format.
package struct EncoderRegistry: Sendable {
    private let encoders: [ImageFormat: any ImageEncoding]

    /// A registry of some encoders; of two for one format the first is used.
    package init(_ encoders: [any ImageEncoding]) {
        self.encoders = Dictionary(encoders.map { ($0.format, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// All encoders of this build.
    package static let standard = EncoderRegistry(builtIn)

    /// The list to add an encoder to, those that call a library behind the trait `SystemCodecs`.
    private static let builtIn: [any ImageEncoding] = {
        var encoders: [any ImageEncoding] = []
        #if SystemCodecs
        encoders.append(LibJPEGEncoder())
        encoders.append(LibPNGEncoder())
        encoders.append(LibWebPEncoder())
        encoders.append(LibAVIFEncoder())
        #endif
        // The first of a format is used: the pure Swift PNG encoder only where libpng is not linked.
        return encoders + [PNGEncoder(), GIFEncoder(), WorkerEncoder()]
    }()

    /// Formats that can be written.
    package var formats: Set<ImageFormat> { Set(encoders.keys) }

    /// The encoder of a format.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``, which says what is missing.
    package func encoder(for format: ImageFormat) throws(ImageError) -> any ImageEncoding {
        guard let encoder = encoders[format] else {
            throw .encodingFailed(format: format, reason: EncoderRegistry.missing(format))
        }
        return encoder
    }

    private static func missing(_ format: ImageFormat) -> String {
        switch format {
        case .jpeg, .png, .webp, .avif: "built without the trait SystemCodecs"
        case .gif, .jxl, .tiff, .heic, .jp2: "only vitrine-worker writes this format, and it is not in use here"
        default: "this format can be read, but not written"
        }
    }
}
