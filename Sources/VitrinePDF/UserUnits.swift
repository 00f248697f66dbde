import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The user units of a document's pages (ISO 32000-1, table 30), which poppler does not tell: how many points one unit
/// of a page's size is.
///
/// It finds objects by their marks instead of through the table of objects, so that damaged files have the same answer.
/// Where it does not find its way, as in encrypted documents, the unit is a point. The work is linear in the bytes, and
/// in those of inflated object streams, which are bounded.
struct UserUnits {
    /// Bytes that object streams may inflate to, in all: 64 MB.
    private static let maximumInflatedBytes = 64 << 20
    /// Objects, and nodes of the tree of pages, that are looked at.
    private static let maximumObjects = 1 << 20
    /// The largest unit that is believed: that of Acrobat's largest page (PDF 1.6 implementation limits).
    private static let largestUnit = 75_000.0

    /// For the pages in their order, as far as they were found.
    private let units: [Double]

    /// Reads a document. Does nothing more than to look for the word where no page has a unit.
    init(_ document: UnsafeRawBufferPointer) {
        guard let bytes = PDFBytes(document), bytes.contains("/UserUnit") || bytes.contains("/ObjStm") else {
            units = []
            return
        }
        let objects = Objects(bytes)
        guard objects.mentionsUnits else {
            units = []
            return
        }
        units = objects.units()
    }

    /// The unit of page `number`, from 1, in points.
    subscript(number: Int) -> Double { units.indices.contains(number - 1) ? units[number - 1] : 1 }

    /// The objects of a document by their numbers.
    private struct Objects {
        /// The last definition of each number counts: files are changed by appending to them.
        private var bodies: [Int: PDFDictionary] = [:]
        private var root: Int?
        private(set) var mentionsUnits = false

        init(_ bytes: PDFBytes) {
            var budget = maximumInflatedBytes
            var at = 0
            var count = 0
            while let mark = bytes.find("obj", from: at), count < maximumObjects {
                at = mark + 3
                guard let number = bytes.objectNumber(before: mark) else { continue }
                count += 1
                guard let body = PDFDictionary(bytes, at: at) else { continue }
                bodies[number] = body
                if let root = body.reference("Root") { self.root = root }
                if body.name("Type") == "ObjStm" { addStream(body, &budget) }
            }
            mentionsUnits = mentionsUnits || bytes.contains("/UserUnit")
            at = 0
            while let mark = bytes.find("trailer", from: at) {
                at = mark + 7
                if let root = PDFDictionary(bytes, at: at)?.reference("Root") { self.root = root }
            }
        }

        /// Adds the objects in a stream of them (ISO 32000-1, 7.5.7).
        private mutating func addStream(_ stream: PDFDictionary, _ budget: inout Int) {
            guard stream.name("Filter") == "FlateDecode", let first = stream.integer("First"),
                let count = stream.integer("N"), count <= maximumObjects, budget > 0,
                let data = stream.streamBytes()
            else { return }
            let source = ByteSource(bytes: data, name: "stream")
            guard
                let inflated = try? InflaterRange.inflate(
                    0..<data.count, source, wrapper: .zlib, claimed: 0, maximum: budget), first <= inflated.count
            else { return }
            budget -= inflated.count
            guard let bytes = PDFBytes(inflated) else { return }
            mentionsUnits = mentionsUnits || bytes.contains("/UserUnit")
            let numbers = bytes.integers(0..<first, count: 2 * count)
            for pair in stride(from: 0, to: numbers.count - 1, by: 2) {
                let (start, overflow) = first.addingReportingOverflow(numbers[pair + 1])
                guard !overflow, start < inflated.count, let body = PDFDictionary(bytes, at: start) else { continue }
                bodies[numbers[pair]] = body
            }
        }

        /// The units of the pages, from the first leaf of the tree of pages to the last.
        func units() -> [Double] {
            guard let tree = root.flatMap({ bodies[$0] })?.reference("Pages") else { return [] }
            var units: [Double] = []
            var open = [tree]
            var seen: Set<Int> = []
            while let number = open.popLast(), seen.count < maximumObjects {
                guard seen.insert(number).inserted, let node = bodies[number] else { continue }
                if let kids = node.references("Kids") {
                    open += kids.reversed()
                } else {
                    let unit = node.number("UserUnit") ?? 1
                    units.append(unit > 0 && unit <= largestUnit ? unit : 1)
                }
            }
            return units
        }
    }
}

