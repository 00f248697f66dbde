import Foundation
import Testing
import VitrineCore
import VitrineImaging

/// Frames against Pillow's, and against frames that are decoded one by one.
struct AnimatedImageTests {
    /// Digests of frames that Pillow 9.4 composed, as Fixtures/Info/make.py computes them.
    private static let digests: [(String, [UInt64])] = [
        (
            "GIF/keep.gif",
            [0xd8e8e71af2561de5, 0x1ad267f805eb4c3d, 0xea96df9de40baa3d, 0x76dc7e8a3b551bd5, 0x4a11ca3c1c8240a5]
        ),
        (
            "GIF/clear.gif",
            [0xd8e8e71af2561de5, 0xdcbe611998c5b53d, 0x4bef421a5cc96c75, 0x039a4c5b778eedad, 0xf35c56fbc1037105]
        ),
        (
            "GIF/restore.gif",
            [0xd8e8e71af2561de5, 0xdcbe611998c5b53d, 0x4bef421a5cc96c75, 0x039a4c5b778eedad, 0xf35c56fbc1037105]
        ),
        (
            "PNG/animation.png",
            [
                0xea51d4eed10ad225, 0xf494ad3b1fa5f8cd, 0x634526789d0236d5, 0xea51d4eed10ad225, 0xe135f4f316833165,
                0x14e1a64595a6e525, 0x3d3280459d35f70d,
            ]
        ),
        (
            "PNG/animation-hidden-default.png",
            [
                0xea51d4eed10ad225, 0xf494ad3b1fa5f8cd, 0x634526789d0236d5, 0xea51d4eed10ad225, 0xe135f4f316833165,
                0x14e1a64595a6e525, 0x3d3280459d35f70d,
            ]
        ),
    ]

    private static let local = [
        "GIF/keep.gif", "GIF/clear.gif", "GIF/restore.gif", "PNG/animation.png", "PNG/animation-hidden-default.png",
        "WebP/animated.webp",
    ]
    private static let isolated = ["AVIF/sequence.avif", "JXL/frames.jxl"]

    private static let decoder = ImageDecoder(
        limits: .standard, isolation: .automatic, codecs: .standard, pool: WorkerFixture.pool(2))

