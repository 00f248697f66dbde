#if SystemCodecs
import CVitrineAVIF
#endif
import VitrineImageCore

extension Codec {
    /// HEIC in Swift, as far as cameras write it, and AVIF by libavif.
    package static let heif: Codec = {
        var decoders: [any ImageDecoding] = [HEICDecoder()]
        var encoders: [any ImageEncoding] = []
        #if SystemCodecs
        decoders.append(AVIFDecoder())
        encoders.append(LibAVIFEncoder())
        #endif
        var codec = Codec(.heic, .avif, header: HEIFHeaderReader.self, decoders: decoders, encoders: encoders) {
            reader throws(ImageError) in try HEIFBrands.format(of: reader)
        }
        #if SystemCodecs
        codec.animationWriter = { parameters throws(ImageError) in try AVIFAnimationWriter(parameters) }
        codec.library = {
            let problem = cavif_missing().map { String(cString: $0) }
            let version = problem == nil ? String(cString: cavif_version()) : nil
            return LibraryVersion("libavif", version: version, problem: problem)
        }
        #endif
        return codec
    }()
}
