#if SystemCodecs
import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrineContainers

/// Pictures attached to recordings, in each container.
@Suite struct RecordingCoverTests {
    private func number(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }
    private func low(_ value: Int, _ count: Int) -> [UInt8] { number(value, count).reversed() }
    private func safe(_ value: Int) -> [UInt8] { stride(from: 21, through: 0, by: -7).map { UInt8(value >> $0 & 127) } }
    private func jpeg(_ width: Int) throws -> [UInt8] { try EmbeddedPictureTests.jpeg(width, 20) }

    private func cover(_ file: [UInt8], _ kind: RecordingCover.Kind = .front) throws -> RecordingCover? {
        try RecordingCover(of: ByteSource(bytes: file, name: "made"), preferring: kind)
    }

    private func width(_ file: [UInt8], _ kind: RecordingCover.Kind = .front) throws -> Int? {
        guard let cover = try cover(file, kind) else { return nil }
        return try ImageInfo(of: .bytes(cover.bytes)).storedSize.width
    }

    /// No truncation is more than a missing cover.
    private func truncate(_ file: [UInt8]) throws {
        for count in stride(from: 0, to: file.count, by: 11) { _ = try cover(Array(file.prefix(count))) }
    }

    // MARK: ID3

    private func apic(_ picture: [UInt8], kind: Int, type: String = "image/jpeg", encoding: UInt8 = 0) -> [UInt8] {
        let wide = encoding == 1 || encoding == 2
        let description: [UInt8] = wide ? [0xFF, 0xFE, 0x00, 0x41, 0x41, 0x00, 0, 0] : Array("a\0".utf8)
        return [encoding] + Array(type.utf8) + [0, UInt8(kind)] + description + picture
    }

    private func tag(_ version: UInt8, flags: UInt8 = 0, _ body: [UInt8]) -> [UInt8] {
        Array("ID3".utf8) + [version, 0, flags] + safe(body.count) + body
    }

    private func frame(_ version: Int, _ content: [UInt8], flags: Int = 0, plainSize: Bool = false) -> [UInt8] {
        let size = version == 4 && !plainSize ? safe(content.count) : number(content.count, 4)
        return Array("APIC".utf8) + size + number(flags, 2) + content
    }

    @Test func pictureOfEachVersionOfID3IsFound() throws {
        let picture = try jpeg(30)
        let sound = [UInt8](repeating: 0, count: 300)
        let old = [0] + Array("JPG".utf8) + [3, 0] + picture
        #expect(try width(tag(2, Array("PIC".utf8) + number(old.count, 3) + old) + sound) == 30)
        for encoding: UInt8 in 0...3 {
            let content = apic(picture, kind: 3, encoding: encoding)
            #expect(try width(tag(3, frame(3, content)) + sound) == 30)
            #expect(try width(tag(4, frame(4, content)) + sound) == 30)
        }
        let content = apic(picture, kind: 3)
        let text = Array("TIT2".utf8) + safe(2) + [0, 0, 0, 65]
        // Plain numbers in version 2.4, as iTunes wrote them.
        #expect(try width(tag(4, text + frame(4, content, plainSize: true) + text) + sound) == 30)
        // Extended headers.
        let extension3 = number(6, 4) + [UInt8](repeating: 0, count: 6)
        #expect(try width(tag(3, flags: 0x40, extension3 + frame(3, content)) + sound) == 30)
        #expect(try width(tag(4, flags: 0x40, safe(6) + [1, 0] + frame(4, content)) + sound) == 30)
        // A frame in zlib, and one with the length of its data in front.
        let packed = frame(3, number(content.count, 4) + Deflater.zlib(content), flags: 0x80)
        #expect(try width(tag(3, packed) + sound) == 30)
        #expect(try width(tag(4, frame(4, safe(content.count) + content, flags: 1)) + sound) == 30)
        #expect(try width(tag(4, frame(4, safe(content.count) + Deflater.zlib(content), flags: 9)) + sound) == 30)
        // Encrypted frames are passed over.
        #expect(try width(tag(3, frame(3, content, flags: 0x40)) + sound) == nil)
        #expect(try width(tag(4, frame(4, content, flags: 4)) + sound) == nil)
        try truncate(tag(4, text + frame(4, content)))
    }

