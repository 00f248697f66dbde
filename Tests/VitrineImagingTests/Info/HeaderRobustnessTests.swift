import Foundation
import Testing
import VitrineImaging

/// Broken input gives an answer or a typed error, in bounded time, and never a trap.
struct HeaderRobustnessTests {
    private static let samples = [
        "Info/thumbnail.jpg", "Info/animated.png", "Info/animated.webp", "Info/sequence.avif", "Info/turned-7.avif",
        "Info/pages.tif", "Info/big.tif", "Info/picture.jp2", "Info/icon.ico", "Info/icon-bmp.ico", "Info/palette.bmp",
        "GIF/restore.gif", "Info/profile.png",
    ]

    /// Reads everything there is to read; returns how it ended.
    @discardableResult
    private func read(_ bytes: [UInt8]) -> Bool {
        let source = ByteSource(bytes: bytes, name: "mutated")
        do {
            _ = try ImageInfo(reading: source)
            let metadata = try ImageMetadata(reading: source)
            _ = metadata.sanitizedForUprightPixels(removingLocation: true)
            if let exif = metadata.exif { _ = ExifSummary(exif: exif) }
            return true
        } catch {
            return false
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func answersForEveryHostileFile() throws {
        var read = 0
        for path in Corpus.files(in: "hostile") {
            guard let source = try? ByteSource(.file(path)) else { continue }
            if (try? ImageInfo(reading: source)) != nil { read += 1 }
            _ = (try? ImageMetadata(reading: source))?.sanitizedForUprightPixels(removingLocation: true)
        }
        #expect(read > 300)
    }

    @Test(arguments: samples)
    func survivesEveryTruncation(_ name: String) throws {
        let bytes = try Fixture.bytes(name)
        for count in 0..<bytes.count { read(Array(bytes.prefix(count))) }
        #expect(read(bytes))
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: [
        "jpeg/leica-t-16mp.jpg", "heic/IMG_5195.heic", "avif/sharp-pitm.avif", "webp/coolpix-10mp.webp", "jxl/cafe.jxl",
        "gif/pillow-iss634.gif", "tiff/vips-sample.tif",
    ])
    func survivesTruncationAtEveryKilobyte(_ name: String) throws {
        let bytes = try ByteSource(.file(#require(Corpus.file(name)))).bytes(at: 0, count: 600 << 10)
        for count in stride(from: 0, to: bytes.count, by: 1024) { read(Array(bytes.prefix(count))) }
    }

    @Test(arguments: samples)
    func survivesMutations(_ name: String) throws {
        let bytes = try Fixture.bytes(name)
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        func random(_ limit: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state % UInt64(limit))
        }
        let extremes: [UInt8] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF]
        for _ in 0..<3_000 {
            var copy = bytes
            for _ in 0...random(4) {
                let at = random(min(copy.count, random(2) == 0 ? 256 : copy.count))
                let run = random(3) == 0 ? 4 : 1
                for i in at..<min(copy.count, at + run) {
                    copy[i] = random(2) == 0 ? extremes[random(6)] : UInt8(random(256))
                }
            }
            read(copy)
        }
    }

    @Test func doesNotWalkAChainOfDirectoriesForEver() throws {
        // Two directories that point at each other.
        var bytes: [UInt8] = [0x49, 0x49, 42, 0, 8, 0, 0, 0]
        func directory(next: UInt8) -> [UInt8] {
            [2, 0, 0, 1, 3, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 1, 3, 0, 1, 0, 0, 0, 7, 0, 0, 0, next, 0, 0, 0]
        }
        bytes += directory(next: 38) + directory(next: 8)
        let info = try ImageInfo(of: .bytes(bytes))
        #expect(info.storedSize == PixelSize(width: 9, height: 7))
        #expect(info.frameCount == 2)
    }
}
