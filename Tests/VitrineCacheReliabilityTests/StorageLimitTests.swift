import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineDatabase
import VitrineStores

/// Writing more than fits: into the capacity, and into the file system.
struct StorageLimitTests {
    /// What the database may hold above its entries, in bytes: indexes, half-filled pages, free pages.
    private static let databaseSlack = 1_500_000

    /// A reader holds the log back until it is as long as it may be; the files are copied as a killed process leaves
    /// them.
    @Test func aLogLeftJustBelowItsBoundDoesNotPassIt() async throws {
        let capacity = ByteCount(2_000_000), bound = 8 << 20, batch = 4 * 4120
        try await offPool {
            let directory = try TemporaryDirectory()
            let living = directory.file("living"), path = directory.file("cache")
            let configuration = DiskCache.Configuration(capacity: capacity)
            let cache = DiskCache(directory: living, configuration: configuration).blocking
            try cache.set([1], forKey: "first")
            try cache.flush()
            let database = try #require(CacheFiles.database(in: living))
            let reader = try Database(path: database)
            try reader.execute("BEGIN")
            _ = try reader.integer("SELECT count(*) FROM sqlite_schema")
            while CacheFiles.size(database + "-wal") < bound - batch {
                try cache.set([2], forKey: "first")
                try cache.flush()
            }
            #expect(CacheFiles.size(database + "-wal") <= bound)
            try FileManager.default.copyItem(atPath: living, toPath: path)
            try reader.execute("ROLLBACK")
            let copy = DiskCache(directory: path, configuration: configuration).blocking
            for version in 0..<8 {
                try copy.set([UInt8(version)], forKey: "last")
                try copy.flush()
                #expect(CacheFiles.bytes(of: "cache.sqlite-wal", in: path) <= bound / 2)
            }
            withExtendedLifetime(cache) {}
        }
    }

