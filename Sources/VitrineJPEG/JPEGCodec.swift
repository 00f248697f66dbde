#if SystemCodecs
import CVitrineJPEG
#endif
import VitrineImageCore

extension Codec {
    /// JPEG (ITU-T T.81): block means in Swift, everything else by libjpeg-turbo.
    package static let jpeg: Codec = {
        var decoders: [any ImageDecoding] = [BlockMeanDecoder()]
        var encoders: [any ImageEncoding] = []
        #if SystemCodecs
        decoders = [JPEGGainMapDecoder()] + decoders + [LibJPEGDecoder()]
        encoders.append(LibJPEGEncoder())
        #endif
        var codec = Codec(
            .jpeg, needsIsolation: false, header: JPEGHeaderReader.self, decoders: decoders, encoders: encoders
        ) {
            reader throws(ImageError) in
            guard reader.count >= 2, try reader.u16(at: 0) == 0xFFD8 else { return nil }
            // Readers pass over garbage in front of the first marker, too.
            let isClean = try reader.count == 2 ? true : reader.u8(at: 2) == 0xFF
            return isClean || JPEGPicture.beginsPicture(reader) ? .jpeg : nil
        }
        codec.arrivalDecoder = ProgressiveJPEGScanner.self
        #if SystemCodecs
        codec.library = { LibraryVersion("libjpeg-turbo", version: String(cString: cjpeg_version())) }
        #endif
        return codec
    }()
}
