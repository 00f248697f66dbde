import VitrineImageCore

/// Reads JPEG up to the first scan: frame header, Exif, ICC profile, XMP, Adobe marker, multi-image index.
///
/// Source: ITU-T T.81 annex B; JFIF 1.02; Adobe TN 5116 (APP14); ICC.1:2022 annex B.4 (APP2); CIPA DC-007 (MPF); ISO
/// 21496-1.
package enum JPEGHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        var walker = JPEGSegmentWalker(reader, 0..<reader.count)
        var frame: JPEGFrameHeader?
        var application = JPEGApplication()
        do {
            while let segment = try walker.next(), segment.marker != 0xDA {
                if JPEGFrameHeader.matches(segment.marker) {
                    if frame == nil { frame = try JPEGFrameHeader(reader, segment) }
                } else {
                    try application.take(reader, segment)
                }
            }
        } catch {
            // Damage behind the frame header is the decoder's to judge; the size is known.
            guard frame != nil else { throw error }
        }
        guard let frame else { throw reader.corrupt("a JPEG scan or end without a frame header") }
        return header(reader, frame: frame, application: application, limits: limits)
    }

    private static func header(
        _ reader: ByteReader, frame: JPEGFrameHeader, application: JPEGApplication, limits: ImageLimits
    ) -> ImageHeader {
        var header = ImageHeader(info: ImageInfo(format: .jpeg, storedSize: frame.size))
        header.info.bitDepth = frame.precision
        header.info.isProgressive = [0xC2, 0xC6, 0xCA, 0xCE].contains(frame.marker)
        header.info.colorModel = colorModel(frame, application)
        header.exif = application.exif
        header.xmp = application.xmp
        header.setProfile(application.profile.assembled(reader, limits), limits)
        header.applyExif(reader, orientation: true)
        if let index = application.multiPicture {
            header.info.embeddedPreviews += MultiPictureIndex.previews(reader, index)
        }
        return header
    }

    /// The rules of libjpeg, which every other reader follows (its jdapimin.c documents them).
    private static func colorModel(_ frame: JPEGFrameHeader, _ application: JPEGApplication) -> ImageInfo.ColorModel {
        switch frame.components.count {
        case 1: return .gray
        case 3:
            if application.isJFIF { return .yCbCr }
            if let transform = application.adobeTransform { return transform == 0 ? .rgb : .yCbCr }
            return frame.components == [0x52, 0x47, 0x42] ? .rgb : .yCbCr
        case 4: return application.adobeTransform == 2 ? .ycck : .cmyk
        default: return .other
        }
    }
}

/// The content of the application segments.
struct JPEGApplication {
    var isJFIF = false
    var adobeTransform: Int?
    var exif: Range<Int>?
    var xmp: Range<Int>?
    var multiPicture: Range<Int>?
    /// The metadata of a gain map, which this image is.
    var gainMap: Range<Int>?
    var profile = JPEGProfileSegments()

    init() {}

    /// Reads the segments of a file inside the input up to its first scan.
    init(_ reader: ByteReader, _ range: Range<Int>) throws(ImageError) {
        var walker = JPEGSegmentWalker(reader, range)
        while let segment = try walker.next(), segment.marker != 0xDA { try take(reader, segment) }
    }

    mutating func take(_ reader: ByteReader, _ segment: JPEGSegmentWalker.Segment) throws(ImageError) {
        let (at, payload) = (segment.payload.lowerBound, segment.payload)
        switch segment.marker {
        case 0xE0:
            if payload.count >= 5 && reader.matches("JFIF\0", at: at) { isJFIF = true }
        case 0xE1:
            if exif == nil && payload.count > 6 && reader.matches("Exif\0", at: at) {
                exif = Range(from: at &+ 6, to: payload.upperBound)
            } else if xmp == nil && payload.count > 29 && reader.matches("http://ns.adobe.com/xap/1.0/\0", at: at) {
                xmp = Range(from: at &+ 29, to: payload.upperBound)
            }
        case 0xE2:
            if payload.count > 14 && reader.matches("ICC_PROFILE\0", at: at) {
                profile.add(
                    number: try reader.u8(at: at + 12), of: try reader.u8(at: at + 13),
                    Range(from: at &+ 14, to: payload.upperBound))
            } else if multiPicture == nil && payload.count > 4 && reader.matches("MPF\0", at: at) {
                multiPicture = Range(from: at &+ 4, to: payload.upperBound)
            } else if gainMap == nil && payload.count > 28 && reader.matches("urn:iso:std:iso:ts:21496:-1\0", at: at) {
                gainMap = Range(from: at &+ 28, to: payload.upperBound)
            }
        case 0xEE:
            if payload.count >= 12 && reader.matches("Adobe", at: at) {
                adobeTransform = try reader.u8(at: at + 11)
            }
        default: break
        }
    }
}