    private static func open(
        _ name: String, at resizer: ImageResizer = .none, decoder: ImageDecoder = decoder,
        budget: FrameBudget = FrameBudget(capacity: 64 << 20)
    ) throws -> AnimatedImage {
        try #require(
            try AnimatedImage(.file(Fixture.path(name)), at: resizer, decoder: decoder, budget: budget))
    }

    @Test func animationsAreKnownByTheirSignatures() throws {
        let folder = try Fixture.path("")
        var formats: Set<ImageFormat> = []
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
            guard let animation = try? AnimatedImage(.file(folder + "/" + name)) else { continue }
            formats.insert(animation.info.format)
            #expect(ImageFormat.mayBeAnimated(try Fixture.bytes(name)), "\(name)")
        }
        #expect(formats.isSuperset(of: [.gif, .png, .webp, .avif, .jxl]))
        for bytes in [try Fixture.bytes("JPEG/two-scans.jpg"), try Fixture.bytes("Info/pages.tif"), [], [0x47]] {
            #expect(!ImageFormat.mayBeAnimated(bytes))
        }
    }

    @Test(arguments: digests) func framesAreComposedAsPillowDoes(_ name: String, _ digests: [UInt64]) throws {
        let animation = try Self.open(name)
        #expect(animation.timing.frameCount == digests.count)
        for (frame, digest) in digests.enumerated() {
            #expect(try animation.decodeImage(at: frame).digest == digest, "frame \(frame)")
        }
    }

    @Test func translucentFramesOfWebPAreBlended() throws {
        let reference = try Fixture.bytes("WebP/animated.rgba")
        let animation = try Self.open("WebP/animated.webp")
        for frame in 0..<5 {
            let image = try animation.decodeImage(at: frame).converted(to: .straight)
            var worst = 0
            for y in 0..<53 {
                for x in 0..<75 {
                    let at = ((frame * 53 + y) * 75 + x) * 4
                    let color = image[x, y]
                    let channels = [color.red, color.green, color.blue, color.alpha]
                    let difference = zip(channels, reference[at...]).map { abs(Int($0) - Int($1)) }.max() ?? 0
                    if color.alpha > 0 || reference[at + 3] > 0 { worst = max(worst, difference) }
                }
            }
            // The last one is lossy, and Pillow does not blend in the same way.
            #expect(worst <= 3, "frame \(frame)")
        }
    }

    @Test(arguments: local, [ImageResizer.none, .fit(7), .fit(20), .crop(width: 10, height: 10)])
    func framesInOrderAreThoseDecodedOneByOne(_ name: String, _ resizer: ImageResizer) throws {
        let animation = try Self.open(name, at: resizer)
        for frame in 0..<animation.timing.frameCount {
            let alone = try Self.decoder.decode(
                .file(Fixture.path(name)), at: resizer, options: DecodeOptions(page: frame))
            let image = try animation.decodeImage(at: frame)
            #expect(image.size == alone.size && image.size == animation.size)
            // A frame of WebP that stands alone is reduced before its colours are converted.
            #expect(image.worstDifference(from: alone) <= (name.hasPrefix("WebP") ? 24 : 0), "frame \(frame)")
        }
    }

    @Test(arguments: isolated, [ImageResizer.none, .fit(20)])
    func workersDecodeFramesInOrder(_ name: String, _ resizer: ImageResizer) throws {
        let animation = try Self.open(name, at: resizer)
        #expect(animation.timing.frameCount == animation.info.frameCount && animation.timing.frameCount > 3)
        for frame in [0, 1, 2, 3, 1, 0] {
            let alone = try Self.decoder.decode(
                .file(Fixture.path(name)), at: resizer, options: DecodeOptions(page: frame))
            #expect(try animation.decodeImage(at: frame) == alone, "frame \(frame)")
        }
    }

    @Test(arguments: local + isolated) func isolationLeavesFramesToWorkers(_ name: String) throws {
        let isolated = ImageDecoder(
            limits: .standard, isolation: .always, codecs: .standard, pool: WorkerFixture.pool(1))
        let (one, other) = (try Self.open(name, at: .fit(12), decoder: isolated), try Self.open(name, at: .fit(12)))
        for frame in 0..<other.timing.frameCount {
            #expect(try one.decodeImage(at: frame) == other.decodeImage(at: frame), "frame \(frame)")
        }
        let nobody = ImageDecoder(
            limits: .standard, isolation: .always, codecs: .standard,
            pool: WorkerPool(program: "none", location: .executable("/nonexistent")))
        #expect(throws: ImageError.self) { try Self.open(name, decoder: nobody).decodeImage(at: 0) }
    }

    @Test func bytesArePlayedAsFilesAre() throws {
        for name in Self.local + Self.isolated {
            let bytes = try #require(
                try AnimatedImage(
                    .bytes(Fixture.bytes(name), name: "bytes"), at: .fit(9), decoder: Self.decoder))
            #expect(try bytes.decodeImage(at: 2) == Self.open(name, at: .fit(9)).decodeImage(at: 2))
        }
    }

    @Test func timesAndLoopsComeFromTheFile() throws {
        #expect(try Self.open("GIF/keep.gif").timing.durations == [0.05, 0.1, 0.15, 0.2, 0.25])
        let png = try Self.open("Info/animated.png").timing
        #expect(png.durations == [0.1, 0.2, 0.3, 0.4] && png.loopCount == 3)
        let webp = try Self.open("Info/animated.webp").timing
        #expect(webp.frameCount == 4 && webp.loopCount == 3 && abs(webp.duration - 1) < 1e-9)
        let avif = try Self.open("Info/sequence.avif").timing
        #expect(avif.frameCount == 4 && avif.durations.allSatisfy { abs($0 - 0.1) < 1e-6 })
        let jxl = try Self.open("JXL/frames.jxl").timing
        #expect(jxl.frameCount == 5 && jxl.durations.allSatisfy { $0 > 0.01 })
    }

    @Test func stillImagesAndPagesAreNoAnimations() throws {
        for name in ["GIF/sequential.gif", "PNG/n2-8.png", "WebP/lossy.webp", "AVIF/420.avif", "JXL/d1.jxl"] {
            #expect(try AnimatedImage(.file(Fixture.path(name)), at: .fit(9), decoder: Self.decoder) == nil)
        }
        #expect(throws: ImageError.notAnImage(input: "text")) {
            try AnimatedImage(.bytes(Array("no image".utf8), name: "text"))
        }
        #expect(throws: ImageError.self) { try Self.open("GIF/keep.gif").decodeImage(at: 5) }
        #expect(throws: ImageError.self) { try Self.open("GIF/keep.gif").decodeImage(at: -1) }
    }

    @Test func eachFrameIsDecodedOnceIfAllFit() throws {
        let animation = try Self.open("GIF/clear.gif")
        for frame in [0, 1, 2, 3, 4, 0, 1, 2, 3, 4] { _ = try animation.decodeImage(at: frame) }
        #expect(animation.decodeCount == 5 && animation.cachedCount == 5 && !animation.isDecoderOpen)
    }

    @Test func theBudgetOfAllAnimationsBoundsKeptFrames() throws {
        let bytes = 5 * 40 * 30 * 4
        let budget = FrameBudget(capacity: bytes + 100)
        do {
            let first = try Self.open("GIF/clear.gif", budget: budget)
            let second = try Self.open("GIF/clear.gif", budget: budget)
            #expect(budget.reserved == bytes)
            for frame in [0, 1, 2, 3, 4, 0] {
                #expect(try first.decodeImage(at: frame) == second.decodeImage(at: frame))
                #expect(second.cachedCount <= 2)
            }
            #expect(first.decodeCount == 5 && second.decodeCount == 6)
        }
        #expect(budget.reserved == 0)
        let third = try Self.open("GIF/clear.gif", budget: budget)
        #expect(budget.reserved == bytes)
        _ = third
    }

    @Test func memoryPressureRemovesFrames() async throws {
        let animation = try Self.open("GIF/clear.gif")
        for frame in 0..<5 { _ = try await animation.image(at: frame) }
        MemoryPressure.shared.send(.warning)
        while animation.cachedCount > 0 { await Task.yield() }
        #expect(animation.cachedImage(at: 1) == nil)
        #expect(try animation.decodeImage(at: 1).digest == Self.digests[1].1[1])
    }

    @Test func processorsApplyToEachFrame() throws {
        let animation = try #require(
            try AnimatedImage(
                .file(Fixture.path("GIF/keep.gif")), processors: [.background(.white)]))
        for frame in 0..<5 { #expect(try animation.decodeImage(at: frame).alpha == .opaque) }
    }

    @Test func cancellationStopsADecode() async throws {
        let animation = try Self.open("GIF/keep.gif")
        let token = CancellationToken()
        token.cancel()
        #expect(throws: ImageError.self) { try animation.decodeImage(at: 3, cancellation: token) }
        #expect(animation.decodeCount == 0)
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await animation.image(at: 4)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try animation.decodeImage(at: 4).size == animation.size)
    }

    @Test func framesCanBeAskedForByManyTasks() async throws {
        let animation = try Self.open("GIF/restore.gif", budget: FrameBudget(capacity: 0))
        let expected = Self.digests[2].1
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for turn in 0..<40 {
                group.addTask { try await animation.image(at: turn * 7 % 5).digest == expected[turn * 7 % 5] }
            }
            for try await isRight in group { #expect(isRight) }
        }
    }
}

extension PixelImage {
    /// FNV-1a over pixels, as Fixtures/Info/make.py computes it; an empty pixel is four zeros.
    fileprivate var digest: UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for y in 0..<height {
            for x in 0..<width {
                let color = self[x, y]
                let value = color.alpha == 0
                    ? 0 : UInt64(color.red) | UInt64(color.green) << 8 | UInt64(color.blue) << 16 | UInt64(color.alpha) << 24
                hash = (hash ^ value) &* 0x100_0000_01B3
            }
        }
        return hash
    }

    /// The largest difference of a premultiplied channel.
    fileprivate func worstDifference(from other: PixelImage) -> Int {
        guard size == other.size else { return 255 }
        let (one, two) = (converted(to: .premultiplied), other.converted(to: .premultiplied))
        return one.withUnsafeBytes { a in
            two.withUnsafeBytes { b in
                var worst = 0
                for y in 0..<height {
                    for x in 0..<(4 * width) {
                        worst = max(worst, abs(Int(a[y * one.bytesPerRow + x]) - Int(b[y * two.bytesPerRow + x])))
                    }
                }
                return worst
            }
        }
    }
}
