import TestSupport
import Testing
import VitrineCore

struct ManualClockTests {
    @Test func sleepersWakeWhenTheirTimeHasComeInOrder() async throws {
        let clock = ManualClock()
        let log = Recorder<Int>()
        let tasks = [5, 1, 3].map { seconds in
            Task {
                try await clock.sleep(for: .seconds(seconds))
                log.add(seconds)
            }
        }
        await clock.waitForSleepers(3)
        clock.advance(by: .seconds(2))
        try await tasks[1].value
        #expect(log.all == [1])
        #expect(clock.sleeperCount == 2)
        clock.advance(by: .seconds(10))
        for task in tasks { try await task.value }
        #expect(Set(log.all) == [1, 3, 5])
        try await clock.sleep(until: clock.now)
    }

    @Test func cancelledSleepersWakeAtOnce() async {
        let clock = ManualClock()
        let task = Task { try await clock.sleep(for: .seconds(1)) }
        await clock.waitForSleepers()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await clock.sleep(for: .seconds(1))
        }
        await #expect(throws: CancellationError.self) { try await early.value }
        #expect(clock.sleeperCount == 0)
    }

    @Test func wallClockFollowsAManualOne() {
        let clock = ManualClock()
        let wall = WallClock.following(clock, from: .seconds(100))
        clock.advance(by: .seconds(5))
        #expect(wall.now == .seconds(105))
        #expect(WallClock.system.now > .seconds(1_700_000_000))
    }
}