/// The pieces of an ICC profile that JPEG spreads over APP2 segments (ICC.1:2022 annex B.4).
struct JPEGProfileSegments {
    private var pieces: [Int: Range<Int>] = [:]
    private var total = 0

    /// Takes piece `number`, counted from 1, of `total`. Of equal numbers the first counts.
    mutating func add(number: Int, of total: Int, _ range: Range<Int>) {
        if pieces.isEmpty { self.total = total }
        if pieces[number] == nil { pieces[number] = range }
    }

    /// The whole profile; nil when a piece is missing or it is larger than the limit.
    func assembled(_ reader: ByteReader, _ limits: ImageLimits) -> [UInt8]? {
        guard total > 0 else { return nil }
        var profile: [UInt8] = []
        for number in 1...total {
            guard let range = pieces[number], profile.count + range.count <= limits.maximumProfileBytes,
                let bytes = try? reader.bytes(range)
            else { return nil }
            profile += bytes
        }
        return profile
    }
}

/// Large previews that cameras put behind the image and list in an MPF segment.
///
/// Source: CIPA DC-007-2009 §5.2.3; offsets count from the byte-order mark of the segment. Views of a stereo pair, of a
/// panorama, and gain maps are images of their own right, not previews, and are left out.
enum MultiPictureIndex {
    /// Entries looked at; real files have 2 to 4.
    static let maximumEntries = 32

    /// The bytes of the first image, with which the file begins; nil if the index does not tell.
    static func firstSize(_ reader: ByteReader, _ index: Range<Int>) -> Int? {
        guard let structure = try? TIFFStructure(reader, index),
            let directory = try? structure.directory(at: structure.firstDirectory),
            let entries = structure.bytes(directory[0xB002]), entries.count >= 16,
            let count = try? reader.u32(at: entries.lowerBound &+ 4, bigEndian: structure.isBigEndian), count > 0
        else { return nil }
        return count
    }

    static func previews(_ reader: ByteReader, _ index: Range<Int>) -> [ImageInfo.EmbeddedPreview] {
        pictures(reader, index).compactMap { picture in
            guard picture.type == 0x01_0001 || picture.type == 0x01_0002 else { return nil }
            return JPEGPicture.preview(reader, picture.range)
        }
    }

    /// The images behind the first one, with their types.
    static func pictures(_ reader: ByteReader, _ index: Range<Int>) -> [(type: Int, range: Range<Int>)] {
        guard let structure = try? TIFFStructure(reader, index),
            let directory = try? structure.directory(at: structure.firstDirectory),
            let entries = structure.bytes(directory[0xB002])
        else { return [] }
        var pictures: [(Int, Range<Int>)] = []
        for i in 1..<max(2, min(entries.count / 16, maximumEntries)) {
            let at = entries.lowerBound &+ 16 &* i
            guard at &+ 16 <= entries.upperBound,
                let attribute = try? reader.u32(at: at, bigEndian: structure.isBigEndian),
                let count = try? reader.u32(at: at &+ 4, bigEndian: structure.isBigEndian),
                let offset = try? reader.u32(at: at &+ 8, bigEndian: structure.isBigEndian)
            else { break }
            guard let range = try? reader.range(at: index.lowerBound &+ offset, count: count) else { continue }
            pictures.append((attribute & 0xFF_FFFF, range))
        }
        return pictures
    }
}
