/// The date, the camera and the orientation of a photo, and whether it holds a place, from its Exif block.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.6.5 and §4.6.6.
package struct ExifSummary: Sendable, Hashable {
    /// A date and a time of day on the camera's clock.
    package struct CaptureDate: Sendable, Hashable {
        package var year: Int
        package var month: Int
        package var day: Int
        package var hour: Int
        package var minute: Int
        package var second: Int
        /// Fraction of the second, from 0 to below 1.
        package var fraction: Double
        /// Seconds east of Greenwich; nil when the camera did not say.
        package var offset: Int?
    }

    /// The maker of the camera, as it writes itself.
    package var make: String?
    package var model: String?
    /// When the image was taken; nil when unknown or not a date.
    package var captureDate: CaptureDate?
    /// Whether it says where it was taken.
    package var hasLocation = false
    package var orientation: Orientation?

    /// Reads a block such as ``ImageMetadata/exif``. Damaged fields are nil; damage is not an error.
    package init(exif: [UInt8]) {
        guard let block = ExifBlock(bytes: exif) else { return }
        let structure = block.structure
        make = structure.text(block.primary[0x010F])
        model = structure.text(block.primary[0x0110])
        orientation = block.orientation
        if let offset = structure.integer(block.primary[0x8825]), let gps = try? structure.directory(at: offset) {
            hasLocation = gps[2] != nil && gps[4] != nil  // latitude and longitude
        }
        guard let offset = structure.integer(block.primary[0x8769]), let details = try? structure.directory(at: offset)
        else {
            return
        }
        captureDate = structure.text(details[0x9003]).flatMap {
            ExifSummary.date(
                $0, fraction: structure.text(details[0x9291]), zone: structure.text(details[0x9011]))
        }
    }

    private static func date(_ text: String, fraction: String?, zone: String?) -> CaptureDate? {
        let numbers = text.split { $0 == ":" || $0 == " " }.compactMap { Int($0) }
        guard numbers.count == 6, (1...9999).contains(numbers[0]), (1...12).contains(numbers[1]),
            (1...31).contains(numbers[2]), (0...23).contains(numbers[3]), (0...59).contains(numbers[4]),
            (0...60).contains(numbers[5])
        else { return nil }
        let digits = (fraction ?? "").prefix(9)
        let part = digits.allSatisfy { ("0"..."9").contains($0) } ? Double("0." + digits) ?? 0 : 0
        return CaptureDate(
            year: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4],
            second: numbers[5], fraction: part, offset: zone.flatMap(seconds))
    }

    /// `+02:00` as seconds.
    private static func seconds(_ zone: String) -> Int? {
        let parts = zone.dropFirst().split(separator: ":").compactMap { Int($0) }
        guard let sign = zone.first, sign == "+" || sign == "-", parts.count == 2, (0...15).contains(parts[0]),
            (0...59).contains(parts[1])
        else { return nil }
        return (parts[0] * 3600 + parts[1] * 60) * (sign == "-" ? -1 : 1)
    }
}

/// The orientation of an Exif block, and the thumbnail of its second directory.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.5.8, §4.6.4. Damaged fields are nil; damage is not an error.
package struct ExifBlock {
    package let structure: TIFFStructure
    package let primary: TIFFStructure.Directory

    /// nil when `range` holds no readable TIFF structure.
    package init?(_ reader: ByteReader, _ range: Range<Int>) {
        guard let structure = try? TIFFStructure(reader, range),
            let primary = try? structure.directory(at: structure.firstDirectory)
        else { return nil }
        self.structure = structure
        self.primary = primary
    }

    /// A block of its own; nil when it holds no readable TIFF structure.
    package init?(bytes: [UInt8]) {
        self.init(ByteReader(ByteSource(bytes: bytes, name: "Exif")), 0..<bytes.count)
    }

    /// The orientation, when it has one of its eight values.
    package var orientation: Orientation? {
        structure.integer(primary[0x0112]).flatMap(Orientation.init(rawValue:))
    }

    /// The JPEG thumbnail, when it lies inside the input and begins like a JPEG file.
    package var preview: ImageInfo.EmbeddedPreview? {
        guard primary.next != 0, let second = try? structure.directory(at: primary.next),
            let offset = structure.integer(second[0x0201]), let count = structure.integer(second[0x0202]), count > 4,
            let start = try? structure.position(offset, 0),
            let range = try? structure.reader.range(at: start, count: count)
        else { return nil }
        return JPEGPicture.preview(structure.reader, range)
    }
}

