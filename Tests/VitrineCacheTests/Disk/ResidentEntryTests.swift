import Foundation
import TestSupport
import Testing
@_spi(EventLoops) import VitrineCache
import VitrineCore

#if os(Linux)
/// Reads that wait for nothing.
@Suite struct ResidentEntryTests {
    /// Whether the file system of the tests can tell what it has in memory: tmpfs cannot.
    private static func isSupported(_ directory: TemporaryDirectory) throws -> Bool {
        try directory.write("water", to: "probe")
        return try resident(directory.file("probe"), 5) != nil
    }

    private static func resident(_ path: String, _ count: Int) throws -> [UInt8]? {
        let file = try #require(FileHandle(forReadingAtPath: path))
        defer { try? file.close() }
        var bytes = [UInt8](repeating: 0, count: count)
        let got = bytes.withUnsafeMutableBytes { ResidentBytes.read(file.fileDescriptor, into: $0, at: 0) }
        return got.map { Array(bytes[..<$0]) }
    }

    /// Lets the system forget the bytes of a file, from another process: closing a descriptor of a database in this one
    /// would release its locks.
    private static func forget(_ path: String) throws {
        for arguments in [["of=\(path)", "conv=notrunc,fdatasync"], ["if=\(path)", "iflag=nocache"]] {
            let process = Process()
            process.executableURL = URL(filePath: "/bin/dd")
            process.arguments = arguments + ["count=0", "status=none"]
            try process.run()
            process.waitUntilExit()
            try #require(process.terminationStatus == 0)
        }
    }

    private static func bytes(_ cache: ValueCache<[UInt8]>, _ key: CacheKey) -> [UInt8]? {
        cache.withResidentBytes(forKey: key) { ($0, $0) }
    }

