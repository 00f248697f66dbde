/// The decoders of this build, in the order in which they are asked.
///
/// The first one that does not call a file unsupported decides. A worker holds the same list plus the ones that live
/// only there.
package struct DecoderRegistry: Sendable {
    package var decoders: [any ImageDecoding]

    /// The decoders compiled into this module: the pure Swift ones always, a library's with the trait `SystemCodecs`.
    package static let standard: DecoderRegistry = {
        let png = PNGDecoder()
        var decoders: [any ImageDecoding] = [BlockMeanDecoder()]
        #if SystemCodecs
        decoders.append(LibJPEGDecoder())
        #endif
        decoders += [png, GIFDecoder(), BMPDecoder(), ICODecoder(png: png), JXLLowFrequencyDecoder()]
        #if SystemCodecs
        decoders.append(WebPDecoder())
        decoders.append(AVIFDecoder())
        #endif
        return DecoderRegistry(decoders: decoders)
    }()

    package init(decoders: [any ImageDecoding]) {
        self.decoders = decoders
    }

    /// Those that read `format`.
    package func decoders(for format: ImageFormat) -> [any ImageDecoding] {
        decoders.filter { $0.formats.contains(format) }
    }

    /// Asks each decoder in turn until one does not call the input unsupported.
    ///
    /// - Throws: What the deciding decoder threw, or the last ``ImageError/unsupported(input:reason:)``.
    package static func decode(
        _ source: ByteSource, _ request: DecodeRequest, with decoders: [any ImageDecoding]
    ) throws(ImageError) -> DecodedImage {
        var refusal = ImageError.unsupported(
            input: source.name, reason: "this build has no decoder for \(request.info.format)")
        for decoder in decoders {
            do {
                return try decoder.decode(source, request)
            } catch .unsupported(let input, let reason) {
                refusal = .unsupported(input: input, reason: reason)
            }
        }
        throw refusal
    }
}