    @Test func unsynchronisedTagsAreReadBack() throws {
        func unsynchronised(_ bytes: [UInt8]) -> [UInt8] { bytes.flatMap { $0 == 0xFF ? [0xFF, 0] : [$0] } }
        let picture = try jpeg(30)
        let content = apic(picture, kind: 3)
        #expect(try width(tag(3, flags: 0x80, unsynchronised(frame(3, content)))) == 30)
        #expect(try width(tag(4, flags: 0x80, frame(4, unsynchronised(content), flags: 2))) == 30)
        #expect(try cover(tag(3, flags: 0x80, unsynchronised(frame(3, content))))?.bytes == picture)
    }

    @Test func wantedKindOfPictureIsTaken() throws {
        let frames = try [(1, 32), (4, 40), (0, 50), (3, 60), (8, 70)].flatMap { kind, width in
            frame(3, apic(try jpeg(width), kind: kind))
        }
        let file = tag(3, frames)
        #expect(try width(file) == 60)
        #expect(try width(file, .back) == 40)
        #expect(try width(file, .artist) == 70)
        #expect(try width(file, .lead) == 60)
        #expect(try width(file, .icon) == 32)
        let rest = try [(1, 32), (4, 40), (0, 50)].flatMap { frame(3, apic(try jpeg($1), kind: $0)) }
        #expect(try width(tag(3, rest)) == 50)
        #expect(try width(tag(3, frame(3, apic(try jpeg(32), kind: 1)))) == 32)
        // What is no picture gives way to the next one.
        let broken = frame(3, apic([1, 2, 3, 4, 5], kind: 3)) + frame(3, apic(try jpeg(40), kind: 4))
        #expect(try width(tag(3, broken)) == 40)
    }

    @Test func webAddressIsNeverFollowed() throws {
        let link = Array("http://127.0.0.1/a.jpg".utf8) + (try jpeg(30))
        #expect(try cover(tag(3, frame(3, apic(link, kind: 3, type: "-->")))) == nil)
        #expect(try cover(Array("fLaC".utf8) + block(6, picture(link, type: "-->"), isLast: true)) == nil)
    }

    @Test func tagIsFoundInOtherContainersAndAtTheEnd() throws {
        let tag = tag(3, frame(3, apic(try jpeg(30), kind: 3)))
        let sound = [UInt8](repeating: 7, count: 101)
        let wave = Array("WAVE".utf8) + Array("data".utf8) + low(101, 4) + sound + [0] + Array("id3 ".utf8)
            + low(tag.count, 4) + tag
        #expect(try width(Array("RIFF".utf8) + low(wave.count, 4) + wave) == 30)
        let aiff = Array("AIFF".utf8) + Array("SSND".utf8) + number(101, 4) + sound + [0] + Array("ID3 ".utf8)
            + number(tag.count, 4) + tag
        #expect(try width(Array("FORM".utf8) + number(aiff.count, 4) + aiff) == 30)
        let dsf = Array("DSD ".utf8) + low(28, 8) + low(0, 8) + low(28 + 101, 8) + sound + tag
        #expect(try width(dsf) == 30)
        let body = Array(tag.dropFirst(10))
        let footed = Array("ID3".utf8) + [4, 0, 0x10] + safe(body.count)
        let version4 = frame(4, apic(try jpeg(31), kind: 3))
        let last = Array("ID3".utf8) + [4, 0, 0x10] + safe(version4.count) + version4 + Array("3DI".utf8) + [4, 0, 0x10]
            + safe(version4.count)
        #expect(try width(sound + last) == 31)
        #expect(try cover(sound + footed) == nil)
    }

