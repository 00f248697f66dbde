import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineDatabase

/// All formats of a cache lie in one database, with a capacity each and one for all.
struct CacheFormatsOnDiskTests {
    private static let text = String(repeating: "x", count: 1000)

    private func fill(_ cache: ValueCache<String>, _ format: FormatName, _ numbers: Range<Int>) async throws {
        for number in numbers { try await cache.set(Self.text, forKey: CacheKey("k\(number)"), format: format) }
        try await cache.flush()
    }

    private func keys(_ cache: ValueCache<String>, _ format: FormatName) async throws -> Set<String> {
        Set(try await cache.entries(of: format).map(\.key.identity))
    }

    @Test func totalCapacityHoldsForAllFormatsTogether() async throws {
        let fixture = try CacheFixture<String> {
            $0.diskCapacity = 30_000
            $0.totalDiskCapacity = 50_000
        }
        let cache = fixture.cache
        let names: [FormatName] = ["a", "b", "c", "d"]
        for name in names { cache.register(CacheFormat(name)) }
        for round in 0..<10 {
            for name in names {
                try await fill(cache, name, round * 5..<round * 5 + 5)
                #expect(try await cache.size <= 50_000)
                #expect(try await cache.size(of: name) <= 30_000)
            }
        }
        // Not simply empty, and no format has lost everything to another.
        #expect(try await cache.size > 40_000)
        for name in names { #expect(try await cache.count(of: name) > 2) }
    }

    @Test func totalCapacityIsTwiceThatOfAFormatUnlessConfigured() throws {
        #expect(try CacheFixture<String>().cache.totalDiskCapacity == .gigabytes(1))
        #expect(try CacheFixture<String> { $0.diskCapacity = 1000 }.cache.totalDiskCapacity == 2000)
        #expect(try CacheFixture<String> { $0.totalDiskCapacity = 10 }.cache.totalDiskCapacity == 10)
        let cache = try CacheFixture<String> { $0.diskCapacity = 1000 }.cache
        cache.register(CacheFormat("large", diskCapacity: 5000))
        #expect(cache.totalDiskCapacity == 5000)
        let none = try CacheFixture<String> { $0.diskCapacity = .unlimited }.cache
        #expect(none.totalDiskCapacity == .unlimited)
    }

    @Test func loweredTotalEvictsAtOnceAndAtOpening() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud"))
        try await fill(cache, .original, 0..<20)
        try await fill(cache, "loud", 0..<20)
        try await cache.setTotalDiskCapacity(20_000)
        #expect(try await cache.size <= 20_000)
        #expect(try await cache.size > 15_000)
        let other = fixture.another { $0.totalDiskCapacity = 10_000 }
        #expect(try await other.size <= 10_000)
        #expect(try await other.size > 5000)
        try await cache.setTotalDiskCapacity(0)
        #expect(try await cache.size == 0)
    }

