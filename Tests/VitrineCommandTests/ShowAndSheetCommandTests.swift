import Foundation
import TestSupport
import Testing
import VitrineImaging

@Suite struct ShowAndSheetCommandTests {
    @Test func halfBlocksHaveOneLineForTwoRows() async throws {
        let outcome = try await Tool.run(
            ["show", Samples.path("lake.jpg"), "--size", "30x20", "--protocol", "blocks"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.count == 10)
        // Cells whose halves are alike may be drawn as blanks: what counts is thirty cells a line.
        #expect(
            lines.allSatisfy { $0.replacing(/\u{1B}\[[0-9;]*m/, with: "").count == 30 && $0.contains("▀") })
    }

    @Test func kittyAndSixelSpeakTheirProtocols() async throws {
        let kitty = try await Tool.run(["show", Samples.path("leaf.png"), "--size", "16", "--protocol", "kitty"])
        #expect(kitty.output.hasPrefix("\u{1B}_G"))
        let sixel = try await Tool.run(["show", Samples.path("leaf.png"), "--size", "16", "--protocol", "sixel"])
        #expect(sixel.output.hasPrefix("\u{1B}P"))
    }

    @Test func pagesAndFramesAreShown() async throws {
        for arguments in [["lake.pdf", "--page", "3"], ["lake.mp4", "--time", "3"]] {
            let outcome = try await Tool.run(
                ["show", Samples.path(arguments[0]), "--size", "30x20", "--protocol", "blocks"] + arguments.dropFirst())
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.output.split(separator: "\n").count == 10)
        }
        #expect(try await Tool.run(["show", Samples.path("lake.pdf"), "--page", "0"]).status == 2)
    }

    @Test func whatCannotBeShownGivesStatusOne() async throws {
        let outcome = try await Tool.run(["show", "/nowhere.png"])
        #expect(outcome.status == 1)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors == "/nowhere.png: No such file or directory\n")
    }

