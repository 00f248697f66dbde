import Foundation
import TestSupport
import Testing
import VitrineHelperProtocol
import VitrineImaging
import VitrinePipeline

/// Fonts and texts, drawn by the helper beside the tests.
@Suite struct DrawnFileTests {
    private static func draw(
        _ bytes: [UInt8], _ name: String, as kind: TextParameters.Kind, side: Int = 256
    ) throws -> PixelImage {
        try DrawnFileSource(.bytes(bytes, name: name), as: kind, workers: TextHelper.workers)
            .image(RenderRequest(size: PixelSize(side)))
    }

    private static func page(_ text: String, _ name: String = "notes.txt", side: Int = 842) throws -> PixelImage {
        try draw(Array(text.utf8), name, as: .text, side: side)
    }

    private static let installed = ["/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"]
        .filter { FileManager.default.fileExists(atPath: $0) }

    private static func bytes(_ path: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

    // MARK: Fonts

    @Test(.enabled(if: !installed.isEmpty, "needs the fonts of DejaVu"))
    func aFontIsShownByItsLetters() throws {
        let image = try Self.draw(Self.bytes(Self.installed[0]), "font", as: .font)
        #expect(image.size == PixelSize(256))
        let ink = image.ink
        // Two letters side by side, in the middle, that fill the width.
        #expect(ink.width > 180 && ink.width <= 240 && ink.height > 90)
        #expect(abs(ink.minX + ink.maxX - 255) <= 4 && abs(ink.minY + ink.maxY - 255) <= 4)
        #expect(image.edgeColors == [.white])
    }

    @Test(.enabled(if: !installed.isEmpty, "needs the fonts of DejaVu"))
    func aFontIsFoundByItsContentEverywhere() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/renamed.dat"
        try FileManager.default.copyItem(atPath: Self.installed[0], toPath: path)
        #expect(try FileKind(of: .file(path)) == .font)
        let image = try ImageFileSource(path: path).image(RenderRequest(size: PixelSize(64)))
        #expect(image.size == PixelSize(64) && image.ink.width > 40)
    }

    @Test(.enabled(if: !Corpus.files(in: "anything/corpus/font").isEmpty, "needs the shared corpus of files"))
    func everyFontOfTheCorpusIsAPictureOrATypedError() throws {
        var shown = 0
        for name in Corpus.files(in: "anything/corpus/font") {
            let input = ImageInput.file(name)
            #expect(try FileKind(of: input) == .font, "\(name)")
            let source = DrawnFileSource(input, as: .font, workers: TextHelper.workers)
            do {
                #expect(try source.image(RenderRequest(size: PixelSize(128))).ink.width > 0, "\(name)")
                shown += 1
            } catch let error as ImagePipelineError {
                #expect(error.caseName == "damaged", "\(name): \(error)")
            }
        }
        #expect(shown >= 20)
    }

    @Test(.enabled(if: !installed.isEmpty, "needs the fonts of DejaVu"))
    func damagedFontsAreTypedErrorsOrPictures() throws {
        let whole = try Self.bytes(Self.installed[0])
        var random = SeededGenerator(7)
        for turn in 0..<60 {
            var bytes = turn % 3 == 0 ? Array(whole.prefix(.random(in: 12..<whole.count, using: &random))) : whole
            for _ in 0..<40 {
                bytes[.random(in: 0..<min(4096, bytes.count), using: &random)] = .random(in: 0...255, using: &random)
            }
            do {
                _ = try Self.draw(bytes, "font", as: .font, side: 64)
            } catch let error as ImagePipelineError {
                #expect(["damaged", "limitExceeded", "timedOut", "underlying"].contains(error.caseName), "\(error)")
            }
        }
        // The helper, or a new one, goes on.
        #expect(try Self.draw(whole, "font", as: .font, side: 64).ink.width > 40)
    }

    @Test func aFontOfTooManyBytesIsRefused() throws {
        let bytes = Array("OTTO".utf8) + [UInt8](repeating: 0, count: 33 << 20)
        #expect(thrown { _ = try Self.draw(bytes, "font", as: .font) } == "limitExceeded")
    }

    // MARK: Texts

    @Test func aTextIsAPageOfItsFirstLines() throws {
        let image = try Self.page((1...200).map { "Line \($0) of a text" }.joined(separator: "\n"))
        #expect(image.size == PixelSize(width: 595, height: 842))
        #expect(image.edgeColors == [.white])
        #expect(image.ink.minX >= 30 && image.ink.maxY > 700)
        // Short lines are drawn larger than long ones.
        let long = try Self.page(String(repeating: "word ", count: 19) + "\n")
        let short = try Self.page("word\n")
        #expect(short.ink.height > long.ink.height)
    }

    @Test func codeHasColorsAndProseHasNone() throws {
        let code = """
            // A comment.
            func answer() -> Int { return 42 }
            let text = "a string"
            """
        #expect(try Self.page(code, "a.swift").hues > 100)
        #expect(try Self.page(code, "a.txt").hues == 0)
        #expect(try Self.page("# only a comment\nx = 'string'\n", "a.py").hues > 20)
    }

    @Test func headingsOfMarkdownAreLarger() throws {
        let heading = try Self.page("# Heading\n", "a.md"), plain = try Self.page("Heading\n", "a.md")
        #expect(heading.ink.height > plain.ink.height * 5 / 4)
        // Marks and addresses are not seen.
        let marked = try Self.page("*some* [link](https://example.org)\n", "a.md")
        #expect(try marked.ink.width <= Self.page("*some link* xx\n", "a.md").ink.width)
        #expect(marked.hues > 20)
    }

