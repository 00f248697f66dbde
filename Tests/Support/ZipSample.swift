/// A ZIP archive made in memory, right or wrong as a test needs it.
package struct ZipSample: Sendable {
    /// One entry, with what its headers say of it.
    package struct Entry: Sendable {
        package var name: String
        /// The bytes of the archive.
        package var content: [UInt8]
        package var method = 0
        package var flags = 0
        /// The claimed size; nil for that of the content.
        package var size: Int?
        package var unixMode = 0o100644

        package init(_ name: String, _ content: [UInt8]) {
            self.name = name
            self.content = content
        }

        package init(_ name: String, text: String) {
            self.init(name, Array(text.utf8))
        }
    }

    package var entries: [Entry]
    package var comment = ""
    /// Bytes in front of the archive.
    package var prefix: [UInt8] = []
    /// Whether counts and offsets stand in a ZIP64 record.
    package var isZip64 = false

    package init(_ entries: [Entry]) {
        self.entries = entries
    }

    package var bytes: [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        var file = prefix
        var directory: [UInt8] = []
        for entry in entries {
            let offset = file.count - prefix.count
            let name = Array(entry.name.utf8)
            let size = entry.size ?? entry.content.count
            let common =
                number(entry.flags, 2) + number(entry.method, 2) + number(0, 8) + number(entry.content.count, 4)
                + number(size, 4) + number(name.count, 2)
            file += Array("PK\u{3}\u{4}".utf8) + number(20, 2) + common + number(0, 2) + name + entry.content
            directory += Array("PK\u{1}\u{2}".utf8) + number(0x0314, 2) + number(20, 2) + common + number(0, 8)
            directory += number(entry.unixMode << 16, 4) + number(offset, 4) + name
        }
        let start = file.count - prefix.count
        file += directory
        if isZip64 {
            let record = file.count
            file += Array("PK\u{6}\u{6}".utf8) + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8)
            file += number(entries.count, 8) + number(entries.count, 8) + number(directory.count, 8) + number(start, 8)
            file += Array("PK\u{6}\u{7}".utf8) + number(0, 4) + number(record, 8) + number(1, 4)
        }
        let count = isZip64 ? 0xFFFF : entries.count
        file += Array("PK\u{5}\u{6}".utf8) + number(0, 4) + number(count, 2) + number(count, 2)
        file += number(directory.count, 4) + number(isZip64 ? 0xFFFF_FFFF : start, 4)
        return file + number(comment.utf8.count, 2) + Array(comment.utf8)
    }
}
