import TestSupport
import Testing
import VitrineModels

/// The ancestor's words, on the shared store.
@Suite struct SharedStoreTests {
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
}
