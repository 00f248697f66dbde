import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

/// Covers of recordings, which need no helper.
@Suite struct RecordingCoverSourceTests {
    /// Workers that are not installed.
    private let nobody = WorkerPool(program: "vitrine-nobody")

    private func tagged(_ pictures: [(kind: UInt8, name: String)]) throws -> [UInt8] {
        var body: [UInt8] = []
        for (kind, name) in pictures {
            var content = Array("\0image/jpeg\0".utf8)
            content += [kind, 0]
            content += try Samples.bytes(name)
            let size = (0..<4).map { UInt8(truncatingIfNeeded: content.count >> (24 - 8 * $0)) }
            body += Array("APIC".utf8) + size + [0, 0] + content
        }
        let size = [21, 14, 7, 0].map { UInt8(body.count >> $0 & 127) }
        return Array("ID3".utf8) + [3, 0, 0] + size + body + [UInt8](repeating: 0, count: 400)
    }

    private func source(_ input: ImageInput) throws -> VideoFrameSource {
        var source = VideoFrameSource(input, at: .poster, workers: nobody)
        source.prefersCoverArt = true
        return source
    }

    @Test func coverIsFoundWithoutAHelper() throws {
        let file = try VideoFixture.bytes("cover.mp3")
        let image = try source(.bytes(file)).image(RenderRequest(size: PixelSize(40)))
        #expect(image.size.longestSide == 40)
        let made = try tagged([(3, "lake.jpg")])
        let expected = try ImageFileSource(path: Samples.path("lake.jpg")).image(RenderRequest(size: PixelSize(64)))
        #expect(try source(.bytes(made)).image(RenderRequest(size: PixelSize(64))) == expected)
        #expect(throws: ImagePipelineError.self) {
            try source(.bytes(try tagged([]))).image(RenderRequest(size: PixelSize(64)))
        }
    }

    @Test func coverMakesUpForSoundOnlyWhereItIsPreferred() throws {
        var source = try VideoFixture.source("cover.mp3", at: .poster)
        #expect(thrown { _ = try source.image(RenderRequest(size: PixelSize(40))) } == "noVideo")
        source.prefersCoverArt = true
        #expect(try source.image(RenderRequest(size: PixelSize(40))).size.longestSide == 40)
    }

    /// Containers such as MP4 and Matroska do not say at their beginning whether they hold a film.
    @Test func coverMakesUpForSoundOnlyInEveryContainer() throws {
        var file = try VideoFixture.bytes("sound.m4a")
        func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: (content.count + 8) >> (24 - 8 * $0)) } + Array(type.utf8) + content
        }
        // The brand of any MP4 file.
        file.replaceSubrange(8..<12, with: Array("isom".utf8))
        #expect(try FileKind(of: .bytes(file)) == .media(.mp4))
        let size = RenderRequest(size: PixelSize(40))
        #expect(thrown { _ = try SourceDetector.source(for: .bytes(file)).image(size) } == "noVideo")
        // The last box describes the movie. It gets a cover.
        let picture = [0, 0, 0, 13, 0, 0, 0, 0] + (try Samples.bytes("lake.jpg"))
        let cover = box("meta", [0, 0, 0, 0] + box("ilst", box("covr", box("data", picture))))
        let movie = try #require(file.indices.first { file[$0...].starts(with: "moov".utf8) })
        let covered = Array(file[..<(movie - 4)]) + box("moov", Array(file[(movie + 4)...]) + cover)
        #expect(try SourceDetector.source(for: .bytes(covered)).image(size).size.longestSide == 40)
        #expect(thrown { _ = try VideoFrameSource(.bytes(covered), at: .poster).image(size) } == "noVideo")
    }

    @Test func kindOfPictureIsChosenAndChangesTheIdentity() throws {
        let file = try tagged([(3, "lake.jpg"), (4, "orientation-6.jpg")])
        var (front, back) = (try source(.bytes(file)), try source(.bytes(file)))
        back.cover = .back
        let size = RenderRequest(size: PixelSize(48))
        #expect(try front.image(size) != back.image(size))
        #expect(try front.identity() != back.identity())
        front.cover = .artist
        #expect(try front.image(size) == source(.bytes(file)).image(size))
    }

    @Test func fileBesideARecordingIsOpenedByOptionOnly() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path + "/song.mp3"
        try Data(try tagged([])).write(to: URL(filePath: path))
        try Data(Samples.bytes("lake.jpg")).write(to: URL(filePath: folder.path + "/AlbumArt_small.JPG"))
        let size = RenderRequest(size: PixelSize(48))
        var song = try source(.file(path))
        #expect(throws: ImagePipelineError.self) { try song.image(size) }
        let plain = try song.identity()
        song.allowsSiblingCover = true
        #expect(try song.image(size).size.longestSide == 48)
        let first = try song.identity()
        #expect(first != plain)
        // A better name, and a picture that changes, change the identity. Links are passed over.
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/cover.jpg", withDestinationPath: "/etc/hostname")
        #expect(try song.identity() == first)
        try Data(Samples.bytes("orientation-6.jpg")).write(to: URL(filePath: folder.path + "/Folder.jpeg"))
        #expect(try song.identity() != first)
        let expected = try ImageFileSource(path: folder.path + "/Folder.jpeg").image(size)
        #expect(try song.image(size) == expected)
        // One beside bytes does not exist.
        var bytes = try source(.bytes(try tagged([])))
        bytes.allowsSiblingCover = true
        #expect(throws: ImagePipelineError.self) { try bytes.image(size) }
    }

    @Test func typesOfBooksAndDocumentsAreAcceptedFromServers() throws {
        let types = URLImageSource(try #require(URL(string: "http://127.0.0.1/book"))).options.contentTypes
        for type in ["image/*", "application/pdf", "application/epub+zip", "application/vnd.oasis.opendocument.text"] {
            #expect(types.contains(type))
        }
        #expect(!types.contains("application/zip") && !types.contains("text/html"))
        #expect(Set(types).count == types.count)
    }

    @Test func recordingsAreToldFromFilms() throws {
        func kind(_ bytes: [UInt8]) throws -> FileKind? { try FileKind(of: .bytes(bytes)) }
        func page(_ packet: String) -> [UInt8] {
            let head = Array("OggS\0\u{2}".utf8) + [UInt8](repeating: 0, count: 20)
            return head + [1, UInt8(packet.utf8.count)] + Array(packet.utf8)
        }
        #expect(try kind(page("\u{1}vorbis")) == .media(.oggAudio))
        #expect(try kind(page("OpusHead")) == .media(.oggAudio))
        #expect(try kind(page("OpusHead") + [9] + page("!theora")) == .media(.ogg))
        #expect(try kind(page("unknown")) == .media(.ogg))
        let start: [UInt8] = [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11] + [UInt8](repeating: 0, count: 8)
        let rest: [UInt8] = [0x4D, 0x5B, 0xCF, 0x11, 0xA8, 0xFD, 0x00, 0x80, 0x5F, 0x5C, 0x44, 0x2B]
        let (sound, film): ([UInt8], [UInt8]) = ([0x40, 0x9E, 0x69, 0xF8] + rest, [0xC0, 0xEF, 0x19, 0xBC] + rest)
        #expect(try kind(start + [200, 0, 0, 0, 0, 0, 0, 0] + sound) == .media(.windowsMedia))
        #expect(try kind(start + [200, 0, 0, 0, 0, 0, 0, 0] + sound + film) == .media(.asf))
        #expect(try kind(Array("FORM0000AIFFCOMM".utf8)) == .media(.aiff))
        #expect(try kind(Array("FORM0000ILBMBMHD".utf8)) == nil)
        #expect(try kind(Array("MAC 0000".utf8)) == .media(.ape))
        // Frames of 128 kbit/s at 44.1 kHz have 417 bytes.
        let frame: [UInt8] = [0xFF, 0xFB, 0x90, 0x00] + [UInt8](repeating: 0, count: 413)
        #expect(try kind(frame + frame) == .media(.mp3))
        #expect(try kind(frame + [1] + frame) == nil)
        #expect(MediaFormat.allCases.filter(\.isAudio).count == 12)
    }
}
