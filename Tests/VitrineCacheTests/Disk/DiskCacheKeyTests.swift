import TestSupport
import Testing
import VitrineCache
import VitrineCore

@Suite struct DiskCacheKeyTests {
    static let oddKeys: [String] = [
        "", ".", "..", "/", "../../etc/passwd", "a\0b", "\0", "a/b:c%d", String(repeating: "ü", count: 5000),
        "é", "e\u{301}", "\u{1F}1:a", "👩‍👩‍👧‍👦", "\u{FFFE}", " ", "'; DROP TABLE entry; --", "\u{202E}abc", "\n",
    ]

    @Test func keepsOddKeysApart() async throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache { $0.inlineLimit = 20 }
        for (index, key) in Self.oddKeys.enumerated() {
            try await cache.set(DiskFixture.bytes(10 + index, seed: index), forKey: CacheKey(key))
        }
        try await cache.flush()
        for (index, key) in Self.oddKeys.enumerated() {
            #expect(try await cache.bytes(forKey: CacheKey(key)) == DiskFixture.bytes(10 + index, seed: index))
        }
        let listed = try await cache.entries(limit: 1000).map(\.key)
        #expect(Set(listed) == Set(Self.oddKeys.map { CacheKey($0) }))
        #expect(listed.count == Self.oddKeys.count)
        #expect(try await cache.verify(removingDamage: false).isSound)
    }

    @Test(arguments: [10, 100_000]) func keysOfOneHashNeverShowEachOthersBytes(count: Int) throws {
        let fixture = try DiskFixture()
        let cache = fixture.cache().blocking
        let one = CacheKey("one")
        let two = CacheKey(identity: "two", forcedHash: one.hash)
        let bytes = DiskFixture.bytes(count, seed: 1), others = DiskFixture.bytes(count, seed: 2)
        try cache.set(bytes, forKey: one)
        try cache.flush()
        #expect(try cache.bytes(forKey: two) == nil)
        #expect(try cache.info(forKey: two) == nil)
        cache.setValidator([1], forKey: two)
        try cache.flush()
        #expect(try cache.entry(forKey: one)?.validator == [])
        try cache.set(others, forKey: two)
        #expect(try cache.bytes(forKey: one) == bytes || cache.bytes(forKey: one) == nil)
        try cache.flush()
        #expect(try cache.bytes(forKey: one) == nil)
        #expect(try cache.bytes(forKey: two) == others)
        #expect(try cache.count == 1)
        #expect(try cache.size.bytes == DiskFixture.charge(count, two))
    }
}
