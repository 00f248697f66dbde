import VitrineImageCore

/// Recordings and videos.
///
/// Images are read from ID3v2 (in MP3, AIFF, WAV and DSF), FLAC, Vorbis comments (in Ogg), MP4, APEv2, ASF and
/// Matroska. An image that is a web address is never followed.
package enum MediaContainers: MediaReading {
    package static func format(of reader: ByteReader) throws(ImageError) -> MediaFormat? {
        try MediaSignatures.format(of: reader)
    }

    package static func pictures(
        _ reader: ByteReader, preferring kind: RecordingCover.Kind
    ) throws(ImageError) -> [(kind: RecordingCover.Kind, picture: EmbeddedPicture)] {
        var found = CoverList()
        do throws(ImageError) {
            try search(reader, &found)
        } catch {
            if case .unreadable = error { throw error }
        }
        return found.ordered(preferring: kind).map { ($0.kind, EmbeddedPicture(content: $0.content)) }
    }

    /// Tags of one file that are read. Each can be as long as the file.
    private static let maximumTags = 8

    private static func search(_ reader: ByteReader, _ found: inout CoverList) throws(ImageError) {
        guard reader.count >= 16 else { return }
        var at = 0
        // Some files have several tags in a row.
        for _ in 0..<maximumTags where reader.matches("ID3", at: at) {
            at = try ID3Tag.read(reader, start: at, found: &found)
        }
        if reader.matches("fLaC", at: at) {
            try FLACPictures.read(reader, start: at, found: &found)
        } else if at > 0 {
            try TailTags.read(reader, &found)
        } else if reader.matches("OggS", at: 0) {
            try OggPictures.read(reader, &found)
        } else if reader.matches("ftyp", at: 4) || reader.matches("moov", at: 4) || reader.matches("mdat", at: 4) {
            try MP4Covers.read(reader, &found)
        } else if reader.matches("RIFF", at: 0), reader.matches("WAVE", at: 8) {
            try readChunks(reader, bigEndian: false, &found)
        } else if reader.matches("FORM", at: 0), reader.matches("AIF", at: 8) {
            try readChunks(reader, bigEndian: true, &found)
        } else if reader.matches("DSD ", at: 0) {
            let tag = try reader.u64(at: 20, bigEndian: false)
            if tag > 0, reader.matches("ID3", at: tag) { _ = try ID3Tag.read(reader, start: tag, found: &found) }
        } else if try reader.u32(at: 0) == 0x3026_B275 {
            try ASFPictures.read(reader, &found)
        } else if try reader.u32(at: 0) == 0x1A45_DFA3 {
            try MatroskaPictures.read(reader, &found)
        } else {
            try TailTags.read(reader, &found)
        }
    }

    /// The tag in a chunk of WAV (`id3 `) or AIFF (`ID3 `).
    private static func readChunks(
        _ reader: ByteReader, bigEndian: Bool, _ found: inout CoverList
    ) throws(ImageError) {
        var (at, tags) = (12, 0)
        for _ in 0..<4_096 where at &+ 8 <= reader.count && tags < maximumTags {
            let size = try reader.u32(at: at &+ 4, bigEndian: bigEndian)
            let name = try reader.fourCC(at: at)
            if name == "ID3 " || name == "id3 " || name == "ID32", reader.matches("ID3", at: at &+ 8) {
                _ = try ID3Tag.read(reader, start: at &+ 8, found: &found)
                tags += 1
            }
            at = at &+ 8 &+ size &+ size & 1
        }
    }
}

/// The images of a recording.
struct CoverList {
    struct Cover {
        var kind: RecordingCover.Kind
        var content: EmbeddedPicture.Content
    }

    /// Images that are kept.
    static let maximum = 64
    /// Bytes of one image, tag or packet that is put together in memory.
    static let maximumBytes = 32 << 20

    private(set) var covers: [Cover] = []

    var isFull: Bool { covers.count >= CoverList.maximum }

    mutating func add(_ kind: Int, _ content: EmbeddedPicture.Content) {
        guard !isFull else { return }
        covers.append(Cover(kind: RecordingCover.Kind(rawValue: kind) ?? .other, content: content))
    }

    /// The wanted kind first, then front, other, any, and icons last; in the order of the file for equal kinds.
    func ordered(preferring kind: RecordingCover.Kind) -> [Cover] {
        func rank(_ cover: Cover) -> Int {
            switch cover.kind {
            case kind: 0
            case .front: 1
            case .other: 2
            case .icon, .otherIcon: 4
            default: 3
            }
        }
        return covers.enumerated().sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }
            .map(\.element)
    }
}

// MARK: ID3v2

/// ID3v2.2, 2.3 and 2.4 (id3.org, informal standards).
enum ID3Tag {
    private static let maximumFrames = 4_096

