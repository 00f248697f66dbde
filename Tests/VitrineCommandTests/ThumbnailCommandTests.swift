import Foundation
import TestSupport
import Testing
import VitrineImaging

@Suite struct ThumbnailCommandTests {
    private func size(of url: URL) throws -> PixelSize {
        try ImageInfo(of: .file(url.path)).size
    }

    @Test func everySampleBecomesAThumbnail() async throws {
        let scratch = try Scratch()
        let inputs = Samples.names.map(Samples.path)
        #expect(inputs.count >= 20)
        let outcome = try await Tool.run(["thumbnail"] + inputs + ["--size", "96", "-o", scratch.url.path, "--json"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.objects.count == inputs.count)
        for object in outcome.objects {
            let path = try #require(object["output"] as? String)
            let made = try size(of: URL(filePath: path))
            #expect(made.longestSide == 96, "\(path)")
            #expect(object["width"] as? Int == made.width)
            #expect(object["height"] as? Int == made.height)
            #expect(object["bytes"] as? Int == (try Data(contentsOf: URL(filePath: path)).count))
            #expect(object["error"] is NSNull)
        }
        #expect(scratch.contents.count == inputs.count)
    }

    @Test(arguments: [
        (["--max-pixels", "1000000"], "too many pixels: 2160000, and the limit is 1000000; --max-pixels raises it"),
        (["--max-bytes", "10k"], "the limit is 10000; --max-bytes raises it"),
    ])
    func limitsAreNamedWithTheOptionThatRaisesThem(_ words: [String], _ reason: String) async throws {
        let scratch = try Scratch()
        let command = ["thumbnail", Samples.path("lake.jpg"), "--no-cache", "-o", scratch.file("out.png").path]
        let refused = try await Tool.run(command + words)
        #expect(refused.status == 1 && refused.errors.contains(reason), "\(refused.errors)")
        let raised = try await Tool.run(command + [words[0], "9999999"])
        #expect(raised.status == 0, "\(raised.errors)")
        #expect(try size(of: scratch.file("out.png")).longestSide == 256)
    }

    @Test func allEightOrientationsGiveTheSameUprightPicture() async throws {
        let scratch = try Scratch()
        let inputs = (1...8).map { Samples.path("orientation-\($0).jpg") }
        let outcome = try await Tool.run(
            ["thumbnail"] + inputs + ["--size", "150", "--format", "png", "-o", scratch.url.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let upright = try await ImageDecoder().image(from: .file(scratch.file("orientation-1.png").path))
        #expect(upright.size == PixelSize(width: 150, height: 100))
        for value in 2...8 {
            let other = try await ImageDecoder().image(from: .file(scratch.file("orientation-\(value).png").path))
            #expect(other.size == upright.size)
            // Each file was compressed on its own: the same picture within the noise of quality 80.
            var sum = 0
            for y in 0..<100 {
                for x in 0..<150 { sum += abs(Int(other[x, y].green) - Int(upright[x, y].green)) }
            }
            #expect(Double(sum) / 15_000 < 4, "orientation \(value)")
        }
    }

    @Test func sizesAndModesAreThoseOfTheResizer() async throws {
        let scratch = try Scratch()
        for (arguments, expected) in [
            (["--size", "300x300"], PixelSize(width: 300, height: 200)),
            (["--size", "90x"], PixelSize(width: 90, height: 60)),
            (["--size", "x90"], PixelSize(width: 135, height: 90)),
            (["--size", "100", "--mode", "fill"], PixelSize(width: 150, height: 100)),
            (["--size", "100x80", "--mode", "stretch"], PixelSize(width: 100, height: 80)),
            (["--size", "100x80", "--mode", "crop", "--gravity", "top-left"], PixelSize(width: 100, height: 80)),
            (["--size", "100x80", "--mode", "crop", "--gravity", "attention"], PixelSize(width: 100, height: 80)),
            (["--size", "1200"], PixelSize(width: 1200, height: 800)),
            (["--size", "1200", "--no-upscale"], PixelSize(width: 600, height: 400)),
        ] {
            let out = scratch.file("out.png")
            let outcome = try await Tool.run(["thumbnail", Samples.path("lake.webp"), "-o", out.path] + arguments)
            #expect(outcome.status == 0, "\(arguments): \(outcome.errors)")
            #expect(try size(of: out) == expected, "\(arguments)")
        }
    }

    @Test(arguments: ["jpeg", "png", "webp", "avif", "jxl", "gif"])
    func everyOutputFormatIsWritten(_ name: String) async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            ["thumbnail", Samples.path("lake.jpg"), "--format", name, "-o", scratch.url.path + "/", "--size", "64"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let file = try #require(scratch.contents.first)
        let info = try ImageInfo(of: .file(scratch.file(file).path))
        #expect(info.format.rawValue == name)
        #expect(info.size == PixelSize(width: 64, height: 43))
    }

    @Test func automaticFormatKeepsTransparencyAsPNGAndTheRestAsJPEG() async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            ["thumbnail", Samples.path("leaf.png"), Samples.path("lake.jpg"), "-o", scratch.url.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(scratch.contents == ["lake.jpg", "leaf.png"])
    }

    @Test func oneBadInputDoesNotStopTheOthersAndGivesStatusOne() async throws {
        let scratch = try Scratch()
        let bad = scratch.file("bad.jpg")
        try Data("no picture at all".utf8).write(to: bad)
        let empty = scratch.file("empty.png")
        try Data().write(to: empty)
        let out = scratch.file("out")
        let inputs = [bad.path, Samples.path("lake.jpg"), empty.path, scratch.file("absent.png").path, scratch.url.path]
        let outcome = try await Tool.run(["thumbnail"] + inputs + ["-o", out.path])
        #expect(outcome.status == 1)
        let lines = outcome.errors.split(separator: "\n").map(String.init)
        #expect(lines.count == 4)
        #expect(lines.contains("\(bad.path): not an image of a known format"))
        #expect(lines.contains("\(empty.path): the file is empty"))
        #expect(lines.contains("\(scratch.file("absent.png").path): No such file or directory"))
        #expect(lines.contains("\(scratch.url.path): it is a directory; add --recursive to use the files in it"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: out.path) == ["lake.jpg"])
    }

    @Test func qualityIsAPercentageOrAFraction() async throws {
        var files: [String: [UInt8]] = [:]
        for quality in ["0.4", "40", "40%", "90"] {
            let run = try await Tool.run(
                [
                    "thumbnail", Samples.path("lake.jpg"), "--size", "64", "--format", "jpeg", "--quality", quality,
                    "-o", "-",
                ])
            #expect(run.status == 0, "\(run.errors)")
            files[quality] = run.bytes
        }
        #expect(files["40"] == files["0.4"] && files["40%"] == files["0.4"])
        #expect(try #require(files["90"]).count > #require(files["40"]).count)
    }

    @Test(arguments: [
        ["thumbnail"], ["thumbnail", "a.jpg", "--size", "0"], ["thumbnail", "a.jpg", "--size", "axb"],
        ["thumbnail", "a.jpg", "--quality", "nan"], ["thumbnail", "a.jpg", "--quality", "101"],
        ["thumbnail", "a.jpg", "--format", "bmp"], ["thumbnail", "a.jpg", "--background", "nocolour"],
        ["thumbnail", "a.jpg", "--mode", "crop", "--size", "20x"], ["thumbnail", "a", "b", "-o", "-"], ["nonsense"],
    ])
    func wrongUsageGivesStatusTwo(_ arguments: [String]) async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(arguments, in: scratch.url)
        #expect(outcome.status == 2, "\(outcome.errors)")
        #expect(!outcome.errors.isEmpty)
        #expect(scratch.contents.isEmpty)
    }

    @Test func anExistingOutputSurvivesAFailure() async throws {
        let scratch = try Scratch()
        let out = scratch.file("out.jpg")
        try Data("precious".utf8).write(to: out)
        let truncated = scratch.file("cut.jpg")
        try Data(contentsOf: URL(filePath: Samples.path("lake.jpg"))).prefix(60_000).write(to: truncated)
        #expect(try await Tool.run(["thumbnail", truncated.path, "-o", out.path]).status == 1)
        #expect(try Data(contentsOf: out) == Data("precious".utf8))
        #expect(scratch.contents == ["cut.jpg", "out.jpg"])
        #expect(try await Tool.run(["thumbnail", truncated.path, "-o", out.path, "--allow-partial"]).status == 0)
        #expect(try size(of: out).width == 256)
    }

    @Test func theInputIsNeverOverwritten() async throws {
        let scratch = try Scratch()
        let picture = scratch.file("picture.jpg")
        let bytes = try Data(contentsOf: URL(filePath: Samples.path("lake.jpg")))
        try bytes.write(to: picture)
        let outcome = try await Tool.run(["thumbnail", "picture.jpg", "-o", "./picture.jpg"], in: scratch.url)
        #expect(outcome.status == 1)
        #expect(try Data(contentsOf: picture) == bytes)
        #expect(try await Tool.run(["thumbnail", "picture.jpg"], in: scratch.url).status == 0)
        #expect(scratch.contents == ["picture-thumbnail.jpg", "picture.jpg"])
    }

    @Test func inputsOfOneNameGetOutputsOfTheirOwn() async throws {
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            ["thumbnail", Samples.path("lake.jpg"), Samples.path("lake.webp"), Samples.path("lake.bmp"), "-o", "out"],
            in: scratch.url)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(scratch.contents == ["out", "out/lake.bmp.jpg", "out/lake.jpg.jpg", "out/lake.webp.jpg"])
    }

    @Test func standardInputAndOutputWork() async throws {
        let bytes = try Data(contentsOf: URL(filePath: Samples.path("leaf.png")))
        let scratch = try Scratch()
        let outcome = try await Tool.run(
            ["thumbnail", "-", "--size", "40", "-o", "out.png"], in: scratch.url, input: bytes)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try size(of: scratch.file("out.png")) == PixelSize(40))
        let piped = try await Tool.run(["thumbnail", Samples.path("vitrine.svg"), "--size", "32", "-o", "-"])
        #expect(piped.status == 0)
        #expect(piped.output.contains("PNG"))
    }

    @Test func cornersAreRoundedAndBackgroundsFilled() async throws {
        let scratch = try Scratch()
        let out = scratch.file("round.png")
        let outcome = try await Tool.run(
            ["thumbnail", Samples.path("lake.jpg"), "--size", "60", "--mode", "crop", "--round", "20", "-o", out.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let image = try await ImageDecoder().image(from: .file(out.path))
        #expect(image[0, 0].alpha == 0)
        #expect(image[30, 30].alpha == 255)
        let filled = scratch.file("filled.png")
        _ = try await Tool.run(
            ["thumbnail", Samples.path("leaf.png"), "--size", "60", "--background", "#f00", "-o", filled.path])
        #expect(try await ImageDecoder().image(from: .file(filled.path))[0, 0] == PixelColor(red: 255, green: 0, blue: 0))
    }
}
