import ModelsSamples
import TestSupport
import Testing
import VitrineCompatibility
import VitrineModels

/// Caching of instances in the shared store.
@Suite(.serialized) struct SharedStoreTests {
    @Test func instancesAndArraysAreCachedByDefaultKeysOrOthers() async throws {
        // Its own default keys went to the wrong method, and its removal to the wrong group.
        let directory = try TemporaryDirectory()
        ObjectStore.setShared(try ObjectStore(at: directory.file("shared.sqlite")))
        let dog = Dog("Rex")
        try await dog.cache()
        try await dog.cache(forKey: "k", in: "g")
        #expect(try Dog.objectInCache() == dog)
        #expect(try Dog.objectInCache(forKey: "k", in: "g") == dog)
        #expect(try Animal.objectInCache() == nil)
        try await Dog.removeCache(forKey: "k", in: "g")
        #expect(try Dog.objectInCache(forKey: "k", in: "g") == nil)
        #expect(try Dog.objectInCache() == dog)
        try await Place.cacheArray([Place("a"), Place("b"), Place("c")], maximumCount: 2)
        #expect(try Place.arrayInCache() == [Place("a"), Place("b")])
    }

    @Test func instancesRememberWhereTheyWereCached() async throws {
        let directory = try TemporaryDirectory()
        ObjectStore.setShared(try ObjectStore(at: directory.file("shared.sqlite")))
        let dog = Dog("Rex")
        #expect(dog.cacheKey == nil)
        // Removing a missing object is not an error.
        try await dog.removeCache()
        try await dog.cache(forKey: "k", in: "g")
        #expect(dog.cacheKey == "k" && dog.cacheGroup == "g")
        #expect(try dog.persistentCopy().cacheKey == nil)
        let restored = try #require(try Dog.objectInCache(forKey: "k", in: "g"))
        #expect(restored.cacheKey == "k" && restored.cacheGroup == "g")
        try await restored.removeCache()
        #expect(restored.cacheKey == nil)
        #expect(try Dog.objectInCache(forKey: "k", in: "g") == nil)
        // Places of objects that are gone are not those of new ones at their addresses.
        for number in 0..<1000 { try await Dog("Rex").cache(forKey: "\(number % 3)") }
        #expect((0..<100).allSatisfy { _ in Dog("Tom").cacheKey == nil })
        #expect(dog.cacheKey == "k")
    }
}
