import VitrineCore
import VitrineImaging

/// Shows the frames of one animation at their times. The next frame is decoded while one is shown.
///
/// A frame that is decoded late is shown late, and the following ones as much later. Playing stops behind the last
/// loop, when the player is released, and when a frame is not wanted any more.
@MainActor
final class AnimationPlayer {
    /// A clock that counts from its creation.
    struct Clock: Sendable {
        let now: @Sendable () -> Duration
        let sleep: @Sendable (_ until: Duration) async throws -> Void

        init<C: _Concurrency.Clock>(_ clock: C) where C.Duration == Duration {
            let origin = clock.now
            now = { origin.duration(to: clock.now) }
            sleep = { try await clock.sleep(until: origin.advanced(by: $0), tolerance: nil) }
        }
    }

    /// The frame that is shown, and the loop it belongs to.
    private struct Position {
        var frame = 0
        var loop = 0
    }

    private let animation: AnimatedImage
    private let clock: Clock
    private let show: @MainActor (PixelImage) -> Bool
    private var position = Position()
    /// The frames that can be shown: fewer than the animation has if one of them is damaged.
    private var frameCount: Int
    private var task: Task<Void, Never>?

    /// - Parameters:
    ///   - animation: The animation, whose first frame is shown already.
    ///   - show: Shows a frame. Returns false to stop.
    init(_ animation: AnimatedImage, clock: Clock, show: @escaping @MainActor (PixelImage) -> Bool) {
        self.animation = animation
        self.clock = clock
        self.show = show
        frameCount = animation.timing.frameCount
    }

    deinit { task?.cancel() }

    var isPlaying: Bool { task != nil }

    /// Plays from the frame that is shown.
    func play() {
        guard task == nil, next() != nil else { return }
        let (animation, clock) = (animation, clock)
        task = Task { @MainActor [weak self] in
            var shownAt = clock.now()
            while !Task.isCancelled, let wait = self?.seconds, let next = self?.next() {
                // The player is not held while it waits.
                guard let image = await self?.decoded(next.frame, of: animation) ?? nil else { continue }
                guard (try? await clock.sleep(shownAt + wait)) != nil, !Task.isCancelled, let player = self else { return }
                // Waking up late by less than a frame does not delay the following ones.
                shownAt = max(shownAt + wait, clock.now() - wait)
                player.position = next
                guard player.show(image) else { return player.pause() }
            }
            if !Task.isCancelled { self?.pause() }
        }
    }

    /// Stops at the frame that is shown.
    func pause() {
        task?.cancel()
        task = nil
    }

    /// How long the frame that is shown stays.
    private var seconds: Duration {
        .seconds(animation.timing.durations[min(position.frame, animation.timing.frameCount - 1)])
    }

    /// The next position; nil behind the last loop, and for an animation that lost its frames.
    private func next() -> Position? {
        guard frameCount > 1 else { return nil }
        var next = position
        next.frame += 1
        guard next.frame >= frameCount else { return next }
        next.frame = 0
        next.loop += 1
        let loops = animation.timing.loopCount
        return loops > 0 && next.loop >= loops ? nil : next
    }

    /// The frame; nil if it cannot be decoded, which ends each loop before it.
    nonisolated private func decoded(_ frame: Int, of animation: AnimatedImage) async -> PixelImage? {
        do {
            return try await animation.image(at: frame)
        } catch {
            await self.end(before: error is CancellationError ? nil : frame)
            return nil
        }
    }

    private func end(before frame: Int?) {
        guard let frame else { return }
        frameCount = min(frameCount, frame)
    }
}