    @Test func tagOfAPEIsFound() throws {
        func item(_ key: String, _ value: [UInt8]) -> [UInt8] {
            low(value.count, 4) + low(2, 4) + Array(key.utf8) + [0] + value
        }
        let items =
            item("Artist", [65]) + item("Cover Art (Back)", Array("b.jpg\0".utf8) + (try jpeg(40)))
            + item("COVER ART (FRONT)", Array("a.jpg\0".utf8) + (try jpeg(30)))
        let footer = Array("APETAGEX".utf8) + low(2_000, 4) + low(items.count + 32, 4) + low(3, 4) + low(0, 12)
        let sound = Array("MAC ".utf8) + [UInt8](repeating: 7, count: 100)
        #expect(try width(sound + items + footer) == 30)
        #expect(try width(sound + items + footer, .back) == 40)
        let first = Array("TAG".utf8) + [UInt8](repeating: 32, count: 125)
        #expect(try width(sound + items + footer + first) == 30)
        #expect(try width(sound + items + footer + Array("LYRICSBEGIN000011LYRICS200".utf8) + first) == 30)
        try truncate(sound + items + footer)
    }

    // MARK: FLAC, Ogg

    private func picture(_ bytes: [UInt8], kind: Int = 3, type: String = "image/jpeg") -> [UInt8] {
        number(kind, 4) + number(type.utf8.count, 4) + Array(type.utf8) + number(1, 4) + [65]
            + [UInt8](repeating: 0, count: 16) + number(bytes.count, 4) + bytes
    }

    private func block(_ type: UInt8, _ content: [UInt8], isLast: Bool = false, count: Int? = nil) -> [UInt8] {
        [type | (isLast ? 0x80 : 0)] + number(count ?? content.count, 3) + content
    }

    @Test func pictureOfFLACIsFound() throws {
        let information = block(0, [UInt8](repeating: 0, count: 34))
        let blocks = block(6, picture(try jpeg(40), kind: 4)) + block(6, picture(try jpeg(30)), isLast: true)
        #expect(try width(Array("fLaC".utf8) + information + blocks) == 30)
        #expect(try width(Array("fLaC".utf8) + information + blocks, .back) == 40)
        let tagged = tag(3, [UInt8](repeating: 0, count: 20)) + Array("fLaC".utf8) + information + blocks
        #expect(try width(tagged) == 30)
        // A block that announces less than its picture needs.
        let short = block(6, picture(try jpeg(30)), isLast: true, count: 50)
        #expect(try width(Array("fLaC".utf8) + information + short) == 30)
        try truncate(Array("fLaC".utf8) + information + blocks)
    }

    private func comments(_ texts: [[UInt8]]) -> [UInt8] {
        low(1, 4) + [65] + low(texts.count, 4) + texts.flatMap { low($0.count, 4) + $0 }
    }

    /// Pages of one stream, of at most `limit` segments each.
    private func ogg(_ packets: [[UInt8]], limit: Int = 3, serial: Int = 7) -> [UInt8] {
        var segments: [[UInt8]] = []
        for packet in packets {
            var rest = packet[...]
            while rest.count >= 255 {
                segments.append(Array(rest.prefix(255)))
                rest = rest.dropFirst(255)
            }
            segments.append(Array(rest))
        }
        var file: [UInt8] = []
        for start in stride(from: 0, to: segments.count, by: limit) {
            // The first packet has a page of its own.
            let page = segments[start..<min(start + limit, segments.count)]
            file += Array("OggS".utf8) + [0, 0] + low(0, 8) + low(serial, 4) + low(0, 8) + [UInt8(page.count)]
            file += page.map { UInt8($0.count) } + page.joined()
        }
        return file
    }

