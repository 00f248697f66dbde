import Foundation
import Testing
import VitrineImaging

import VitrineServer

/// Tiles of a picture, which share its decodes.
@Suite struct IIIFTileTests {
    /// A picture of soft colours, whose JPEG has little noise.
    private static func picture(_ width: Int, _ height: Int) -> PixelImage {
        PixelImage(width: width, height: height, alpha: .opaque) { bytes in
            for y in 0..<height {
                for x in 0..<width {
                    let at = 4 * (y * width + x)
                    bytes[at] = UInt8(x * 255 / width)
                    bytes[at + 1] = UInt8(y * 255 / height)
                    bytes[at + 2] = UInt8(128 + 100 * (x / 64 + y / 64) % 2)
                    bytes[at + 3] = 255
                }
            }
        }
    }

    private static func root(_ files: [String: [UInt8]]) throws -> String {
        let root = NSTemporaryDirectory() + "vitrine-tiles-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for (name, bytes) in files { try Data(bytes).write(to: URL(filePath: root + "/" + name)) }
        return root
    }

    private static func meanDifference(_ one: PixelImage, _ other: PixelImage) -> Double {
        guard one.size == other.size else { return 255 }
        var sum = 0
        one.withUnsafeBytes { a in
            other.withUnsafeBytes { b in
                for y in 0..<one.height {
                    for x in 0..<(4 * one.width) {
                        sum += abs(Int(a[y * one.bytesPerRow + x]) - Int(b[y * other.bytesPerRow + x]))
                    }
                }
            }
        }
        return Double(sum) / Double(4 * one.width * one.height)
    }

    /// All levels as viewers ask for them, with the tiles at the edges. Bands of the largest level have 512 rows.
    @Test(arguments: ["a.jpg", "a.png"], [0, 12_000_000, 96_000_000])
    func tilesOfAllLevelsShowThePicture(name: String, tileMemory: Int) async throws {
        let picture = Self.picture(1_837, 1_411)
        let format: OutputFormat = name == "a.png" ? .png : .jpeg(quality: 0.95)
        let root = try Self.root([name: try picture.encoded(as: format)])
        let change: (inout ServerConfiguration) -> Void = { configuration in
            configuration.iiif = true
            configuration.localRoot = root
            configuration.tileMemory = tileMemory
        }
        try await ImageProgram.run(change) { program in
            let connection = try program.connect()
            for factor in [4, 2, 1] {
                let side = 512 * factor
                let size = PixelSize(
                    width: (picture.width + factor - 1) / factor, height: (picture.height + factor - 1) / factor)
                let level = try ImageResizer.stretch(width: size.width, height: size.height).resize(picture)
                for y in stride(from: 0, to: picture.height, by: side) {
                    for x in stride(from: 0, to: picture.width, by: side) {
                        let (w, h) = (min(side, picture.width - x), min(side, picture.height - y))
                        let wide = (w + factor - 1) / factor, high = (h + factor - 1) / factor
                        let reply = try await connection.ask(
                            "/iiif/3/\(name)/\(x),\(y),\(w),\(h)/\(wide),\(high)/0/default.png")
                        #expect(reply.status == 200)
                        let tile = try ImageDecoder().decode(.bytes(reply.body))
                        let expected = try level.processed(by: [
                            .crop(x: x / factor, y: y / factor, width: wide, height: high)
                        ])
                        #expect(Self.meanDifference(tile, expected) < 3, "\(factor) \(x) \(y)")
                    }
                }
            }
        }
    }

    @Test func aChangedFileGivesOtherTiles() async throws {
        let (first, second) = (Self.picture(900, 700), Self.picture(900, 700).oriented(.down))
        let root = try Self.root(["a.png": try first.encoded(as: .png)])
        let change: (inout ServerConfiguration) -> Void = { configuration in
            configuration.iiif = true
            configuration.localRoot = root
        }
        try await ImageProgram.run(change) { program in
            for (number, picture) in [first, second].enumerated() {
                try Data(try picture.encoded(as: .png)).write(to: URL(filePath: root + "/a.png"), options: .atomic)
                // Another tile each time: a file counts as unchanged for a second.
                let reply = try await program.ask("/iiif/3/a.png/512,\(512 * number),388,188/388,188/0/default.png")
                let tile = try ImageDecoder().decode(.bytes(reply.body))
                let expected = try picture.processed(by: [.crop(x: 512, y: 512 * number, width: 388, height: 188)])
                #expect(Self.meanDifference(tile, expected) < 1)
            }
        }
    }

    /// A viewer out of control: every request is answered, and no memory is kept for tiles that do not exist.
    @Test func manyTilesThatDoNotExistAreRefused() async throws {
        let root = try Self.root(["a.jpg": try Self.picture(600, 400).encoded(as: .jpeg(quality: 0.9))])
        let change: (inout ServerConfiguration) -> Void = { configuration in
            configuration.iiif = true
            configuration.localRoot = root
        }
        try await ImageProgram.run(change) { program in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<8 {
                    group.addTask {
                        let connection = try program.connect()
                        for number in 0..<100 {
                            let x = 600 + 512 * (worker * 100 + number)
                            let reply = try await connection.ask("/iiif/3/a.jpg/\(x),0,512,512/512,512/0/default.jpg")
                            #expect(reply.status == 400)
                        }
                        let last = try await connection.ask("/iiif/3/a.jpg/512,0,88,400/88,400/0/default.jpg")
                        #expect(last.status == 200)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// Files that lie about themselves are errors, and the next request is answered.
    @Test func hostileFilesAreErrors() async throws {
        let good = try Self.picture(600, 400).encoded(as: .jpeg(quality: 0.9))
        let root = try Self.root([
            "cut.jpg": Array(good[..<(good.count / 3)]), "empty.jpg": [], "text.jpg": Array("<html>".utf8),
            "head.png": [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], "good.jpg": good,
        ])
        let change: (inout ServerConfiguration) -> Void = { configuration in
            configuration.iiif = true
            configuration.localRoot = root
        }
        try await ImageProgram.run(change) { program in
            for name in ["cut.jpg", "empty.jpg", "text.jpg", "head.png"] {
                for x in [0, 10, 20] {
                    let reply = try await program.ask("/iiif/3/\(name)/\(x),0,512,400/512,400/0/default.jpg")
                    #expect(reply.status == 422, "\(name)")
                }
            }
            #expect(try await program.ask("/iiif/3/good.jpg/0,0,512,400/512,400/0/default.jpg").status == 200)
        }
    }
}
