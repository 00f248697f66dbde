import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Pages, films, directories and several sizes, and what goes wrong with them.
@Suite struct ThumbnailPartsTests {
    private let pdf = Samples.path("lake.pdf")
    private let film = Samples.path("lake.mp4")

    private func size(of url: URL) throws -> PixelSize { try ImageInfo(of: .file(url.path)).size }

    @Test func pagesAreCountedFromOneAndNamedByTheirNumbers() async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            ["thumbnail", pdf, "--pages", "2-9,1", "--size", "100", "-o", "out"], in: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(scratch.contents == ["out", "out/lake-page-1.jpg", "out/lake-page-2.jpg", "out/lake-page-3.jpg"])
        #expect(try size(of: scratch.file("out/lake-page-1.jpg")) == PixelSize(width: 71, height: 100))
        #expect(try size(of: scratch.file("out/lake-page-3.jpg")) == PixelSize(width: 100, height: 71))
        let one = try await Tool.run(["thumbnail", pdf, "--page", "3", "-o", "page.png", "--json"], in: scratch.url)
        #expect(one.objects[0]["page"] as? Int == 3)
        #expect(try size(of: scratch.file("page.png")).width == 256)
    }

    @Test func framesOfAnimationsAreCountedFromOneToo() async throws {
        let scratch = try Scratch()
        let moon = Samples.path("moon.gif")
        let outcome = try await Tool.run(
            ["thumbnail", moon, "--pages", "1,9", "--format", "png", "-o", "out/"], in: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        for (page, index) in [(1, 0), (9, 8)] {
            let made = try await ImageDecoder().image(from: .file(scratch.file("out/moon-page-\(page).png").path))
            let frame = try await ImageDecoder().image(
                from: .file(moon), at: .fit(256), options: DecodeOptions(page: index))
            #expect(made.converted(to: .straight) == frame.converted(to: .straight), "page \(page)")
        }
        #expect(try await Tool.run(["thumbnail", moon, "--page", "17", "-o", "x.png"], in: scratch.url).status == 1)
    }

    @Test func severalSizesAreNamedByThem() async throws {
        let scratch = try Scratch()
        let inputs = [Samples.path("lake.jpg"), pdf]
        let outcome = try await Tool.run(
            ["thumbnail"] + inputs + ["--sizes", "64,100x50,128", "-o", "out", "--json"], in: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.objects.count == 6)
        #expect(
            scratch.contents == [
                "out", "out/lake.jpg-100x50.jpg", "out/lake.jpg-128.jpg", "out/lake.jpg-64.jpg",
                "out/lake.pdf-100x50.jpg", "out/lake.pdf-128.jpg", "out/lake.pdf-64.jpg",
            ])
        #expect(try size(of: scratch.file("out/lake.jpg-100x50.jpg")) == PixelSize(width: 75, height: 50))
        let named = try await Tool.run(
            ["thumbnail", pdf, "--sizes", "32,64", "--pages", "1-2", "-o", "a.png"], in: scratch.url)
        #expect(named.status == 0, "\(named.errors)")
        #expect(
            scratch.contents.filter { $0.hasPrefix("a-") } == [
                "a-page-1-32.png", "a-page-1-64.png", "a-page-2-32.png", "a-page-2-64.png",
            ])
    }

    @Test func filmsGiveTheirPosterOrASecond() async throws {
        let scratch = try Scratch()
        func frame(_ arguments: [String]) async throws -> PixelImage {
            let outcome = try await Tool.run(
                ["thumbnail", film, "--size", "60", "-o", "frame.png", "--json"] + arguments, in: scratch.url)
            #expect(outcome.status == 0, "\(outcome.errors)")
            let second = outcome.objects[0]["time"] as? Double
            #expect(second == (arguments.isEmpty || arguments[1] == "poster" ? nil : Double(arguments[1])))
            return try await ImageDecoder().image(from: .file(scratch.file("frame.png").path))
        }
        func brightness(_ image: PixelImage) -> Int {
            (0..<image.height).reduce(0) { sum, y in
                (0..<image.width).reduce(sum) { $0 + Int(image[$1, y].green) }
            }
        }
        // The film begins black.
        let black = try await brightness(frame(["--time", "0"]))
        let poster = try await brightness(frame([]))
        #expect(poster > 10 * max(1, black))
        #expect(try await brightness(frame(["--time", "poster"])) == poster)
        #expect(try await frame(["--time", "4.5"]) != frame(["--time", "4.5", "--exact"]))
    }

    @Test func directoriesAreMirroredBelowTheOutput() async throws {
        let scratch = try Scratch()
        _ = try scratch.tree(["one/lake.jpg", "two/lake.jpg", "two/deep/lake.pdf", ".hidden/leaf.png", "moon.gif"])
        try Data("text".utf8).write(to: scratch.file("tree/notes.txt"))
        try FileManager.default.createSymbolicLink(
            atPath: scratch.file("tree/one/round").path, withDestinationPath: "../..")
        // A film and a page behind names that say otherwise.
        try FileManager.default.copyItem(atPath: film, toPath: scratch.file("tree/film.txt").path)
        let expected = [
            "tree/out/film.jpg", "tree/out/moon.png", "tree/out/one/lake.jpg", "tree/out/two/deep/lake.jpg",
            "tree/out/two/lake.jpg",
        ]
        // Twice: results are no inputs.
        for _ in 1...2 {
            let outcome = try await Tool.run(
                ["thumbnail", "tree", "--recursive", "--size", "40", "-o", "tree/out"], in: scratch.url)
            #expect(outcome.status == 0, "\(outcome.errors)")
            let made = scratch.contents.filter { $0.hasPrefix("tree/out/") && $0.contains(".") }
            #expect(made == expected)
        }
        let flat = try await Tool.run(
            ["thumbnail", "tree/one/lake.jpg", "tree/two/lake.jpg", "-o", "flat"], in: scratch.url)
        #expect(flat.status == 0)
        #expect(scratch.contents.filter { $0.hasPrefix("flat/") } == ["flat/lake-2.jpg", "flat/lake.jpg"])
    }

    @Test func whatCannotBeShownIsToldForEachInput() async throws {
        let scratch = try Scratch()
        let whole = try Data(contentsOf: URL(filePath: film))
        try whole.prefix(700).write(to: scratch.file("cut.mp4"))
        try FileManager.default.createDirectory(at: scratch.file("empty"), withIntermediateDirectories: true)
        try FileManager.default.createDirectory(at: scratch.file("flat"), withIntermediateDirectories: true)
        let pdfs = scratch.file("broken.pdf")
        try Data("%PDF-1.7\nnothing follows".utf8).write(to: pdfs)
        let outcome = try await Tool.run(
            ["thumbnail", "cut.mp4", "broken.pdf", Samples.path("lake.jpg"), "empty", "gone.pdf", "-o", "out"],
            in: scratch.url)
        #expect(outcome.status == 1)
        let lines = outcome.errors.split(separator: "\n").map(String.init).sorted()
        #expect(lines.map { $0.prefix { $0 != ":" } } == ["broken.pdf", "cut.mp4", "empty", "gone.pdf"])
        #expect(lines.contains("empty: it is a directory; add --recursive to use the files in it"))
        #expect(lines.contains("gone.pdf: No such file or directory"))
        #expect(scratch.contents.filter { $0.hasPrefix("out/") } == ["out/lake.jpg"])
        let empty = try await Tool.run(["thumbnail", "empty", "--recursive", "-o", "out"], in: scratch.url)
        #expect(empty.status == 1)
        #expect(empty.errors == "empty: no file in this directory is an image, PDF or video\n")
    }

    @Test func pagesAndSecondsThatAreNotThereAreToldWithWhatIs() async throws {
        let scratch = try Scratch()
        for (arguments, reason) in [
            ([pdf, "--page", "10000"], "there is no page 10000, only pages 1 to 3"),
            ([pdf, "--pages", "4-"], "there is no page 4, only pages 1 to 3"),
            ([film, "--time", "99"], "it ends after 5.0 s, before second 99.0"),
        ] {
            let outcome = try await Tool.run(["thumbnail"] + arguments + ["-o", "x.jpg"], in: scratch.url)
            #expect(outcome.status == 1)
            #expect(outcome.errors == "\(arguments[0]): \(reason)\n")
        }
        #expect(scratch.contents.isEmpty)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func anEncryptedDocumentSaysSo() async throws {
        let path = try #require(Corpus.file("pdf/pypdf-libreoffice-writer-password.pdf"))
        let scratch = try Scratch()
        for command in [["thumbnail", path, "-o", "x.jpg"], ["inspect", path], ["contact-sheet", path, "-o", "x.png"]] {
            let outcome = try await Tool.run(command, in: scratch.url)
            #expect(outcome.status == 1)
            #expect(outcome.errors == "\(path): it is encrypted and needs a password\n")
        }
        let wrong = try await Tool.run(["thumbnail", path, "--password", "wrong", "-o", "x.jpg"], in: scratch.url)
        #expect(wrong.status == 1)
        #expect(scratch.contents.isEmpty)
        for arguments in [
            ["thumbnail", path, "--pages", "1-", "-o", "out"], ["inspect", path],
            ["contact-sheet", path, "-o", "x.png"],
        ] {
            let outcome = try await Tool.run(arguments + ["--password", "openpassword"], in: scratch.url)
            #expect(outcome.status == 0, "\(outcome.errors)")
        }
        #expect(try await Tool.run(["precache", path, "--size", "64", "--password", "x"], in: scratch.url).status == 2)
    }

    @Test func soundAloneHasNoPicture() async throws {
        let sound = Samples.directory.deletingLastPathComponent()
            .appending(path: "Tests/VitrinePipelineTests/Fixtures/video/sound.m4a").path
        let outcome = try await Tool.run(["thumbnail", sound, "-o", "-"])
        #expect(outcome.status == 1)
        #expect(outcome.errors == "\(sound): it is a recording without a cover; --waveform draws its sound\n")
    }

    @Test(arguments: [
        ["--page", "0"], ["--page", "-1"], ["--pages", "0-3"], ["--pages", "3-1"], ["--pages", "x"],
        ["--page", "1", "--pages", "2"], ["--time", "-1"], ["--time", "nan"], ["--time", "later"],
        ["--sizes", "64,,128"], ["--size", "64", "--sizes", "32"], ["--recursive"], ["--no-cache", "--desktop"],
        ["--sizes", "1,2", "-o", "-"],
    ])
    func wrongUsageGivesStatusTwo(_ arguments: [String]) async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(["thumbnail", pdf] + arguments, in: scratch.url)
        #expect(outcome.status == 2, "\(outcome.errors)")
        #expect(scratch.contents.isEmpty)
    }

    @Test func anEmptyFileThatSomebodyHoldsOpenIsFilled() async throws {
        let scratch = try Scratch()
        let out = scratch.file("out")
        try Data().write(to: out)
        let held = try FileHandle(forReadingFrom: out)
        let outcome = try await Tool.run(
            ["thumbnail", "--no-cache", "--format", "png", "--size", "64", "-o", out.path, "--", pdf])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try held.readToEnd() == (try Data(contentsOf: out)))
        #expect(try size(of: out).height == 64)
    }
}
