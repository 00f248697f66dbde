import VitrineCore
import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
        if let header = try? ImageHeader(reader, .standard) {
            kind = .photo
            pixelSize = header.info.size
            captureDate = header.exif.flatMap { Self.date(reader, $0, timeZone) }
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

    private static func date(_ reader: ByteReader, _ range: Range<Int>, _ timeZone: TimeZone) -> Date? {
        // A block holds a small picture as well, rarely above 64 KiB; the date stands before it.
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
