extension ColorProfile {
    /// The description of a profile, for example "Display P3"; nil if it has none.
    ///
    /// At most 128 characters, of the English text where there are several languages.
    /// Source: ICC.1:2022 §9.2.41, §10.15 (`mluc`); ICC.1:2001 §6.5.17 (`desc`).
    public static func name(of bytes: [UInt8]) -> String? {
        let reader = ICCReader(bytes: bytes)
        guard reader.matches("acsp", at: 36), let tag = reader.tag("desc") else { return nil }
        let text: String
        if reader.matches("desc", at: tag.lowerBound) {
            let count = min(reader.u32(tag.lowerBound + 8), tag.count - 12, 512)
            guard count > 0 else { return nil }
            let start = tag.lowerBound + 12
            text = String(decoding: bytes[start..<(start + count)].prefix { $0 != 0 }, as: UTF8.self)
        } else if reader.matches("mluc", at: tag.lowerBound), let units = localised(reader, tag) {
            text = String(decoding: units.prefix { $0 != 0 }, as: UTF16.self)
        } else {
            return nil
        }
        return text.isEmpty ? nil : String(text.prefix(128))
    }

    private static func localised(_ reader: ICCReader, _ tag: Range<Int>) -> [UInt16]? {
        let records = min(reader.u32(tag.lowerBound + 8), max(0, tag.count - 16) / 12, 256)
        guard records > 0 else { return nil }
        let all = (0..<records).map { tag.lowerBound + 16 + 12 * $0 }
        let english = Int(UInt8(ascii: "e")) << 8 | Int(UInt8(ascii: "n"))
        let record = all.first { reader.u16($0) == english } ?? all[0]
        let count = min(reader.u32(record + 4), 1_024) / 2
        let offset = reader.u32(record + 8)
        guard offset <= tag.count, count <= (tag.count - offset) / 2 else { return nil }
        return (0..<count).map { UInt16(reader.u16(tag.lowerBound + offset + 2 * $0)) }
    }
}
