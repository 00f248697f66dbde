#if SystemCodecs
import CVitrineWebP
#endif
import VitrineImageCore

extension Codec {
    package static let gif = Codec(
        .gif, needsIsolation: false, header: GIFHeaderReader.self, decoders: [GIFDecoder()], encoders: [GIFEncoder()]
    ) { reader in
        reader.matches("GIF87a", at: 0) || reader.matches("GIF89a", at: 0) ? .gif : nil
    }

    /// WebP, by libwebp.
    package static let webp: Codec = {
        var decoders: [any ImageDecoding] = []
        var encoders: [any ImageEncoding] = []
        #if SystemCodecs
        decoders.append(WebPDecoder())
        encoders.append(LibWebPEncoder())
        #endif
        var codec = Codec(
            .webp, needsIsolation: false, header: WebPHeaderReader.self, decoders: decoders, encoders: encoders
        ) { reader in
            reader.matches("RIFF", at: 0) && reader.matches("WEBP", at: 8) ? .webp : nil
        }
        #if SystemCodecs
        codec.animationWriter = { parameters throws(ImageError) in try WebPAnimationWriter(parameters) }
        codec.library = {
            let version = cwebp_version()
            return LibraryVersion("libwebp", version: "\(version >> 16).\(version >> 8 & 255).\(version & 255)")
        }
        #endif
        return codec
    }()

    /// TIFF. `vitrine-worker` decodes it, by libtiff.
    package static let tiff = Codec(.tiff, header: TIFFHeaderReader.self) { reader throws(ImageError) in
        guard reader.count >= 4 else { return nil }
        switch try reader.u32(at: 0) {
        case 0x4949_2A00, 0x4949_2B00, 0x4D4D_002A, 0x4D4D_002B: return .tiff
        default: return nil
        }
    }

    /// JPEG 2000. `vitrine-worker` decodes it, by OpenJPEG.
    package static let jp2 = Codec(.jp2, header: JP2HeaderReader.self) { reader throws(ImageError) in
        guard reader.count >= 4 else { return nil }
        let isCodestream = try reader.u32(at: 0) == 0xFF4F_FF51
        return isCodestream || reader.matches("\0\0\0\u{C}jP  \r\n", at: 0) ? .jp2 : nil
    }

    package static let bmp = Codec(.bmp, needsIsolation: false, header: BMPHeaderReader.self, decoders: [BMPDecoder()])
    {
        reader throws(ImageError) in
        guard reader.matches("BM", at: 0) else { return nil }
        return try BMPHeaderReader.looksRight(reader) ? .bmp : nil
    }

    /// Icons and cursors of Windows.
    ///
    /// - Parameter pictures: Decode the entries that are PNG files.
    package static func ico(pictures: Codecs) -> Codec {
        Codec(.ico, header: ICOHeaderReader.self, decoders: [ICODecoder(pictures: pictures)]) {
            reader throws(ImageError) in
            guard reader.count >= 4 else { return nil }
            switch try reader.u32(at: 0) {
            case 0x0000_0100, 0x0000_0200: return try ICOHeaderReader.looksRight(reader) ? .ico : nil
            default: return nil
            }
        }
    }

    /// Photoshop.
    ///
    /// - Parameter pictures: Decode the small preview, a JPEG file.
    package static func psd(pictures: Codecs) -> Codec {
        Codec(.psd, header: PSDDecoder.self, decoders: [PSDDecoder(previews: pictures)]) { reader in
            reader.matches("8BPS", at: 0) && (1...2).contains((try? reader.u16(at: 4)) ?? 1) ? .psd : nil
        }
    }

    /// Icons of Apple.
    ///
    /// - Parameter pictures: Decode the entries that are PNG and JPEG 2000 files.
    package static func icns(pictures: Codecs) -> Codec {
        Codec(.icns, header: ICNSDecoder.self, decoders: [ICNSDecoder(pictures: pictures)]) { reader in
            reader.matches("icns", at: 0) ? .icns : nil
        }
    }

    package static let qoi = Codec(.qoi, header: QOIDecoder.self, decoders: [QOIDecoder()]) { reader in
        reader.matches("qoif", at: 0) ? .qoi : nil
    }

    package static let dds = Codec(.dds, header: DDSDecoder.self, decoders: [DDSDecoder()]) { reader in
        reader.matches("DDS ", at: 0) ? .dds : nil
    }

    package static let farbfeld = Codec(.farbfeld, header: FarbfeldDecoder.self, decoders: [FarbfeldDecoder()]) {
        reader in reader.matches("farbfeld", at: 0) ? .farbfeld : nil
    }

    package static let fits = Codec(.fits, header: FITSDecoder.self, decoders: [FITSDecoder()]) { reader in
        reader.matches("SIMPLE  =", at: 0) ? .fits : nil
    }

    package static let hdr = Codec(.hdr, header: RadianceDecoder.self, decoders: [RadianceDecoder()]) { reader in
        reader.matches("#?RADIANCE", at: 0) || reader.matches("#?RGBE", at: 0) ? .hdr : nil
    }

    package static let exr = Codec(.exr, header: EXRDecoder.self, decoders: [EXRDecoder()]) {
        reader throws(ImageError) in
        guard reader.count >= 4 else { return nil }
        return try reader.u32(at: 0) == 0x762F_3101 ? .exr : nil
    }

    package static let pnm = Codec(.pnm, header: PNMDecoder.self, decoders: [PNMDecoder()]) {
        reader throws(ImageError) in
        guard reader.count >= 4 else { return nil }
        return try PNMHeader.looksRight(reader) ? .pnm : nil
    }

    package static let pcx = Codec(.pcx, header: PCXDecoder.self, decoders: [PCXDecoder()]) { reader in
        reader.count >= 4 && PCXHeader.looksRight(reader) ? .pcx : nil
    }

    /// TGA, which has a mark at its end or none. Asked last.
    package static let tga = Codec(.tga, header: TGADecoder.self, decoders: [TGADecoder()]) { reader in
        TGAHeader.looksRight(reader) ? .tga : nil
    }
}
