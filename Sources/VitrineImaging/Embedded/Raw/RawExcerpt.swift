import VitrineImageCore

/// The largest preview of a raw file that is elsewhere, found in the file's beginning.
package struct RawExcerpt: Sendable {
    /// File name extensions of raw files whose previews are found in their beginning, in lower case.
    package static let fileExtensions: Set<String> = Set(
        Codecs.standard.locators.filter { $0.isRaw && $0.tellsEarly }.flatMap { $0.formats.flatMap(\.fileExtensions) })

    /// Where the preview stands.
    package let range: Range<Int>
    private let orientation: Orientation?

    /// - Parameters:
    ///   - beginning: The first bytes; 64 KiB have the directories of most cameras.
    ///   - total: The length of the whole file.
    /// - Returns: nil if the beginning leads to no preview, or to one that is most of the file.
    package init?(beginning: [UInt8], total: Int) {
        let reader = ByteReader(ByteSource(beginning: beginning, count: total, name: "beginning"))
        guard let format = try? Codecs.standard.format(of: reader), let locator = Codecs.standard[format]?.locator,
            let found = try? locator.pictures(reader, format: format, limits: .standard)
        else { return nil }
        // Sizes stand in the previews themselves, which are not here; larger ones have more bytes.
        let ranges = found.pictures.compactMap { picture -> Range<Int>? in
            if case .range(let range) = picture.content { range } else { nil }
        }
        guard let largest = ranges.max(by: { $0.count < $1.count }), largest.count <= total / 2 else { return nil }
        range = largest
        orientation = found.orientation
    }

    /// A JPEG file with the preview and the orientation of the raw file; nil if the bytes are no preview.
    package func picture(_ bytes: [UInt8]) -> [UInt8]? {
        let reader = ByteReader(ByteSource(bytes: bytes, name: "preview"))
        guard bytes.count == range.count, JPEGPicture.size(reader, 0..<bytes.count) != nil else {
            return nil
        }
        guard let orientation else { return bytes }
        // The first Exif block of a JPEG file is the one that counts: a directory with this field alone.
        let exif: [UInt8] =
            Array("Exif\0\0MM\0*".utf8) + [0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1]
            + [0, UInt8(orientation.rawValue), 0, 0, 0, 0, 0, 0]
        return [0xFF, 0xD8, 0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif + bytes[2...]
    }
}