    /// Reads the images of a tag.
    ///
    /// - Returns: Where the tag ends.
    static func read(_ reader: ByteReader, start: Int, found: inout CoverList) throws(ImageError) -> Int {
        let version = try reader.u8(at: start &+ 3)
        let flags = try reader.u8(at: start &+ 5)
        let size = try syncSafe(reader, start &+ 6)
        let end = start &+ 10 &+ size &+ (version == 4 && flags & 0x10 != 0 ? 10 : 0)
        let body = Range(from: start &+ 10, count: size, end: reader.count)
        guard (2...4).contains(version), body.count > 10, !(version == 2 && flags & 0x40 != 0) else {
            return max(end, start &+ 10)
        }
        var tag = Frames(reader: reader, version: version, isCopy: false, isUnsynchronised: flags & 0x80 != 0)
        if version < 4, flags & 0x80 != 0 {
            // The whole tag is written without 0xFF in front of what looks like sound.
            let bytes = synchronised(try reader.bytes(body.prefix(CoverList.maximumBytes)))
            tag.reader = ByteReader(ByteSource(bytes: bytes, name: reader.name))
            tag.isCopy = true
            try tag.read(0..<bytes.count, hasExtension: version == 3 && flags & 0x40 != 0, &found)
        } else {
            try tag.read(body, hasExtension: version >= 3 && flags & 0x40 != 0, &found)
        }
        return end
    }

    /// A number of seven bits a byte.
    static func syncSafe(_ reader: ByteReader, _ at: Int) throws(ImageError) -> Int {
        let value = try reader.u32(at: at)
        return (value & 0x7F) | (value >> 8 & 0x7F) << 7 | (value >> 16 & 0x7F) << 14 | (value >> 24 & 0x7F) << 21
    }

    /// Removes the zeros behind bytes of 0xFF (ID3v2.3.0 §5).
    static func synchronised(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var isAfterFF = false
        for byte in bytes {
            if !(isAfterFF && byte == 0) { result.append(byte) }
            isAfterFF = byte == 0xFF
        }
        return result
    }

    private struct Frames {
        var reader: ByteReader
        let version: Int
        /// Whether the reader is one of a copy, not of the file.
        var isCopy: Bool
        let isUnsynchronised: Bool

        func read(_ body: Range<Int>, hasExtension: Bool, _ found: inout CoverList) throws(ImageError) {
            var at = body.lowerBound
            if hasExtension {
                let size = version == 3 ? try reader.u32(at: at) &+ 4 : try ID3Tag.syncSafe(reader, at)
                guard size <= body.count else { return }
                at &+= size
            }
            let header = version == 2 ? 6 : 10
            for _ in 0..<ID3Tag.maximumFrames where at &+ header < body.upperBound && !found.isFull {
                guard try isName(at) else { return }
                let size = try self.size(at, body.upperBound)
                let content = Range(from: at &+ header, count: size, end: body.upperBound)
                let name = try reader.u32(at: at)
                if version == 2 ? name >> 8 == 0x50_4943 : name == 0x4150_4943 {  // PIC, APIC
                    let flags = version == 2 ? 0 : try reader.u16(at: at &+ 8)
                    try readFrame(content, flags: flags, found: &found)
                }
                at = at &+ header &+ size
            }
        }

        /// Whether capital letters and digits stand here, as names of frames do.
        private func isName(_ at: Int) throws(ImageError) -> Bool {
            for i in 0..<(version == 2 ? 3 : 4) {
                let byte = try reader.u8(at: at &+ i)
                guard (0x41...0x5A).contains(byte) || (0x30...0x39).contains(byte) else { return false }
            }
            return true
        }

        private func size(_ at: Int, _ end: Int) throws(ImageError) -> Int {
            switch version {
            case 2: return try reader.u32(at: at &+ 3) >> 8
            case 3: return try reader.u32(at: at &+ 4)
            default:
                // Some programs write plain numbers: that one counts behind which a frame follows.
                let plain = try reader.u32(at: at &+ 4)
                let safe = try ID3Tag.syncSafe(reader, at &+ 4)
                func leads(_ size: Int) -> Bool {
                    let next = at &+ 10 &+ size
                    if next == end { return true }
                    guard next < end, next &+ 4 <= reader.count else { return false }
                    return (try? reader.u32(at: next)) == 0 || (try? isName(next)) == true
                }
                return safe == plain || leads(safe) || !leads(plain) ? safe : plain
            }
        }