/// Changes an Exif block in place: fields are overwritten or struck out, nothing moves.
struct ExifEditor {
    private var bytes: [UInt8]
    private let block: ExifBlock

    /// nil when `exif` is no readable block.
    init?(_ exif: [UInt8]) {
        guard let block = ExifBlock(bytes: exif) else { return nil }
        bytes = exif
        self.block = block
    }

    /// See ``ImageMetadata/sanitizedForUprightPixels(removingLocation:)``.
    func sanitized(removingLocation: Bool, keepsOrientation: Bool) -> [UInt8] {
        var copy = self
        if !keepsOrientation { copy.resetOrientation() }
        copy.removeThumbnail()
        if removingLocation { copy.removeLocation() }
        return copy.bytes
    }

    private mutating func resetOrientation() {
        guard let field = block.primary[0x0112], field.type == 3, field.offset &+ 1 < bytes.count, field.offset >= 0
        else { return }
        bytes[field.offset] = block.structure.isBigEndian ? 0 : 1
        bytes[field.offset + 1] = block.structure.isBigEndian ? 1 : 0
    }

    private mutating func removeThumbnail() {
        let structure = block.structure
        guard block.primary.next != 0, let second = try? structure.directory(at: block.primary.next) else { return }
        if let offset = structure.integer(second[0x0201]), let count = structure.integer(second[0x0202]) {
            erase(offset, count)
        }
        if let strips = second[273], let sizes = second[279] {
            for i in 0..<min(strips.count, sizes.count, 1_024) {
                if let offset = structure.integer(strips, i), let count = structure.integer(sizes, i) {
                    erase(offset, count)
                }
            }
        }
        // Last the directory and the pointer to it, which stands behind the entries of the first.
        eraseDirectory(at: block.primary.next, second)
        guard let count = self.count(at: structure.firstDirectory) else { return }
        erase(structure.firstDirectory &+ 2 &+ 12 &* count, 4)
    }

    private mutating func removeLocation() {
        let structure = block.structure
        guard let field = block.primary.fields.firstIndex(where: { $0.tag == 0x8825 }),
            let offset = structure.integer(block.primary.fields[field])
        else { return }
        if let directory = try? structure.directory(at: offset) { eraseDirectory(at: offset, directory) }
        // The entry itself: those behind it move up by one, and the count says one less.
        let start = structure.firstDirectory
        guard let count = self.count(at: start), count > 0 else { return }
        let entry = start + 2 + 12 * field
        let end = start + 2 + 12 * count + 4  // with the pointer to the next directory
        guard entry >= 0, entry + 12 <= end, end <= bytes.count else { return }
        bytes.replaceSubrange(entry..<(end - 12), with: Array(bytes[(entry + 12)..<end]))
        erase(end - 12, 12)
        let (high, low) = (UInt8(truncatingIfNeeded: (count - 1) >> 8), UInt8(truncatingIfNeeded: count - 1))
        bytes[start] = structure.isBigEndian ? high : low
        bytes[start + 1] = structure.isBigEndian ? low : high
    }

    /// Zeroes a directory, and the values its fields keep elsewhere.
    private mutating func eraseDirectory(at offset: Int, _ directory: TIFFStructure.Directory) {
        for field in directory.fields {
            if let range = block.structure.bytes(field), range.count > 4 { erase(range.lowerBound, range.count) }
        }
        erase(offset, 2 &+ 12 &* directory.fields.count &+ 4)
    }

    private mutating func erase(_ offset: Int, _ count: Int) {
        // Never the header: a hostile block may point at itself.
        guard offset >= 8, count > 0, offset < bytes.count else { return }
        for i in offset..<min(bytes.count, offset + min(count, bytes.count)) { bytes[i] = 0 }
    }

    private func count(at offset: Int) -> Int? {
        try? block.structure.reader.u16(at: offset, bigEndian: block.structure.isBigEndian)
    }
}
