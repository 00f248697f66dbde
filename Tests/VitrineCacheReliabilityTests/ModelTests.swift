import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Random operations, each compared with what a dictionary says.
struct ModelTests {
    @Test func aMillionRandomOperationsAgreeWithAModel() async throws {
        try await offPool {
            var run = try ModelRun(seed: 20, keys: 300)
            try run.perform(800_000 * Rounds.factor)
            #expect(run.mistakes == [])
            #expect(run.hits > 100_000)
        }
    }

    @Test(arguments: [DiskCache.Eviction.sizeAndFrequency, .leastRecentlyUsed])
    func randomOperationsInChangingCapacitiesNeverShowWhatIsNotTheLastValue(eviction: DiskCache.Eviction) async throws {
        try await offPool {
            var run = try ModelRun(seed: 21, keys: 300, eviction: eviction)
            try run.perform(100_000 * Rounds.factor)
            #expect(run.mistakes == [])
            #expect(run.hits > 5_000)
        }
    }
}
