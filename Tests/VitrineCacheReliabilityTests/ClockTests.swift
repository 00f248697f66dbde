import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// The time of day jumps.
struct ClockTests {
    /// A clock that is set by hand, in seconds since 1970.
    private final class SetClock: Sendable {
        let seconds: Locked<Int>
        init(_ seconds: Int) { self.seconds = Locked(seconds) }
        var wall: WallClock { WallClock { [self] in .seconds(seconds.withLock { $0 }) } }
        func set(_ seconds: Int) { self.seconds.withLock { $0 = seconds } }
    }

    private static let start = 1_800_000_000

    private func cache(_ clock: SetClock, _ directory: TemporaryDirectory) -> DiskCache.Blocking {
        var configuration = DiskCache.Configuration()
        configuration.clock = clock.wall
        return DiskCache(directory: directory.file("cache"), configuration: configuration).blocking
    }

    @Test func freshEntriesStayFreshWhenTheClockGoesBack() async throws {
        try await offPool {
            let directory = try TemporaryDirectory(), clock = SetClock(Self.start)
            let cache = cache(clock, directory)
            try cache.set([1], forKey: "limited", timeToLive: .seconds(60))
            try cache.set([2], forKey: "unlimited")
            try cache.flush()
            for back in [1, 59, 61, 3600, 400 * 86_400] {
                clock.set(Self.start - back)
                #expect(try cache.bytes(forKey: "limited") == [1], "\(back) s back")
                #expect(try cache.bytes(forKey: "unlimited") == [2], "\(back) s back")
            }
            let again = self.cache(clock, directory)
            #expect(try again.bytes(forKey: "limited") == [1])
            clock.set(Self.start + 61)
            #expect(try again.bytes(forKey: "limited") == nil)
            #expect(try again.bytes(forKey: "unlimited") == [2])
        }
    }

    @Test func entriesFromTheFutureExpireOneTimeToLiveAfterTheyAreSeen() async throws {
        try await offPool {
            let directory = try TemporaryDirectory(), clock = SetClock(Self.start)
            let cache = cache(clock, directory)
            try cache.set([1], forKey: "a", timeToLive: .seconds(60))
            try cache.flush()
            clock.set(Self.start - 86_400)
            #expect(try cache.bytes(forKey: "a") == [1])
            try cache.flush()
            clock.set(Self.start - 86_400 + 30)
            #expect(try cache.bytes(forKey: "a") == [1])
            try cache.flush()
            clock.set(Self.start - 86_400 + 200)
            #expect(try cache.bytes(forKey: "a") == nil)
        }
    }

    @Test func evictionAndAccountsSurviveAClockThatJumps() async throws {
        try await offPool {
            let directory = try TemporaryDirectory(), clock = SetClock(Self.start)
            var random = SeededGenerator(3)
            var configuration = DiskCache.Configuration(
                capacity: 300_000, eviction: .leastRecentlyUsed, timeToLive: .seconds(1000))
            configuration.clock = clock.wall
            let cache = DiskCache(directory: directory.file("cache"), configuration: configuration).blocking
            for step in 0..<2000 {
                clock.set(Self.start + Int.random(in: -2_000_000_000...2_000_000_000, using: &random))
                let entry = SampleEntry(number: step % 97, version: step)
                try cache.set(entry.bytes(.tiny), forKey: entry.key)
                #expect(try cache.bytes(forKey: entry.key) == entry.bytes(.tiny))
                if step % 50 == 0 { try cache.flush() }
            }
            try cache.flush()
            #expect(try cache.verify(removingDamage: false).damaged.isEmpty)
            #expect(try cache.size <= 300_000)
        }
    }
}
