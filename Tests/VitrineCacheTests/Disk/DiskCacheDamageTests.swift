import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineDatabase

@Suite struct DiskCacheDamageTests {
    private static let count = 200

    private func filled(_ fixture: DiskFixture, count: Int = count) throws -> DiskCache {
        let cache = fixture.cache { $0.inlineLimit = 10_000 }
        for i in 0..<count { try cache.blocking.set(Self.body(i), forKey: CacheKey("k\(i)")) }
        try cache.blocking.flush()
        for i in 0..<count { #expect(try cache.blocking.bytes(forKey: CacheKey("k\(i)")) == Self.body(i)) }
        return cache
    }

    private static func body(_ i: Int) -> [UInt8] { DiskFixture.bytes(i * 97 % 12_000, seed: i) }

    /// Every entry is whole or missing, and the cache can be used.
    private func check(_ cache: DiskCache) throws -> Int {
        var found = 0
        for i in 0..<Self.count {
            guard let bytes = try cache.blocking.bytes(forKey: CacheKey("k\(i)")) else { continue }
            #expect(bytes == Self.body(i))
            found += 1
        }
        try cache.blocking.set([1, 2, 3], forKey: "after")
        try cache.blocking.flush()
        #expect(try cache.blocking.bytes(forKey: "after") == [1, 2, 3])
        return found
    }

    private func change(_ path: String, _ body: (UnsafeMutablePointer<FILE>) -> Void) {
        guard let file = fopen(path, "r+") else { return }
        body(file)
        fclose(file)
    }

    /// Nobody has purged anything: the mark of the damaged directory is no reason to leave the value out.
    @Test(arguments: ["account", "tag", "space"]) func aTaggedValueThatMeetsDamageIsStored(table: String) throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        try cache.set([1], forKey: "a", tags: ["t"])
        try cache.flush()
        try Database(path: fixture.database).execute("DROP TABLE \(table)")
        try cache.set([2], forKey: "b", tags: ["t"])
        try cache.flush()
        #expect(try cache.bytes(forKey: "b") == [2])
        // A purge in the new directory counts.
        try cache.set([3], forKey: "c", tags: ["t"])
        _ = try cache.removeAll(tag: "t")
        try cache.flush()
        #expect(try cache.bytes(forKey: "b") == nil && cache.bytes(forKey: "c") == nil)
    }

    @Test func aFlippedByteInABodyCostsThatEntryAlone() async throws {
        let fixture = try DiskFixture()
        let needle = Self.body(100)
        // Closed first: another descriptor of the database may not be closed while it is open in this process.
        do { _ = try filled(fixture) }
        let database = try await fixture.closedDatabase()
        var copies = 0
        for path in [database, database + "-bodies"] {
            var data = try Data(contentsOf: URL(filePath: path))
            // Pages that were given up keep what they held: every copy is flipped, as nothing tells which one counts.
            var place = data.startIndex
            while let range = data.range(of: Data(needle.prefix(400)), in: place..<data.endIndex) {
                data[range.lowerBound + 200] ^= 1
                place = range.upperBound
                copies += 1
            }
            try data.write(to: URL(filePath: path))
        }
        try #require(copies > 0)
        let cache = fixture.cache { $0.inlineLimit = 10_000 }
        #expect(try check(cache) == Self.count - 1)
        #expect(cache.statistics.damaged == 1)
        #expect(try cache.blocking.count == Self.count)
        #expect(try cache.blocking.verify(removingDamage: false).isSound)
    }

    @Test(arguments: ["flip", "cut", "delete", "empty", "grow"]) func aDamagedFileCostsThatEntryAlone(how: String) throws {
        let fixture = try DiskFixture()
        let cache = try filled(fixture)
        let victim = try #require((0..<Self.count).first { Self.body($0).count > 10_000 })
        let path = cache.path(forKey: CacheKey("k\(victim)"))
        switch how {
        case "flip":
            change(path) {
                fseek($0, 5000, SEEK_SET)
                fputc(Int32(Self.body(victim)[5000] ^ 0x10), $0)
            }
        case "cut": truncate(path, 5000)
        case "empty": truncate(path, 0)
        case "grow": truncate(path, 20_000)
        default: unlink(path)
        }
        #expect(try check(cache) == Self.count - 1)
        #expect(cache.statistics.damaged == 1)
        #expect(!FileManager.default.fileExists(atPath: path))
        #expect(try cache.blocking.verify(removingDamage: false).isSound)
    }