    @Test func encodingsAreRead() throws {
        let text = "Grüße, žluťoučký\n"
        let page = try Self.page(text)
        var utf16: [UInt8] = [0xFF, 0xFE]
        for unit in text.utf16 { utf16 += [UInt8(unit & 0xFF), UInt8(unit >> 8)] }
        #expect(try Self.draw(utf16, "a.txt", as: .text, side: 842).ink == page.ink)
        let marked = [0xEF, 0xBB, 0xBF] + Array(text.utf8)
        #expect(try Self.draw(marked, "a.txt", as: .text, side: 842).ink == page.ink)
        let latin = "Grüße\n".unicodeScalars.map { UInt8($0.value) }
        #expect(try Self.draw(latin, "a.txt", as: .text, side: 842).ink == Self.page("Grüße\n").ink)
    }

    @Test(arguments: [
        String(repeating: "x", count: 20 << 20), String(repeating: "a\u{301}", count: 60_000),
        "e" + String(repeating: "\u{301}", count: 30_000), String(repeating: "\u{202E}", count: 10_000) + "x",
        String(repeating: "\n", count: 100_000) + "x", String(repeating: "**", count: 16_000) + "x",
        String(repeating: "[", count: 32_000), String(repeating: "\"\\", count: 16_000), "\u{0}x", "\u{FEFF}",
    ])
    func hostileTextIsDrawnWithinLimits(_ text: String) throws {
        for name in ["a.txt", "a.md", "a.swift"] {
            #expect(try Self.page(text, name, side: 64).size.longestSide == 64)
        }
    }

    @Test func textIsAPictureOnlyWhereItIsAskedFor() throws {
        let directory = try TemporaryDirectory()
        func file(_ name: String, _ text: String) throws -> ImageInput {
            let path = directory.path + "/" + name
            try Data(text.utf8).write(to: URL(filePath: path))
            return .file(path)
        }
        let notes = try file("notes", "Some notes.\n")
        #expect(try FileKind(of: notes) == nil)
        #expect(try FileKind(of: notes, readsText: true) == .text)
        // What a server sent in the place of a picture is an error in any case.
        #expect(try FileKind(of: file("photo.jpg", "<html>Not found</html>\n"), readsText: true) == nil)
        #expect(try FileKind(of: file("binary", "a\u{0}b"), readsText: true) == nil)
        #expect(try FileKind(of: .bytes(Array("text".utf8)), readsText: true) == nil)
        guard case .file(let path) = notes else { return }
        #expect(thrown { _ = try ImageFileSource(path: path).image(RenderRequest(size: PixelSize(64))) } == "unsupported")
        let request = RenderRequest(size: PixelSize(64))
        #expect(try BuiltInSource.text(path).blocking.image(request).size.longestSide == 64)
        #expect(try BuiltInSource.text(path).identityBlocking() != BuiltInSource.file(path).identityBlocking())
    }

    @Test func aMissingHelperIsNamed() throws {
        let none = WorkerPool(
            program: TextWorkers.program, location: .executable("/nonexistent/vitrine-text"), maximumWorkers: 1,
            memory: HelperMemory(total: 64 << 30))
        let source = DrawnFileSource(.bytes([65]), as: .text, workers: none)
        let error = #expect(throws: ImagePipelineError.self) {
            _ = try source.image(RenderRequest(size: PixelSize(64)))
        }
        #expect("\(String(describing: error))".contains("vitrine-text"))
    }

    @Test func parametersSurviveTheWire() {
        var parameters = TextParameters()
        (parameters.kind, parameters.fileExtension, parameters.target.fit) = (.font, "swift", .cover)
        (parameters.target.size, parameters.target.allowsUpscaling) = (PixelSize(width: 3, height: 9), false)
        parameters.row.size = PixelSize(width: 200, height: 22)
        (parameters.row.fontSize, parameters.row.isBold) = (15.5, true)
        #expect(TextParameters(parameters.encoded()) == parameters)
        for count in 0..<parameters.encoded().count {
            #expect(TextParameters(Array(parameters.encoded().prefix(count))) == nil)
        }
    }
}

/// Where an image is not white.
private struct Ink: Equatable {
    var minX = Int.max
    var maxX = Int.min
    var minY = Int.max
    var maxY = Int.min

    var width: Int { max(0, maxX - minX + 1) }
    var height: Int { max(0, maxY - minY + 1) }
}

extension PixelImage {
    fileprivate var ink: Ink {
        var ink = Ink()
        for y in 0..<height {
            for x in 0..<width where self[x, y].green < 160 {
                ink = Ink(
                    minX: min(ink.minX, x), maxX: max(ink.maxX, x), minY: min(ink.minY, y), maxY: max(ink.maxY, y))
            }
        }
        return ink.minX > ink.maxX ? Ink(minX: 0, maxX: -1, minY: 0, maxY: -1) : ink
    }

    /// Pixels that are neither grey nor white.
    fileprivate var hues: Int {
        var count = 0
        for y in 0..<height {
            for x in 0..<width {
                let color = self[x, y]
                let (low, high) = (min(color.red, color.green, color.blue), max(color.red, color.green, color.blue))
                if high - low > 24 { count += 1 }
            }
        }
        return count
    }
}
