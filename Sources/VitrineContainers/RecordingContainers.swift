import VitrineImageCore

/// The item `covr` of the metadata of MP4 (QuickTime File Format, "Metadata").
enum MP4Covers {
    static func read(_ reader: ByteReader, _ found: inout CoverList) throws(ImageError) {
        guard let movie = ISOBox.children(reader, in: 0..<reader.count)["moov"] else { return }
        let boxes = ISOBox.children(reader, in: movie.payload)
        let user = boxes["udta"].map { ISOBox.children(reader, in: $0.payload) } ?? []
        for meta in [user["meta"], boxes["meta"]].compactMap(\.self) {
            // QuickTime has no version here, ISO has.
            let isPlain = reader.matches("hdlr", at: meta.payload.lowerBound &+ 4)
            let range = isPlain ? meta.payload : meta.fullPayload ?? meta.payload
            guard let list = ISOBox.children(reader, in: range)["ilst"] else { continue }
            for item in ISOBox.children(reader, in: list.payload) where item.type == "covr" {
                for data in ISOBox.children(reader, in: item.payload) where data.type == "data" {
                    guard data.payload.count > 8 else { continue }
                    // The type is often wrong; the image says what it is. The first one is the front.
                    found.add(3, .range(Range(from: data.payload.lowerBound &+ 8, to: data.payload.upperBound)))
                }
            }
        }
    }
}

/// Tags at the end of a file: APEv2 (Hydrogenaudio, "APEv2 specification") and ID3v2.4 with a footer.
enum TailTags {
    static func read(_ reader: ByteReader, _ found: inout CoverList) throws(ImageError) {
        var end = reader.count
        if reader.matches("TAG", at: end &- 128) { end &-= 128 }
        if reader.matches("LYRICS200", at: end &- 9), end >= 15 {
            let digits = try reader.bytes(from: end &- 15, to: end &- 9)
            if let size = Int(String(decoding: digits, as: UTF8.self)), size >= 0, size <= end &- 15 {
                end &-= 15 &+ size
            }
        }
        if reader.matches("3DI", at: end &- 10), end >= 20 {
            let start = end &- 20 &- (try ID3Tag.syncSafe(reader, end &- 4))
            if reader.matches("ID3", at: start) { _ = try ID3Tag.read(reader, start: start, found: &found) }
        }
        if reader.matches("APETAGEX", at: end &- 32) { try readAPE(reader, end: end, found: &found) }
    }

    private static func readAPE(_ reader: ByteReader, end: Int, found: inout CoverList) throws(ImageError) {
        let size = try reader.u32(at: end &- 20, bigEndian: false)
        let count = try reader.u32(at: end &- 16, bigEndian: false)
        guard size >= 32, size <= end else { return }
        var at = end &- size
        for _ in 0..<min(count, 4_096) where at &+ 11 < end &- 32 {
            let length = try reader.u32(at: at, bigEndian: false)
            let start = try reader.bytes(from: at &+ 8, to: min(at &+ 8 &+ 256, end))
            guard let keyEnd = start.firstIndex(of: 0) else { return }
            let value = at &+ 9 &+ keyEnd
            guard length <= end &- value else { return }
            let key = String(decoding: start[..<keyEnd], as: UTF8.self).lowercased()
            if key.hasPrefix("cover art") {
                let name = try reader.bytes(from: value, to: value &+ min(length, 1_024))
                if let nameEnd = name.firstIndex(of: 0) {
                    let kind = key.contains("front") ? 3 : key.contains("back") ? 4 : 0
                    found.add(kind, .range(Range(from: value &+ nameEnd &+ 1, to: value &+ length)))
                }
            }
            at = value &+ length
        }
    }
}

// MARK: ASF, Matroska

/// `WM/Picture` of Windows Media (Advanced Systems Format specification, 3.11 and 4.8).
enum ASFPictures {
    private static let extensionObject: [UInt8] = [0xB5, 0x03, 0xBF, 0x5F, 0x2E, 0xA9, 0xCF, 0x11]
    private static let contentDescription: [UInt8] = [0x40, 0xA4, 0xD0, 0xD2, 0x07, 0xE3, 0xD2, 0x11]
    private static let metadataLibrary: [UInt8] = [0x94, 0x1C, 0x23, 0x44, 0x98, 0x94, 0xD1, 0x49]
    private static let name = wide("WM/Picture\0")
    private static let link = wide("-->")

