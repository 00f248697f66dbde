import VitrineImageCore

/// Reads the directories of TIFF and BigTIFF.
///
/// Source: TIFF 6.0 §8 (baseline fields), TIFF Technical Note 1 (SubIFDs), ICC.1:2022 annex B.2 (tag 34675),
/// XMP specification part 3 §1.1.6 (tag 700).
package enum TIFFHeaderReader: HeaderReading {
    /// Pages counted at most.
    private static let maximumPages = 65_536

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let structure = try TIFFStructure(reader, 0..<reader.count)
        let first = try structure.directory(at: structure.firstDirectory)
        guard let width = structure.integer(first[256]), let height = structure.integer(first[257]) else {
            throw reader.corrupt("a TIFF without a width and a height")
        }
        guard width > 0, height > 0 else { throw reader.corrupt("a TIFF with a side of zero pixels") }
        var header = ImageHeader(info: ImageInfo(format: .tiff, storedSize: PixelSize(width: width, height: height)))
        header.info.colorModel = colorModel(structure, first)
        header.info.bitDepth = structure.integer(first[258]) ?? 1
        header.info.hasAlpha = hasAlpha(structure, first)
        if let value = structure.integer(first[274]), let orientation = Orientation(rawValue: value) {
            header.info.orientation = orientation
        }
        if let profile = structure.bytes(first[34675]) { header.setProfile(at: profile, reader, limits) }
        header.xmp = structure.bytes(first[700])
        header.info.frameCount = pages(structure, first)
        header.info.embeddedPreviews = previews(structure, first)
        return header
    }

    private static func colorModel(
        _ structure: TIFFStructure, _ directory: TIFFStructure.Directory
    ) -> ImageInfo.ColorModel {
        switch structure.integer(directory[262]) {
        case 0, 1, 4: .gray
        case 2: .rgb
        case 3: .palette
        case 5: .cmyk
        case 6: .yCbCr
        case nil: (structure.integer(directory[277]) ?? 1) >= 3 ? .rgb : .gray
        default: .other
        }
    }

    private static func hasAlpha(_ structure: TIFFStructure, _ directory: TIFFStructure.Directory) -> Bool {
        guard let extra = directory[338] else { return false }
        return (0..<min(extra.count, 16)).contains { [1, 2].contains(structure.integer(extra, $0)) }
    }

    /// The length of the chain of directories, which may run in a circle.
    private static func pages(_ structure: TIFFStructure, _ first: TIFFStructure.Directory) -> Int {
        var seen: Set<Int> = [structure.firstDirectory]
        var next = first.next
        while next != 0, seen.count < maximumPages, seen.insert(next).inserted {
            guard let following = try? structure.nextDirectory(after: next) else {
                seen.remove(next)
                break
            }
            next = following
        }
        return seen.count
    }

    /// JPEG files in one piece below this page: thumbnails as Exif stores them, in the chain or as sub-directories.
    private static func previews(
        _ structure: TIFFStructure, _ first: TIFFStructure.Directory
    ) -> [ImageInfo.EmbeddedPreview] {
        var offsets = first.next == 0 ? [] : [first.next]
        if let field = first[330] {
            for i in 0..<min(field.count, 8) { structure.integer(field, i).map { offsets.append($0) } }
        }
        return offsets.compactMap { offset in
            guard let directory = try? structure.directory(at: offset),
                let start = structure.integer(directory[513]), let count = structure.integer(directory[514]),
                let range = try? structure.reader.range(at: start, count: count)
            else { return nil }
            return JPEGPicture.preview(structure.reader, range)
        }
    }
}