    @Test func commentsOfEachStreamInOggAreRead() throws {
        let (front, back) = (picture(try jpeg(30)), picture(try jpeg(40), kind: 4))
        let texts = [Array("ARTIST=a".utf8)] + [back, front].map {
            Array(("metadata_block_picture=" + Data($0).base64EncodedString()).utf8)
        }
        let all = comments(texts)
        let streams: [[[UInt8]]] = [
            [Array("\u{1}vorbis".utf8) + [1, 2, 3], Array("\u{3}vorbis".utf8) + all, [5]],
            [Array("OpusHead".utf8) + [1, 2, 3], Array("OpusTags".utf8) + all],
            [Array("Speex   ".utf8) + [1, 2, 3], all, [1]],
            [Array("\u{7F}FLAC".utf8) + [1, 2, 3], block(4, all), block(6, [1], isLast: true)],
            [Array("\u{7F}FLAC".utf8) + [1], block(4, comments([])), block(6, back), block(6, front, isLast: true)],
        ]
        for stream in streams {
            for limit in [1, 3, 255] {
                #expect(try width(ogg(stream, limit: limit)) == 30)
            }
            #expect(try width(ogg(stream), .back) == 40)
            #expect(try width(ogg([Array("\u{80}theora".utf8)], serial: 9) + ogg(stream)) == 30)
        }
        try truncate(ogg(streams[0]))
        let old = Array(("COVERART=" + Data(try jpeg(30)).base64EncodedString()).utf8)
        #expect(try width(ogg([Array("\u{1}vorbis".utf8), Array("\u{3}vorbis".utf8) + comments([old])])) == 30)
        // One packet without end.
        let endless = Array("OggS\0\0".utf8) + low(0, 8) + low(7, 4) + low(0, 8) + [255]
            + [UInt8](repeating: 255, count: 255) + [UInt8](repeating: 0, count: 255 * 255)
        #expect(try cover(ogg([Array("\u{1}vorbis".utf8)]) + endless + endless) == nil)
    }

    // MARK: MP4, ASF, Matroska