    private static func wide(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        for byte in text.utf8 { result += [byte, 0] }
        return result
    }

    static func read(_ reader: ByteReader, _ found: inout CoverList) throws(ImageError) {
        let end = min(try reader.u64(at: 16, bigEndian: false), reader.count)
        try objects(reader, start: 30, end: end, isInner: false, found: &found)
    }

    private static func objects(
        _ reader: ByteReader, start: Int, end: Int, isInner: Bool, found: inout CoverList
    ) throws(ImageError) {
        var at = start
        for _ in 0..<1_024 where at &+ 24 <= end {
            let size = try reader.u64(at: at &+ 16, bigEndian: false)
            guard size >= 24, size <= end &- at else { return }
            switch try reader.bytes(from: at, to: at &+ 8) {
            case contentDescription: try description(reader, body: Range(from: at &+ 24, to: at &+ size), found: &found)
            case metadataLibrary: try library(reader, body: Range(from: at &+ 24, to: at &+ size), found: &found)
            case extensionObject where !isInner:
                try objects(reader, start: at &+ 46, end: at &+ size, isInner: true, found: &found)
            default: break
            }
            at &+= size
        }
    }

    private static func description(
        _ reader: ByteReader, body: Range<Int>, found: inout CoverList
    ) throws(ImageError) {
        var at = body.lowerBound &+ 2
        for _ in 0..<(try reader.u16(at: body.lowerBound, bigEndian: false)) where at < body.upperBound {
            let nameLength = try reader.u16(at: at, bigEndian: false)
            let value = at &+ 2 &+ nameLength &+ 4
            let length = try reader.u16(at: value &- 2, bigEndian: false)
            if try isPicture(reader, at: at &+ 2, length: nameLength) {
                try picture(reader, body: Range(from: value, count: length, end: body.upperBound), found: &found)
            }
            at = value &+ length
        }
    }

    private static func library(
        _ reader: ByteReader, body: Range<Int>, found: inout CoverList
    ) throws(ImageError) {
        var at = body.lowerBound &+ 2
        for _ in 0..<(try reader.u16(at: body.lowerBound, bigEndian: false)) where at < body.upperBound {
            let nameLength = try reader.u16(at: at &+ 4, bigEndian: false)
            let length = try reader.u32(at: at &+ 8, bigEndian: false)
            let value = at &+ 12 &+ nameLength
            if try isPicture(reader, at: at &+ 12, length: nameLength) {
                try picture(reader, body: Range(from: value, count: length, end: body.upperBound), found: &found)
            }
            at = value &+ length
        }
    }

    private static func isPicture(_ reader: ByteReader, at: Int, length: Int) throws(ImageError) -> Bool {
        guard length == name.count else { return false }
        return try reader.bytes(reader.range(at: at, count: length)) == name
    }

    /// Kind, length, media type and description in UTF-16, image.
    private static func picture(
        _ reader: ByteReader, body: Range<Int>, found: inout CoverList
    ) throws(ImageError) {
        guard body.count > 16 else { return }
        let kind = try reader.u8(at: body.lowerBound)
        let start = try reader.bytes(body.prefix(4_096))
        var at = 5
        for index in 0..<2 {
            guard at < start.count else { return }
            let first = at
            while at + 1 < start.count, start[at] != 0 || start[at + 1] != 0 { at += 2 }
            if index == 0, start.slice(Range(from: first, to: at)).elementsEqual(link) { return }
            at += 2
        }
        guard at < body.count else { return }
        let length = try reader.u32(at: body.lowerBound &+ 1, bigEndian: false)
        let first = body.lowerBound &+ at
        found.add(kind, .range(Range(from: first, count: length, end: body.upperBound)))
    }
}

/// Attached files of Matroska (RFC 9559 §5.1.6).
enum MatroskaPictures {
    private static let maximumElements = 16_384

    private struct Element {
        let id: Int
        let payload: Range<Int>
        let isUnknown: Bool

