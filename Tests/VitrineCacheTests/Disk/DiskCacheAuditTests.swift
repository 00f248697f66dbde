import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore

@Suite struct DiskCacheAuditTests {
    @Test func pagesThroughAllEntriesWhileOthersAreWritten() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        for i in 0..<500 { try await cache.set([UInt8(i & 255)], forKey: CacheKey("old\(i)")) }
        try await cache.flush()
        async let writing: Void = {
            for i in 0..<300 { try await cache.set([1], forKey: CacheKey("new\(i)")) }
        }()
        var seen: [CacheKey] = []
        while true {
            let page = try await cache.entries(after: seen.last, limit: 37)
            if page.isEmpty { break }
            #expect(page.count <= 37)
            seen += page.map(\.key)
        }
        try await writing
        #expect(Set(seen).count == seen.count)
        #expect(Set(seen).isSuperset(of: (0..<500).map { CacheKey("old\($0)") }))
    }

    @Test func removesWhatAnAuditChose() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        for i in 0..<100 { try await cache.set([1], forKey: CacheKey("\(i)")) }
        for number in 0..<50 { await cache.remove(CacheKey("\(number)")) }
        #expect(try await cache.count == 50)
    }

    @Test func verifyDeletesForeignAndForgottenFilesOnly() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache()
        try await cache.set(DiskFixture.bytes(100_000), forKey: "large")
        try await cache.flush()
        let files = fixture.generation + "/files"
        try FileManager.default.createDirectory(atPath: files + "/ab", withIntermediateDirectories: true)
        for name in ["/foreign.jpg", "/ab/IMG_1.png", "/ab/01000000000000ab", "/ab/02000000000000ab"] {
            try Data([1]).write(to: URL(filePath: files + name))
        }
        // The fixture's clock is in 1970; the fresh file must look fresh to it.
        let old = Date(timeIntervalSince1970: 1_000_000 - 4000), fresh = Date(timeIntervalSince1970: 1_000_000 - 60)
        try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: files + "/ab/01000000000000ab")
        try FileManager.default.setAttributes([.modificationDate: fresh], ofItemAtPath: files + "/ab/02000000000000ab")
        let found = try await cache.verify(removingDamage: false)
        #expect(found.orphans.count == 3)
        #expect(found.entries == 1 && found.bytes.bytes == 100_000 && found.damaged.isEmpty && !found.isSound)
        _ = try await cache.verify(removingDamage: true)
        #expect(try await cache.verify(removingDamage: false).isSound)
        #expect(FileManager.default.fileExists(atPath: files + "/ab/02000000000000ab"))
        #expect(try await cache.bytes(forKey: "large") == DiskFixture.bytes(100_000))
    }
}
