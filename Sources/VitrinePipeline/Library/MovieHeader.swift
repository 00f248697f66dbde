import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The length and date of a film, from the header of the ISO base media file format and QuickTime: some reads of a few
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