        /// The element at `at`; nil where none fits before `end`.
        init?(_ reader: ByteReader, at: Int, end: Int) throws(ImageError) {
            guard at < end, let (id, first) = try Element.number(reader, at, keepsMark: true),
                let (size, start) = try Element.number(reader, first, keepsMark: false), start <= end
            else { return nil }
            self.id = id
            isUnknown = size == -1
            guard isUnknown || size <= end &- start || id == 0x1853_8067 else { return nil }
            payload = isUnknown ? Range(from: start, to: end) : Range(from: start, count: size, end: end)
        }

        /// A number whose length the first bits tell; -1 for an unknown size.
        private static func number(
            _ reader: ByteReader, _ at: Int, keepsMark: Bool
        ) throws(ImageError) -> (Int, Int)? {
            let first = try reader.u8(at: at)
            let length = UInt8(first).leadingZeroBitCount + 1
            guard length <= (keepsMark ? 4 : 8) else { return nil }
            var value = keepsMark ? first : first & (0xFF >> length)
            var isUnknown = value == 0xFF >> length
            for i in 1..<max(length, 1) {
                let byte = try reader.u8(at: at &+ i)
                if byte != 0xFF { isUnknown = false }
                value = value << 8 | byte
            }
            return (isUnknown && !keepsMark ? -1 : value, at &+ length)
        }
    }

    static func read(_ reader: ByteReader, _ found: inout CoverList) throws(ImageError) {
        guard let head = try Element(reader, at: 0, end: reader.count),
            let segment = try Element(reader, at: head.payload.upperBound, end: reader.count), segment.id == 0x1853_8067
        else { return }
        var at = segment.payload.lowerBound
        for _ in 0..<maximumElements {
            guard let element = try Element(reader, at: at, end: segment.payload.upperBound) else { return }
            switch element.id {
            case 0x1941_A469: return try attachments(reader, list: element.payload, found: &found)
            case 0x114D_9B74:
                if let place = try place(reader, list: element.payload, base: segment.payload.lowerBound),
                    let target = try Element(reader, at: place, end: segment.payload.upperBound),
                    target.id == 0x1941_A469
                {
                    return try attachments(reader, list: target.payload, found: &found)
                }
            default: break
            }
            if element.isUnknown { return }
            at = element.payload.upperBound
        }
    }

    /// Where the attachments stand, by the list of places.
    private static func place(_ reader: ByteReader, list: Range<Int>, base: Int) throws(ImageError) -> Int? {
        var at = list.lowerBound
        for _ in 0..<64 {
            guard let seek = try Element(reader, at: at, end: list.upperBound) else { return nil }
            var (id, position): (Int?, Int?)
            var inner = seek.payload.lowerBound
            for _ in 0..<16 {
                guard let field = try Element(reader, at: inner, end: seek.payload.upperBound) else { break }
                let value = try reader.bytes(field.payload.prefix(7)).reduce(0) { $0 << 8 | Int($1) }
                if field.id == 0x53AB { id = value }
                if field.id == 0x53AC { position = value }
                inner = field.payload.upperBound
            }
            if id == 0x1941_A469, let position { return base &+ position }
            at = seek.payload.upperBound
        }
        return nil
    }

    private static func attachments(
        _ reader: ByteReader, list: Range<Int>, found: inout CoverList
    ) throws(ImageError) {
        var at = list.lowerBound
        for _ in 0..<1_024 where !found.isFull {
            guard let file = try Element(reader, at: at, end: list.upperBound) else { return }
            var (name, type) = ("", "")
            var data: Range<Int>?
            var inner = file.payload.lowerBound
            for _ in 0..<64 {
                guard let field = try Element(reader, at: inner, end: file.payload.upperBound) else { break }
                switch field.id {
                case 0x466E: name = try text(reader, field.payload)
                case 0x4660: type = try text(reader, field.payload)
                case 0x465C: data = field.payload
                default: break
                }
                inner = field.payload.upperBound
            }
            if let data, type.hasPrefix("image/") {
                // `cover` stands upright, `cover_land` lies; small ones have the same names behind `small_`.
                let kind = name.hasPrefix("cover") ? 3 : name.hasPrefix("small_cover") ? 0 : 18
                found.add(kind, .range(data))
            }
            at = file.payload.upperBound
        }
    }

    private static func text(_ reader: ByteReader, _ range: Range<Int>) throws(ImageError) -> String {
        String(decoding: try reader.bytes(range.prefix(128)).prefix { $0 != 0 }, as: UTF8.self).lowercased()
    }
}
