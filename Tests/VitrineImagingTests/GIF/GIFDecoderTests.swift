import Testing
import VitrineCore
import VitrineImaging
import VitrineRaster

/// Frames against digests of the same frames composed by Pillow 13.0 (Fixtures/GIF/make.py prints them); those of
/// `pillow-dispose_bgnd.gif` by Chromium 156, since Pillow clears to the background colour, which no browser does.
struct GIFDecoderTests {
    static let fixtures: [(String, [Int: UInt64])] = [
        ("interlaced.gif", [0: 0x038833b435a9edbb]),
        ("sequential.gif", [0: 0x038833b435a9edbb]),
        ("keep.gif", [0: 0xd8e8e71af2561de5, 1: 0x1ad267f805eb4c3d, 2: 0xea96df9de40baa3d, 4: 0x4a11ca3c1c8240a5]),
        ("clear.gif", [0: 0xd8e8e71af2561de5, 1: 0xdcbe611998c5b53d, 2: 0x4bef421a5cc96c75, 4: 0xf35c56fbc1037105]),
        ("restore.gif", [0: 0xd8e8e71af2561de5, 1: 0xdcbe611998c5b53d, 2: 0x4bef421a5cc96c75, 4: 0xf35c56fbc1037105]),
    ]
    static let corpus: [(String, [Int: UInt64])] = [
        (
            "pillow-dispose_bgnd.gif",
            [0: 0xe0769c9eb1ff9d4c, 1: 0xf2c5e1004dca8174, 2: 0xbcef37ae1bbd65ae, 4: 0x8f0e4cebfb475fc2]
        ),
        ("pillow-hopper.gif", [0: 0x69c09d5f6f85074d]),
        (
            "pillow-iss634.gif",
            [0: 0x6488b4e4880627dc, 1: 0x5c91f49fd1425687, 21: 0xecc7f909af6eef48, 41: 0xa5e1f476b95e0ca0]
        ),
        (
            "sharp-animated-loop-3.gif",
            [0: 0xf63b4ca5dcde2205, 1: 0x637c1966a3a9e1df, 5: 0x1c47d4a886f12f73, 9: 0x46d0edb8a2dc3037]
        ),
        (
            "sharp-rotating-squares.gif",
            [0: 0x3523b3bf2b1feb18, 1: 0x3523b3bf2b1feb18, 15: 0x79d6acd05f1a52da, 29: 0x3523b3bf2b1feb18]
        ),
    ]

