import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineDatabase

@Suite struct DiskCacheTests {
    @Test func givesBackWhatWasStored() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        for count in [0, 1, 100, 5000, 65_536, 65_537, 300_000] {
            let bytes = DiskFixture.bytes(count, seed: count)
            try await cache.set(bytes, forKey: CacheKey("k\(count)"), timeToLive: .seconds(60), validator: [1, 2, 3])
            // From the queue or from disk.
            #expect(try await cache.bytes(forKey: CacheKey("k\(count)")) == bytes)
            try await cache.flush()
            let entry = try #require(try cache.blocking.entry(forKey: CacheKey("k\(count)")))
            #expect(entry.bytes == bytes)
            #expect(entry.validator == [1, 2, 3])
            #expect(entry.created == fixture.now)
            #expect(entry.expires == fixture.now + .seconds(60))
            #expect(!entry.isExpired)
        }
        #expect(try await cache.bytes(forKey: "other") == nil)
        #expect(try await cache.count == 7)
    }

    /// The largest mapping of a file into this process, in bytes.
    private func mappedBytes(of path: String) throws -> Int {
        // Whole, which `String(contentsOfFile:)` does not read a long file without a size.
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/maps"))
        let maps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        return maps.split(separator: "\n").filter { $0.hasSuffix(path) }.map { line in
            let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { Int($0, radix: 16) }
            return ends.count == 2 ? ends[1] - ends[0] : 0
        }.max() ?? 0
    }

    @Test(arguments: [true, false]) func mapsTheDatabaseOnlyWhereConfigured(_ isMapped: Bool) async throws {
        try await offPool { try readFromTheDatabase(isMapped) }
    }

    private func readFromTheDatabase(_ isMapped: Bool) throws {
        let fixture = try DiskFixture()
        // Bodies that the database holds itself.
        let bytes = DiskFixture.bytes(1500)
        do {
            let writer = fixture.cache().blocking
            for number in 0..<500 { try writer.set(bytes, forKey: CacheKey("k\(number)")) }
            try writer.flush()
        }
        // Connections map what the database has when they are opened, and the log is never mapped.
        try DatabaseFiles.waitUntilClosed(fixture.database)
        _ = try Database(path: fixture.database).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let cache = fixture.cache { $0.mapsDatabase = isMapped }.blocking
        let path = try #require(FilePath.resolved(fixture.database))
        func read() throws {
            for number in 0..<500 { #expect(try cache.bytes(forKey: CacheKey("k\(number)")) == bytes) }
        }
        if isMapped {
            // A connection that was idle is closed and opened again.
            try waitUntil("the database is mapped") {
                try read()
                return try mappedBytes(of: path) > 500_000
            }
        } else {
            for _ in 0..<20 {
                try read()
                // At most the page with the counter of changes.
                #expect(try mappedBytes(of: path) < 500_000)
            }
        }
    }

    @Test func isReadByALaterObjectAndAnotherOneAtTheSameTime() throws {
        let fixture = try DiskFixture()
        let first = fixture.cache().blocking, second = fixture.cache().blocking
        try first.set([1], forKey: "a")
        try first.flush()
        #expect(try second.bytes(forKey: "a") == [1])
        try second.set([2], forKey: "a")
        try second.flush()
        #expect(try first.bytes(forKey: "a") == [2])
    }

    @Test func aMissIsForgottenWhenAnotherObjectOrThisOneWrites() async throws {
        let fixture = try DiskFixture()
        let one = fixture.cache(), other = fixture.cache()
        for i in 0..<300 {
            let key = CacheKey("k\(i)")
            #expect(try one.blocking.bytes(forKey: key) == nil)
            let writer = i % 3 == 0 ? other : one
            try writer.blocking.set([UInt8(i & 255)], forKey: key)
            try writer.blocking.flush()
            #expect(try one.blocking.bytes(forKey: key) == [UInt8(i & 255)])
            #expect(try other.blocking.bytes(forKey: key) == [UInt8(i & 255)])
        }
        for i in 0..<300 { #expect(try await one.contains(CacheKey("k\(i)"))) }
    }

    @Test func replacesByLargerAndSmaller() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        for count in [10, 100_000, 200_000, 10, 70_000, 0, 40_000] {
            let bytes = DiskFixture.bytes(count, seed: count)
            try cache.set(bytes, forKey: "a")
            try cache.flush()
            #expect(try cache.bytes(forKey: "a") == bytes)
            #expect(try cache.size.bytes == DiskFixture.charge(count, "a"))
            #expect(try cache.count == 1)
        }
        // The file of the large bodies is gone.
        #expect(!fixture.files.contains { $0.hasSuffix(String(CacheKey("a").hash, radix: 16)) })
    }

    @Test(arguments: [10, 100_000]) func removesOneAndLeavesOthers(count: Int) async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        try await cache.set(DiskFixture.bytes(count), forKey: "a")
        try await cache.set(DiskFixture.bytes(count), forKey: "b")
        try await cache.flush()
        await cache.remove("a")
        await cache.remove("unknown")
        #expect(try await cache.contains("a") == false)
        #expect(try await cache.contains("b"))
        try await cache.flush()
        #expect(try await cache.bytes(forKey: "a") == nil)
        #expect(try await cache.size.bytes == DiskFixture.charge(count, "b"))
        #expect(FileManager.default.fileExists(atPath: cache.path(forKey: "b")) == (count > 65_536))
        #expect(!FileManager.default.fileExists(atPath: cache.path(forKey: "a")))
    }

    @Test func removesEverythingAndGoesOn() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        let other = fixture.cache()
        for i in 0..<300 { try await cache.set(DiskFixture.bytes(i * 300), forKey: CacheKey("\(i)")) }
        try await cache.flush()
        #expect(try await other.contains("7"))
        try await cache.set([1], forKey: "queued")
        try await cache.removeAll()
        #expect(try await cache.size == .zero)
        #expect(try await cache.bytes(forKey: "7") == nil)
        #expect(try await cache.bytes(forKey: "queued") == nil)
        try await cache.set([2], forKey: "7")
        try await cache.flush()
        #expect(try await cache.bytes(forKey: "7") == [2])
        // The other one's files are deleted under it, or the link says so.
        try await other.set([3], forKey: "8")
        try await other.flush()
        #expect(try await other.bytes(forKey: "7") == [2])
        #expect(try await cache.count == 2)
    }

    @Test func makesBytesOnceWhenTheyAreNeeded() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        let counter = Counter()
        try await cache.set(forKey: "a") {
            counter.add(1)
            return [7]
        }
        #expect(try await cache.bytes(forKey: "a") == [7])
        try await cache.flush()
        #expect(try await cache.bytes(forKey: "a") == [7])
        #expect(counter.value == 1)
    }

    @Test func reportsBytesThatCannotBeMade() async throws {
        struct Failure: Error {}
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        try await cache.set([1], forKey: "a")
        try await cache.set(forKey: "a") { throw Failure() }
        await #expect(throws: CacheError.self) { try await cache.flush() }
        #expect(try await cache.bytes(forKey: "a") == nil)
        #expect(cache.statistics.dropped == 1)
        try await cache.flush()
    }

    @Test func seesItsOwnWritesAtOnce() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        for i in 0..<2000 {
            let key = CacheKey("k\(i % 7)")
            try cache.set([UInt8(i & 255), 1], forKey: key, validator: [UInt8(i & 255)])
            let entry = try cache.entry(forKey: key)
            #expect(entry?.bytes == [UInt8(i & 255), 1] && entry?.validator == [UInt8(i & 255)])
            if i % 5 == 0 {
                cache.remove(key)
                #expect(try cache.bytes(forKey: key) == nil)
            }
            if i % 3 == 0 {
                cache.setValidator([9], forKey: key)
                #expect(try cache.entry(forKey: key)?.validator == (i % 5 == 0 ? nil : [9]))
            }
        }
    }

    @Test func tellsItsSizeAsItChanges() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        var updates = cache.sizeUpdates.makeAsyncIterator()
        var sizes: [Int?] = [try #require(await updates.next())?.bytes]
        try await cache.set([1, 2, 3], forKey: "a")
        try await cache.flush()
        while sizes.last != .some(DiskFixture.charge(3, "a")) {
            sizes.append(try #require(await updates.next())?.bytes)
        }
        #expect(sizes.first == .some(nil) || sizes.first == 0)
    }

    @Test func tagsItsDirectoryAndKeepsTheFormatInItsPath() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        try cache.blocking.set([1], forKey: "a")
        try cache.blocking.flush()
        #expect(fixture.directory.read("cache/CACHEDIR.TAG")?.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55") == true)
        #expect(FileManager.default.fileExists(atPath: fixture.path + "/v3/current/cache.sqlite"))
        #expect(cache.path(forKey: "a").hasPrefix(fixture.path + "/v3/current/files/"))
    }

    /// Schema 3 had no blocks: all bodies that are no files were rows of a table.
    @Test(arguments: [false, true]) func aDatabaseWithoutBlocksIsReadAndThenGetsThem(isReadFirst: Bool) async throws {
        let fixture = try DiskFixture()
        do {
            let cache = fixture.cache().blocking
            for number in 0..<40 {
                try cache.set(DiskFixture.bytes(number * 50, seed: number), forKey: CacheKey("k\(number)"))
            }
            try cache.flush()
        }
        let path = try await fixture.closedDatabase()
        try Database(path: path).execute(
            "ALTER TABLE entry DROP COLUMN blocks;DROP TABLE space;PRAGMA user_version=3;")
        _ = try await fixture.closedDatabase()
        func check(_ cache: DiskCache.Blocking) throws {
            for number in 0..<40 {
                let bytes = try cache.bytes(forKey: CacheKey("k\(number)"))
                #expect(bytes == DiskFixture.bytes(number * 50, seed: number))
            }
        }
        let reader = fixture.cache { $0.isReadOnly = true }.blocking
        if isReadFirst { try check(reader) }
        let cache = fixture.cache()
        try check(cache.blocking)
        try cache.blocking.set(DiskFixture.bytes(9000), forKey: "new")
        try cache.blocking.flush()
        try check(cache.blocking)
        try check(reader)
        for found in [cache.blocking, reader, fixture.cache().blocking] {
            #expect(try found.bytes(forKey: "new") == DiskFixture.bytes(9000))
        }
        #expect(cache.statistics.damaged == 0)
        #expect(cache.statistics.recoveries == 0)
        #expect(try cache.blocking.verify(removingDamage: false).isSound)
    }

    /// The blocks of removed bodies are used again, and other objects never see what is in them meanwhile.
    @Test func blocksAreUsedAgain() throws {
        let fixture = try DiskFixture()
        let first = fixture.cache(), second = fixture.cache()
        let bodies = fixture.database + "-bodies"
        for round in 0..<20 {
            let cache = (round % 2 == 0 ? first : second).blocking
            for number in 0..<50 {
                try cache.set(DiskFixture.bytes(3000 + number * 300, seed: round), forKey: CacheKey("k\(number)"))
            }
            try cache.flush()
            for found in [first.blocking, second.blocking] {
                for number in 0..<50 {
                    let bytes = try found.bytes(forKey: CacheKey("k\(number)"))
                    #expect(bytes == DiskFixture.bytes(3000 + number * 300, seed: round))
                }
            }
        }
        let size = try #require(FileManager.default.attributesOfItem(atPath: bodies)[.size] as? Int)
        // Three times what is stored: the new bodies are written before the older ones are given up.
        #expect(size < 3 * 50 * 12_500)
        #expect(first.statistics.damaged + second.statistics.damaged == 0)
        #expect(try first.blocking.verify(removingDamage: false).isSound)
    }

    @Test func aDeletedFileOfBodiesCostsItsEntriesAlone() throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        try cache.blocking.set(DiskFixture.bytes(5000), forKey: "block")
        try cache.blocking.set([1], forKey: "row")
        try cache.blocking.flush()
        #expect(try cache.blocking.bytes(forKey: "block") == DiskFixture.bytes(5000))
        unlink(fixture.database + "-bodies")
        try cache.blocking.set(DiskFixture.bytes(6000), forKey: "new")
        try cache.blocking.flush()
        for found in [cache, fixture.cache()] {
            #expect(try found.blocking.bytes(forKey: "row") == [1])
            #expect(try found.blocking.bytes(forKey: "new") == DiskFixture.bytes(6000))
        }
        #expect(try fixture.cache().blocking.bytes(forKey: "block") == nil)
    }

    @Test func openingDoesNothingUntilTheFirstUse() throws {
        let fixture = try DiskFixture()
        _ = fixture.cache()
        #expect(!FileManager.default.fileExists(atPath: fixture.path))
    }

    @Test func anotherApplicationVersionEmptiesIt() throws {
        let fixture = try DiskFixture()
        func cache(_ version: String?, _ compatible: [String] = []) -> DiskCache.Blocking {
            fixture.cache {
                $0.version = version
                $0.compatibleVersions = compatible
            }.blocking
        }
        let first = cache("1.0")
        try first.set([1], forKey: "a")
        try first.flush()
        #expect(try cache("1.0").bytes(forKey: "a") == [1])
        #expect(try cache(nil).bytes(forKey: "a") == [1])
        #expect(try cache("1.1", ["1.0"]).bytes(forKey: "a") == [1])
        #expect(try cache("1.1").bytes(forKey: "a") == [1])
        #expect(try cache("2.0", ["1.0"]).bytes(forKey: "a") == nil)
        #expect(try cache("1.1").bytes(forKey: "a") == nil)
    }

    @Test func readOnlyGivesWhatIsThereAndRefusesWrites() async throws {
        let fixture = try DiskFixture()
        let writer = fixture.cache()
        try await writer.set([1], forKey: "a")
        try await writer.set(DiskFixture.bytes(100_000), forKey: "b")
        try await writer.flush()
        let cache = fixture.cache { $0.isReadOnly = true }
        #expect(try await cache.bytes(forKey: "a") == [1])
        #expect(try await cache.bytes(forKey: "b") == DiskFixture.bytes(100_000))
        await #expect(throws: CacheError.self) { try await cache.set([2], forKey: "a") }
        await #expect(throws: CacheError.self) { try await cache.removeAll() }
        await cache.remove("a")
        await #expect(throws: CacheError.self) { try await cache.flush() }
        #expect(try await cache.bytes(forKey: "a") == [1])
        let empty = DiskCache(directory: fixture.directory.file("none"), configuration: .init(isReadOnly: true))
        #expect(try await empty.bytes(forKey: "a") == nil)
        #expect(!FileManager.default.fileExists(atPath: fixture.directory.file("none")))
    }
}
