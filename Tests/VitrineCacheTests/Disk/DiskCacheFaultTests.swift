#if os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Failures of the system that begin and end while a cache is open.
@Suite struct DiskCacheFaultTests {
    private static let count = 60

    private static func body(_ number: Int) -> [UInt8] { DiskFixture.bytes(200 + number * 700, seed: number) }

    private func filled(_ fixture: DiskFixture) throws -> DiskCache {
        let cache = fixture.cache { $0.inlineLimit = 20_000 }
        for number in 0..<Self.count { try cache.blocking.set(Self.body(number), forKey: CacheKey("\(number)")) }
        try cache.blocking.flush()
        return cache
    }

    private func intact(_ cache: DiskCache) throws -> Int {
        try (0..<Self.count).count { number in
            guard let bytes = try cache.blocking.bytes(forKey: CacheKey("\(number)")) else { return false }
            #expect(bytes == Self.body(number))
            return true
        }
    }

    @Test func aPassingReadErrorCostsNoEntry() async throws {
        let fixture = try DiskFixture()
        do { _ = try filled(fixture) }
        _ = try await fixture.closedDatabase()
        // Mapped pages are not read by calls.
        let cache = fixture.cache { $0.mapsDatabase = false }
        #expect(try cache.blocking.bytes(forKey: "1") == Self.body(1))
        let fault = DatabaseFault(.read, at: fixture.directory.path + "/", code: EIO)
        for number in 0..<Self.count { _ = try? cache.blocking.bytes(forKey: CacheKey("\(number)")) }
        try cache.blocking.set([1], forKey: "new")
        _ = try? cache.blocking.flush()
        fault.end()
        #expect(try intact(cache) == Self.count)
        #expect(cache.statistics.recoveries == 0 && cache.statistics.damaged == 0)
        try cache.blocking.set([2], forKey: "new")
        try cache.blocking.flush()
        #expect(try fixture.cache().blocking.bytes(forKey: "new") == [2])
    }

    @Test(arguments: [EROFS, EACCES, EMFILE]) func aCacheThatCouldNotBeOpenedIsWrittenLater(code: Int32) async throws {
        let fixture = try DiskFixture()
        do { _ = try filled(fixture) }
        _ = try await fixture.closedDatabase()
        let cache = fixture.cache()
        let fault = DatabaseFault(.openForWriting, at: fixture.directory.path + "/", code: code)
        _ = try? cache.blocking.bytes(forKey: "1")
        // Refused now, or when its turn comes.
        #expect(throws: CacheError.self) {
            try cache.blocking.set([1], forKey: "new")
            try cache.blocking.flush()
        }
        fault.end()
        try cache.blocking.set([2], forKey: "new")
        try cache.blocking.flush()
        #expect(try cache.blocking.bytes(forKey: "new") == [2])
        #expect(try intact(cache) == Self.count)
        #expect(cache.statistics.recoveries == 0)
    }

    /// A file that cannot be opened is not one that is missing.
    @Test(arguments: ["file", "blocks"]) func aBodyThatCannotBeReadNowStays(kind: String) throws {
        let fixture = try DiskFixture()
        let cache = try filled(fixture)
        let number = kind == "file" ? Self.count - 1 : Self.count / 3
        let path = try kind == "file"
            ? #require(fixture.files.first { path in
                path.contains("/files/") && FileManager.default.contents(atPath: path)?.count == Self.body(number).count
            })
            : fixture.database + "-bodies"
        #expect(rename(path, path + ".away") == 0)
        // Opening a socket fails with ENXIO.
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        try bind(socket, to: path, in: fixture.directory)
        let other = fixture.cache()
        #expect(throws: CacheError.self) { try other.blocking.bytes(forKey: CacheKey("\(number)")) }
        // Work of the writer, such as a removal, is done by now.
        _ = try? other.blocking.flush()
        #expect(rename(path + ".away", path) == 0)
        #expect(try fixture.cache().blocking.bytes(forKey: CacheKey("\(number)")) == Self.body(number))
        #expect(try intact(cache) == Self.count)
        #expect(other.statistics.damaged == 0)
    }

    /// Paths of sockets are short, so it is made beside the cache.
    private func bind(_ socket: Int32, to path: String, in directory: TemporaryDirectory) throws {
        let short = directory.file("s")
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: short.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(socket, $0, size) }
        }
        #expect(result == 0)
        #expect(rename(short, path) == 0)
    }

    @Test func aValueWithTagsIsStoredOrRefused() async throws {
        let fixture = try DiskFixture()
        do {
            let cache = fixture.cache()
            try cache.blocking.set([1], forKey: "a", tags: ["tag"])
            try cache.blocking.removeAll(tag: "tag")
        }
        _ = try await fixture.closedDatabase()
        let cache = fixture.cache { $0.mapsDatabase = false }
        let fault = DatabaseFault(.read, at: fixture.directory.path + "/", code: EIO)
        #expect(throws: CacheError.self) { try cache.blocking.set([2], forKey: "a", tags: ["tag"]) }
        await #expect(throws: CacheError.self) { try await cache.set([2], forKey: "a", tags: ["tag"]) }
        fault.end()
        try cache.blocking.set([3], forKey: "a", tags: ["tag"])
        try cache.blocking.flush()
        #expect(try fixture.cache().blocking.bytes(forKey: "a") == [3])
    }
}
#endif
