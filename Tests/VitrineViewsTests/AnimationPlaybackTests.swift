import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// The playing of animations by a binding, with a clock that tests move.
@MainActor
struct AnimationPlaybackTests {
    /// A target whose settings can change.
    private final class MotionTarget: ImageTarget {
        var shown: [PixelImage?] = []
        var prefersReducedMotion = false

        func show(_ image: PixelImage?, transition: ImageTransition) { shown.append(image) }
    }

    private let target = MotionTarget()
    private let binding: ImageBinding<MotionTarget>
    private let clock = ManualClock()
    private let directory: TemporaryDirectory
    private let pipeline: ImagePipeline

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = ImagePipeline.Configuration(root: directory.path)
        configuration.memoryPressure = nil
        pipeline = ImagePipeline(configuration)
        binding = ImageBinding(target)
        binding.animationClock = clock
    }

    /// Sixteen frames of 80 ms, for ever.
    private static let moon = ImageRequest(.file(Samples.path("moon.gif")), resizing: .fit(32))

    private static func frames(_ path: String) throws -> [PixelImage] {
        let animation = try #require(try AnimatedImage(.file(path), at: .fit(32)))
        return try (0..<animation.timing.frameCount).map { try animation.decodeImage(at: $0) }
    }

    /// Writes an animation of frames of 100 ms that are shown twice.
    private func twice(frames: Int = 3) throws -> String {
        let encoder = try AnimationEncoder(as: .webp(), loopCount: 2)
        for index in 0..<frames {
            try encoder.add(PixelImage(size: PixelSize(8), color: PixelColor(red: UInt8(60 * index), green: 0, blue: 0)), seconds: 0.1)
        }
        let path = directory.path + "/twice.webp"
        try AtomicFile.write(encoder.finish(), to: path)
        return path
    }

    /// Moves the clock to the next frame, and waits for it.
    private func step(_ milliseconds: Int = 80) async {
        let count = target.shown.count
        await clock.waitForSleepers()
        clock.advance(by: .milliseconds(milliseconds))
        await wait { target.shown.count > count }
    }

    @Test func framesFollowAtTheirTimes() async throws {
        let frames = try Self.frames(Samples.path("moon.gif"))
        binding.set(Self.moon, in: pipeline)
        await wait { binding.isPlaying }
        #expect(target.shown.last == frames[0])
        await clock.waitForSleepers()
        clock.advance(by: .milliseconds(79))
        #expect(target.shown.last == frames[0] && clock.sleeperCount == 1)
        await step(1)
        #expect(target.shown.last == frames[1])
        for turn in 2..<40 {
            await step()
            #expect(target.shown.last == frames[turn % 16], "turn \(turn)")
        }
    }

    @Test func playingEndsBehindTheLastLoop() async throws {
        let path = try twice()
        let frames = try Self.frames(path)
        binding.set(ImageRequest(.file(path), resizing: .fit(32)), in: pipeline)
        await wait { binding.isPlaying }
        for frame in [1, 2, 0, 1, 2] {
            await step(100)
            #expect(target.shown.last == frames[frame])
        }
        await wait { !binding.isPlaying }
        #expect(clock.sleeperCount == 0)
        // The last frame stays when the target appears again.
        binding.isVisible = false
        binding.isVisible = true
        #expect(!binding.isPlaying)
    }

    @Test func invisibleTargetsShowNoFrames() async throws {
        let frames = try Self.frames(Samples.path("moon.gif"))
        binding.set(Self.moon, in: pipeline)
        await wait { binding.isPlaying }
        await step()
        await clock.waitForSleepers()
        binding.isVisible = false
        let count = target.shown.count
        #expect(!binding.isPlaying)
        clock.advance(by: .seconds(10))
        for _ in 0..<100 { await Task.yield() }
        #expect(target.shown.count == count && clock.sleeperCount == 0)
        binding.isVisible = true
        #expect(binding.isPlaying)
        await step()
        #expect(target.shown.last == frames[2])
    }

    @Test func targetsThatWantNoMotionShowTheFirstFrame() async throws {
        target.prefersReducedMotion = true
        binding.set(Self.moon, in: pipeline)
        await wait { target.shown.last??.size.longestSide == 32 }
        await pipeline.waitUntilIdle()
        for _ in 0..<100 { await Task.yield() }
        #expect(!binding.isPlaying && clock.sleeperCount == 0)
        target.prefersReducedMotion = false
        binding.prepareForReuse()
        binding.set(Self.moon, in: pipeline)
        await wait { binding.isPlaying }
        await step()
        let count = target.shown.count
        target.prefersReducedMotion = true
        await clock.waitForSleepers()
        clock.advance(by: .milliseconds(80))
        await wait { !binding.isPlaying }
        #expect(target.shown.count == count)
    }

    @Test func optionsTurnPlayingOff() async throws {
        binding.options.playsAnimations = false
        binding.set(Self.moon, in: pipeline)
        await wait { target.shown.last??.size.longestSide == 32 }
        for _ in 0..<100 { await Task.yield() }
        #expect(!binding.isPlaying && clock.sleeperCount == 0)
    }

    @Test func anotherRequestEndsTheAnimation() async throws {
        binding.set(Self.moon, in: pipeline)
        await wait { binding.isPlaying }
        await clock.waitForSleepers()
        binding.set(ImageRequest(.file(Samples.path("lake.jpg")), resizing: .fit(20)), in: pipeline)
        await wait { target.shown.last??.size.longestSide == 20 }
        clock.advance(by: .seconds(5))
        for _ in 0..<100 { await Task.yield() }
        #expect(target.shown.last??.size.longestSide == 20 && !binding.isPlaying && clock.sleeperCount == 0)
        binding.cancel()
        binding.set(nil, in: pipeline)
        #expect(target.shown.last == .some(nil))
    }

    @Test func theSameRequestDoesNotBeginTheAnimationAnew() async throws {
        let frames = try Self.frames(Samples.path("moon.gif"))
        binding.set(Self.moon, in: pipeline)
        await wait { binding.isPlaying }
        for _ in 0..<3 { await step() }
        let count = target.shown.count
        var successes = 0
        binding.set(Self.moon, in: pipeline, onSuccess: { _ in successes += 1 })
        #expect(target.shown.count == count && binding.isPlaying && successes == 1)
        await step()
        #expect(target.shown.last == frames[4])
    }

    @Test func animationsEndWithTheirTarget() async throws {
        var target: MotionTarget? = MotionTarget()
        weak let remembered = target
        let binding = ImageBinding(try #require(target))
        binding.animationClock = clock
        binding.set(Self.moon, in: pipeline)
        await wait { binding.isPlaying }
        await clock.waitForSleepers()
        target = nil
        #expect(remembered == nil)
        clock.advance(by: .milliseconds(80))
        await wait { !binding.isPlaying }
        #expect(clock.sleeperCount == 0)
    }

    @Test func playingEndsWithTheBinding() async throws {
        let target = MotionTarget()
        do {
            let binding = ImageBinding(target)
            binding.animationClock = clock
            binding.set(Self.moon, in: pipeline)
            await wait { binding.isPlaying }
            await clock.waitForSleepers()
        }
        await wait { clock.sleeperCount == 0 }
        let count = target.shown.count
        clock.advance(by: .seconds(1))
        for _ in 0..<100 { await Task.yield() }
        #expect(target.shown.count == count)
    }

    @Test func damagedFramesEndEachLoop() async throws {
        let whole = try Samples.bytes("moon.gif")
        // Cuts the file within the data of a frame.
        var frames: [PixelImage] = []
        let path = directory.path + "/cut.gif"
        for count in stride(from: whole.count / 3, to: whole.count, by: 211) {
            try AtomicFile.write(Array(whole.prefix(count)), to: path)
            let animation = try #require(try AnimatedImage(.file(path), at: .fit(32)))
            frames = (0..<animation.timing.frameCount).compactMap { try? animation.decodeImage(at: $0) }
            if frames.count < animation.timing.frameCount { break }
        }
        #expect(frames.count > 2 && frames.count < 16)
        binding.set(ImageRequest(.file(path), resizing: .fit(32)), in: pipeline)
        await wait { binding.isPlaying }
        for turn in 1..<(2 * frames.count) {
            await step()
            #expect(target.shown.last == frames[turn % frames.count])
        }
    }

    @Test func lateFramesDelayTheFollowingOnes() async throws {
        let frames = try Self.frames(Samples.path("moon.gif"))
        binding.set(Self.moon, in: pipeline)
        await wait { binding.isPlaying }
        await step(1_000)
        #expect(target.shown.last == frames[1])
        await step()
        #expect(target.shown.last == frames[2])
    }
}
