/// Recognizes ICC profiles, and reads their names.
///
/// Source: ICC.1:2022 §7.2 (header), §7.3 (tag table), §10.15 (multiLocalizedUnicode); ICC.1:2001-04 §6.5.17 (desc).
package enum ICCDescription {
    /// Whether `profile` has the signature of an ICC profile and is as long as it says.
    package static func isProfile(_ profile: [UInt8]) -> Bool {
        let bytes = BigEndianBytes(profile)
        guard let size = bytes.u32(0), bytes.u32(36) == 0x6163_7370 else { return false }
        return size >= 132 && size <= profile.count
    }

    /// The text of the `desc` tag, English or the first language there is; nil when it has none.
    package static func name(of profile: [UInt8]) -> String? {
        let bytes = BigEndianBytes(profile)
        guard let tags = bytes.u32(128) else { return nil }
        for i in 0..<min(tags, 100) {
            let entry = 132 + 12 * i
            guard let signature = bytes.u32(entry), let offset = bytes.u32(entry + 4) else { return nil }
            if signature == 0x6465_7363 { return text(bytes, at: offset) }
        }
        return nil
    }

    private static func text(_ bytes: BigEndianBytes, at offset: Int) -> String? {
        switch bytes.u32(offset) {
        case 0x6465_7363:  // desc: ASCII with its length
            guard let length = bytes.u32(offset + 8), let slice = bytes.slice(offset + 12, min(length, 256)) else {
                return nil
            }
            return tidy(String(decoding: slice.prefix { $0 != 0 }, as: UTF8.self))
        case 0x6D6C_7563:  // mluc: UTF-16 records by language
            guard let records = bytes.u32(offset + 8) else { return nil }
            var chosen: Int?
            for i in 0..<min(records, 64) {
                let record = offset + 16 + 12 * i
                guard let language = bytes.u16(record) else { break }
                if chosen == nil || language == 0x656E { chosen = record }
                if language == 0x656E { break }
            }
            guard let chosen, let length = bytes.u32(chosen + 4), let start = bytes.u32(chosen + 8),
                let slice = bytes.slice(offset + start, min(length, 512) & ~1)
            else { return nil }
            let units = stride(from: slice.startIndex, to: slice.endIndex, by: 2).map { at -> UInt16 in
                UInt16(slice[at]) << 8 | UInt16(slice[at + 1])
            }
            return tidy(String(decoding: units.prefix { $0 != 0 }, as: UTF16.self))
        default: return nil
        }
    }

    private static func tidy(_ text: String) -> String? {
        let characters = text.drop { $0.isWhitespace }
        var end = characters.endIndex
        while end > characters.startIndex, characters[characters.index(before: end)].isWhitespace {
            end = characters.index(before: end)
        }
        return end == characters.startIndex ? nil : String(characters[..<end])
    }
}

/// Numbers at offsets of an array; nil outside of it.
private struct BigEndianBytes {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    func slice(_ offset: Int, _ count: Int) -> ArraySlice<UInt8>? {
        guard offset >= 0, count >= 0, count <= bytes.count, offset <= bytes.count - count else { return nil }
        return bytes[offset..<(offset + count)]
    }

    func u16(_ offset: Int) -> Int? {
        slice(offset, 2).map { Int($0[$0.startIndex]) << 8 | Int($0[$0.startIndex + 1]) }
    }

    func u32(_ offset: Int) -> Int? { slice(offset, 4).map { $0.reduce(0) { $0 << 8 | Int($1) } } }
}
