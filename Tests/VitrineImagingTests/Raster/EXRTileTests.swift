import Foundation
import TestSupport
import Testing
import VitrineImaging

/// OpenEXR images of tiles: they give the pixels of the same image in scan lines.
@Suite struct EXRTileTests {
    private static let size = PixelSize(width: 21, height: 13)

    /// An image of half floats in channels B, G and R, uncompressed: tiles of the given size, or scan lines.
    private static func file(
        tile: PixelSize?, display: [Int]? = nil, changing change: (inout [UInt8], _ table: Int) -> Void = { _, _ in }
    ) -> [UInt8] {
        func little(_ value: Int, _ count: Int = 4) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        func attribute(_ name: String, _ type: String, _ value: [UInt8]) -> [UInt8] {
            Array("\(name)\0\(type)\0".utf8) + little(value.count) + value
        }
        let kind = little(1) + little(0) + little(1) + little(1)
        let channels = ["B", "G", "R"].flatMap { Array("\($0)\0".utf8) + kind }
        let window = [0, 0, size.width - 1, size.height - 1].flatMap { little($0) }
        var file: [UInt8] = [0x76, 0x2F, 0x31, 0x01, 2, tile == nil ? 0 : 2, 0, 0]
        file += attribute("channels", "chlist", channels + [0]) + attribute("compression", "compression", [0])
        let shown = display?.flatMap { little($0) } ?? window
        file += attribute("dataWindow", "box2i", window) + attribute("displayWindow", "box2i", shown)
        file += attribute("lineOrder", "lineOrder", [0])
        if let tile { file += attribute("tiles", "tiledesc", little(tile.width) + little(tile.height) + [0]) }
        file.append(0)
        let area = tile ?? PixelSize(width: size.width, height: 1)
        var chunks: [[UInt8]] = []
        for top in stride(from: 0, to: size.height, by: area.height) {
            for left in stride(from: 0, to: size.width, by: area.width) {
                var data: [UInt8] = []
                for y in top..<min(size.height, top + area.height) {
                    for channel in 0..<3 {
                        for x in left..<min(size.width, left + area.width) {
                            // From 2^-6 to 2.
                            let place = (x + 5 * y) % size.width
                            data += little(0x2400 + (place * 331 + channel * 1_013) % 0x1C00, 2)
                        }
                    }
                }
                let tilePlace = [left / area.width, top / area.height, 0, 0].flatMap { little($0) }
                chunks.append((tile == nil ? little(top) : tilePlace) + little(data.count) + data)
            }
        }
        let table = file.count
        var at = table + 8 * chunks.count
        for chunk in chunks {
            file += little(at, 8)
            at += chunk.count
        }
        file += chunks.joined()
        change(&file, table)
        return file
    }

    private func pixels(_ file: [UInt8], _ resizer: ImageResizer = .none) throws -> [UInt8] {
        let image = try ImageDecoder(isolation: .inProcess).decode(.bytes(file, name: "tiles.exr"), at: resizer)
        return image.withUnsafeBytes { bytes in
            (0..<image.height).flatMap { bytes[($0 * image.bytesPerRow)..<($0 * image.bytesPerRow + 4 * image.width)] }
        }
    }

    @Test(arguments: [(8, 8), (16, 4), (7, 13), (21, 1), (64, 64), (1, 1)])
    func tilesGiveThePixelsOfScanLines(_ width: Int, _ height: Int) throws {
        let lines = Self.file(tile: nil)
        let tiles = Self.file(tile: PixelSize(width: width, height: height))
        #expect(try ImageInfo(of: .bytes(tiles, name: "tiles")).size == Self.size)
        let found = try pixels(tiles)
        #expect(try found == pixels(lines))
        #expect(Set(found).count > 20)
        let reduced = try pixels(tiles, .limit(width: 7, height: 7))
        #expect(reduced.count < found.count / 4)
    }

    /// A few bytes announce 16 rows of 30,000 pixels of 128 channels, of which several copies would be made.
    @Test func aBandWhoseCopiesNeedTooMuchMemoryIsRefused() throws {
        func little(_ value: Int, _ count: Int = 4) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        func attribute(_ name: String, _ type: String, _ value: [UInt8]) -> [UInt8] {
            Array("\(name)\0\(type)\0".utf8) + little(value.count) + value
        }
        let names = ["B", "G", "R"] + (0..<125).map { "c\($0 + 100)" }
        let kind = little(2) + little(0) + little(1) + little(1)
        let channels = names.flatMap { Array("\($0)\0".utf8) + kind }
        for (compression, width, isTooLarge) in [(3, 30_000, true), (4, 30_000, true), (3, 300, false)] {
            var file: [UInt8] = [0x76, 0x2F, 0x31, 0x01, 2, 0, 0, 0]
            file += attribute("channels", "chlist", channels + [0])
            file += attribute("compression", "compression", [UInt8(compression)])
            file += attribute("dataWindow", "box2i", [0, 0, width - 1, 15].flatMap { little($0) }) + [0]
            file += little(file.count + 8, 8) + little(0) + little(100) + [UInt8](repeating: 0, count: 100)
            let error = #expect(throws: ImageError.self) { try pixels(file) }
            guard case .limitExceeded(_, .memory, let needed, _) = error else {
                #expect(!isTooLarge)
                continue
            }
            #expect(isTooLarge && needed > 2 * 30_000 * 16 * 512)
        }
    }