    private func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
        number(content.count + 8, 4) + (type == "©nam" ? [0xA9, 0x6E, 0x61, 0x6D] : Array(type.utf8)) + content
    }

    @Test func coverOfMP4IsFoundWithAndWithoutAVersion() throws {
        let picture = box("data", number(13, 4) + number(0, 4) + (try jpeg(30)))
        let data = picture + box("data", number(14, 4) + number(0, 4))
        let list = box("ilst", box("©nam", []) + box("covr", box("name", [65]) + data))
        let handler = box("hdlr", [UInt8](repeating: 0, count: 25))
        let start = box("ftyp", Array("M4A \0\0\0\0".utf8))
        for meta in [box("meta", number(0, 4) + handler + list), box("meta", handler + list)] {
            #expect(try width(start + box("moov", box("udta", meta))) == 30)
            #expect(try width(start + box("mdat", [1, 2, 3]) + box("moov", box("udta", []) + meta)) == 30)
        }
        try truncate(start + box("moov", box("udta", box("meta", number(0, 4) + handler + list))))
    }

    @Test func pictureOfWindowsMediaIsFound() throws {
        func wide(_ text: String) -> [UInt8] { text.utf8.flatMap { [$0, 0] } + [0, 0] }
        func object(_ start: [UInt8], _ content: [UInt8]) -> [UInt8] {
            start + [UInt8](repeating: 0, count: 8) + low(content.count + 24, 8) + content
        }
        func value(_ width: Int, _ kind: UInt8 = 3, type: String = "image/jpeg") throws -> [UInt8] {
            let picture = try jpeg(width)
            return [kind] + low(picture.count, 4) + wide(type) + wide("a") + picture
        }
        let name = wide("WM/Picture")
        let picture = try value(30)
        let description = low(2, 2) + low(4, 2) + wide("a") + low(0, 2) + low(2, 2) + [1, 2] + low(name.count, 2) + name
            + low(1, 2) + low(picture.count, 2) + picture
        let library = low(1, 2) + low(0, 4) + low(name.count, 2) + low(1, 2) + low(picture.count, 4) + name + picture
        let contents = [
            object([0x40, 0xA4, 0xD0, 0xD2, 0x07, 0xE3, 0xD2, 0x11], description),
            object(
                [0xB5, 0x03, 0xBF, 0x5F, 0x2E, 0xA9, 0xCF, 0x11],
                [UInt8](repeating: 0, count: 22) + object([0x94, 0x1C, 0x23, 0x44, 0x98, 0x94, 0xD1, 0x49], library)),
        ]
        for content in contents {
            let file = [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11] + [UInt8](repeating: 0, count: 8)
                + low(content.count + 30, 8) + low(1, 4) + [1, 2] + content
            #expect(try width(file) == 30)
            try truncate(file)
        }
    }

    /// The object ends inside of the first name, or in front of the value, in a file that goes on behind it.
    @Test(arguments: 0..<60)
    func windowsMediaWhoseObjectEndsEarlyHasNoCover(_ missing: Int) throws {
        var name: [UInt8] = []
        for byte in "WM/Picture\0".utf8 { name += [byte, 0] }
        let value = [UInt8](repeating: 3, count: 40)
        let zeros = [UInt8](repeating: 0, count: 22)
        let description = low(1, 2) + low(name.count, 2) + name + low(1, 2) + low(100, 2) + value
        var library = low(1, 2) + low(0, 4) + low(name.count, 2)
        library += low(1, 2) + low(100, 4) + name + value
        let bodies: [(start: [UInt8], content: [UInt8])] = [
            ([0x40, 0xA4, 0xD0, 0xD2, 0x07, 0xE3, 0xD2, 0x11], description),
            ([0x94, 0x1C, 0x23, 0x44, 0x98, 0x94, 0xD1, 0x49], library),
        ]
        for (start, content) in bodies {
            let inner = start + zeros.prefix(8) + low(content.count + 24 - missing, 8) + content
            for isExtension in [false, true] {
                var objects = inner
                if isExtension {
                    objects = [0xB5, 0x03, 0xBF, 0x5F, 0x2E, 0xA9, 0xCF, 0x11] + zeros.prefix(8)
                    objects += low(inner.count + 46, 8) + zeros + inner
                }
                objects += [UInt8](repeating: 0, count: 200)
                var file: [UInt8] = [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11] + zeros.prefix(8)
                file += low(objects.count + 30, 8) + low(1, 4) + [1, 2] + objects
                #expect(try cover(file) == nil)
            }
        }
    }

    @Test func attachmentOfMatroskaIsFound() throws {
        func element(_ id: Int, _ content: [UInt8]) -> [UInt8] {
            let length = id > 0xFF_FFFF ? 4 : id > 0xFFFF ? 3 : id > 0xFF ? 2 : 1
            return number(id, length) + number(0x1000_0000 | content.count, 4) + content
        }
        func file(_ name: String, _ width: Int, type: String = "image/jpeg") throws -> [UInt8] {
            let about = element(0x466E, Array(name.utf8)) + element(0x4660, Array(type.utf8))
            return element(0x61A7, about + element(0x465C, try jpeg(width)))
        }
        let attachments = element(
            0x1941_A469, try file("font.ttf", 10, type: "font/ttf") + file("back.jpg", 40) + file("cover.jpg", 30))
        let head = element(0x1A45_DFA3, element(0x4282, Array("matroska".utf8)))
        let cluster = element(0x1F43_B675, [UInt8](repeating: 0, count: 50))
        #expect(try width(head + element(0x1853_8067, cluster + attachments)) == 30)
        // Through the list of places, behind clusters of unknown length.
        let seek = element(0x4DBB, element(0x53AB, number(0x1941_A469, 4)) + element(0x53AC, number(200, 2)))
        let list = element(0x114D_9B74, seek)
        let endless = number(0x1F43_B675, 4) + [0xFF] + [UInt8](repeating: 0, count: 195 - list.count)
        let start = number(0x1853_8067, 4) + [0x01] + [UInt8](repeating: 0xFF, count: 7)
        let segment = start + list + endless + attachments
        #expect(try width(head + segment) == 30)
        try truncate(head + element(0x1853_8067, cluster + attachments))
    }

    // MARK: Real files

    @Test(.enabled(if: !Corpus.files(in: "anything/corpus").isEmpty, "the shared corpus is absent"))
    func recordingsOfTheCorpusHaveTheirCovers() throws {
        let files = Corpus.files(in: "anything/corpus").filter { $0.contains("/audio/") }
        for path in files where path.contains("/cover") || path.contains("coverArt") || path.contains("twoCovers") {
            let found = try RecordingCover(of: try ByteSource(.file(path)))
            let bytes = try #require(found?.bytes, "\(path) has no cover")
            #expect(try ImageDecoder(isolation: .inProcess).decode(.bytes(bytes), at: .fit(16)).width > 0)
        }
        for path in files { _ = try RecordingCover(of: try ByteSource(.file(path))) }
    }
}
#endif
