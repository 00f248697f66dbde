/// An Exif block made for a test (Exif 2.32 §4.5, §4.6): little endian, with what is set.
package struct ExifSample {
    package var orientation = 1
    /// Local time such as `2024:07:19 18:30:05`; nil for none.
    package var dateTimeOriginal: String?
    /// What that time is ahead of UTC, such as `+02:00`; nil for unknown.
    package var offsetTimeOriginal: String?
    /// The bytes of a JPEG file; empty for none.
    package var preview: [UInt8] = []

    package init() {}

    package var bytes: [UInt8] {
        var first = [Entry(tag: 0x0112, value: .short(orientation))]
        var exif: [Entry] = []
        if let dateTimeOriginal { exif.append(Entry(tag: 0x9003, value: .text(dateTimeOriginal))) }
        if let offsetTimeOriginal { exif.append(Entry(tag: 0x9011, value: .text(offsetTimeOriginal))) }
        // The header, and the first directory with its pointer to the next.
        var end = 8 + 2 + 12 * (exif.isEmpty ? 1 : 2) + 4
        var behind: [UInt8] = []
        if !exif.isEmpty {
            first.append(Entry(tag: 0x8769, value: .long(end)))
            behind += Self.directory(exif, at: end, next: 0)
            end += behind.count
        }
        if !preview.isEmpty {
            let start = end + 2 + 3 * 12 + 4
            behind += Self.directory(
                [
                    Entry(tag: 0x0103, value: .short(6)), Entry(tag: 0x0201, value: .long(start)),
                    Entry(tag: 0x0202, value: .long(preview.count)),
                ], at: end, next: 0)
        }
        let header = Array("II*\0".utf8) + Self.u32(8)
        return header + Self.directory(first, at: 8, next: preview.isEmpty ? 0 : end) + behind + preview
    }

    private struct Entry {
        enum Value {
            case short(Int), long(Int), text(String)
        }
        var tag: Int
        var value: Value
    }

    private static func directory(_ entries: [Entry], at offset: Int, next: Int) -> [UInt8] {
        var bytes = u16(entries.count)
        var behind: [UInt8] = []
        let end = offset + 2 + 12 * entries.count + 4
        for entry in entries {
            bytes += u16(entry.tag)
            switch entry.value {
            case .short(let value): bytes += u16(3) + u32(1) + u32(value)
            case .long(let value): bytes += u16(4) + u32(1) + u32(value)
            case .text(let text):
                let text = Array(text.utf8) + [0]
                bytes += u16(2) + u32(text.count)
                if text.count > 4 {
                    bytes += u32(end + behind.count)
                    behind += text
                } else {
                    bytes += text + [UInt8](repeating: 0, count: 4 - text.count)
                }
            }
        }
        return bytes + u32(next) + behind
    }

    private static func u16(_ value: Int) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8 & 0xFF)] }
    private static func u32(_ value: Int) -> [UInt8] { u16(value & 0xFFFF) + u16(value >> 16 & 0xFFFF) }
}
