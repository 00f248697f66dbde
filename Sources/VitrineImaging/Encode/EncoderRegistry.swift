/// The encoders this build has, by format.
package struct EncoderRegistry: Sendable {
    private let encoders: [ImageFormat: any ImageEncoding]

    /// A registry of some encoders; of two for one format the first is used.
    package init(_ encoders: [any ImageEncoding]) {
        self.encoders = Dictionary(encoders.map { ($0.format, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// All encoders whose traits are enabled.
    package static let standard = EncoderRegistry(builtIn)

    /// The list to add an encoder to, each behind the define of its trait.
    private static let builtIn: [any ImageEncoding] = {
        var encoders: [any ImageEncoding] = []
        #if LibJPEG
        encoders.append(LibJPEGEncoder())
        #endif
        #if LibPNG
        encoders.append(LibPNGEncoder())
        #endif
        #if LibWebP
        encoders.append(LibWebPEncoder())
        #endif
        #if LibAVIF
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
        let trait: String
        switch format {
        case .jpeg: trait = "LibJPEG"
        case .png: trait = "LibPNG"
        case .webp: trait = "LibWebP"
        case .avif: trait = "LibAVIF"
        case .gif, .jxl, .tiff, .heic, .jp2: return "only vitrine-worker writes this format, and it is not in use here"
        case .svg, .bmp, .ico: return "this format is read, not written"
        }
        return "built without the trait \(trait)"
    }
}