/// Bytes of a document, or of an object stream, that are kept as long as they are used.
private final class PDFBytes {
    let bytes: UnsafeRawBufferPointer
    private let isOwned: Bool
    /// Bytes that dictionaries and streams were looked for in, which hostile files let begin without an end.
    private(set) var work = 0

    /// Bytes that stay where they are; nil for none.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return nil }
        self.bytes = bytes
        isOwned = false
    }

    /// A copy of bytes; nil for none.
    init?(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return nil }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        copy.copyBytes(from: bytes)
        self.bytes = UnsafeRawBufferPointer(copy)
        isOwned = true
    }

    deinit { if isOwned { bytes.deallocate() } }

    var count: Int { bytes.count }

    /// Whether no more may be read: each byte has been looked at many times.
    var isExhausted: Bool { work > 8 * count + (1 << 20) }

    func add(work bytes: Int) { work += bytes }

    func contains(_ word: StaticString) -> Bool { find(word, from: 0) != nil }

    /// Where a word stands next.
    func find(_ word: StaticString, from start: Int) -> Int? {
        let length = word.utf8CodeUnitCount
        guard let base = bytes.baseAddress else { return nil }
        var at = start
        while at <= count - length, let found = memchr(base + at, Int32(word.utf8Start[0]), count - length - at + 1) {
            let place = UnsafeRawPointer(found) - base
            if memcmp(base + place, word.utf8Start, length) == 0 { return place }
            at = place + 1
        }
        return nil
    }

    func isSpace(_ at: Int) -> Bool {
        switch bytes[at] {
        case 0, 9, 10, 12, 13, 32: true
        default: false
        }
    }

    func isDigit(_ at: Int) -> Bool { (48...57).contains(bytes[at]) }

    /// Whether a byte ends a name or a number.
    func isDelimiter(_ at: Int) -> Bool {
        switch bytes[at] {
        // ( ) < > [ ] { } / %
        case 40, 41, 60, 62, 91, 93, 123, 125, 47, 37: true
        default: isSpace(at)
        }
    }

    /// The number of the object whose mark `obj` stands at `mark`: two numbers and spaces stand before it.
    func objectNumber(before mark: Int) -> Int? {
        var at = mark
        func skip(_ isSkipped: (Int) -> Bool) -> Range<Int> {
            let end = at
            while at > 0, end - at < 20, isSkipped(at - 1) { at -= 1 }
            return at..<end
        }
        guard !skip(isSpace).isEmpty, !skip(isDigit).isEmpty, !skip(isSpace).isEmpty else { return nil }
        let digits = skip(isDigit)
        return Int(String(decoding: bytes[digits], as: UTF8.self))
    }

    /// The first whole numbers of a range, at most `count`.
    func integers(_ range: Range<Int>, count: Int) -> [Int] {
        var numbers: [Int] = []
        var at = range.lowerBound
        while numbers.count < count, at < range.upperBound {
            let start = at
            while at < range.upperBound, isDigit(at) { at += 1 }
            if at > start {
                guard let number = Int(String(decoding: bytes[start..<at], as: UTF8.self)) else { return numbers }
                numbers.append(number)
            } else {
                at += 1
            }
        }
        return numbers
    }
}

/// The entries of one dictionary, as they are written.
private struct PDFDictionary {
    /// Entries of a dictionary that are kept.
    private static let maximumEntries = 256

    private let source: PDFBytes
    private var entries: [String: Range<Int>] = [:]
    /// Behind its last bracket.
    private let end: Int

