import Foundation
import TestSupport
import Testing
import VitrineCommand
import VitrineCore
import VitrineImaging

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
        #expect(lines[0].hasSuffix("  svg, 8×4, rgb 8-bit, alpha, 71 B"))
        let left = "drawn without a reference to another file, an imported style sheet"
        #expect(lines[1].hasSuffix("alpha, 118 B, \(left)"))
        #expect(lines[2].hasSuffix("alpha, 109 B, not drawn: an encoding that cannot be checked"))
        let objects = try await Tool.run(["inspect", whole.path, part.path, "--json"]).objects
        #expect(objects.map { $0["notes"] as? [String] } == [[], [left]])
    }

    @Test func pagesAndFilmsAreTold() async throws {
        let outcome = try await Tool.run(["inspect", Samples.path("lake.pdf"), Samples.path("lake.mp4")])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("lake.pdf  pdf, 3 pages, 420×595 points, “A Lake at Dusk”, 18.7 kB\n"))
        #expect(outcome.output.contains("480×320, 5.00 s, 12 frames a second, h264, 43.4 kB\n"))
        let files = ["lake.pdf", "lake.mp4"].map(Samples.path)
        let objects = try await Tool.run(["inspect"] + files + ["--json"]).objects
        #expect(objects.map { $0["pages"] as? Int } == [3, nil])
        #expect(objects.map { $0["width"] as? Int } == [420, 480])
        #expect(objects[0]["title"] as? String == "A Lake at Dusk")
        #expect(objects[1]["duration"] as? Double == 5)
        #expect(objects[1]["videoCodec"] as? String == "h264")
        #expect(objects.allSatisfy { $0.count == objects[0].count && $0["error"] is NSNull })
    }

    /// A JPEG file with an Exif block.
    private static func photo(_ exif: ExifSample) throws -> [UInt8] {
        let image = PixelImage(size: PixelSize(8), color: .white)
        return try image.encoded(
            as: .jpeg(quality: 0.9), options: EncodeOptions(metadata: ImageMetadata(exif: exif.bytes)))
    }

    @Test func aPhotoTellsItsCameraDateAndPlace() async throws {
        var exif = ExifSample()
        (exif.make, exif.model, exif.lensModel) = ("Canon", "Canon EOS R5", "RF24-105mm F4 L IS USM")
        (exif.dateTimeOriginal, exif.offsetTimeOriginal) = ("2024:07:19 18:30:05", "+02:00")
        exif.place = (-33.8568, 151.2153)
        let scratch = try Scratch()
        let bytes = try Self.photo(exif)
        try Data(bytes).write(to: scratch.file("photo.jpg"))
        let text = try await Tool.run(["inspect", "photo.jpg"], in: scratch.url)
        #expect(text.status == 0, "\(text.errors)")
        #expect(
            text.output.hasSuffix(
                ", \(ByteCount(bytes.count).formatted()), Canon EOS R5, RF24-105mm F4 L IS USM, "
                    + "2024-07-19 18:30:05+02:00, 33.85680° S 151.21530° E\n"), "\(text.output)")
        let json = try await Tool.run(["inspect", "--json", "photo.jpg"], in: scratch.url)
        let object = try #require(json.objects.first)
        #expect(object["bytes"] as? Int == bytes.count)
        #expect(object["camera"] as? String == "Canon EOS R5")
        #expect(object["lens"] as? String == "RF24-105mm F4 L IS USM")
        #expect(object["created"] as? String == "2024-07-19T18:30:05+02:00")
        #expect(abs((object["latitude"] as? Double ?? 0) + 33.8568) < 0.00001)
        #expect(abs((object["longitude"] as? Double ?? 0) - 151.2153) < 0.00001)
    }

    @Test func unknownDetailsAreNull() async throws {
        let outcome = try await Tool.run(["inspect", "--json", Samples.path("lake.jpg"), Samples.path("lake.pdf")])
        for object in outcome.objects {
            for key in ["camera", "lens", "latitude", "longitude"] { #expect(object[key] is NSNull, "\(key)") }
            #expect((object["bytes"] as? Int ?? 0) > 1_000)
        }
    }

    @Test func damagedDetailsAreLeftOut() {
        var exif = ExifSample()
        (exif.make, exif.model) = ("NIKON CORPORATION", "NIKON Z 8")
        exif.place = (12.5, 7.25)
        let details = PhotoDetails(exif: exif.bytes)
        #expect(details.camera == "NIKON Z 8")
        #expect(details.parts == ["NIKON Z 8", "12.50000° N 7.25000° E"])
        exif.place = (91, 7)
        #expect(PhotoDetails(exif: exif.bytes).place == nil)
        (exif.make, exif.model) = ("SONY", "ILCE-7M4")
        #expect(PhotoDetails(exif: exif.bytes).camera == "SONY ILCE-7M4")
        for count in 0..<exif.bytes.count { _ = PhotoDetails(exif: Array(exif.bytes.prefix(count))) }
        #expect(PhotoDetails(exif: []).parts.isEmpty)
    }
}