        private func readFrame(_ content: Range<Int>, flags: Int, found: inout CoverList) throws(ImageError) {
            var (start, isPacked, isUnsynchronised) = (content.lowerBound, false, false)
            if version == 3 {
                if flags & 0x40 != 0 { return }
                isPacked = flags & 0x80 != 0
                start &+= (isPacked ? 4 : 0) &+ (flags & 0x20 != 0 ? 1 : 0)
            } else if version == 4 {
                if flags & 0x04 != 0 { return }
                isPacked = flags & 0x08 != 0
                isUnsynchronised = flags & 0x02 != 0 || self.isUnsynchronised
                start &+= (flags & 0x40 != 0 ? 1 : 0) &+ (flags & 0x01 != 0 ? 4 : 0)
            }
            let body = Range(from: start, to: content.upperBound)
            guard !body.isEmpty else { return }
            guard isPacked || isUnsynchronised else {
                return try readPicture(reader, body: body, isCopy: isCopy, found: &found)
            }
            var bytes = try reader.bytes(body.prefix(CoverList.maximumBytes))
            if isUnsynchronised { bytes = ID3Tag.synchronised(bytes) }
            if isPacked {
                let source = ByteSource(bytes: bytes, name: reader.name)
                bytes = try InflaterRange.inflate(
                    0..<bytes.count, source, wrapper: .zlib, claimed: 64 << 10, maximum: CoverList.maximumBytes)
            }
            let copy = ByteReader(ByteSource(bytes: bytes, name: reader.name))
            try readPicture(copy, body: 0..<bytes.count, isCopy: true, found: &found)
        }

        /// Encoding, media type, kind, description, image.
        private func readPicture(
            _ reader: ByteReader, body: Range<Int>, isCopy: Bool, found: inout CoverList
        ) throws(ImageError) {
            let start = try reader.bytes(body.prefix(4_096))
            guard start.count > 8 else { return }
            let isWide = start[0] == 1 || start[0] == 2
            let type: Int
            if version == 2 {
                if start[1..<4].elementsEqual("-->".utf8) { return }
                type = 4
            } else {
                guard let end = start[1...].firstIndex(of: 0) else { return }
                if start[1..<end].elementsEqual("-->".utf8) { return }
                type = end + 1
            }
            guard type < start.count else { return }
            var at = type + 1
            while at < start.count, start[at] != 0 || isWide && (at + 1 >= start.count || start[at + 1] != 0) {
                at += isWide ? 2 : 1
            }
            at += isWide ? 2 : 1
            // Descriptions are written in other encodings than announced, too.
            if at > start.count || !ByteSource.isPlainPicture(Array(start[at...].prefix(16))) {
                let magic = (type + 1..<start.count).first { ByteSource.isPlainPicture(Array(start[$0...].prefix(16))) }
                guard let first = magic ?? (at < start.count ? at : nil) else { return }
                at = first
            }
            let range = Range(from: body.lowerBound &+ at, to: body.upperBound)
            found.add(Int(start[type]), isCopy ? .bytes(try reader.bytes(range)) : .range(range))
        }
    }
}

// MARK: FLAC and Vorbis comments

/// Metadata blocks of FLAC (RFC 9639 §8).
enum FLACPictures {
    static func read(_ reader: ByteReader, start: Int, found: inout CoverList) throws(ImageError) {
        var at = start &+ 4
        for _ in 0..<1_024 where at &+ 4 <= reader.count {
            let header = try reader.u32(at: at)
            let size = header & 0xFF_FFFF
            let type = header >> 24 & 0x7F
            // A block cannot announce more than 16 MB; the image in it can.
            if type == 6 {
                try picture(reader, body: Range(from: at &+ 4, to: reader.count), isCopy: false, found: &found)
            }
            if type == 4 {
                let comments = try reader.range(at: at &+ 4, count: min(size, reader.count &- at &- 4))
                try VorbisComments.read(try reader.bytes(comments), name: reader.name, found: &found)
            }
            at = at &+ 4 &+ size
            if header >> 31 != 0 { return }
        }
    }

    /// A picture block (RFC 9639 §8.8).
    static func picture(
        _ reader: ByteReader, body: Range<Int>, isCopy: Bool, found: inout CoverList
    ) throws(ImageError) {
        let kind = try reader.u32(at: body.lowerBound)
        let type = try reader.range(at: body.lowerBound &+ 8, count: reader.u32(at: body.lowerBound &+ 4))
        if type.count == 3, reader.matches("-->", at: type.lowerBound) { return }
        let description = try reader.range(at: type.upperBound &+ 4, count: reader.u32(at: type.upperBound))
        let length = try reader.u32(at: description.upperBound &+ 16)
        let start = description.upperBound &+ 20
        guard start < body.upperBound, length > 0 else { return }
        let range = Range(from: start, count: length, end: body.upperBound)
        found.add(kind, isCopy ? .bytes(try reader.bytes(range)) : .range(range))
    }
}

