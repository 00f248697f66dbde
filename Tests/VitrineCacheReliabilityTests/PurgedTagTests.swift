import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Entries are removed by their tags while processes are killed or load them.
struct PurgedTagTests {
    /// Inline bodies in one transaction and in several, and files.
    @Test(arguments: [(300, 500), (5000, 10), (40, 90_000)])
    func killedPurgeHasRemovedAllOrNothing(entries: Int, size: Int) async throws {
        let rounds = max(4, Rounds.kills / (entries > 1000 ? 20 : 8))
        try await offPool {
            var gone = 0, longest: Duration = .zero
            for round in 0..<rounds {
                let directory = try TemporaryDirectory()
                let path = directory.file("cache")
                let child = try ChildProcess(["purge", path, String(entries), String(size)])
                #expect(child.line() == "filled \(entries)")
                var random = SeededGenerator(UInt64(round))
                let start = ContinuousClock.now
                if round == 0 {
                    #expect(child.line() == "removed \(entries)")
                    longest = ContinuousClock.now - start
                } else {
                    let (seconds, attoseconds) = longest.components
                    let microseconds = UInt32(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
                    usleep(UInt32.random(in: 0...microseconds, using: &random))
                }
                child.kill()
                _ = child.wait()
                let cache = DiskCache(directory: path).blocking
                let tagged = try (0..<entries).count { try cache.bytes(forKey: CacheKey("tagged-\($0)")) != nil }
                #expect(tagged == 0 || tagged == entries, "round \(round)")
                #expect(try (0..<entries).allSatisfy { try cache.bytes(forKey: CacheKey("plain-\($0)")) == [1] })
                if tagged == 0 { gone += 1 }
                // The next writes finish what is left.
                for number in 0..<4 {
                    try cache.set([1], forKey: CacheKey("plain-\(number)"))
                    try cache.flush()
                }
                #expect(try cache.count == entries + tagged, "round \(round)")
                #expect(try cache.removeAll(tag: "t") == tagged)
                #expect(try cache.verify(removingDamage: true).damaged.isEmpty)
                #expect(try CacheFiles.damage(in: path) == [])
                #expect(CacheFiles.bodyFileBytes(in: path) == 0)
            }
            #expect(gone > 0)
        }
    }

    @Test(arguments: [false, true])
    func loadInAnotherProcessDuringAPurgeStoresNothing(purges: Bool) async throws {
        let directory = try TemporaryDirectory()
        let cache = ValueCache<String>(name: "shared", configuration: CacheConfiguration(root: directory.path))
        let child = try ChildProcess(["load-tagged", directory.path], holdsInput: true)
        #expect(child.line() == "loading 1")
        try await cache.removeAll(tag: purges ? "t" : "other")
        child.closeInput()
        let findings = child.findings()
        #expect(child.wait() == .exit(0))
        #expect(findings["value"] == "water" && findings["error"] == nil)
        #expect(findings["depth"] == (purges ? "source" : "memory"))
        #expect(await cache.depth(of: "lake") == (purges ? .source : .disk))
    }
}
