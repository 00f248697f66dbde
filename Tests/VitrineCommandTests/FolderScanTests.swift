import Foundation
import TestSupport
import Testing

/// Files without a picture: passed over in directories, failures where they are named.
@Suite struct FolderScanTests {
    private let document = ZipSample([
        .init("mimetype", text: "application/vnd.oasis.opendocument.text"), .init("content.xml", text: "<a/>"),
    ]).bytes

    private func folder() throws -> Scratch {
        let scratch = try Scratch()
        try FileManager.default.createDirectory(at: scratch.file("in"), withIntermediateDirectories: true)
        try Data(document).write(to: scratch.file("in/letter.odt"))
        try Data(Samples.bytes("lake.jpg")).write(to: scratch.file("in/lake.jpg"))
        return scratch
    }

    @Test func documentsWithoutAPictureArePassedOverInDirectories() async throws {
        let scratch = try folder()
        let outcome = try await Tool.run(
            ["thumbnail", "in", "--recursive", "--no-cache", "-o", "out"], in: scratch.url)
        #expect(outcome.status == 0)
        #expect(outcome.errors == "in/letter.odt: passed over: no preview: the odt file holds no usable image\n")
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.file("out").path).count == 1)

        let quiet = try await Tool.run(
            ["thumbnail", "in", "--recursive", "--no-cache", "--quiet", "-o", "out"], in: scratch.url)
        #expect(quiet.status == 0 && quiet.errors.isEmpty && quiet.output.isEmpty)

        let json = try await Tool.run(
            ["thumbnail", "in", "--recursive", "--no-cache", "--json", "-o", "out"], in: scratch.url)
        let letter = try #require(json.objects.first { $0["input"] as? String == "in/letter.odt" })
        #expect(letter["error"] is NSNull && letter["output"] is NSNull)
        #expect((letter["passedOver"] as? String)?.hasPrefix("no preview") == true)
        let lake = try #require(json.objects.first { $0["input"] as? String == "in/lake.jpg" })
        #expect(lake["passedOver"] is NSNull && lake["error"] is NSNull)
    }

    @Test func namedDocumentsWithoutAPictureFail() async throws {
        let scratch = try folder()
        let outcome = try await Tool.run(
            ["thumbnail", "in/letter.odt", "in/lake.jpg", "--no-cache", "-o", "out"], in: scratch.url)
        #expect(outcome.status == 1)
        #expect(outcome.errors == "in/letter.odt: no preview: the odt file holds no usable image\n")
    }

    @Test func sheetsAndCachesPassThemOverToo() async throws {
        let scratch = try folder()
        let sheet = try await Tool.run(
            ["contact-sheet", "in", "--recursive", "--no-cache", "-o", "sheet.png"], in: scratch.url)
        #expect(sheet.status == 0)
        #expect(sheet.errors == "in/letter.odt: passed over: no preview: the odt file holds no usable image\n")
        let pages = try await Tool.run(
            ["contact-sheet", "in", "--recursive", "--no-cache", "--pages", "1-2", "-o", "sheet.png"], in: scratch.url)
        #expect(pages.status == 0)

        let home = scratch.file("home")
        let text = try await Tool.run(["precache", "in", "--size", "64"], in: scratch.url, home: home)
        #expect(text.status == 0)
        #expect(text.output == "1 made, 0 in the cache already, 1 without an image, 0 failed\n")
        let again = try await Tool.run(["precache", "in", "--size", "64", "--json"], in: scratch.url, home: home)
        let counts = ["made", "skipped", "passedOver", "failed"].map { again.objects[0][$0] as? Int }
        #expect(counts == [0, 1, 1, 0])
    }

    /// Damage is a failure also in a directory.
    @Test func damagedFilesInDirectoriesFail() async throws {
        let scratch = try folder()
        try Data(Samples.bytes("lake.jpg").prefix(3_000)).write(to: scratch.file("in/cut.jpg"))
        let outcome = try await Tool.run(
            ["thumbnail", "in", "--recursive", "--no-cache", "-o", "out"], in: scratch.url)
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("in/cut.jpg: "))
    }
}