    /// Left, top, right and bottom pixel of the window.
    @Test(arguments: [
        [0, 0, 20, 12], [-3, -2, 30, 19], [4, 3, 11, 8], [-5, 6, 8, 40], [10, -7, 60, 4], [20, 12, 20, 12],
    ], [nil, PixelSize(width: 8, height: 4)])
    func displayWindowIsThePicture(_ window: [Int], _ tile: PixelSize?) throws {
        let whole = try pixels(Self.file(tile: tile))
        let file = Self.file(tile: tile, display: window)
        let size = PixelSize(width: window[2] - window[0] + 1, height: window[3] - window[1] + 1)
        #expect(try ImageInfo(of: .bytes(file, name: "window")).size == size)
        let found = try pixels(file)
        try #require(found.count == 4 * size.pixelCount)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let (column, row) = (x + window[0], y + window[1])
                let isStored = (0..<Self.size.width).contains(column) && (0..<Self.size.height).contains(row)
                let at = 4 * (row * Self.size.width + column)
                let wanted = isStored ? Array(whole[at..<(at + 4)]) : [0, 0, 0, 255]
                let here = 4 * (y * size.width + x)
                #expect(Array(found[here..<(here + 4)]) == wanted, "\(x), \(y)")
            }
        }
    }

    @Test(arguments: [[50, 50, 90, 90], [5, 5, 4, 4], [-30, -30, -1, -1]])
    func windowsThatShowNothingAreIgnored(_ window: [Int]) throws {
        #expect(try pixels(Self.file(tile: nil, display: window)) == pixels(Self.file(tile: nil)))
    }

    /// A page with a black bar, a dark scene with a bright square, and 40 × 20 pixels at (30, 40) of 100 × 100.
    @Test func lightOfOneIsWhiteWhateverSurroundsIt() throws {
        func picture(_ name: String) throws -> (Int, Int) -> [UInt8] {
            let found = try pixels(Fixture.bytes("EXR/exr-\(name).exr"))
            let side = Int(Double(found.count / 4).squareRoot())
            return { x, y in Array(found[(4 * (y * side + x))..<(4 * (y * side + x) + 3)]) }
        }
        let page = try picture("white-page")
        #expect(page(2, 2).allSatisfy { $0 >= 253 } && page(30, 25) == [0, 0, 0])
        let scene = try picture("dark-scene")
        #expect(scene(2, 2).allSatisfy { $0 < 20 } && scene(32, 32).allSatisfy { $0 >= 253 })
        let window = try picture("display-window-100x100")
        #expect(window(2, 2) == [0, 0, 0] && window(50, 50) != [0, 0, 0] && window(99, 99) == [0, 0, 0])
    }

    @Test func damagedTilesAreErrors() throws {
        let tile = PixelSize(width: 8, height: 8)
        let misplaced = Self.file(tile: tile) { file, table in
            let first = Int(file[table]) | Int(file[table + 1]) << 8
            file[first] = 1
        }
        #expect(throws: ImageError.self) { try pixels(misplaced) }
        let outside = Self.file(tile: tile) { file, table in file[table + 6] = 1 }
        #expect(throws: ImageError.self) { try pixels(outside) }
        let cut = Self.file(tile: tile) { file, _ in file.removeLast(40) }
        #expect(throws: ImageError.self) { try pixels(cut) }
        // More tiles than the file can list.
        let many = Self.file(tile: PixelSize(width: 1, height: 1)) { file, table in
            file.removeLast(file.count - table - 64)
        }
        #expect(throws: ImageError.self) { try pixels(many) }
    }

    /// Real files, tiled with each compression by the program of OpenEXR.
    @Test(
        .enabled(
            if: Corpus.isAvailable && FileManager.default.isExecutableFile(atPath: "/usr/bin/exrmaketiled"),
            "needs the shared corpus, and exrmaketiled of the package openexr"),
        arguments: ["none", "rle", "zip", "piz", "pxr24"])
    func realFilesLookTheSameAsTiles(_ compression: String) throws {
        let path = try #require(Corpus.files(in: "anything/corpus/hdrimg").first { $0.hasSuffix("/t09.exr") })
        let folder = FileManager.default.temporaryDirectory.appending(path: "vitrine-exr-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let whole = try pixels([UInt8](Data(contentsOf: URL(filePath: path))))
        for levels in ["-o", "-m", "-r"] {
            let tiled = folder.appending(path: "\(compression)\(levels).exr")
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/exrmaketiled")
            process.arguments = [levels, "-z", compression, "-t", "48", "32", path, tiled.path]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
            let found = try pixels([UInt8](Data(contentsOf: tiled)))
            #expect(found.count == whole.count)
            let largest = zip(found, whole).map { abs(Int($0) - Int($1)) }.max() ?? 255
            #expect(largest <= 4, "\(compression) \(levels): \(largest)")
        }
    }
}
