import Foundation
import TestSupport
import Testing
import VitrineImaging
import VitrinePipeline

@Suite struct SourceContentTests {
    @Test func contentTellsKindAndMediaTypeWhateverTheName() throws {
        let file = try ScratchFile(try Samples.bytes("lake.pdf"), suffix: "jpg")
        let document = try #require(try SourceContent(of: .file(file.path)))
        #expect(document.kind == .document && document.mediaType == "application/pdf")
        let photo = try #require(try SourceContent(of: .file(Samples.path("lake.jpg"))))
        #expect(photo.kind == .image && photo.mediaType == "image/jpeg")
        let video = try #require(try SourceContent(of: .file(Samples.path("lake.mp4"))))
        #expect(video.kind == .video && video.mediaType == "video/mp4")
        let recording = try #require(try SourceContent(of: .bytes(Array("RIFF1234WAVEfmt ".utf8))))
        #expect(recording.kind == .recording && recording.mediaType == "audio/x-wav")
        let font = try #require(try SourceContent(of: .bytes(Array("OTTO".utf8) + [0, 1, 0, 0])))
        #expect(font.kind == .font && font.mediaType == "font/sfnt")
    }

    @Test func contentOfNoKindIsNil() throws {
        for bytes in [[], [0x47], Array("free text".utf8), [UInt8](repeating: 0, count: 2_000)] {
            #expect(try SourceContent(of: .bytes(bytes)) == nil, "\(bytes.prefix(8))")
        }
        #expect(throws: ImagePipelineError.self) { try SourceContent(of: .file("/nowhere")) }
    }

    @Test func eachExtensionOfWhatIsReadBelongsToOneKind() {
        let names = SourceContent.Kind.allCases.flatMap(\.fileExtensions)
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0 == $0.lowercased() && !$0.hasPrefix(".") })
        let kinds: [(String, SourceContent.Kind)] = [
            ("jpg", .image), ("jfif", .image), ("apng", .image), ("j2k", .image), ("psd", .image), ("nef", .image),
            ("pdf", .document), ("epub", .container), ("fb2.zip", .container), ("cbz", .container),
            ("docx", .container), ("mp4", .video), ("wmv", .video), ("mp3", .recording), ("opus", .recording),
            ("ttf", .font), ("woff2", .font),
        ]
        for (name, kind) in kinds { #expect(kind.fileExtensions.contains(name), "\(name)") }
        for format in Codecs.standard.formats {
            #expect(Set(format.fileExtensions).isSubset(of: names), "\(format)")
        }
    }
}