    @Test(arguments: [DiskCache.Eviction.sizeAndFrequency, .leastRecentlyUsed])
    func writeStormAtThreeTimesTheCapacityNeverExceedsItByMoreThanAnEntry(eviction: DiskCache.Eviction) async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("cache"), capacity = 4_000_000
        let configuration = DiskCache.Configuration(capacity: ByteCount(capacity), eviction: eviction)
        let cache = DiskCache(directory: path, configuration: configuration)
        let finished = Counter(), samples = Recorder<Sample>()
        async let sampling: Void = offPool {
            // As another process would see it: through an object of its own.
            let watcher = DiskCache(directory: path, configuration: configuration).blocking
            while finished.value == 0 { samples.add(try Sample(path, watcher)) }
            samples.add(try Sample(path, watcher))
        }
        let written = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    var random = SeededGenerator(UInt64(writer) + 50)
                    while written.value < 3 * capacity || samples.all.count <= 10 {
                        let entry = SampleEntry(number: Int.random(in: 0..<1 << 40, using: &random), version: writer)
                        let bytes = entry.bytes(.mixed)
                        try await cache.set(bytes, forKey: entry.key)
                        written.add(bytes.count)
                    }
                }
            }
            try await group.waitForAll()
        }
        try await cache.flush()
        finished.add(1)
        try await sampling
        let all = samples.all, entry = SampleEntry.largestAccountedSize
        #expect(all.count > 10)
        #expect(all.map(\.accounted).max() ?? 0 <= capacity + entry)
        #expect(all.map(\.files).max() ?? 0 <= capacity + entry)
        #expect(all.map(\.everything).max() ?? 0 <= capacity + entry + Self.databaseSlack, "of \(capacity)")
        // And it is not simply empty.
        #expect(try await cache.size.bytes > capacity / 2)
        #expect(try await cache.verify(removingDamage: false).damaged.isEmpty)
    }

    /// Blocks of evicted bodies are given back to the file system where files take their place, also if two caches write
    /// by turns.
    @Test func bodiesInFilesTakeThePlaceOfBodiesInBlocks() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let path = directory.file("cache"), copied = directory.file("copied"), capacity = 4_000_000
            let configuration = DiskCache.Configuration(capacity: ByteCount(capacity))
            func taken(_ path: String) -> Int {
                let database = CacheFiles.database(in: path) ?? ""
                let bodies = CacheFiles.sizeOnDisk(database + "-bodies")
                return CacheFiles.bodyFileBytes(in: path) + CacheFiles.size(database) + bodies
            }
            let cache = DiskCache(directory: path, configuration: configuration).blocking
            for number in 0..<300 { try cache.set([UInt8](repeating: 1, count: 20_000), forKey: SampleEntry.key(number)) }
            try cache.flush()
            #expect(try cache.size.bytes > capacity / 2)
            let other = DiskCache(directory: path, configuration: configuration).blocking
            for number in 0..<60 {
                let writer = number % 2 == 0 ? cache : other
                try writer.set([UInt8](repeating: 2, count: 200_000), forKey: SampleEntry.key(1000 + number))
                try writer.flush()
                #expect(taken(path) <= capacity + SampleEntry.largestAccountedSize + Self.databaseSlack)
            }
            #expect(CacheFiles.bodyFileBytes(in: path) > capacity / 2)
            #expect(try cache.verify(removingDamage: false).damaged.isEmpty)

            // A copy may be without holes. They return when it is opened.
            try FileManager.default.copyItem(atPath: path, toPath: copied)
            let bodies = try #require(CacheFiles.database(in: copied)) + "-bodies"
            let bytes = try #require(FileManager.default.contents(atPath: bodies))
            try bytes.write(to: URL(fileURLWithPath: bodies))
            #expect(taken(copied) > capacity * 3 / 2)
            let opened = DiskCache(directory: copied, configuration: configuration).blocking
            try opened.set([4], forKey: "last")
            try opened.flush()
            #expect(taken(copied) <= capacity + SampleEntry.largestAccountedSize + Self.databaseSlack)
        }
    }

    /// Blocks of evicted bodies are given back where rows of the database take their place.
    @Test func bodiesInRowsTakeThePlaceOfBodiesInBlocks() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("cache"), capacity = 100_000_000
        let cache = DiskCache(directory: path, configuration: .init(capacity: ByteCount(capacity)))
        for number in 0..<5_000 {
            try await cache.set([UInt8](repeating: 1, count: 20_000), forKey: SampleEntry.key(number))
        }
        try await cache.flush()
        let database = try #require(CacheFiles.database(in: path))
        #expect(CacheFiles.sizeOnDisk(database + "-bodies") > capacity * 9 / 10)
        var most = 0
        for number in 0..<20_000 {
            try await cache.set([UInt8](repeating: 2, count: 1_900), forKey: SampleEntry.key(10_000 + number))
            guard number % 500 == 499 else { continue }
            try await cache.flush()
            most = max(most, CacheFiles.size(database) + CacheFiles.sizeOnDisk(database + "-bodies"))
        }
        #expect(most <= capacity + 8 << 20 + capacity / 32 + Self.databaseSlack, "\(most)")
        #expect(CacheFiles.size(database) > capacity / 4)
    }

    /// What a moment of a storm looks like from outside, in bytes.
    private struct Sample: Sendable {
        var accounted: Int
        /// Bodies that are files, the one being written included.
        var files: Int
        /// These and the database, without its log.
        var everything: Int

        init(_ path: String, _ watcher: DiskCache.Blocking) throws {
            files = CacheFiles.bodyFileBytes(in: path)
            let database = CacheFiles.database(in: path)
            everything = files + (database.map { CacheFiles.size($0) + CacheFiles.sizeOnDisk($0 + "-bodies") } ?? 0)
            accounted = try watcher.size.bytes
        }
    }

    /// Without a log, and with what a killed process has left in it.
    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"), arguments: [false, true])
    func cachesAndValuesAreReadOnAFullDiskAndWrittenWhenThereIsRoom(hasLog: Bool) async throws {
        try await offPool {
            let cache = try FilledCache(count: 30, isAbandoned: hasLog)
            let directory = cache.directory
            if hasLog {
                for file in CacheFiles.all(in: cache.path) where file.hasSuffix("-shm") {
                    try FileManager.default.removeItem(atPath: "\(cache.path)/\(file)")
                }
            }
            let living = directory.file("living-values")
            do {
                let values = try KeyValueStore(directory: living)
                try values.set(7, forKey: "number").waitUntilCommitted()
                if hasLog {
                    try FileManager.default.copyItem(atPath: living, toPath: directory.file("values"))
                    try FileManager.default.removeItem(atPath: directory.file("values/values-1.sqlite-shm"))
                }
                withExtendedLifetime(values) {}
            }
            if !hasLog {
                try DatabaseFiles.waitUntilClosed(living + "/values-1.sqlite")
                try FileManager.default.copyItem(atPath: living, toPath: directory.file("values"))
            }
            let child = try ChildProcess(
                ["read-full", directory.file("small"), directory.file("small/ballast"), "30"],
                wrapper: Namespace.command(
                    """
                    mkdir -p "$0/small" && mount -t tmpfs -o size=32m tmpfs "$0/small" \
                    && cp -a "$0/cache" "$0/values" "$0/small" \
                    && { cat /dev/zero > "$0/small/ballast" 2>/dev/null; true; }
                    """, directory.path))
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            #expect(findings["cache"] == "done" && findings.number("entries") == 30, "\(findings)")
            #expect(findings["values"] == "done" && findings.number("value") == 7, "\(findings)")
            // Moving a log into its file may make room.
            #expect(hasLog || findings["put"] == "full" && findings.number("kept") == 7, "\(findings)")
            #expect(findings["after"] == "done" && findings.number("written") == 9, "\(findings)")
            #expect(findings["cache-after"] == "done" && findings.number("new") == 3, "\(findings)")
        }
    }

    /// Each of these bodies has a page to itself and leaves half of it empty.
    @Test func emptyPartsOfPagesCountTowardsTheCapacity() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("cache"), capacity = 24_000_000
        let cache = DiskCache(directory: path, configuration: .init(capacity: ByteCount(capacity)))
        for number in 0..<14_000 {
            try await cache.set([UInt8](repeating: UInt8(number % 251), count: 2100), forKey: SampleEntry.key(number))
        }
        try await cache.flush()
        let database = try #require(CacheFiles.database(in: path))
        #expect(CacheFiles.size(database) <= capacity + 8 << 20 + 2_000_000)
        #expect(CacheFiles.bytes(in: path) <= capacity + DiskCache.diskOverhead.bytes)
        #expect(try await cache.size.bytes > capacity / 3)
    }

    /// Large enough for the longest log. Each body leaves half of a page empty, and the queue is never waited for, so
    /// that the log reaches its bound again and again.
    @Test func largeCacheTakesNoMoreThanItsCapacityAndTheStatedOverheadAtAnyTime() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("cache"), capacity = 136_000_000, size = 2100 + 7 * 4092
        let cache = DiskCache(directory: path, configuration: .init(capacity: ByteCount(capacity)))
        let finished = Counter(), samples = Recorder<(bytes: Int, log: Int)>()
        async let sampling: Void = offPool {
            while finished.value == 0 {
                let log = CacheFiles.bytes(of: "cache.sqlite-wal", in: path)
                samples.add((CacheFiles.bytes(in: path), log))
                usleep(2000)
            }
        }
        // On a busy machine, the sampling may miss the longest log.
        var number = 0
        while number < 6 * capacity / size || samples.all.map(\.log).max() ?? 0 <= 31 << 20, number < 40 * capacity / size {
            for _ in 0..<1000 {
                try await cache.set([UInt8](repeating: UInt8(number % 251), count: size), forKey: SampleEntry.key(number))
                number += 1
            }
        }
        try await cache.flush()
        finished.add(1)
        try await sampling
        let all = samples.all
        // The log was as long as it may be.
        #expect((all.map(\.log).max() ?? 0) > 31 << 20)
        #expect((all.map(\.bytes).max() ?? 0) <= capacity + DiskCache.diskOverhead.bytes)
        #expect(CacheFiles.bytes(in: path) <= capacity + DiskCache.diskOverhead.bytes)
        #expect(try await cache.size.bytes > capacity * 4 / 5)
    }

    @Test(.enabled(if: Namespace.isAvailable, "needs unshare and the right to mount"))
    func fullDiskDropsPutsWithATypedErrorAndServesWhatItHas() async throws {
        try await offPool {
            let directory = try TemporaryDirectory()
            let child = try ChildProcess(
                ["fill-disk", directory.file("small/cache"), directory.file("small/ballast"), "400"],
                wrapper: Namespace.command(
                    """
                    mkdir -p "$0/small" && mount -t tmpfs -o size=6m tmpfs "$0/small" \
                    && head -c 2000000 /dev/zero > "$0/small/ballast"
                    """, directory.path))
            let findings = child.findings()
            #expect(child.wait() == .exit(0), "\(findings)")
            #expect(findings["error"] == nil, "\(findings)")
            #expect(findings.number("wrong-full") == 0)
            #expect(findings.number("wrong-after") == 0)
            #expect(findings.number("intact-full") > 0, "\(findings)")
            #expect(findings.number("written-after") == 8, "\(findings)")
            let kinds = Set(findings.lines.map(\.name).filter { $0.hasPrefix("failure-") })
            #expect(kinds.isSubset(of: ["failure-file", "failure-database"]), "\(findings)")
        }
    }
}
