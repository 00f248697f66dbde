#if SystemCodecs
import CVitrinePNG
#endif
import VitrineImageCore

extension Codec {
    /// PNG and APNG: decoded in Swift, encoded by libpng or, where that is not linked, in Swift.
    package static let png: Codec = {
        var encoders: [any ImageEncoding] = []
        #if SystemCodecs
        encoders.append(LibPNGEncoder())
        #endif
        encoders.append(PNGEncoder())
        var codec = Codec(
            .png, needsIsolation: false, header: PNGHeaderReader.self, decoders: [PNGDecoder()], encoders: encoders
        ) { reader in
            reader.matches("PNG\r\n\u{1A}\n", at: 1) && (try? reader.u8(at: 0)) == 0x89 ? .png : nil
        }
        codec.texts = PNGText.self
        #if SystemCodecs
        codec.library = { LibraryVersion("libpng", version: String(cString: cpng_version())) }
        #endif
        return codec
    }()
}
