/// An Exif block made for a test (Exif 2.32 §4.5, §4.6): little endian, with what is set.
package struct ExifSample {
    package var orientation = 1
    /// Local time such as `2024:07:19 18:30:05`; nil for none.
    package var dateTimeOriginal: String?
    /// What that time is ahead of UTC, such as `+02:00`; nil for unknown.
    package var offsetTimeOriginal: String?
    /// The camera's maker and model; nil for none.
    package var make: String?
    package var model: String?
    package var lensModel: String?
    /// Degrees, positive to the north and to the east; nil for none.
    package var place: (latitude: Double, longitude: Double)?
    /// The bytes of a JPEG file; empty for none.
    package var preview: [UInt8] = []

    package init() {}

    package var bytes: [UInt8] {
        var first: [Entry] = []
        if let make { first.append(Entry(tag: 0x010F, value: .text(make))) }
        if let model { first.append(Entry(tag: 0x0110, value: .text(model))) }
        first.append(Entry(tag: 0x0112, value: .short(orientation)))
        var exif: [Entry] = []
        if let dateTimeOriginal { exif.append(Entry(tag: 0x9003, value: .text(dateTimeOriginal))) }
        if let offsetTimeOriginal { exif.append(Entry(tag: 0x9011, value: .text(offsetTimeOriginal))) }
        if let lensModel { exif.append(Entry(tag: 0xA434, value: .text(lensModel))) }
        // The header, and the first directory with its texts and its pointer to the next.
        let count = first.count + (exif.isEmpty ? 0 : 1) + (place == nil ? 0 : 1)
        let texts = [make, model].compactMap { $0.map { $0.utf8.count + 1 } }.filter { $0 > 4 }.reduce(0, +)
        var end = 8 + 2 + 12 * count + 4 + texts
        var behind: [UInt8] = []
        if !exif.isEmpty {
            first.append(Entry(tag: 0x8769, value: .long(end)))
            behind += Self.directory(exif, at: end, next: 0)
            end += behind.count
        }
        if let place {
            first.append(Entry(tag: 0x8825, value: .long(end)))
            let gps = [
                Entry(tag: 1, value: .text(place.latitude < 0 ? "S" : "N")),
                Entry(tag: 2, value: .degrees(abs(place.latitude))),
                Entry(tag: 3, value: .text(place.longitude < 0 ? "W" : "E")),
                Entry(tag: 4, value: .degrees(abs(place.longitude))),
            ]
            let directory = Self.directory(gps, at: end, next: 0)
            behind += directory
            end += directory.count
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
            /// Degrees, minutes and seconds.
            case degrees(Double)
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
            case .degrees(let value):
                bytes += u16(5) + u32(3) + u32(end + behind.count)
                let seconds = Int((value * 3600 * 100).rounded())
                for (number, part) in [(seconds / 360_000, 1), (seconds / 6_000 % 60, 1), (seconds % 6_000, 100)] {
                    behind += u32(number) + u32(part)
                }
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
