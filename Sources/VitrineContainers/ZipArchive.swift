import VitrineImageCore

/// The directory of a ZIP archive (APPNOTE.TXT 6.3.10), read without extracting anything.
///
/// Names are compared, never used as paths. Sizes in the archive are claims: an entry is inflated up to a limit, and
/// every byte of it is counted. Not supported: archives in several parts, encrypted entries, and methods other than
/// stored and deflate.
package struct ZipArchive: Sendable {
    /// One entry of the central directory.
    package struct Entry: Sendable {
        /// Where the name stands in the central directory.
        package let name: Range<Int>
        /// Bytes in the archive, as the directory says.
        package let compressedSize: Int
        /// Bytes of the content, as the directory says.
        package let size: Int
        let flags: Int
        let method: Int
        let header: Int
        /// The Unix mode in the upper half.
        let attributes: Int

        /// Whether the content is encrypted in any way.
        package var isEncrypted: Bool { flags & 0x41 != 0 }
        /// Whether a Unix system stored a link, device or pipe in place of content.
        package var isSpecial: Bool {
            let type = attributes >> 16 & 0xF000
            return type != 0 && type != 0x8000 && type != 0x4000
        }
        /// Whether it is a directory by its attributes.
        package var isDirectory: Bool { attributes >> 16 & 0xF000 == 0x4000 || attributes & 0x10 != 0 && size == 0 }
    }

    /// Entries that are looked at.
    package static let maximumEntries = 65_535
    /// Bytes of the central directory that are read.
    static let maximumDirectory = 16 << 20
    /// Bytes that an entry with a document can inflate to.
    package static let maximumDocument = 4 << 20

    /// The central directory.
    package let directory: [UInt8]
    /// Bytes in front of the archive, as in a self-extracting one.
    private let prefix: Int

    /// Reads the central directory.
    ///
    /// - Returns: nil for bytes that are no archive.
    /// - Throws: ``ImageError/corrupt(input:reason:)`` for a directory outside of the file and for one in parts;
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for one above 16 MB.
    package init?(_ reader: ByteReader) throws(ImageError) {
        guard let end = try ZipArchive.end(reader) else { return nil }
        var count = try reader.u16(at: end &+ 10, bigEndian: false)
        var size = try reader.u32(at: end &+ 12, bigEndian: false)
        var start = try reader.u32(at: end &+ 16, bigEndian: false)
        var behind = end
        // ZIP64: a locator in front of the record, which names a record of 64-bit numbers.
        if count == 0xFFFF || size == 0xFFFF_FFFF || start == 0xFFFF_FFFF, end >= 20,
            reader.matches("PK\u{6}\u{7}", at: end &- 20)
        {
            let record = try reader.u64(at: end &- 12, bigEndian: false)
            if record < end, reader.matches("PK\u{6}\u{6}", at: record) {
                count = try reader.u64(at: record &+ 32, bigEndian: false)
                size = try reader.u64(at: record &+ 40, bigEndian: false)
                start = try reader.u64(at: record &+ 48, bigEndian: false)
                behind = record
            }
        }
        guard count > 0 else {
            directory = []
            prefix = 0
            return
        }
        guard size <= behind else { throw reader.corrupt("the central directory lies outside of the file") }
        // Bytes in front of the archive move everything.
        var moved = 0
        if start > reader.count || !reader.matches("PK\u{1}\u{2}", at: start) {
            guard reader.matches("PK\u{1}\u{2}", at: behind &- size) else {
                throw reader.corrupt("the central directory lies outside of the file")
            }
            moved = behind &- size &- start
            start = behind &- size
        }
        guard size <= ZipArchive.maximumDirectory else {
            throw .limitExceeded(
                input: reader.name, limit: .documentBytes, actual: size, allowed: ZipArchive.maximumDirectory)
        }
        directory = try reader.bytes(reader.range(at: start, count: min(size, reader.count &- start)))
        prefix = moved
    }

    /// Where the end-of-central-directory record stands, in the last 64 KiB.
    private static func end(_ reader: ByteReader) throws(ImageError) -> Int? {
        let record = 22
        guard reader.count >= record else { return nil }
        if reader.matches("PK\u{5}\u{6}", at: reader.count &- record) { return reader.count &- record }
        let length = min(reader.count, 0xFFFF + record)
        let first = reader.count &- length
        let tail = try reader.bytes(first..<reader.count)
        var at = length - record
        while at >= 0 {
            if tail[at] == 0x50, tail[at + 1] == 0x4B, tail[at + 2] == 5, tail[at + 3] == 6 {
                let comment = Int(tail[at + 20]) | Int(tail[at + 21]) << 8
                if at + record + comment <= length { return first + at }
            }
            at -= 1
        }
        return nil
    }

    // MARK: Entries

    /// Calls `body` with every entry, in the order of the directory, until it returns false. Stops at damage.
    package func forEach(_ body: (Entry) throws(ImageError) -> Bool) throws(ImageError) {
        var at = 0
        var count = 0
        while at &+ 46 <= directory.count, count < ZipArchive.maximumEntries {
            guard word(at) == 0x4B50, word(at &+ 2) == 0x0201 else { return }
            let nameLength = word(at &+ 28)
            let extraLength = word(at &+ 30)
            let next = at &+ 46 &+ nameLength &+ extraLength &+ word(at &+ 32)
            guard next <= directory.count else { return }
            var (compressed, size, header) = (long(at &+ 20), long(at &+ 24), long(at &+ 42))
            if compressed == 0xFFFF_FFFF || size == 0xFFFF_FFFF || header == 0xFFFF_FFFF {
                wide(at &+ 46 &+ nameLength, length: extraLength, size: &size, compressed: &compressed, header: &header)
            }
            let entry = Entry(
                name: Range(from: at &+ 46, to: at &+ 46 &+ nameLength), compressedSize: compressed, size: size,
                flags: word(at &+ 8), method: word(at &+ 10), header: header, attributes: long(at &+ 38))
            if try !body(entry) { return }
            at = next
            count &+= 1
        }
    }

    /// Takes numbers of 64 bits from the extra field 1, which has those that did not fit, in this order.
    private func wide(_ start: Int, length: Int, size: inout Int, compressed: inout Int, header: inout Int) {
        var at = start
        while at &+ 4 <= start &+ length {
            let count = word(at &+ 2)
            guard at &+ 4 &+ count <= start &+ length else { return }
            if word(at) == 1 {
                var field = at &+ 4
                func take(_ number: inout Int) {
                    guard number == 0xFFFF_FFFF, field &+ 8 <= at &+ 4 &+ count else { return }
                    let high = long(field &+ 4)
                    number = high > 0x7FFF_FFFF ? .max : high << 32 | long(field)
                    field &+= 8
                }
                take(&size)
                take(&compressed)
                take(&header)
                return
            }
            at &+= 4 &+ count
        }
    }

    /// The entry with a name, or one that differs in the case of ASCII letters only; nil if there is none. The last one
    /// wins, as for programs that extract archives.
    package func entry(named name: some StringProtocol) throws(ImageError) -> Entry? {
        let wanted = Array(name.utf8)
        var found: Entry?
        var alike: Entry?
        try forEach { (entry) throws(ImageError) in
            guard entry.name.count == wanted.count else { return true }
            if directory[entry.name].elementsEqual(wanted) {
                found = entry
            } else if zip(directory[entry.name], wanted).allSatisfy({ ArchivePath.lower($0) == ArchivePath.lower($1) }) {
                alike = entry
            }
            return true
        }
        return found ?? alike
    }

    private func word(_ at: Int) -> Int { Int(directory[at]) | Int(directory[at &+ 1]) << 8 }
    private func long(_ at: Int) -> Int { word(at) | word(at &+ 2) << 16 }

    // MARK: Content

    /// How the content of an entry can be read.
    package enum Storage: Sendable {
        /// The bytes of the file.
        case stored(Range<Int>)
        /// Raw deflate in bytes of the file.
        case deflated(Range<Int>)
    }

    /// Where the content of an entry stands.
    ///
    /// - Throws: ``ImageError/unsupported(input:reason:)`` for an encrypted entry, a link, and a method other than
    ///   stored and deflate; ``ImageError/corrupt(input:reason:)`` and ``ImageError/truncated(input:)``.
    package func storage(of entry: Entry, _ reader: ByteReader) throws(ImageError) -> Storage {
        if entry.isEncrypted { throw .unsupported(input: reader.name, reason: "its content is encrypted") }
        if entry.isSpecial { throw .unsupported(input: reader.name, reason: "its entry is a link, not a file") }
        let (header, overflow) = entry.header.addingReportingOverflow(prefix)
        guard !overflow, reader.matches("PK\u{3}\u{4}", at: header) else {
            throw reader.corrupt("an entry lies outside of the archive")
        }
        let names = try reader.u16(at: header &+ 26, bigEndian: false)
        let start = try header &+ 30 &+ names &+ reader.u16(at: header &+ 28, bigEndian: false)
        let range = try reader.range(at: start, count: entry.compressedSize)
        switch entry.method {
        case 0: return .stored(range)
        case 8: return .deflated(range)
        default:
            throw .unsupported(input: reader.name, reason: "compression method \(entry.method) of ZIP is not read")
        }
    }

    /// The whole content of an entry.
    ///
    /// - Parameter maximum: Bytes that it can have.
    /// - Throws: As ``storage(of:_:)``; ``ImageError/limitExceeded(input:limit:actual:allowed:)`` as soon as more bytes
    ///   than `maximum`, or than 200 times the stored ones, have come out.
    package func bytes(of entry: Entry, _ reader: ByteReader, maximum: Int) throws(ImageError) -> [UInt8] {
        switch try storage(of: entry, reader) {
        case .stored(let range):
            guard range.count <= maximum else {
                throw .limitExceeded(
                    input: reader.name, limit: .documentBytes, actual: range.count, allowed: maximum)
            }
            return try reader.bytes(range)
        case .deflated(let range):
            return try InflaterRange.inflate(range, reader.source, wrapper: .raw, claimed: entry.size, maximum: maximum)
        }
    }

    /// The first bytes of an entry, at most `count`; fewer where the content ends or is damaged.
    package func prefix(of entry: Entry, _ reader: ByteReader, count: Int) throws(ImageError) -> [UInt8] {
        switch try storage(of: entry, reader) {
        case .stored(let range):
            return try reader.bytes(range.prefix(count))
        case .deflated(let range):
            var inflater = Inflater(
                InflaterRange(reader.source, range), wrapper: .raw, chunk: min(max(count, 64), 64 << 10),
                inputCapacity: 4 << 10)
            var result: [UInt8] = []
            while result.count < count, let piece = try? inflater.next(), !piece.isEmpty {
                result.append(contentsOf: piece.prefix(count - result.count))
            }
            return result
        }
    }
}