    @Test func aSheetHasACellForEveryPicture() async throws {
        let scratch = try Scratch()
        let out = scratch.file("sheet.png")
        let inputs = ["lake.jpg", "leaf.png", "moon.gif", "vitrine.svg"].map(Samples.path)
        let outcome = try await Tool.run(
            ["contact-sheet"] + inputs + ["--size", "80", "--columns", "2", "-o", out.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let size = try ImageInfo(of: .file(out.path)).size
        #expect(size.width > 160 && size.height > 160)
        let wide = scratch.file("wide.png")
        _ = try await Tool.run(["contact-sheet"] + inputs + ["--size", "80", "--columns", "4", "-o", wide.path])
        #expect(try ImageInfo(of: .file(wide.path)).size.width > size.width)
    }

    @Test func aSheetTakesPagesFilmsAndDirectories() async throws {
        let scratch = try Scratch()
        let tree = try scratch.tree(["a/lake.pdf", "b/c/lake.mp4", "leaf.png"])
        let out = scratch.file("sheet.png")
        let inputs = [tree.path, Samples.path("moon.gif")]
        let refused = try await Tool.run(["contact-sheet"] + inputs + ["-o", out.path, "--size", "40"])
        #expect(refused.status == 1)
        #expect(refused.errors == "\(tree.path): it is a directory; add --recursive to use the files in it\n")
        // 3 pages, a film, a leaf and 2 of the moon's frames, in one row.
        let outcome = try await Tool.run(
            ["contact-sheet"] + inputs
                + ["--recursive", "--pages", "1-3", "--columns", "9", "-o", out.path, "--size", "40", "--no-cache"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let seven = try ImageInfo(of: .file(out.path)).size.width
        _ = try await Tool.run(
            ["contact-sheet"] + Array(repeating: Samples.path("leaf.png"), count: 8)
                + ["--columns", "9", "-o", out.path, "--size", "40"])
        #expect(try ImageInfo(of: .file(out.path)).size.width == seven)
    }

    @Test func tooManyImagesAreRefusedBeforeAnyIsDecoded() async throws {
        let scratch = try Scratch()
        let out = scratch.file("sheet.png").path
        let inputs = [String](repeating: Samples.path("leaf.png"), count: 60)
        let words = ["--columns", "1", "-o", out]
        let outcome = try await Tool.run(["contact-sheet"] + inputs + ["--size", "400"] + words)
        #expect(outcome.status == 2)
        #expect(
            outcome.errors.contains("60 images of 400 pixels are too many for one sheet; --size 37 fits"),
            "\(outcome.errors)")
        let fitting = try await Tool.run(["contact-sheet"] + inputs + ["--size", "37"] + words)
        #expect(fitting.status == 0, "\(fitting.errors)")
        #expect(try ImageInfo(of: .file(out)).size.height == 8_136)
        let many = try await Tool.run(["contact-sheet"] + inputs + inputs + words)
        #expect(many.status == 2 && many.errors.contains("name fewer inputs, or choose other --columns"))
    }

    @Test func captionsAndTitleAreChosen() async throws {
        let scratch = try Scratch()
        var heights: [Int] = []
        for arguments in [["--captions", "none"], ["--captions", "name"], [], ["--title", "Übersicht"]] {
            let out = scratch.file("sheet.png").path
            let outcome = try await Tool.run(
                ["contact-sheet", Samples.path("leaf.png"), "--size", "40", "-o", out] + arguments)
            #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
            heights.append(try ImageInfo(of: .file(out)).size.height)
        }
        #expect(heights == [128, 154, 174, 230])
        let wrong = try await Tool.run(["contact-sheet", "a.jpg", "--captions", "all", "-o", "x.png"])
        #expect(wrong.status == 2)
    }

    @Test func aSheetWithoutTheHelperHasNoText() async throws {
        let scratch = try Scratch()
        let out = scratch.file("sheet.png").path
        let outcome = try await Tool.run(
            ["contact-sheet", Samples.path("leaf.png"), "--size", "40", "-o", out],
            environment: ["VITRINE_TEXT": "/nonexistent"])
        #expect(outcome.status == 0)
        #expect(outcome.errors == "\(out): without title and captions, as vitrine-text is not installed\n")
        #expect(try ImageInfo(of: .file(out)).size.height == 128)
    }

    @Test func anEmptyDirectoryGivesNoSheet() async throws {
        let scratch = try Scratch()
        let tree = try scratch.tree([])
        let out = scratch.file("sheet.png")
        let outcome = try await Tool.run(["contact-sheet", tree.path, "--recursive", "-o", out.path])
        #expect(outcome.status == 1)
        #expect(outcome.errors == "\(tree.path): no file in this directory is an image, PDF or video\n")
        #expect(!FileManager.default.fileExists(atPath: out.path))
    }

    @Test func aStoryboardHasAnImageAndItsTimes() async throws {
        let scratch = try Scratch()
        let out = scratch.file("the film.jpg")
        let outcome = try await Tool.run(
            ["storyboard", Samples.path("lake.mp4"), "--interval", "1", "--width", "48", "--columns", "2", "-o", out.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.isEmpty)
        let size = try ImageInfo(of: .file(out.path)).size
        #expect(size.width % 48 == 0 && size.width <= 96)
        let text = try String(contentsOf: scratch.file("the film.vtt"), encoding: .utf8)
        #expect(text.hasPrefix("WEBVTT\n\n00:00:00.000 --> 00:00:0"))
        #expect(text.contains("\nthe%20film.jpg#xywh=0,0,48,"))
    }

    @Test func storyboardsOfOtherInputsFail() async throws {
        let scratch = try Scratch()
        let out = scratch.file("sheet.jpg").path
        for arguments in [["--width", "3"], ["--interval", "0"], ["--columns", "0"], ["--quality", "101"]] {
            let words = ["storyboard", Samples.path("lake.mp4"), "-o", out] + arguments
            #expect(try await Tool.run(words).status == 2, "\(arguments)")
        }
        #expect(try await Tool.run(["storyboard", Samples.path("lake.mp4"), "-o", out + ".gif"]).status == 2)
        #expect(try await Tool.run(["storyboard", "https://example.org/film.mp4", "-o", out]).status == 2)
        let image = try await Tool.run(["storyboard", Samples.path("lake.jpg"), "-o", out])
        #expect(image.status == 1 && image.errors.contains("lake.jpg: "))
        let missing = try await Tool.run(["storyboard", Samples.path("lake.mp4"), "-o", "/nowhere/x.jpg"])
        #expect(missing.status == 1)
        #expect(missing.errors == "/nowhere/x.jpg: cannot write it: its directory does not exist\n")
    }
}