    /// Reads the dictionary that begins at `start`, behind spaces; nil if there is none.
    init?(_ source: PDFBytes, at start: Int) {
        guard !source.isExhausted else { return nil }
        self.source = source
        var at = start
        defer { source.add(work: at - start) }
        let bytes = source.bytes
        func skipSpaces() { while at < bytes.count, source.isSpace(at) { at += 1 } }
        func begins(_ a: UInt8, _ b: UInt8) -> Bool { at + 1 < bytes.count && bytes[at] == a && bytes[at + 1] == b }
        let (open, close, slash) = (UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "/"))
        skipSpaces()
        guard begins(open, open) else { return nil }
        at += 2
        while true {
            skipSpaces()
            guard at < bytes.count, bytes[at] == slash, entries.count < Self.maximumEntries else { break }
            let key = Self.name(source, &at)
            skipSpaces()
            let value = at
            // A value ends where the next key or the end begins. A name is one only as the first word of a value.
            if at < bytes.count, bytes[at] == slash { _ = Self.name(source, &at) }
            while at < bytes.count, bytes[at] != slash, !begins(close, close) {
                guard Self.skipWord(source, &at) else { return nil }
                skipSpaces()
            }
            entries[key] = value..<at
        }
        end = begins(close, close) ? at + 2 : at
    }

    /// Reads the name at `at`, without its slash.
    private static func name(_ source: PDFBytes, _ at: inout Int) -> String {
        let start = at + 1
        at = start
        while at < source.count, !source.isDelimiter(at) { at += 1 }
        return String(decoding: source.bytes[start..<min(at, start + 64)], as: UTF8.self)
    }

    /// Passes over a number, a keyword, a string, an array or a dictionary; false where it does not end.
    private static func skipWord(_ source: PDFBytes, _ at: inout Int) -> Bool {
        let bytes = source.bytes
        let first = bytes[at]
        let last: UInt8
        switch first {
        case UInt8(ascii: "["): last = UInt8(ascii: "]")
        case UInt8(ascii: "<"): last = UInt8(ascii: ">")
        case UInt8(ascii: "("): last = UInt8(ascii: ")")
        default:
            let start = at
            while at < bytes.count, !source.isDelimiter(at) { at += 1 }
            if at == start { at += 1 }
            return true
        }
        let isText = first == UInt8(ascii: "(")
        // Brackets of one kind are counted; strings hide them, and comments are rare enough to be ignored.
        var depth = 0
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            if byte == first {
                depth += 1
            } else if byte == last {
                depth -= 1
                if depth == 0 { return true }
            } else if isText, byte == UInt8(ascii: "\\") {
                at += 1
            } else if !isText, byte == UInt8(ascii: "(") {
                at -= 1
                guard skipWord(source, &at) else { return false }
            }
        }
        return false
    }

    private func text(_ key: String) -> String? {
        entries[key].map { String(decoding: source.bytes[$0].prefix(1 << 10), as: UTF8.self) }
    }

    /// A number; nil for a reference to one.
    func number(_ key: String) -> Double? {
        let words = text(key)?.split(whereSeparator: \.isWhitespace) ?? []
        return words.count > 2 && words[2] == "R" ? nil : words.first.flatMap { Double($0) }
    }

    func integer(_ key: String) -> Int? { number(key).flatMap { $0 >= 0 && $0 < 1e9 ? Int($0) : nil } }

    /// A name, also as the only one in an array.
    func name(_ key: String) -> String? {
        guard let text = text(key) else { return nil }
        let word = text.drop { $0 == "[" || $0.isWhitespace }
        guard word.first == "/" else { return nil }
        let name = word.dropFirst().prefix { !$0.isWhitespace && !"]/<".contains($0) }
        let rest = word.dropFirst(name.count + 1)
        return rest.contains("/") ? nil : String(name)
    }

    func reference(_ key: String) -> Int? { references(key)?.first }

    /// The numbers of the objects that a value refers to.
    func references(_ key: String) -> [Int]? {
        guard let range = entries[key] else { return nil }
        let numbers = source.integers(range, count: 2 * range.count)
        return stride(from: 0, to: numbers.count - 1, by: 2).map { numbers[$0] }
    }

    /// The bytes of the stream behind the dictionary, up to its end mark.
    func streamBytes() -> [UInt8]? {
        var start = end
        while start < source.count, source.isSpace(start) { start += 1 }
        let mark = "stream".utf8
        guard !source.isExhausted, start + mark.count <= source.count,
            source.bytes[start..<(start + mark.count)].elementsEqual(mark)
        else { return nil }
        start += mark.count
        if start < source.count, source.bytes[start] == 13 { start += 1 }
        if start < source.count, source.bytes[start] == 10 { start += 1 }
        let last = source.find("endstream", from: start)
        source.add(work: (last ?? source.count) - start)
        guard let last else { return nil }
        return Array(source.bytes[start..<last])
    }
}
