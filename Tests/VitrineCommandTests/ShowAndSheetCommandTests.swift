import Foundation
import TestSupport
import Testing
import VitrineImaging

@Suite struct ShowAndSheetCommandTests {
    @Test func halfBlocksHaveOneLineForTwoRows() throws {
        let outcome = try Tool.run(
            ["show", Samples.path("lake.jpg"), "--size", "30x20", "--method", "blocks"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n")
        #expect(lines.count == 10)
        // Cells whose halves are alike may be drawn as blanks: what counts is thirty cells a line.
        #expect(
            lines.allSatisfy { $0.replacing(/\u{1B}\[[0-9;]*m/, with: "").count == 30 && $0.contains("▀") })
    }

    @Test func kittyAndSixelSpeakTheirProtocols() throws {
        let kitty = try Tool.run(["show", Samples.path("leaf.png"), "--size", "16", "--method", "kitty"])
        #expect(kitty.output.hasPrefix("\u{1B}_G"))
        let sixel = try Tool.run(["show", Samples.path("leaf.png"), "--size", "16", "--method", "sixel"])
        #expect(sixel.output.hasPrefix("\u{1B}P"))
    }

    @Test func whatCannotBeShownGivesStatusOne() throws {
        let outcome = try Tool.run(["show", "/nowhere.png"])
        #expect(outcome.status == 1)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors == "/nowhere.png: No such file or directory\n")
    }

    @Test func aSheetHasACellForEveryPicture() throws {
        let scratch = try Scratch()
        let out = scratch.file("sheet.png")
        let inputs = ["lake.jpg", "leaf.png", "moon.gif", "vitrine.svg"].map(Samples.path)
        let outcome = try Tool.run(["sheet"] + inputs + ["--size", "80", "--columns", "2", "-o", out.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let size = try ImageInfo(of: .file(out.path)).size
        #expect(size.width > 160 && size.height > 160)
        let wide = scratch.file("wide.png")
        _ = try Tool.run(["sheet"] + inputs + ["--size", "80", "--columns", "4", "-o", wide.path])
        #expect(try ImageInfo(of: .file(wide.path)).size.width > size.width)
    }
}
