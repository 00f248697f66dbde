import Testing
import VitrineCore
import VitrineImaging

/// Files that lie about their frames, or have too many of them.
struct HostileAnimationTests {
    /// A GIF of frames of one pixel on a canvas.
    private static func gif(frames: Int, canvas: (Int, Int) = (1, 1), delay: Int = 0) -> [UInt8] {
        func u16(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }
        var file = Array("GIF89a".utf8) + u16(canvas.0) + u16(canvas.1) + [0x80, 0, 0, 0, 0, 0, 255, 255, 255]
        let frame = [0x21, 0xF9, 4, 0] + u16(delay) + [0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0]
        for _ in 0..<frames { file += frame }
        return file + [0x3B]
    }

    private static func open(
        _ bytes: [UInt8], limits: ImageLimits = .standard, isolation: Isolation = .automatic
    ) throws -> AnimatedImage? {
        let decoder = ImageDecoder(
            limits: limits, isolation: isolation, codecs: .standard, pool: WorkerFixture.pool(1))
        return try AnimatedImage(
            .bytes(bytes, name: "hostile"), at: .fit(32), decoder: decoder, budget: FrameBudget(capacity: 1 << 20))
    }

    @Test func moreFramesThanTheLimitAreAnError() throws {
        #expect(throws: ImageError.limitExceeded(input: "hostile", limit: .frames, actual: 200_000, allowed: 1_000)) {
            try Self.open(Self.gif(frames: 200_000))
        }
        var limits = ImageLimits()
        limits.maximumFrames = 1
        #expect(throws: ImageError.self) { try Self.open(Self.gif(frames: 2), limits: limits) }
        limits.maximumFrames = -1
        #expect(throws: ImageError.self) { try Self.open(Self.gif(frames: 2), limits: limits) }
    }

    @Test func framesWithoutADelayAreShownForATenthOfASecond() throws {
        let animation = try #require(try Self.open(Self.gif(frames: 900)))
        #expect(animation.timing.durations.allSatisfy { $0 == 0.1 })
        #expect(try animation.decodeImage(at: 899).size == PixelSize(32))
    }

    @Test func hugeCanvasesAreAnError() throws {
        #expect(throws: ImageError.self) { try Self.open(Self.gif(frames: 2, canvas: (65_535, 65_535))) }
        var limits = ImageLimits()
        limits.maximumWholeImagePixels = 99
        #expect(throws: ImageError.self) { try Self.open(Self.gif(frames: 2, canvas: (10, 10)), limits: limits) }
    }

    @Test func filesThatEndEarlyPlayAsFarAsTheyGo() throws {
        let file = try Fixture.bytes("GIF/keep.gif")
        let animation = try #require(try Self.open(Array(file.prefix(file.count * 3 / 5))))
        #expect(animation.timing.frameCount < 5)
        var decoded = 0
        while decoded < animation.timing.frameCount, (try? animation.decodeImage(at: decoded)) != nil { decoded += 1 }
        #expect(decoded >= 1)
    }

    /// The box of the durations claims any size, from none for its content on.
    @Test func tablesOfDurationsThatAreCutAreRead() throws {
        let file = try Fixture.bytes("Info/sequence.avif")
        let name = Array("stts".utf8)
        let place = try #require(file.indices.dropLast(4).first { Array(file[$0..<$0 + 4]) == name })
        for size in 8...24 {
            var cut = file
            cut[place - 1] = UInt8(size)
            // The other boxes of the track may be lost with it.
            let frames = try? Self.open(cut)?.timing.frameCount
            #expect(frames ?? 4 <= 4)
        }
    }

    @Test(arguments: ["GIF/restore.gif", "PNG/animation.png", "WebP/animated.webp", "Info/animated.webp"])
    func mutationsEndInFramesOrErrors(_ name: String) throws {
        let file = try Fixture.bytes(name)
        var state: UInt64 = 88_172_645_463_325_252
        func random(_ limit: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state % UInt64(limit))
        }
        var limits = ImageLimits()
        limits.maximumWholeImagePixels = 1 << 20
        var frames = 0
        for _ in 0..<400 {
            var bytes = file
            for _ in 0...random(4) { bytes[random(bytes.count)] = UInt8(random(256)) }
            if random(4) == 0 { bytes.removeLast(random(bytes.count / 2)) }
            guard let animation = try? Self.open(bytes, limits: limits) else { continue }
            for frame in 0..<min(8, animation.timing.frameCount) where (try? animation.decodeImage(at: frame)) != nil {
                frames += 1
            }
        }
        #expect(frames > 100)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func everyHostileFileEndsInFramesOrErrors() throws {
        var limits = ImageLimits()
        limits.deadline = 30
        var animations = 0
        let decoder = ImageDecoder(
            limits: limits, isolation: .automatic, codecs: .standard, pool: WorkerFixture.pool(2))
        let folders = [
            "imagetestsuite-gif", "imagetestsuite-png", "afl-gif", "gofuzz-webp", "gofuzz-png", "pillow", "bombs",
            "libheif-fuzz",
        ].map { "hostile/" + $0 } + ["anything/hostile"]
        for folder in folders {
            for path in Corpus.files(in: folder) {
                guard
                    let animation = try? AnimatedImage(
                        .file(path), at: .fit(64), decoder: decoder, budget: FrameBudget(capacity: 1 << 20))
                else { continue }
                animations += 1
                let last = animation.timing.frameCount - 1
                for frame in Set([0, 1, last / 2, last]).sorted() { _ = try? animation.decodeImage(at: frame) }
                #expect(animation.cachedCount <= animation.timing.frameCount)
            }
        }
        #expect(animations > 3)
    }
}