    @Test(arguments: ["", "-shm", "-wal"], [0, 100, 5000, 40_000])
    func aFileThatIsCutWhileOpenNeverCrashes(suffix: String, size: Int) throws {
        let fixture = try DiskFixture()
        // Few enough that the log is not being moved meanwhile: nothing guards a move that has begun.
        let count = 60
        let cache = try filled(fixture, count: count)
        let path = fixture.database + suffix
        let before = try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        guard size < before else { return }
        #expect(truncate(path, off_t(size)) == 0)
        // A cut log loses what was in it alone.
        let found = try check(cache)
        if suffix == "-shm" { #expect(found == count) }
        // Nor does another object.
        _ = try check(fixture.cache { $0.inlineLimit = 10_000 })
    }

    @Test(arguments: 0..<40) func aFlippedByteAnywhereNeverCrashesOrShowsWrongBytes(round: Int) throws {
        let fixture = try DiskFixture()
        let names = ["", "-wal", "-shm"]
        let cache = try filled(fixture)
        let path = fixture.database + names[round % 3]
        // Without closing a descriptor of the open file in this process.
        try flipInAnotherProcess(path, at: round)
        // One page may hold some dozens of entries' rows; all others stay.
        if round >= 12 { #expect(try check(cache) >= Self.count - 60) } else { _ = try check(cache) }
        _ = try check(fixture.cache { $0.inlineLimit = 10_000 })
    }

    private func flipInAnotherProcess(_ path: String, at round: Int) throws {
        let size = try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        let offset = round < 12 ? round * 7 : (round * 7919 * 104_729) % max(1, size)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "sh", "-c", "printf '\\252' | dd of=\"$0\" bs=1 seek=\(offset) count=1 conv=notrunc 2>/dev/null", path,
        ]
        try process.run()
        process.waitUntilExit()
    }

    @Test func aDatabaseThatIsNoneIsReplaced() async throws {
        let fixture = try DiskFixture()
        do { _ = try filled(fixture) }
        let path = try await fixture.closedDatabase()
        try Data("no database at all, and long enough to be looked at as one".utf8).write(to: URL(filePath: path))
        let cache = fixture.cache()
        #expect(try check(cache) == 0)
        #expect(cache.statistics.recoveries == 1)
    }

    @Test func healsWhenItsDirectoryIsDeleted() async throws {
        let fixture = try DiskFixture()
        let cache = try filled(fixture)
        for _ in 0..<30 {
            try await offPool { try deleteUntilGone(fixture.path) }
            #expect(try await cache.bytes(forKey: "k1") == nil)
            try await cache.set([4], forKey: "again")
            try await cache.set(DiskFixture.bytes(20_000), forKey: "large")
            try await cache.flush()
            #expect(try await cache.bytes(forKey: "again") == [4])
            #expect(try await cache.bytes(forKey: "large") == DiskFixture.bytes(20_000))
            #expect(try await fixture.cache().bytes(forKey: "again") == [4])
        }
    }

    @Test func nothingFailsWhileItsDirectoryIsDeletedAgainAndAgain() async throws {
        let fixture = try DiskFixture()
        let caches = [fixture.cache(), fixture.cache(), fixture.cache()]
        for round in 0..<300 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try? FileManager.default.removeItem(atPath: fixture.path) }
                for cache in caches {
                    group.addTask {
                        _ = try await cache.bytes(forKey: "k")
                        try await cache.set([UInt8(round % 256)], forKey: "k")
                        try await cache.flush()
                        _ = try await cache.bytes(forKey: "k")
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    /// Numbers of rows are not under a checksum. The cache counts with them, so they must not end the program.
    @Test(
        arguments: ["9223372036854775807", "-9223372036854775808", "-1", "9e999"],
        [
            "UPDATE account SET bytes=?", "UPDATE account SET count=?", "UPDATE account SET floor=?", "UPDATE account SET latest=?",
            "UPDATE entry SET size=? WHERE id%3=0", "UPDATE entry SET hits=? WHERE id%3=0",
            "UPDATE entry SET ranked=? WHERE id%3=0", "UPDATE entry SET created=? WHERE id%3=0",
            "UPDATE entry SET expires=? WHERE id%3=0", "UPDATE entry SET rank=? WHERE id%3=0",
        ])
    func numbersThatNoCacheHasAreSurvived(_ number: String, _ statement: String) async throws {
        let fixture = try DiskFixture()
        do { _ = try filled(fixture, count: 60) }
        let path = try await fixture.closedDatabase()
        do { try Database(path: path).execute(statement.replacing("?", with: number)) }
        _ = try await fixture.closedDatabase()
        for eviction in [DiskCache.Eviction.sizeAndFrequency, .leastRecentlyUsed] {
            let cache = fixture.cache {
                $0.capacity = ByteCount(100_000)
                $0.eviction = eviction
            }
            for i in 0..<60 { _ = try cache.blocking.bytes(forKey: CacheKey("k\(i)")) }
            for i in 0..<60 { try cache.blocking.set(Self.body(i), forKey: CacheKey("k\(i)")) }
            try cache.blocking.flush()
            #expect(try cache.blocking.size.bytes <= 100_000)
            #expect(try cache.blocking.bytes(forKey: "k59") == Self.body(59))
            _ = try cache.blocking.entries(limit: 100)
        }
    }

    @Test func aLinkThatLeadsElsewhereIsNotFollowed() async throws {
        let fixture = try DiskFixture()
        do { _ = try filled(fixture) }
        _ = try await fixture.closedDatabase()
        let link = fixture.path + "/v3/current"
        unlink(link)
        #expect(symlink("../../elsewhere", link) == 0)
        let cache = fixture.cache()
        #expect(try check(cache) == 0)
        #expect(!FileManager.default.fileExists(atPath: fixture.directory.file("elsewhere")))
    }
}

extension DiskFixture {
    /// The database's path once no connection of this process has it any more: its log is then gone, with its index.
    func closedDatabase() async throws -> String {
        let path = database
        try await offPool { try DatabaseFiles.waitUntilClosed(path) }
        return path
    }
}