/// Vorbis comments, which hold images as base64 (xiph.org, VorbisComment).
enum VorbisComments {
    static func read(
        _ bytes: some Sequence<UInt8>, name: String, found: inout CoverList
    ) throws(ImageError) {
        let bytes = Array(bytes)
        var at = 0
        func number() -> Int? {
            guard at <= bytes.count - 4 else { return nil }
            defer { at += 4 }
            return Int(bytes[at]) | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2]) << 16 | Int(bytes[at + 3]) << 24
        }
        guard let vendor = number(), vendor <= bytes.count - at else { return }
        at += vendor
        guard let count = number() else { return }
        for _ in 0..<min(count, 65_536) where !found.isFull {
            guard let length = number(), length <= bytes.count - at else { return }
            let comment = bytes[at..<(at + length)]
            at += length
            if let text = value(comment, "METADATA_BLOCK_PICTURE=") {
                let block = Base64Text.decode(text)
                let reader = ByteReader(ByteSource(bytes: block, name: name))
                // One broken block does not hide the others.
                try? FLACPictures.picture(reader, body: 0..<block.count, isCopy: true, found: &found)
            } else if let text = value(comment, "COVERART=") {
                found.add(0, .bytes(Base64Text.decode(text)))
            }
        }
    }

    private static func value(_ comment: ArraySlice<UInt8>, _ key: StaticString) -> ArraySlice<UInt8>? {
        let length = key.utf8CodeUnitCount
        guard comment.count > length else { return nil }
        for i in 0..<length {
            let byte = comment[comment.startIndex + i]
            let upper = (0x61...0x7A).contains(byte) ? byte & 0xDF : byte
            guard upper == key.utf8Start[i] else { return nil }
        }
        return comment.dropFirst(length)
    }
}

/// The comments of Vorbis, Opus, Speex and FLAC in Ogg (RFC 3533, RFC 7845, xiph.org).
enum OggPictures {
    private static let maximumPages = 65_536

    static func read(_ reader: ByteReader, _ found: inout CoverList) throws(ImageError) {
        var at = 0
        var serial: Int?
        var skipped = 0
        var isFLAC = false
        var packets = 0
        var packet: [UInt8] = []
        for _ in 0..<maximumPages where reader.matches("OggS", at: at) {
            let segments = try reader.u8(at: at &+ 26)
            let table = try reader.bytes(reader.range(at: at &+ 27, count: segments))
            let body = at &+ 27 &+ segments
            let size = table.reduce(0) { $0 + Int($1) }
            let own = try reader.u32(at: at &+ 14)
            if serial == nil, let header = try skippedBytes(reader, body) {
                (serial, skipped, isFLAC) = (own, header, header == 4)
            }
            if serial == own {
                var start = body
                for length in table {
                    if packets > 0 {
                        guard packet.count < CoverList.maximumBytes else { return }
                        let end = min(start &+ Int(length), reader.count)
                        if start < end { packet += try reader.bytes(start..<end) }
                    }
                    start &+= Int(length)
                    guard length < 255 else { continue }
                    packets += 1
                    if packets > 1 {
                        if try !take(packet, skipped: skipped, isFLAC: isFLAC, name: reader.name, found: &found) {
                            return
                        }
                        packet = []
                    }
                    if packets > 64 { return }
                }
            }
            at = body &+ size
        }
        // A file that ends within the comments may have images before its end.
        if packets == 1 { _ = try take(packet, skipped: skipped, isFLAC: isFLAC, name: reader.name, found: &found) }
    }

    /// How many bytes stand in front of the comments of a stream that begins here; nil for streams without sound.
    private static func skippedBytes(_ reader: ByteReader, _ at: Int) throws(ImageError) -> Int? {
        if reader.matches("\u{1}vorbis", at: at) { return 7 }
        if reader.matches("OpusHead", at: at) { return 8 }
        if reader.matches("Speex   ", at: at) { return 0 }
        if reader.matches("\u{7F}FLAC", at: at) { return 4 }
        return nil
    }

    /// - Returns: Whether another packet with metadata follows.
    private static func take(
        _ packet: [UInt8], skipped: Int, isFLAC: Bool, name: String, found: inout CoverList
    ) throws(ImageError) -> Bool {
        guard isFLAC else {
            try VorbisComments.read(packet.dropFirst(skipped), name: name, found: &found)
            return false
        }
        guard packet.count > 4 else { return false }
        switch packet[0] & 0x7F {
        case 4: try VorbisComments.read(packet.dropFirst(4), name: name, found: &found)
        case 6:
            let reader = ByteReader(ByteSource(bytes: Array(packet.dropFirst(4)), name: name))
            try? FLACPictures.picture(reader, body: 0..<reader.count, isCopy: true, found: &found)
        default: break
        }
        return packet[0] & 0x80 == 0
    }
}
