import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Large bodies, which are files, in place of others.
struct DiskCacheReplacementTests {
    private static let key: CacheKey = "a"
    private static let older = DiskFixture.bytes(100_000, seed: 1)
    private static let newer = DiskFixture.bytes(90_000, seed: 2)

    /// A cache as a crash leaves it between the row of the newer body and the file's move into its place.
    private func interrupted(_ fixture: DiskFixture) throws -> String {
        let cache = fixture.cache(), path = cache.path(forKey: Self.key)
        try cache.blocking.set(Self.older, forKey: Self.key)
        try cache.blocking.flush()
        #expect(FileManager.default.contents(atPath: path) == Data(Self.older))
        try cache.blocking.set(Self.newer, forKey: Self.key)
        try cache.blocking.flush()
        #expect(FileManager.default.contents(atPath: path) == Data(Self.newer))
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
        try FileManager.default.moveItem(atPath: path, toPath: path + ".new")
        try Data(Self.older).write(to: URL(filePath: path))
        return path
    }

    @Test func theNewerBodyIsReadAndPutInItsPlace() throws {
        let fixture = try DiskFixture(), path = try interrupted(fixture)
        let cache = fixture.cache().blocking
        #expect(try cache.bytes(forKey: Self.key) == Self.newer)
        try cache.flush()
        #expect(FileManager.default.contents(atPath: path) == Data(Self.newer))
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
        #expect(try cache.verify(removingDamage: false).isSound)
    }

    @Test func itIsNoLitterHoweverOld() throws {
        let fixture = try DiskFixture(), path = try interrupted(fixture)
        fixture.advance(.seconds(10_000_000_000))
        let cache = fixture.cache().blocking
        let report = try cache.verify(removingDamage: true)
        #expect(report.isSound, "\(report)")
        #expect(try cache.bytes(forKey: Self.key) == Self.newer)
        // Without an entry that needs it, it is.
        try cache.flush()
        try Data(Self.older).write(to: URL(filePath: path + ".new"))
        #expect(try cache.verify(removingDamage: true).orphans.count == 1)
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
        #expect(try cache.bytes(forKey: Self.key) == Self.newer)
    }

    @Test func aFailedPutAfterItLeavesIt() throws {
        let fixture = try DiskFixture(), path = try interrupted(fixture)
        let cache = fixture.cache().blocking
        // The next body cannot be written: where its file is to be there is a directory, once the newer one has moved.
        try cache.set(DiskFixture.bytes(80_000, seed: 3), forKey: Self.key)
        try cache.flush()
        #expect(try cache.bytes(forKey: Self.key) == DiskFixture.bytes(80_000, seed: 3))
        try FileManager.default.createDirectory(atPath: path + ".new", withIntermediateDirectories: true)
        try Data([1]).write(to: URL(filePath: path + ".new/x"))
        try cache.set(Self.older, forKey: Self.key)
        #expect(throws: CacheError.self) { try cache.flush() }
        #expect(try cache.bytes(forKey: Self.key) == DiskFixture.bytes(80_000, seed: 3))
    }

    @Test(arguments: [0, 100, 100_000])
    func nothingOfItIsLeftWhenTheEntryIsReplacedOrRemoved(count: Int) throws {
        let fixture = try DiskFixture(), path = try interrupted(fixture)
        let cache = fixture.cache().blocking
        if count == 0 { cache.remove(Self.key) } else { try cache.set(DiskFixture.bytes(count), forKey: Self.key) }
        try cache.flush()
        #expect(try cache.bytes(forKey: Self.key) == (count == 0 ? nil : DiskFixture.bytes(count)))
        #expect(FileManager.default.fileExists(atPath: path) == (count > 65_536))
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
    }
}
