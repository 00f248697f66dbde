import Foundation
import TestSupport
import Testing

@Suite struct InspectCommandTests {
    @Test func everySampleIsDescribed() async throws {
        let outcome = try await Tool.run(["inspect", "--json"] + Samples.names.map(Samples.path))
        #expect(outcome.status == 0, "\(outcome.errors)")
        let byName = Dictionary(
            uniqueKeysWithValues: outcome.objects.compactMap { object in
                (object["input"] as? String).map { (URL(filePath: $0).lastPathComponent, object) }
            })
        #expect(byName.count == Samples.names.count)
        for (name, format, width, height) in [
            ("lake.jpg", "jpeg", 1800, 1200), ("leaf.png", "png", 320, 320), ("lake.webp", "webp", 600, 400),
            ("moon.gif", "gif", 128, 128), ("lake.tif", "tiff", 300, 200), ("lake.heic", "heic", 600, 400),
            ("lake.avif", "avif", 600, 400), ("lake.jxl", "jxl", 600, 400), ("lake.jp2", "jp2", 600, 400),
            ("vitrine.svg", "svg", 240, 240), ("lake.bmp", "bmp", 150, 100), ("leaf.ico", "ico", 64, 64),
        ] {
            #expect(byName[name]?["format"] as? String == format)
            #expect(byName[name]?["width"] as? Int == width, "\(name)")
            #expect(byName[name]?["height"] as? Int == height, "\(name)")
        }
        for value in 1...8 {
            let object = byName["orientation-\(value).jpg"]
            #expect(object?["orientation"] as? Int == value)
            #expect(object?["width"] as? Int == 300)
        }
        for animation in ["moon.gif", "moon.webp", "moon-animated.png"] {
            #expect(byName[animation]?["frames"] as? Int == 16, "\(animation)")
            #expect(abs((byName[animation]?["duration"] as? Double ?? 0) - 1.28) < 0.001, "\(animation)")
        }
        #expect(byName["lake-progressive.jpg"]?["progressive"] as? Bool == true)
        #expect(byName["leaf.png"]?["alpha"] as? Bool == true)
    }

    @Test func textNamesWhatMattersAndFailuresGiveStatusOne() async throws {
        let outcome = try await Tool.run(["inspect", Samples.path("moon.gif"), "/nowhere/at/all.png"])
        #expect(outcome.status == 1)
        #expect(outcome.output.contains("gif, 128×128"))
        #expect(outcome.output.contains("16 frames in 1.28 s"))
        #expect(outcome.errors == "/nowhere/at/all.png: No such file or directory\n")
    }

    @Test func whatADrawingIsDrawnWithoutIsTold() async throws {
        let scratch = try Scratch()
        func drawing(_ name: String, _ body: String, _ prologue: String = "") throws -> URL {
            let start = "\(prologue)<svg xmlns='http://www.w3.org/2000/svg' width='8' height='4'>"
            let file = scratch.file(name)
            try Data("\(start)\(body)</svg>".utf8).write(to: file)
            return file
        }
        let whole = try drawing("whole.svg", "<g/>")
        let part = try drawing("part.svg", "<image href='a.png'/><style>@import 'a.css'</style>")
        let refused = try drawing("refused.svg", "<g/>", "<?xml version='1.0' encoding='UTF-7'?>")
        let outcome = try await Tool.run(["inspect", whole.path, part.path, refused.path])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n")
        #expect(lines[0].hasSuffix("  svg, 8×4, rgb 8-bit, alpha"))
        let left = "drawn without a reference to another file, an imported style sheet"
        #expect(lines[1].hasSuffix("alpha, \(left)"))
        #expect(lines[2].hasSuffix("alpha, not drawn: an encoding that cannot be checked"))
        let objects = try await Tool.run(["inspect", whole.path, part.path, "--json"]).objects
        #expect(objects.map { $0["notes"] as? [String] } == [[], [left]])
    }

    @Test func pagesAndFilmsAreTold() async throws {
        let outcome = try await Tool.run(["inspect", Samples.path("lake.pdf"), Samples.path("lake.mp4")])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("lake.pdf  pdf, 3 pages, 420×595 points, “A Lake at Dusk”\n"))
        #expect(outcome.output.contains("480×320, 5.00 s, 12 frames a second, h264\n"))
        let files = ["lake.pdf", "lake.mp4"].map(Samples.path)
        let objects = try await Tool.run(["inspect"] + files + ["--json"]).objects
        #expect(objects.map { $0["pages"] as? Int } == [3, nil])
        #expect(objects.map { $0["width"] as? Int } == [420, 480])
        #expect(objects[0]["title"] as? String == "A Lake at Dusk")
        #expect(objects[1]["duration"] as? Double == 5)
        #expect(objects[1]["videoCodec"] as? String == "h264")
        #expect(objects.allSatisfy { $0.count == objects[0].count && $0["error"] is NSNull })
    }
}