    @Test func formatRegisteredWithLessWhileOpenIsEvicted() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud"))
        try await fill(cache, .original, 0..<10)
        try await fill(cache, "loud", 0..<10)
        cache.unregister("loud")
        #expect(cache.register(CacheFormat("loud", diskCapacity: 5000)))
        #expect(try await cache.size(of: "loud") <= 5000)
        #expect(try await cache.size(of: "loud") > 2000)
        #expect(try await cache.count() == 10)
    }

    @Test func formatRegisteredTwiceKeepsItsFirstCapacityAndEntries() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        #expect(cache.register(CacheFormat("loud", diskCapacity: 50_000)))
        try await fill(cache, "loud", 0..<10)
        #expect(!cache.register(CacheFormat("loud", diskCapacity: 1000)))
        #expect(cache.disk(for: "loud")?.capacity == 50_000)
        #expect(try await cache.count(of: "loud") == 10)
    }

    @Test func cachesWithDifferentFormatsShareADirectory() async throws {
        let fixture = try CacheFixture<String>()
        let one = fixture.cache, other = fixture.another()
        one.register(CacheFormat("a"))
        one.register(CacheFormat("both", diskCapacity: 20_000))
        other.register(CacheFormat("b"))
        other.register(CacheFormat("both", diskCapacity: 20_000))
        for number in 0..<20 {
            for (cache, name) in [(one, "a"), (other, "b"), (one, "both"), (other, "both")] {
                try await cache.set("\(name) \(number)", forKey: CacheKey("k\(number)"), format: FormatName(name))
            }
        }
        try await one.flush()
        try await other.flush()
        one.clearMemory()
        other.clearMemory()
        for number in 0..<20 {
            let key = CacheKey("k\(number)")
            #expect(try await one.value(forKey: key, format: "a") == "a \(number)")
            #expect(try await other.value(forKey: key, format: "b") == "b \(number)")
            #expect(try await one.value(forKey: key, format: "both") == "both \(number)")
        }
        #expect(await Set(one.storedFormats) == ["original", "a", "b", "both"])
        try await one.removeAll(format: "both")
        #expect(try await other.count(of: "both") == 0)
        #expect(try await other.count(of: "b") == 20)
    }

    @Test func totalTakesFirstFromFormatsThatNobodyUses() async throws {
        let fixture = try CacheFixture<String> { $0.totalDiskCapacity = 30_000 }
        do {
            let earlier = fixture.another()
            earlier.register(CacheFormat("old"))
            try await fill(earlier, "old", 0..<15)
        }
        fixture.clock.advance(by: .seconds(3600))
        let cache = fixture.cache
        try await fill(cache, .original, 0..<15)
        #expect(try await cache.count() == 15)
        #expect(try await cache.size <= 30_000)
        cache.register(CacheFormat("old"))
        #expect(try await cache.count(of: "old") < 15)
        try await fill(cache, .original, 15..<25)
        #expect(try await cache.count(of: "old") == 0)
        #expect(try await cache.count() > 20)
    }

    @Test func clearedFormatLeavesTheOthersAndTheirFiles() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud"))
        let large = String(repeating: "y", count: 100_000)
        for name: FormatName in [.original, "loud"] {
            try await cache.set(large, forKey: "large", format: name)
            try await fill(cache, name, 0..<10)
        }
        let one = try await cache.size(of: .original)
        try await cache.removeAll(format: "loud")
        #expect(try await cache.size(of: "loud") == 0)
        #expect(try await cache.size == one)
        try await cache.set("new", forKey: "k1", format: "loud")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "large") == large)
        #expect(try await cache.value(forKey: "large", format: "loud") == nil)
        #expect(try await cache.value(forKey: "k1", format: "loud") == "new")
        for name: FormatName in [.original, "loud"] {
            #expect(try await cache.verify(name, removingDamage: false).isSound)
        }
        let path = try #require(cache.disk(for: "loud")?.path(forKey: "large"))
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func putsOfOtherFormatsStayWhenOneIsCleared() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud"))
        let started = Gate(), held = DispatchSemaphore(value: 0)
        try await cache.disk()?.set(forKey: "held") {
            started.open()
            held.wait()
            return [1]
        }
        await started.wait()
        // These wait behind the one that is held.
        try await cache.disk()?.set([2], forKey: "waits")
        try await cache.disk(for: "loud")?.set([3], forKey: "waits")
        async let cleared: Void? = cache.disk(for: "loud")?.removeAll()
        while try await cache.disk(for: "loud")?.info(forKey: "waits") != nil { await Task.yield() }
        held.signal()
        _ = try await cleared
        #expect(try await cache.disk()?.bytes(forKey: "waits") == [2])
        #expect(try await cache.disk(for: "loud")?.bytes(forKey: "waits") == nil)
    }

    @Test func directoriesOfTheFormerLayoutAreRemovedAndNotRead() async throws {
        let fixture = try CacheFixture<String>()
        for format in ["original", "auto-40x30-fill"] {
            for file in ["CACHEDIR.TAG", "v1/lock", "v1/turn", "v1/g-1/cache.sqlite", "v1/g-1/files/ab/ab12"] {
                try fixture.directory.write("old", to: "test/\(format)/\(file)")
            }
            #expect(symlink("g-1", fixture.directory.file("test/\(format)/v1/current")) == 0)
        }
        try fixture.directory.write("kept", to: "test/other/notes/text")
        let cache = fixture.cache
        cache.register(CacheFormat("auto-40x30-fill"))
        #expect(try await cache.size == 0)
        try await cache.set("water", forKey: "lake", format: "auto-40x30-fill")
        try await cache.flush()
        try await offPool {
            try waitUntil("the former layout gone") {
                ["original", "auto-40x30-fill"].allSatisfy {
                    !FileManager.default.fileExists(atPath: fixture.directory.file("test/\($0)"))
                }
            }
        }
        #expect(fixture.directory.read("test/other/notes/text") == "kept")
        #expect(try await cache.bytes(forKey: "lake", format: "auto-40x30-fill") == Array("water".utf8))
    }

    @Test func randomChangesKeepSizesExactAndWithinAllCapacities() async throws {
        let fixture = try CacheFixture<[UInt8]> { $0.totalDiskCapacity = 400_000 }
        let cache = fixture.cache
        let capacities: [FormatName: Int] = ["small": 50_000, "large": 300_000, "middle": 150_000]
        let names = capacities.keys.sorted { $0.description < $1.description }
        for name in names { cache.register(CacheFormat(name, diskCapacity: ByteCount(capacities[name] ?? 0))) }
        var random = SeededGenerator(11)
        var last: [String: [UInt8]] = [:]
        for step in 0..<1500 {
            let name = try #require(names.randomElement(using: &random))
            let number = Int.random(in: 0..<60, using: &random)
            let key = CacheKey("k\(number)")
            switch Int.random(in: 0..<100, using: &random) {
            case 0:
                try await cache.removeAll(format: name)
                for other in last.keys where other.hasPrefix(name.description) { last[other] = nil }
            case 1...10:
                await cache.remove(key, format: name)
                last["\(name) \(number)"] = nil
            case 11...20: await cache.expire(key, format: name)
            default:
                let bytes = DiskFixture.bytes(step % 37 == 0 ? 70_000 : step * 31 % 3000, seed: step)
                try await cache.set(bytes, forKey: key, format: name)
                last["\(name) \(number)"] = bytes
            }
            cache.clearMemory()
            let found = try await cache.bytes(forKey: key, format: name)
            #expect(found == nil || found == last["\(name) \(number)"], "step \(step)")
            guard step % 100 == 99 else { continue }
            var total = 0
            for name in names {
                let entries = try await cache.entries(of: name, limit: 1000)
                let size = entries.reduce(0) { $0 + DiskFixture.charge($1.size.bytes, $1.key) }
                #expect(try await cache.size(of: name).bytes == size)
                #expect(size <= capacities[name] ?? 0)
                total += size
            }
            #expect(try await cache.size.bytes == total)
            #expect(total <= 400_000)
        }
        for name in names { #expect(try await cache.verify(name, removingDamage: false).isSound) }
    }

    @Test func damagedDatabaseKeepsWhatIsWholeInAllFormats() async throws {
        let fixture = try CacheFixture<String>()
        do {
            let cache = fixture.cache
            for name: FormatName in ["a", "nobody's"] {
                cache.register(CacheFormat(name))
                try await cache.set(String(repeating: "y", count: 100_000), forKey: "large", format: name)
                try await fill(cache, name, 0..<20)
            }
            // A schema that misses a table is a damaged one.
            try Database(path: fixture.directory.file("test/v3/current/cache.sqlite")).execute(
                "DROP TABLE orphan_candidate")
        }
        let cache = fixture.another()
        cache.register(CacheFormat("a"))
        #expect(try await cache.count(of: "a") == 21)
        #expect(await cache.storedFormats == ["original", "a", "nobody's"])
        cache.register(CacheFormat("nobody's"))
        #expect(try await cache.value(forKey: "k7", format: "nobody's") == Self.text)
        #expect(try await cache.value(forKey: "large", format: "a")?.utf8.count == 100_000)
        #expect(cache.disk()?.statistics.recoveries == 1)
    }
}
