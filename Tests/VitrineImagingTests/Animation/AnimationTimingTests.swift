import Testing
import VitrineImaging

struct AnimationTimingTests {
    private let endless = AnimationTiming(durations: [0.1, 0.2, 0.3])

    @Test func framesAreShownAtTheirTimes() {
        for (seconds, frame, remaining) in [
            (-1, 0, 0.1), (0, 0, 0.1), (0.05, 0, 0.05), (0.1, 1, 0.2), (0.25, 1, 0.05), (0.5, 2, 0.1),
        ] as [(Double, Int, Double)] {
            let position = endless.position(at: seconds)
            #expect(position.frame == frame && position.loop == 0)
            #expect(abs((position.remaining ?? .nan) - remaining) < 1e-9)
        }
        #expect(abs(endless.duration - 0.6) < 1e-12 && endless.start(of: 2) == endless.durations[0] + endless.durations[1])
    }

    @Test func endlessAnimationsRepeat() {
        let position = endless.position(at: 0.6 * 1_000 + 0.15)
        #expect(position.frame == 1 && position.loop == 1_000 && position.remaining != nil)
        #expect(endless.position(at: 1e300).remaining != nil)
        #expect(endless.position(at: .infinity).frame >= 0)
        #expect(endless.position(at: .nan).frame == 0)
    }

    @Test func lastFrameStaysBehindTheLastLoop() {
        let twice = AnimationTiming(durations: [0.1, 0.2, 0.3], loopCount: 2)
        #expect(twice.position(at: 0.55).remaining != nil)
        let again = twice.position(at: 0.65)
        #expect(again.frame == 0 && again.loop == 1)
        let last = twice.position(at: 1.0)
        #expect(last.frame == 2 && last.loop == 1 && last.remaining == nil)
        #expect(twice.position(at: 100).frame == 2 && twice.position(at: 100).remaining == nil)
    }

    @Test func delaysThatAreTooShortCountAsATenthOfASecond() {
        let timing = AnimationTiming(durations: [0, 0.01, 0.011, -5, .nan, .infinity, 1e300], loopCount: -3)
        #expect(timing.durations == [0.1, 0.1, 0.011, 0.1, 0.1, 0.1, 65_536] && timing.loopCount == 0)
        #expect(timing.duration.isFinite)
    }

    @Test func everyTimeHasOneFrame() {
        let timing = AnimationTiming(durations: (0..<50).map { 0.02 + Double($0 % 7) * 0.013 })
        var (frame, loop) = (0, 0)
        for step in 0..<40_000 {
            let position = timing.position(at: Double(step) * 0.001)
            let isNext = position.loop == loop && (position.frame == frame || position.frame == frame + 1)
            let isFirst = position.loop == loop + 1 && position.frame == 0 && frame == 49
            #expect(isNext || isFirst)
            (frame, loop) = (position.frame, position.loop)
        }
        #expect(loop > 5)
    }

    @Test func withoutTwoFramesNothingMoves() {
        for durations in [[], [1.0]] {
            let position = AnimationTiming(durations: durations).position(at: 3)
            #expect(position.frame == 0 && position.loop == 0 && position.remaining == nil)
        }
        #expect(AnimationTiming(durations: []).start(of: 4) == 0 && AnimationTiming(durations: []).duration == 0)
    }
}
