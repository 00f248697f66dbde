#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineImaging

/// Facts from the first KiB of a photo or video, read without decoding.
struct MediaHeader: Sendable {
    /// The kind of the content; nil for other content.
    var kind: MediaAsset.Kind?
    var captureDate: Date?
    /// Upright, of photos.
    var pixelSize: PixelSize?
    /// Seconds, of videos.
    var duration: Double?

    /// Reads the header of a file; says nothing of one that cannot be read.
    init(path: String, timeZone: TimeZone) {
        guard let source = try? ByteSource(.file(path)) else { return }
        let reader = ByteReader(source)
        if let header = try? ImageDecoder().header(of: source) {
            kind = .photo
            pixelSize = header.info.size
            captureDate = header.exif.flatMap { Self.date(reader, range: $0, timeZone: timeZone) }
            return
        }
        guard let prefix = try? source.bytes(at: 0, count: VideoSignature.length) else { return }
        if ImageFormat.detect(prefix) != nil {
            kind = .photo
        } else if VideoSignature.matches(prefix) {
            kind = .video
            let movie = MovieHeader(reader)
            duration = movie?.duration
            captureDate = movie?.created
        }
    }

    private static func date(_ reader: ByteReader, range: Range<Int>, timeZone: TimeZone) -> Date? {
        // A block holds a small image as well, rarely above 64 KiB; the date stands before it.
        let end = range.lowerBound + min(range.count, 256 << 10)
        guard let bytes = try? reader.bytes(range.lowerBound..<end) else { return nil }
        return ExifSummary(exif: bytes).captureDate?.date(in: timeZone)
    }
}

extension ExifSummary.CaptureDate {
    /// The moment, for a camera whose clock showed the time of `timeZone` unless it says otherwise.
    func date(in timeZone: TimeZone) -> Date {
        let local = CivilTime.seconds(
            year: year, month: month, day: day, hour: hour, minute: minute, second: second) + fraction
        if let offset { return Date(timeIntervalSince1970: local - Double(offset)) }
        // The offset in force at that moment follows from the moment: two steps are enough but for the hour that
        // occurs twice.
        let guess = local - Double(timeZone.secondsFromGMT(for: Date(timeIntervalSince1970: local)))
        return Date(
            timeIntervalSince1970: local - Double(timeZone.secondsFromGMT(for: Date(timeIntervalSince1970: guess))))
    }
}

/// The length and date of a video, from the header of the ISO base media file format and QuickTime: some reads of a few
/// bytes, independently of its length.
///
/// Source: ISO/IEC 14496-12 §8.2.2, Movie Header Box.
package struct MovieHeader {
    /// Seconds; nil when it does not say.
    var duration: Double?
    /// nil for a clock that was never set.
    var created: Date?

    /// nil for a file without such a header.
    package init?(_ reader: ByteReader) {
        guard let movie = ISOBox.children(reader, in: 0..<reader.count)["moov"],
            let header = ISOBox.children(reader, in: movie.payload)["mvhd"],
            let version = try? reader.u8(at: header.payload.lowerBound), let body = header.fullPayload
        else { return nil }
        let at = body.lowerBound
        let isLong = version == 1
        guard body.count >= (isLong ? 28 : 16),
            let created = isLong ? try? reader.u64(at: at) : try? reader.u32(at: at),
            let units = try? reader.u32(at: at + (isLong ? 16 : 8)),
            let length = isLong ? try? reader.u64(at: at + 20) : try? reader.u32(at: at + 12)
        else { return nil }
        // All ones say that it is not known.
        if units > 0, length > 0, length < (isLong ? Int.max : Int(UInt32.max)) {
            duration = Double(length) / Double(units)
        }
        // Seconds since 1904; what comes before 1971 are clocks that were never set.
        let since1970 = created - 2_082_844_800
        if created < 1 << 33, since1970 > 365 * 86_400 { self.created = Date(timeIntervalSince1970: Double(since1970)) }
    }
}

/// Tells videos from other files by how they begin.
package enum VideoSignature {
    /// Bytes that are enough: three packets of a transport stream.
    package static let length = 3 * 192

    /// Whether a file that begins so is a container of videos. One with sound alone can be taken for one.
    package static func matches(_ prefix: [UInt8]) -> Bool {
        func has(_ text: String, at offset: Int) -> Bool {
            prefix.count >= offset + text.utf8.count && prefix[offset...].starts(with: text.utf8)
        }
        guard prefix.count >= 12 else { return false }
        if has("ftyp", at: 4) {
            // Images and sound use the same boxes (ISO/IEC 14496-12 §4.3).
            return ImageFormat.detect(prefix) == nil && !has("M4A", at: 8) && !has("M4B", at: 8) && !has("jxl ", at: 8)
        }
        // QuickTime files of before there was `ftyp`, which begin with any box.
        if ["moov", "mdat", "wide", "pnot"].contains(where: { has($0, at: 4) }) { return true }
        if has("RIFF", at: 0) { return has("AVI ", at: 8) }
        if has("FLV\u{1}", at: 0) { return true }
        switch (prefix[0], prefix[1], prefix[2], prefix[3]) {
        case (0x1A, 0x45, 0xDF, 0xA3): return true  // Matroska and WebM (RFC 8794, EBML)
        case (0x30, 0x26, 0xB2, 0x75): return true  // ASF
        case (0, 0, 1, 0xBA), (0, 0, 1, 0xB3): return true  // MPEG program and video streams
        default: break
        }
        if has("OggS", at: 0) { return has("\u{1}video", at: 28) || prefix.dropFirst(28).starts(with: theora) }
        // A transport stream: a synchronisation byte every 188 bytes, behind 4 bytes of time in cameras' files.
        return [(0, 188), (4, 192)].contains { start, packet in
            (0..<3).allSatisfy { start + $0 * packet < prefix.count && prefix[start + $0 * packet] == 0x47 }
        }
    }

    private static let theora: [UInt8] = [0x80] + Array("theora".utf8)
}

/// Dates of the Gregorian calendar as seconds.
enum CivilTime {
    /// Seconds from 1 January 1970, 00:00, to a date and time of day of the same zone.
    static func seconds(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) -> Double {
        Double(((days(year: year, month: month, day: day) * 24 + hour) * 60 + minute) * 60 + second)
    }

    /// Days from 1 January 1970. Years begin with March, so that leap days come last.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let y = month <= 2 ? year - 1 : year
        let m = month <= 2 ? month + 9 : month - 3
        let leapDays = y / 4 - y / 100 + y / 400
        // 719,468 days lie between 1 March of the year 0 and 1 January 1970.
        return y * 365 + leapDays + (153 * m + 2) / 5 + day - 1 - 719_468
    }
}