    /// The bytes of an entry that is there, as soon as they are read without waiting. That may need a connection, which
    /// another thread opens, and a read that waits, if the last one was some time ago.
    private static func read(_ cache: ValueCache<[UInt8]>, _ key: CacheKey) async throws -> [UInt8] {
        while true {
            try #require(try await cache.count() > 0)
            if let found = bytes(cache, key) { return found }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// A cache whose connection for reads that wait for nothing is open.
    private static func open(
        _ fixture: CacheFixture<[UInt8]>, _ cache: ValueCache<[UInt8]>? = nil
    ) async throws -> ValueCache<[UInt8]> {
        let cache = cache ?? fixture.cache
        try await cache.set([7], forKey: "open", levels: .disk)
        try await cache.flush()
        #expect(try await read(cache, "open") == [7])
        cache.clearMemory()
        return cache
    }

    @Test func bytesOfFilesAreReadIfTheyAreInMemory() throws {
        let directory = try TemporaryDirectory()
        guard try Self.isSupported(directory) else { return }
        let path = directory.file("a")
        let bytes = DiskFixture.bytes(300_000)
        try Data(bytes).write(to: URL(filePath: path))
        #expect(try Self.resident(path, 300_000) == bytes)
        #expect(try Self.resident(path, 400_000) == bytes)
        #expect(ResidentBytes.read(-1, into: UnsafeMutableRawBufferPointer(start: nil, count: 0), at: 0) ?? 0 == 0)
        try Self.forget(path)
        #expect(try Self.resident(path, 300_000) == nil)
    }

    @Test func aMissIsKnownAtOnceUntilAnotherCacheStoresTheKey() async throws {
        let fixture = try DiskFixture()
        guard try Self.isSupported(fixture.directory) else { return }
        let cache = fixture.cache(), other = fixture.cache()
        try await other.set([7], forKey: "present")
        try await other.flush()
        // Another thread opens the connection, and a read that waits looks at the directory again.
        func excludes(_ key: CacheKey) async throws {
            try await offPool {
                try waitUntil("a known miss") { try cache.blocking.info(forKey: key) == nil && cache.excludes(key) }
            }
        }
        for i in 0..<50 {
            let key = CacheKey("k\(i)")
            try await excludes(key)
            try await other.set([1], forKey: key, tags: ["t"])
            try await other.flush()
            #expect(!cache.excludes(key) && !cache.excludes("present"))
            if i % 2 == 0 { await other.remove(key) } else { _ = try await other.removeAll(tag: "t") }
            try await other.flush()
            try await excludes(key)
        }
    }

    @Test(arguments: [0, 100, 5_000, 60_000, 100_000])
    func anEntryIsReadAtOnceAndKeptInMemory(size: Int) async throws {
        let fixture = try CacheFixture<[UInt8]>()
        guard try Self.isSupported(fixture.directory) else { return }
        let cache = try await Self.open(fixture)
        let body = DiskFixture.bytes(size)
        try await cache.set(body, forKey: "lake", levels: .disk)
        try await cache.flush()
        let hits = cache.disk()?.statistics.hits ?? 0
        #expect(try await Self.read(cache, "lake") == body)
        #expect(cache["lake"] == body)
        #expect(cache.disk()?.statistics.hits == hits + 1)
        #expect(Self.bytes(cache, "missing") == nil)
        // Nothing is kept where the caller has no value.
        cache.clearMemory()
        var count: Int?
        while count == nil {
            try #require(try await cache.count() > 0)
            count = cache.withResidentBytes(forKey: "lake") { ($0.count, nil) }
        }
        #expect(count == size)
        #expect(cache["lake"] == nil)
        #expect(cache.withResidentBytes(forKey: "lake") { _ -> (Int, [UInt8]?)? in nil } == nil)
    }

    @Test func largeEntriesAreLeftToOtherThreads() async throws {
        let fixture = try CacheFixture<[UInt8]>()
        let cache = try await Self.open(fixture)
        try await cache.set(DiskFixture.bytes(200_000), forKey: "lake", levels: .disk)
        try await cache.flush()
        #expect(Self.bytes(cache, "lake") == nil)
        #expect(try await cache.value(forKey: "lake")?.count == 200_000)
    }

    @Test func whatWasChangedIsNotReturned() async throws {
        let fixture = try CacheFixture<[UInt8]>()
        guard try Self.isSupported(fixture.directory) else { return }
        let cache = try await Self.open(fixture), other = fixture.another()
        for number in 0..<20 {
            try await cache.set([UInt8(number)], forKey: "set", levels: .disk)
            try await cache.set([1], forKey: "tagged", tags: ["t"], levels: .disk)
            try await cache.set([2], forKey: "removed", levels: .disk)
            try await cache.set([3], forKey: "expiring", timeToLive: .seconds(10), levels: .disk)
            try await cache.set([4], forKey: "foreign", levels: .disk)
            try await cache.flush()
            #expect(try await Self.read(cache, "set") == [UInt8(number)])
            for key in ["tagged", "removed", "expiring", "foreign"] as [CacheKey] {
                #expect(try await Self.read(cache, key).count == 1)
            }
            cache.clearMemory()
            try await cache.removeAll(tag: "t")
            #expect(Self.bytes(cache, "tagged") == nil)
            await cache.remove("removed")
            #expect(Self.bytes(cache, "removed") == nil)
            fixture.clock.advance(by: .seconds(11))
            #expect(Self.bytes(cache, "expiring") == nil)
            // By another process, as far as this cache knows.
            await other.remove("foreign")
            try await other.flush()
            #expect(Self.bytes(cache, "foreign") == nil)
            // A change that is still to be written.
            try await cache.set([99], forKey: "set", levels: .disk)
            let found = Self.bytes(cache, "set")
            #expect(found == nil || found == [99])
        }
        try await cache.removeAll()
        #expect(Self.bytes(cache, "set") == nil)
    }

    /// A value that was read before its entry changed does not enter memory.
    @Test func aChangeWhileTheBytesAreReadWins() async throws {
        let fixture = try CacheFixture<[UInt8]>()
        guard try Self.isSupported(fixture.directory) else { return }
        let cache = try await Self.open(fixture)
        try await cache.set([1], forKey: "lake", levels: .disk)
        try await cache.flush()
        var found: [UInt8]?
        while found == nil {
            try #require(try await cache.count() > 0)
            found = cache.withResidentBytes(forKey: "lake") { bytes in
                cache["lake"] = [2]
                return (bytes, bytes)
            }
        }
        #expect(found == [1])
        #expect(cache["lake"] == [2])
    }

    @Test func bytesThatAreNotInMemoryAreNotWaitedFor() async throws {
        let fixture = try CacheFixture<[UInt8]>()
        guard try Self.isSupported(fixture.directory) else { return }
        let keys = (0..<300).map { CacheKey("k\($0)") }
        let path: String
        do {
            let filler = fixture.another()
            for (number, key) in keys.enumerated() {
                try await filler.set(DiskFixture.bytes(40_000, seed: number + 1), forKey: key, levels: .disk)
            }
            try await filler.flush()
            path = fixture.cache.directory + "/v3/current/cache.sqlite"
        }
        try await offPool {
            try DatabaseFiles.waitUntilClosed(path)
            try Self.forget(path)
            try Self.forget(path + "-bodies")
        }
        let cache = try await Self.open(fixture)
        // Out of order, or the system reads the next bodies while the ones before are looked up.
        var first = [[UInt8]?](repeating: nil, count: keys.count)
        for number in keys.indices.map({ $0 * 101 % keys.count }) { first[number] = Self.bytes(cache, keys[number]) }
        cache.clearMemory()
        // Most of 12 MB.
        #expect(first.count { $0 == nil } > 100)
        for (number, key) in keys.enumerated() {
            let bytes = DiskFixture.bytes(40_000, seed: number + 1)
            #expect(first[number] == nil || first[number] == bytes)
            #expect(try await cache.value(forKey: key, levels: .disk) == bytes)
            #expect(try await Self.read(cache, key) == bytes)
        }
        #expect(cache.disk()?.statistics.damaged == 0)
    }
}
#endif
