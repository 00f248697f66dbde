import VitrineImageCore
import VitrineWorkers

/// Reads in this process all that is known of a file without its pixels. A worker has one, too.
package struct InputReader: FileReading {
    private let codecs: Codecs
    private let archive: ArchivedPage?

    /// - Parameters:
    ///   - codecs: Those of the files that are read.
    ///   - archive: Opens archives; nil where nothing does.
    package init(codecs: Codecs = .standard, archive: ArchivedPage? = nil) {
        (self.codecs, self.archive) = (codecs, archive)
    }

    /// Finds the format by content and reads the header.
    package func header(of source: ByteSource, limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let reader = ByteReader(source)
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        guard let format = try codecs.format(of: reader) else { throw codecs.unrecognized(reader.name) }
        return try header(of: source, format: format, picture: 0, limits: limits)
    }

    package func header(
        of source: ByteSource, format: ImageFormat, picture: Int, limits: ImageLimits
    ) throws(ImageError) -> ImageHeader {
        let (reader, codec) = (ByteReader(source), codecs[format])
        let header: ImageHeader
        if let locator = codec?.locator {
            header = try ShownPictures(
                locator, reader, format: format, limits: limits, from: picture, archive: archive
            ).header
        } else if let read = codec?.header {
            header = try read(reader, limits)
        } else {
            throw codecs.unrecognized(reader.name)
        }
        return try header.checked(reader, limits)
    }

    package func cover(of source: ByteSource, kind: Int, limits: ImageLimits) throws(ImageError) -> [UInt8] {
        guard let kind = RecordingCover.Kind(rawValue: kind) else {
            throw .invalidRequest(reason: "an unknown kind of cover")
        }
        guard let cover = try RecordingCover(in: ByteReader(source), preferring: kind, limits) else { return [] }
        return [UInt8(cover.kind.rawValue)] + cover.bytes
    }
}

extension ImageHeader {
    /// The header, unless it cannot be right.
    func checked(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        // Readers pass over damage, and so over reads that failed because the time is over.
        try reader.source.poll()
        guard !info.storedSize.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        // Formats of text can hold larger numbers than a worker may send.
        let side = info.storedSize.longestSide
        guard side <= ImageHeader.maximumNumber else {
            throw .limitExceeded(input: reader.name, limit: .side, actual: side, allowed: limits.maximumSide)
        }
        var header = self
        header.sortPreviews()
        return header
    }
}
