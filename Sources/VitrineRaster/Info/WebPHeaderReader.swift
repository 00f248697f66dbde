import VitrineImageCore

/// Reads the RIFF chunks of WebP.
///
/// Source: RFC 9649 §2 (container), §3.4 (VP8L header); RFC 6386 §9.1 (VP8 frame header).
package enum WebPHeaderReader: HeaderReading {
    /// Chunks looked at; more are not counted.
    private static let maximumChunks = 200_000

    private struct Contents {
        var canvas: PixelSize?
        var bitstream: PixelSize?
        var model: ImageInfo.ColorModel?
        var hasAlpha = false
        var frames = 0
        var milliseconds = 0.0
        var delays: [Double] = []
        var plays: Int?
        var profile: Range<Int>?
        var exif: Range<Int>?
        var xmp: Range<Int>?
    }

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        var contents = Contents()
        var offset = 12
        for _ in 0..<maximumChunks {
            guard offset <= reader.count &- 8 else { break }
            let type = try reader.fourCC(at: offset)
            let length = try reader.u32(at: offset &+ 4, bigEndian: false)
            let payload = Range(from: offset &+ 8, to: offset &+ 8 &+ length)
            do {
                try take(reader, type: type, payload: payload, contents: &contents)
            } catch {
                guard contents.canvas != nil || contents.bitstream != nil else { throw error }
                break
            }
            // A still image without VP8X has nothing behind its one chunk.
            if contents.canvas == nil && contents.bitstream != nil { break }
            offset = payload.upperBound &+ (length & 1)
        }
        return try header(reader, contents: contents, limits: limits)
    }

    private static func header(
        _ reader: ByteReader, contents: Contents, limits: ImageLimits
    ) throws(ImageError) -> ImageHeader {
        guard let size = contents.canvas ?? contents.bitstream else { throw .truncated(input: reader.name) }
        var header = ImageHeader(info: ImageInfo(format: .webp, storedSize: size))
        header.info.hasAlpha = contents.hasAlpha
        header.info.colorModel = contents.model ?? .yCbCr
        header.info.frameCount = max(1, contents.frames)
        if contents.frames > 1 {
            header.info.duration = contents.milliseconds / 1000
            header.info.loopCount = contents.plays ?? 0
            for seconds in contents.delays { header.addFrame(seconds: seconds, limits) }
        }
        if let profile = contents.profile { header.setProfile(at: profile, reader, limits) }
        header.exif = contents.exif
        header.xmp = contents.xmp
        header.applyExif(reader, orientation: true)
        return header
    }

    private static func take(
        _ reader: ByteReader, type: FourCC, payload: Range<Int>, contents: inout Contents
    ) throws(ImageError) {
        let at = payload.lowerBound
        switch type {
        case "VP8X":
            contents.hasAlpha = try reader.u8(at: at) & 0x10 != 0
            contents.canvas = PixelSize(
                width: try reader.u24LittleEndian(at: at + 4) + 1, height: try reader.u24LittleEndian(at: at + 7) + 1)
        case "VP8 ", "VP8L": try takeBitstream(reader, type: type, at: at, contents: &contents)
        case "ANIM": contents.plays = try reader.u16(at: at + 4, bigEndian: false)
        case "ANMF":
            let seconds = Double(try reader.u24LittleEndian(at: at + 12)) / 1000
            contents.milliseconds += FrameTiming.seconds(seconds) * 1000
            contents.delays.append(seconds)
            contents.frames += 1
            if contents.model == nil, let inner = try? reader.fourCC(at: at + 16) {
                contents.model = inner == "VP8L" ? .rgb : .yCbCr
            }
        case "ICCP": if payload.upperBound <= reader.count { contents.profile = payload }
        case "XMP ": if payload.upperBound <= reader.count { contents.xmp = payload }
        case "EXIF":
            guard payload.upperBound <= reader.count else { break }
            // Some writers leave the prefix of JPEG's APP1 in.
            let skip = payload.count > 6 && reader.matches("Exif\0\0", at: at) ? 6 : 0
            contents.exif = Range(from: at &+ skip, to: payload.upperBound)
        default: break
        }
    }

    private static func takeBitstream(
        _ reader: ByteReader, type: FourCC, at: Int, contents: inout Contents
    ) throws(ImageError) {
        guard contents.bitstream == nil else { return }
        if type == "VP8L" {
            guard try reader.u8(at: at) == 0x2F else { throw reader.corrupt("no VP8L signature") }
            let bits = try reader.u32(at: at + 1, bigEndian: false)
            contents.bitstream = PixelSize(width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1)
            contents.model = .rgb
            if contents.canvas == nil { contents.hasAlpha = bits >> 28 & 1 != 0 }
        } else {
            guard try reader.u8(at: at) & 1 == 0, try reader.u8(at: at + 3) == 0x9D,
                try reader.u16(at: at + 4) == 0x012A
            else { throw reader.corrupt("no VP8 key frame") }
            contents.bitstream = PixelSize(
                width: try reader.u16(at: at + 6, bigEndian: false) & 0x3FFF,
                height: try reader.u16(at: at + 8, bigEndian: false) & 0x3FFF)
            contents.model = .yCbCr
        }
    }
}
