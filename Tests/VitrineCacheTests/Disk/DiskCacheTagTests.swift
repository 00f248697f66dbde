import Dispatch
import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineDatabase

/// Entries with tags, and their removal.
struct DiskCacheTagTests {
    /// Rows that tell of tags, counted behind the cache's back.
    private func tagRows(_ fixture: DiskFixture) throws -> Int {
        Int(try Database(path: fixture.database).integer("SELECT count(*) FROM tag") ?? -1)
    }

    @Test(arguments: [10, 90_000]) func removesAllEntriesOfATagAndNoOthers(size: Int) throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        for number in 0..<30 {
            let tags = ["all", "third-\(number % 3)"]
            try cache.set(DiskFixture.bytes(size, seed: number), forKey: CacheKey("k\(number)"), tags: tags)
        }
        try cache.set([1], forKey: "plain")
        try cache.flush()
        #expect(try tagRows(fixture) == 60)
        #expect(try cache.removeAll(tag: "third-1") == 10)
        #expect(try cache.removeAll(tag: "third-1") == 0)
        #expect(try cache.removeAll(tag: "unknown") == 0)
        for number in 0..<30 {
            let bytes = try cache.bytes(forKey: CacheKey("k\(number)"))
            #expect(bytes == (number % 3 == 1 ? nil : DiskFixture.bytes(size, seed: number)))
        }
        #expect(try cache.count == 21)
        #expect(try tagRows(fixture) == 40)
        #expect(try cache.removeAll(tag: "all") == 20)
        #expect(try cache.entries().map(\.key) == ["plain"])
        #expect(try cache.size.bytes == DiskFixture.charge(1, "plain"))
        #expect(try tagRows(fixture) == 0)
        #expect(try cache.verify(removingDamage: false).isSound)
    }

    @Test func tagsOfTheLastWriteCount() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        try cache.set([1], forKey: "a", tags: ["old"])
        try cache.flush()
        try cache.set([2], forKey: "a", tags: ["new", "new", "newest"])
        try cache.set([3], forKey: "b", tags: ["old"])
        try cache.set([4], forKey: "b")
        try cache.flush()
        #expect(try tagRows(fixture) == 2)
        #expect(try cache.removeAll(tag: "old") == 0)
        #expect(try cache.bytes(forKey: "a") == [2] && cache.bytes(forKey: "b") == [4])
        #expect(try cache.removeAll(tag: "newest") == 1)
        #expect(try cache.bytes(forKey: "a") == nil && cache.bytes(forKey: "b") == [4])
    }

    @Test func queuedWritesAreRemovedAndLaterOnesStay() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        for round in 0..<50 {
            try cache.set([UInt8(round)], forKey: "a", tags: ["t"])
            #expect(try cache.removeAll(tag: "t") == 1)
            #expect(try cache.bytes(forKey: "a") == nil)
            try cache.set([UInt8(round)], forKey: "b", tags: ["t"])
            try cache.flush()
            #expect(try cache.bytes(forKey: "b") == [UInt8(round)])
            #expect(try cache.removeAll(tag: "t") == 1)
        }
    }

    @Test func otherChangesKeepTags() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        try cache.set([1, 2], forKey: "a", timeToLive: .seconds(60), validator: [7], tags: ["t", "u"])
        try cache.flush()
        cache.expire("a")
        cache.setValidator([8, 9], forKey: "a")
        try cache.flush()
        cache.renew("a", timeToLive: .seconds(100))
        try cache.flush()
        // The clock goes back by a day: times are changed in place.
        fixture.advance(.seconds(-86_400))
        try cache.set([3], forKey: "b")
        try cache.flush()
        let entry = try #require(try cache.entry(forKey: "a"))
        #expect(entry.bytes == [1, 2] && entry.validator == [8, 9])
        #expect(try entry.tags.hashes == [EntryTags.hash(of: "t"), EntryTags.hash(of: "u")].sorted())
        #expect(try cache.verify(removingDamage: false).isSound)
        #expect(try cache.removeAll(tag: "u") == 1)
    }

    @Test func entriesThatLeaveTakeTheirTagsAlong() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.capacity = 20_000 }.blocking
        for number in 0..<200 {
            let life: Duration? = number % 4 == 0 ? .seconds(1) : nil
            try cache.set(
                DiskFixture.bytes(700), forKey: CacheKey("k\(number)"), timeToLive: life, tags: ["t", "n\(number)"])
            if number % 10 == 0 { cache.remove(CacheKey("k\(number)")) }
        }
        try cache.flush()
        fixture.advance(.seconds(200_000))
        try cache.set([1], forKey: "last")
        try cache.flush()
        let count = try cache.count
        #expect(count > 5 && count < 30)
        #expect(try tagRows(fixture) == (count - 1) * 2)
        let entries = try cache.entries()
        let charges = entries.reduce(0) { $0 + DiskFixture.charge($1.size.bytes, $1.key) } + (count - 1) * 120
        #expect(try cache.size.bytes == charges)
        #expect(try cache.removeAll(tag: "t") == count - 1)
        try cache.set([1], forKey: "a", tags: ["t"])
        try cache.removeAll()
        #expect(try cache.removeAll(tag: "t") == 0)
    }

    @Test func tooManyAndTooLongTagsAreErrors() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        let many = (0..<17).map { "t\($0)" }, long = String(repeating: "é", count: 129)
        #expect(await code { try await cache.set([1], forKey: "a", tags: many) } == -513)
        #expect(await code { try await cache.set([1], forKey: "a", tags: [long]) } == -513)
        #expect(await code { _ = try await cache.removeAll(tag: long) } == -513)
        #expect(try await cache.count == 0)
        try await cache.set([1], forKey: "a", tags: Array(many.dropLast()) + ["t0"])
        try await cache.set([1], forKey: "b", tags: [String(long.dropLast()), ""])
        #expect(try await cache.removeAll(tag: "t15") == 1)
        #expect(try await cache.removeAll(tag: "") == 1)
        // Tags are bytes: two that look the same are two.
        try await cache.set([1], forKey: "c", tags: ["é", "e\u{301}"])
        try await cache.set([1], forKey: "d", tags: ["e\u{301}"])
        #expect(try await cache.removeAll(tag: "é") == 1)
        #expect(try await cache.removeAll(tag: "e\u{301}") == 1)
    }

    // MARK: Writes under way

    /// A write of another process that is held up between its call and its transaction. It is another cache of this
    /// process, as the disk level sees no difference.
    private final class HeldWrite: Sendable {
        private let disk: DiskCache
        private let gate = DispatchSemaphore(value: 0)

        var cache: DiskCache.Blocking { disk.blocking }

        init(_ fixture: DiskFixture, tags: [String]) throws {
            disk = fixture.cache()
            let gate = gate
            try cache.set(forKey: "held", tags: tags) {
                gate.wait()
                return [1]
            }
        }

        /// The bytes of the entry after the write.
        func finish() throws -> [UInt8]? {
            gate.signal()
            try cache.flush()
            return try cache.bytes(forKey: "held")
        }
    }

    @Test func writeOfAnotherProcessThatBeganBeforeIsRefused() async throws {
        try await offPool {
            let fixture = try DiskFixture()
            let cache = fixture.cache().blocking
            try cache.set([0], forKey: "held", tags: ["t"])
            try cache.flush()
            let held = try HeldWrite(fixture, tags: ["t", "u"])
            #expect(try cache.removeAll(tag: "t") == 1)
            #expect(try held.finish() == nil)
            #expect(try cache.bytes(forKey: "held") == nil)
            // What begins after it is kept, by whichever process.
            try held.cache.set([2], forKey: "held", tags: ["t"])
            try held.cache.flush()
            #expect(try cache.bytes(forKey: "held") == [2])
            #expect(try cache.removeAll(tag: "t") == 1)
            #expect(try held.cache.bytes(forKey: "held") == nil)
        }
    }

    @Test func purgesOfOtherTagsRefuseNothing() async throws {
        try await offPool {
            let fixture = try DiskFixture()
            let cache = fixture.cache().blocking
            _ = try cache.removeAll(tag: "t")
            let held = try HeldWrite(fixture, tags: ["t"])
            for number in 0..<50 { _ = try cache.removeAll(tag: "other-\(number)") }
            #expect(try held.finish() == [1])
            #expect(try cache.bytes(forKey: "held") == [1])
        }
    }

    @Test func removingEverythingAfterAPurgeDoesNotForgetIt() async throws {
        try await offPool {
            let fixture = try DiskFixture()
            let cache = fixture.cache().blocking
            let held = try HeldWrite(fixture, tags: ["t"])
            _ = try cache.removeAll(tag: "t")
            try cache.removeAll()
            #expect(try held.finish() == nil)
            #expect(try cache.bytes(forKey: "held") == nil)
        }
    }

    /// Records are bounded. Writes that began before the forgotten ones are refused.
    @Test func manyPurgesAreRecordedInBoundedSpace() async throws {
        try await offPool {
            let fixture = try DiskFixture()
            let cache = fixture.cache().blocking
            let held = try HeldWrite(fixture, tags: ["held"])
            for number in 0..<4200 { _ = try cache.removeAll(tag: "t\(number)") }
            let records = Int(try Database(path: fixture.database).integer("SELECT count(*) FROM purge") ?? -1)
            #expect(records > 2000 && records <= 4097)
            #expect(try held.finish() == nil)
            let later = try HeldWrite(fixture, tags: ["t0", "t4199"])
            #expect(try later.finish() == [1])
        }
    }

    // MARK: Many entries

    @Test func removesMoreEntriesThanOneTransactionDoes() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        for number in 0..<4500 { try cache.set([1], forKey: CacheKey("k\(number)"), tags: ["t"]) }
        try cache.set([2], forKey: "plain")
        #expect(try cache.removeAll(tag: "t") == 4500)
        #expect(try cache.count == 1)
        #expect(try tagRows(fixture) == 0)
        #expect(try Database(path: fixture.database).integer("SELECT count(*) FROM purge WHERE pending=1") == 0)
    }

    /// What a process leaves that is killed behind the first transaction of a purge.
    @Test(arguments: [false, true]) func pendingPurgeHidesItsEntriesAndIsFinished(isDamaged: Bool) throws {
        let fixture = try DiskFixture()
        do {
            let cache = fixture.cache().blocking
            for number in 0..<20 {
                try cache.set(DiskFixture.bytes(200), forKey: CacheKey("k\(number)"), tags: ["t"])
                try cache.set([1], forKey: CacheKey("plain\(number)"))
            }
            try cache.flush()
            let hash = Int64(bitPattern: try EntryTags.hash(of: "t"))
            try Database(path: fixture.database).execute("INSERT INTO purge VALUES(\(hash),1,1)")
            #expect(try (0..<20).allSatisfy { try cache.bytes(forKey: CacheKey("k\($0)")) == nil })
            #expect(try (0..<20).allSatisfy { try !cache.contains(CacheKey("k\($0)")) })
            #expect(try cache.entries().count == 20)
            if isDamaged { try Database(path: fixture.database).execute("DROP TABLE orphan_candidate") }
        }
        let cache = fixture.cache().blocking
        // A write from after the purge: of this process, which has seen it.
        try cache.set([9], forKey: "k0", tags: ["t"])
        try cache.flush()
        #expect(try cache.count == 21)
        #expect(try cache.bytes(forKey: "k0") == [9])
        #expect(try (1..<20).allSatisfy { try cache.bytes(forKey: CacheKey("k\($0)")) == nil })
        #expect(try (0..<20).allSatisfy { try cache.bytes(forKey: CacheKey("plain\($0)")) == [1] })
        #expect(try tagRows(fixture) == 1)
        #expect(try cache.verify(removingDamage: false).isSound)
    }

    @Test func recoveredEntriesKeepTheirTags() throws {
        let fixture = try DiskFixture()
        do {
            let cache = fixture.cache().blocking
            for number in 0..<20 {
                try cache.set([1], forKey: CacheKey("k\(number)"), tags: ["t", number < 5 ? "few" : "many"])
            }
            try cache.flush()
            try Database(path: fixture.database).execute("DROP TABLE orphan_candidate")
        }
        let cache = fixture.cache()
        #expect(try cache.blocking.removeAll(tag: "few") == 5)
        #expect(cache.statistics.recoveries == 1)
        #expect(try cache.blocking.removeAll(tag: "t") == 15)
        #expect(try cache.blocking.size == .zero)
    }

    @Test func damagedTagsAreADamagedEntry() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        try cache.set([1], forKey: "a", tags: ["t"])
        try cache.flush()
        try Database(path: fixture.database).execute("UPDATE entry SET tags=x'0000000000000000aaaaaaaaaaaaaaaa'")
        #expect(try cache.bytes(forKey: "a") == nil)
        try cache.flush()
        #expect(try cache.removeAll(tag: "t") == 0)
        #expect(try cache.count == 0)
    }

    @Test func readOnlyCachesRefuseToPurge() async throws {
        let fixture = try DiskFixture()
        try await fixture.cache().set([1], forKey: "a", tags: ["t"])
        let cache = fixture.cache { $0.isReadOnly = true }
        #expect(await code { _ = try await cache.removeAll(tag: "t") } == -520)
    }

    @Test func layoutWithoutTagsIsDeleted() throws {
        let fixture = try DiskFixture()
        for file in ["v2/lock", "v2/turn", "v2/g-1/cache.sqlite", "v2/g-1/files/ab/ab12"] {
            let path = fixture.path + "/" + file
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try Data([1]).write(to: URL(filePath: path))
        }
        // Not a cache's: it has no lock.
        try FileManager.default.createDirectory(atPath: fixture.path + "/other/v2", withIntermediateDirectories: true)
        let cache = fixture.cache().blocking
        try cache.set([1], forKey: "a")
        try cache.flush()
        try waitUntil("the old layout is deleted") { !FileManager.default.fileExists(atPath: fixture.path + "/v2") }
        #expect(FileManager.default.fileExists(atPath: fixture.path + "/other/v2"))
        #expect(try cache.bytes(forKey: "a") == [1])
    }
}