    @Test(arguments: fixtures)
    func composesFramesOfFixtures(_ name: String, _ digests: [Int: UInt64]) throws {
        try check(ByteSource(.file(Fixture.path("GIF/" + name))), digests)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: corpus)
    func composesFramesOfTheCorpus(_ name: String, _ digests: [Int: UInt64]) throws {
        try check(ByteSource(.file(#require(Corpus.file("gif/" + name)))), digests)
    }

    private func check(_ source: ByteSource, _ digests: [Int: UInt64]) throws {
        let info = try ImageInfo(reading: source)
        for (page, digest) in digests {
            let decoded = try GIFDecoder().decode(
                source, DecodeRequest(info: info, target: nil, options: DecodeOptions(page: page)))
            #expect(GIFSamples.digest(decoded) == digest, "frame \(page)")
            #expect(!decoded.isPartial)
        }
    }

    /// Opaque frames whose disposal leaves a hole (`restore-first.gif`: the first frame restores the empty canvas;
    /// `clear-later.gif`: the second is cleared).
    @Test(arguments: [("restore-first.gif", 1, 3, 3), ("clear-later.gif", 2, 0, 0)])
    func pixelsThatAreClearedOrRestoredAreTransparent(name: String, page: Int, x: Int, y: Int) throws {
        let source = try ByteSource(.file(Fixture.path("GIF/" + name)))
        let info = try ImageInfo(reading: source)
        #expect(info.hasAlpha)
        let frame = try GIFDecoder().decode(
            source, DecodeRequest(info: info, target: nil, options: DecodeOptions(page: page)))
        let at = (y * 4 + x) * 4
        #expect(GIFSamples.rgba(frame)[at..<(at + 4)].elementsEqual([0, 0, 0, 0]))
        let played = try GIFDecoder().frames(of: source, DecodeRequest(info: info, target: nil))
        for _ in 0...page { #expect(try played.advance(CancellationToken())) }
        #expect(GIFSamples.rgba(try played.samples(CancellationToken())) == GIFSamples.rgba(frame))
        let first = try GIFDecoder().decode(source, DecodeRequest(info: info, target: nil))
        #expect(stride(from: 3, to: 64, by: 4).allSatisfy { GIFSamples.rgba(first)[$0] == 255 })
    }

    @Test func meansOfBlocksAgreeWithTheFullPicture() throws {
        let source = try ByteSource(.file(Fixture.path("GIF/sequential.gif")))
        let info = try ImageInfo(reading: source)
        let full = GIFSamples.rgba(try GIFDecoder().decode(source, DecodeRequest(info: info, target: nil)))
        let small = try GIFDecoder().decode(source, DecodeRequest(info: info, target: PixelSize(width: 5, height: 4)))
        let plane = small.planes[0]  // reduced 9.25 times, so by 4
        #expect(plane.width == 13 && plane.height == 10 && plane.channels == 3)
        #expect(plane.extentWidth == 12.5 && plane.extentHeight == 9.25)
        plane.storage.withUnsafeBytes { bytes in
            for y in 0..<10 {
                for x in 0..<13 {
                    var (sum, count) = (0, 0)
                    for v in (4 * y)..<min(37, 4 * y + 4) {
                        for u in (4 * x)..<min(50, 4 * x + 4) {
                            (sum, count) = (sum + Int(full[(v * 50 + u) * 4]), count + 1)
                        }
                    }
                    #expect(Int(bytes[(y * 13 + x) * 3]) == (sum + count / 2) / count)
                }
            }
        }
    }

    @Test func cutInputIsAnErrorUnlessPartIsAllowed() throws {
        let bytes = try Fixture.bytes("GIF/sequential.gif")
        let source = ByteSource(bytes: Array(bytes.prefix(bytes.count * 2 / 3)), name: "cut")
        let info = try ImageInfo(reading: source)
        #expect(throws: ImageError.truncated(input: "cut")) {
            try GIFDecoder().decode(source, DecodeRequest(info: info, target: nil))
        }
        let partial = try GIFDecoder().decode(
            source, DecodeRequest(info: info, target: nil, options: DecodeOptions(allowsPartial: true)))
        #expect(partial.isPartial && partial.alpha == .straight)
        let whole = ByteSource(bytes: bytes, name: "whole")
        let full = GIFSamples.rgba(
            try GIFDecoder().decode(whole, DecodeRequest(info: ImageInfo(reading: whole), target: nil)))
        #expect(GIFSamples.rgba(partial).prefix(4_000).elementsEqual(full.prefix(4_000)))
    }

    @Test func anInterlacedFrameThatIsCutShowsItsRowsInPlaceOfMissingOnes() throws {
        let bytes = try Fixture.bytes("GIF/interlaced.gif")
        let whole = ByteSource(bytes: bytes, name: "whole")
        let info = try ImageInfo(reading: whole)
        let full = GIFSamples.rgba(try GIFDecoder().decode(whole, DecodeRequest(info: info, target: nil)))
        func row(_ samples: [UInt8], _ y: Int) -> ArraySlice<UInt8> { samples[(200 * y)..<(200 * y + 200)] }
        var heights: Set<Double> = []
        for count in stride(from: 100, to: bytes.count - 8, by: 16) {
            let cut = ByteSource(bytes: Array(bytes.prefix(count)), name: "cut")
            guard let info = try? ImageInfo(reading: cut),
                let part = try? GIFDecoder().decode(
                    cut, DecodeRequest(info: info, target: nil, options: DecodeOptions(allowsPartial: true)))
            else { continue }
            let samples = GIFSamples.rgba(part)
            heights.insert(part.filledHeight)
            for y in 0..<Int((part.filledHeight * 37).rounded()) {
                // The row itself, or the last one above that is there: a multiple of 2, 4 or 8.
                let sources = [y, y & ~1, y & ~3, y & ~7].map { row(full, $0) }
                #expect(sources.contains(row(samples, y)), "row \(y) of \(count) bytes")
                if y % 8 == 0 { #expect(row(samples, y) == row(full, y)) }
            }
        }
        // Five rows of the first pass reach to the end.
        let possible = [8, 16, 24, 32, 37].map { Double($0) / 37 }
        #expect(heights.contains(1) && heights.count > 1 && heights.isSubset(of: possible))
    }

    @Test func refusesFramesThatAreNotThere() throws {
        let source = try ByteSource(.file(Fixture.path("GIF/keep.gif")))
        let info = try ImageInfo(reading: source)
        for page in [-1, 5] {
            #expect(throws: ImageError.self) {
                try GIFDecoder().decode(
                    source, DecodeRequest(info: info, target: nil, options: DecodeOptions(page: page)))
            }
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func answersForEveryHostileFile() throws {
        var decodedFiles = 0
        for folder in ["imagetestsuite-gif", "afl-gif", "pillow", "bombs"] {
            for path in Corpus.files(in: "hostile/" + folder) {
                let source = try ByteSource(.file(path))
                guard let info = try? ImageInfo(reading: source), info.format == .gif else { continue }
                for page in [0, info.frameCount - 1] {
                    let request = DecodeRequest(
                        info: info, target: PixelSize(64), options: DecodeOptions(page: page, allowsPartial: true))
                    if (try? GIFDecoder().decode(source, request)) != nil { decodedFiles += 1 }
                }
            }
        }
        #expect(decodedFiles > 20)
    }

    @Test func survivesMutations() throws {
        for name in ["restore.gif", "interlaced.gif"] {
            let bytes = try Fixture.bytes("GIF/" + name)
            var state: UInt64 = 88_172_645_463_325_252
            func random(_ limit: Int) -> Int {
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                return Int(state % UInt64(limit))
            }
            for _ in 0..<4_000 {
                var copy = bytes
                for _ in 0...random(5) { copy[random(copy.count)] = UInt8(random(256)) }
                let source = ByteSource(bytes: copy, name: "mutated")
                var limits = ImageLimits()
                limits.maximumWholeImagePixels = 1_000_000
                guard let info = try? ImageInfo(reading: source, limits: limits), info.format == .gif else { continue }
                let request = DecodeRequest(
                    info: info, target: random(2) == 0 ? nil : PixelSize(7),
                    options: DecodeOptions(page: max(0, min(info.frameCount, 5) - 1), allowsPartial: random(2) == 0),
                    limits: limits)
                _ = try? GIFDecoder().decode(source, request)
            }
        }
    }
}
