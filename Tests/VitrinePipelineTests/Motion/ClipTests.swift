import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Animated previews of animations and of the films of ``VideoFixture``: six seconds of six colours, with a key frame
/// every two seconds.
struct ClipTests {
    private let directory: TemporaryDirectory
    private let pipeline: ImagePipeline

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = ImagePipeline.Configuration(root: directory.path)
        configuration.memoryPressure = nil
        pipeline = ImagePipeline(configuration)
    }

    private static func film(_ name: String) throws -> VideoFrameSource {
        try VideoFixture.source(name, at: .poster)
    }

    private static func frames(_ bytes: [UInt8]) throws -> (animation: AnimatedImage, colors: [String]) {
        let animation = try #require(try AnimatedImage(.bytes(bytes, name: "preview"), isolation: .inProcess))
        return (
            animation, try (0..<animation.timing.frameCount).map { try animation.decodeImage(at: $0).colorName() }
        )
    }

    @Test(arguments: ["seconds.mp4", "seconds.webm", "ten-bit.mp4"])
    func filmsMoveFromTheirPosterOn(film: String) async throws {
        let bytes = try await pipeline.clip(for: ClipRequest(Self.film(film), resizing: .fit(64)))
        #expect(ImageFormat.detect(bytes) == .webp)
        let (animation, colors) = try Self.frames(bytes)
        #expect(animation.size == PixelSize(width: 64, height: 36))
        #expect(abs(animation.timing.duration - 3) < 0.11)
        // Each color is seen for its second; the film shows a bar besides, so that frames differ.
        let shown = zip(colors, animation.timing.durations).reduce(into: [String: Double]()) { $0[$1.0, default: 0] += $1.1 }
        #expect(Set(shown.keys) == ["red", "green", "blue"])
        #expect(shown.values.allSatisfy { abs($0 - 1) < 0.21 })
    }

    @Test func spreadPreviewsShowAllOfAFilm() async throws {
        let request = try ClipRequest(Self.film("seconds.mp4"), resizing: .fit(64), duration: 2.4, part: .spread)
        let (animation, colors) = try Self.frames(await pipeline.clip(for: request))
        // The second of six parts begins at the key frame of the third second.
        #expect(Set(colors) == ["red", "blue", "yellow", "cyan", "magenta"])
        #expect(abs(animation.timing.duration - 2.4) < 0.3)
    }

    @Test func previewsAreUprightAndCut() async throws {
        var request = try ClipRequest(Self.film("rotated.mp4"), resizing: .fit(80), duration: 0.5)
        #expect(try Self.frames(await pipeline.clip(for: request)).animation.size == PixelSize(width: 45, height: 80))
        request.resizing = .crop(width: 30, height: 30)
        #expect(try Self.frames(await pipeline.clip(for: request)).animation.size == PixelSize(30))
    }

    @Test func animationsBecomePreviewsOfTheirBeginning() async throws {
        var request = ClipRequest(.file(Samples.path("moon.gif")), resizing: .fit(40), duration: 0.4)
        let (animation, _) = try Self.frames(await pipeline.clip(for: request))
        // Frames of 80 ms, looked at every 100 ms.
        #expect(animation.timing.frameCount == 4 && abs(animation.timing.duration - 0.4) < 0.002)
        let original = try #require(try AnimatedImage(.file(Samples.path("moon.gif")), at: .fit(40)))
        #expect(animation.size == original.size && animation.info.hasAlpha)
        let (one, other) = (try animation.decodeImage(at: 3)[20, 20], try original.decodeImage(at: 3)[20, 20])
        #expect(abs(Int(one.red) - Int(other.red)) < 30 && one.alpha == 255)
        request.part = .spread
        let spread = try Self.frames(await pipeline.clip(for: request)).animation
        #expect(spread.timing.frameCount == 4)
        request.format = .avif(quality: 0.5)
        #expect(ImageFormat.detect(try await pipeline.clip(for: request)) == .avif)
    }

    @Test func samplesShowTheFrameOfEachTime() {
        let timing = AnimationTiming(durations: [0.05, 0.05, 0.5, 0.05, 0.05])
        func frames(_ seconds: Double, _ rate: Double, spread: Bool = false) -> [Int] {
            timing.samples(ClipSpec(seconds: seconds, framesPerSecond: rate, isSpread: spread)).map(\.frame)
        }
        #expect(frames(3, 20) == [0, 1, 2, 3, 4])
        #expect(frames(3, 10) == [0, 2, 3])
        #expect(frames(0.1, 10) == [0] && frames(0.28, 20, spread: true) == [0, 2, 3])
        for rate in [1.0, 7, 10, 60] {
            let samples = timing.samples(ClipSpec(seconds: 3, framesPerSecond: rate, isSpread: false))
            #expect(abs(samples.reduce(0) { $0 + $1.seconds } - 0.7) < 0.011)
        }
    }

    @Test func equalRequestsShareTheirWorkAndTheirFile() async throws {
        let request = ClipRequest(.file(Samples.path("moon.gif")), resizing: .fit(30))
        let files = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<6 { group.addTask { try await pipeline.clip(for: request) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(files).count == 1)
        #expect(try await pipeline.clips.count() == 1)
        var configuration = ImagePipeline.Configuration(root: directory.path)
        configuration.memoryPressure = nil
        try await pipeline.clips.flush()
        let later = ImagePipeline(configuration)
        let key = pipeline.key(of: request, identity: try #require(try request.source.identityBlocking()))
        #expect(try await later.clips.bytes(forKey: key) == files[0])
        var other = request
        other.framesPerSecond = 5
        #expect(try await pipeline.clip(for: other) != files[0])
        try await pipeline.removeAll()
        #expect(try await pipeline.clips.count() == 0)
    }

    @Test func contentThatDoesNotMoveIsAnError() async throws {
        for source in [BuiltInSource.file(Samples.path("lake.jpg")), .file(Samples.path("lake.pdf"))] {
            await #expect(throws: ImagePipelineError.self) {
                try await pipeline.clip(for: ClipRequest(source, resizing: .fit(30)))
            }
        }
        await #expect(throws: ImagePipelineError.self) {
            try await pipeline.clip(for: ClipRequest(Self.film("sound.m4a"), resizing: .fit(30)))
        }
        for (duration, rate) in [(0, 10), (3, 0), (-1, 10), (.nan, 10), (31, 10), (3, .infinity)] as [(Double, Double)] {
            await #expect(throws: ImagePipelineError.self) {
                try await pipeline.clip(
                    for: ClipRequest(
                        .file(Samples.path("moon.gif")), resizing: .fit(30), duration: duration, framesPerSecond: rate))
            }
        }
        #expect(pipeline.isIdle)
    }

    @Test func cancellationEndsThePreviewOfAFilm() async throws {
        let request = try ClipRequest(Self.film("seconds.mp4"), resizing: .fit(300), format: .avif())
        let task = Task { try await pipeline.clip(for: request) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await pipeline.waitUntilIdle()
        #expect(try await pipeline.clips.count() == 0)
    }

    @Test func contentThatIsStillIsKnownWithoutALookForAnAnimation() throws {
        let moon = Samples.path("moon.gif")
        var still: [any ImageSource] = [
            BuiltInSource.image(PixelImage(size: PixelSize(8)), identity: "white"), BuiltInSource.file(moon, page: 2),
            BuiltInSource.bytes(try Samples.bytes("moon.gif"), page: 2), BuiltInSource.pdf(Samples.path("lake.pdf")),
        ]
        for name in ["lake.jpg", "lake.tif", "lake.bmp", "lake.mp4", "lake.pdf", "vitrine.svg"] {
            still.append(BuiltInSource.bytes(try Samples.bytes(name)))
        }
        try still.append(Self.film("seconds.mp4"))
        for source in still { #expect(!pipeline.mayBeAnimated(ImageRequest(source)), "\(source)") }
        for source in [BuiltInSource.file(moon), .bytes(try Samples.bytes("moon.gif"))] {
            #expect(pipeline.mayBeAnimated(ImageRequest(source)))
        }
    }

    @Test func animationsAreFoundByTheirContent() async throws {
        let moon = try await pipeline.animation(for: ImageRequest(.file(Samples.path("moon.gif")), resizing: .fit(30)))
        #expect(moon?.timing.frameCount == 16 && moon?.size.longestSide == 30)
        for name in ["lake.jpg", "lake.mp4", "lake.pdf"] {
            let request = ImageRequest(.file(Samples.path(name)), resizing: .fit(30))
            for _ in 0..<2 { #expect(try await pipeline.animation(for: request) == nil) }
        }
        #expect(try await pipeline.animation(for: ImageRequest(.file(Samples.path("moon.gif"), page: 2))) == nil)
        let bytes = try Samples.bytes("moon-animated.png")
        let loaded = ImageRequest(.bytes(identity: "moon") { bytes }, resizing: .fit(30))
        #expect(try await pipeline.animation(for: loaded)?.timing.frameCount == 16)
        #expect(await pipeline.availableAnimation(for: loaded) == nil)
        let known = ImageRequest(.bytes(bytes), resizing: .fit(30))
        #expect(await pipeline.availableAnimation(for: known)?.timing.frameCount == 16)
    }
}
