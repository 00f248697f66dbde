import VitrineImaging

/// The fields of an Exif block that clients ask for, and a block of the copyright alone.
///
/// Source: CIPA DC-008 (Exif 2.32), section 4.6; TIFF 6.0, section 2. Every offset is checked: blocks come from
/// strangers.
package struct ExifFields: Sendable, Hashable {
    package private(set) var make: String?
    private(set) var model: String?
    private(set) var artist: String?
    package private(set) var copyright: String?
    /// As the camera wrote it: `2026:11:23 14:05:09`.
    private(set) var dateTaken: String?
    /// In seconds.
    private(set) var exposureTime: Double?
    private(set) var aperture: Double?
    private(set) var sensitivity: Int?
    /// In millimetres.
    private(set) var focalLength: Double?
    private(set) var hasLocation = false

    /// Reads a block, from its byte-order mark on. Damaged fields are nil.
    package init(_ bytes: [UInt8]) {
        guard let file = TIFFBlock(bytes) else { return }
        let primary = file.directory(at: file.number(at: 4, width: 4) ?? 0)
        make = file.text(primary[0x010F])
        model = file.text(primary[0x0110])
        artist = file.text(primary[0x013B])
        copyright = file.text(primary[0x8298])
        dateTaken = file.text(primary[0x0132])
        if let offset = file.integer(primary[0x8825]) {
            let place = file.directory(at: offset)
            hasLocation = place[2] != nil && place[4] != nil
        }
        guard let offset = file.integer(primary[0x8769]) else { return }
        let details = file.directory(at: offset)
        dateTaken = file.text(details[0x9003]) ?? dateTaken
        exposureTime = file.fraction(details[0x829A])
        aperture = file.fraction(details[0x829D])
        sensitivity = file.integer(details[0x8827])
        focalLength = file.fraction(details[0x920A])
    }

    /// A block with the artist and the copyright only; nil if there are none.
    package var copyrightBlock: [UInt8]? {
        let texts = [(0x013B, artist), (0x8298, copyright)].compactMap { tag, text in
            text.map { (tag, Array($0.utf8.prefix(65_535)) + [0]) }
        }
        guard !texts.isEmpty else { return nil }
        var block: [UInt8] = [0x49, 0x49, 42, 0, 8, 0, 0, 0]
        func append(_ number: Int, width: Int) {
            for shift in 0..<width { block.append(UInt8(truncatingIfNeeded: number >> (8 * shift))) }
        }
        append(texts.count, width: 2)
        var place = 8 + 2 + 12 * texts.count + 4
        for (tag, text) in texts {
            append(tag, width: 2)
            append(2, width: 2)
            append(text.count, width: 4)
            if text.count <= 4 {
                block += text + [UInt8](repeating: 0, count: 4 - text.count)
            } else {
                append(place, width: 4)
                place += text.count
            }
        }
        append(0, width: 4)
        for (_, text) in texts where text.count > 4 { block += text }
        return block
    }
}

/// A TIFF structure, read field by field.
private struct TIFFBlock {
    struct Entry {
        let type: Int
        let count: Int
        /// Where the value stands, or its offset if it has more than four bytes.
        let place: Int
    }

    let bytes: [UInt8]
    let isLittleEndian: Bool

    init?(_ bytes: [UInt8]) {
        self.bytes = bytes
        if bytes.starts(with: [0x49, 0x49, 42, 0]) {
            isLittleEndian = true
        } else if bytes.starts(with: [0x4D, 0x4D, 0, 42]) {
            isLittleEndian = false
        } else {
            return nil
        }
    }

    func number(at offset: Int, width: Int) -> Int? {
        guard offset >= 0, offset <= bytes.count - width else { return nil }
        var value = 0
        for index in 0..<width {
            value = value << 8 | Int(bytes[offset + (isLittleEndian ? width - 1 - index : index)])
        }
        return value
    }

    func directory(at offset: Int) -> [Int: Entry] {
        guard offset >= 8, let count = number(at: offset, width: 2), count <= 1_000 else { return [:] }
        var entries: [Int: Entry] = [:]
        for index in 0..<count {
            let at = offset + 2 + 12 * index
            guard let tag = number(at: at, width: 2), let type = number(at: at + 2, width: 2),
                let count = number(at: at + 4, width: 4)
            else { break }
            entries[tag] = Entry(type: type, count: count, place: at + 8)
        }
        return entries
    }

    func text(_ entry: Entry?) -> String? {
        guard let entry, entry.type == 2, (1...65_535).contains(entry.count) else { return nil }
        guard let start = entry.count <= 4 ? entry.place : number(at: entry.place, width: 4),
            start <= bytes.count - entry.count
        else { return nil }
        let text = String(decoding: bytes[start..<(start + entry.count)].prefix { $0 != 0 }, as: UTF8.self)
        let spaces: Set<Character> = [" ", "\t", "\n", "\r"]
        let trimmed = text.drop { spaces.contains($0) }.reversed().drop { spaces.contains($0) }.reversed()
        return trimmed.isEmpty ? nil : String(trimmed)
    }

    func integer(_ entry: Entry?) -> Int? {
        guard let entry, entry.count >= 1 else { return nil }
        switch entry.type {
        case 3: return number(at: entry.place, width: 2)
        case 4: return number(at: entry.place, width: 4)
        default: return nil
        }
    }

    func fraction(_ entry: Entry?) -> Double? {
        guard let entry, entry.type == 5, entry.count >= 1, let at = number(at: entry.place, width: 4),
            let upper = number(at: at, width: 4), let lower = number(at: at + 4, width: 4), lower != 0
        else { return nil }
        return Double(upper) / Double(lower)
    }
}
