import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct CacheLookupTests {
    @Test func findsInMemoryThenOnDisk() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        #expect(cache["lake"] == "water")
        #expect(try await cache.value(forKey: "lake", depth: .memory) == "water")

        cache.clearMemory()
        #expect(cache["lake"] == nil)
        #expect(try await cache.value(forKey: "lake", depth: .memory) == nil)
        #expect(try await cache.value(forKey: "lake") == "water")
        // The disk hit has entered memory.
        #expect(cache["lake"] == "water")
        #expect(try await cache.value(forKey: "river") == nil)
    }

    @Test func subscriptChangesMemoryAlone() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache["lake"] = "water"
        #expect(cache["lake"] == "water")
        #expect(await cache.contains("lake", at: .memory))
        try await cache.flush()
        #expect(try await cache.info(forKey: "lake") == nil)
        cache["lake"] = nil
        #expect(cache["lake"] == nil)

        cache.register(CacheFormat("loud") { $0.uppercased() })
        cache["lake", "loud"] = "WATER"
        #expect(cache["lake", "loud"] == "WATER")
        #expect(cache["lake"] == nil)
        #expect(cache["lake", "unknown"] == nil)
    }

    @Test func levelsAreSkippedByRequest() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("disk", forKey: "lake")
        try await cache.flush()
        cache["lake"] = "memory"
        #expect(try await cache.value(forKey: "lake", levels: .memory) == "memory")
        #expect(try await cache.value(forKey: "lake", levels: .disk) == "disk")
        #expect(try await cache.value(forKey: "lake", levels: .none) == nil)

        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake", levels: .readOnly) == "disk")
        #expect(cache["lake"] == nil)

        try await cache.set("only memory", forKey: "a", levels: .memory)
        try await cache.set("only disk", forKey: "b", levels: .disk)
        try await cache.flush()
        #expect(await cache.depth(of: "a") == .memory)
        #expect(try await cache.info(forKey: "a") == nil)
        #expect(await cache.depth(of: "b") == .disk)

        let loads = Counter()
        let value = try await cache.value(forKey: "lake", levels: .writeOnly) {
            loads.add(1)
            return "new"
        }
        #expect(value == "new" && loads.value == 1)
        #expect(cache["lake"] == "new")
    }

    @Test func levelsAreSwitchedOffForTheCache() async throws {
        let fixture = try CacheFixture<String> { $0.levels = .disk }
        try await fixture.cache.set("water", forKey: "lake")
        #expect(fixture.cache["lake"] == nil)
        #expect(try await fixture.cache.value(forKey: "lake") == "water")
        #expect(fixture.cache["lake"] == nil)

        let memory = fixture.another { $0.levels = .memory }
        #expect(try await memory.value(forKey: "lake") == nil)
        try await memory.set("air", forKey: "sky")
        try await memory.flush()
        #expect(memory["sky"] == "air")
        #expect(try await memory.info(forKey: "sky") == nil)
    }

    @Test func tellsTheDepthWithoutLoading() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        #expect(await cache.depth(of: "lake") == .source)
        #expect(await !cache.contains("lake"))
        #expect(await !cache.contains("lake", at: .source))
        try await cache.set("water", forKey: "lake")
        #expect(await cache.depth(of: "lake") == .memory)
        #expect(await cache.containsInBoth("lake"))
        cache.clearMemory()
        #expect(await cache.depth(of: "lake") == .disk)
        #expect(await cache.contains("lake", at: .disk))
        #expect(await !cache.contains("lake", at: .memory))
        #expect(await !cache.containsInBoth("lake"))
        // Asking has loaded nothing.
        #expect(cache["lake"] == nil)
        #expect(await cache.depth(of: "lake", format: "unknown") == .source)
    }

    @Test func whatIsAliveElsewhereIsAMemoryHit() async throws {
        let fixture = try CacheFixture<Portrayed> { $0.memoryCapacity = 150 }
        let cache = fixture.cache
        var held: Portrayed? = Portrayed("lake")
        cache["lake"] = held
        cache["river"] = Portrayed("river")
        cache["sea"] = Portrayed("sea")
        // There is room for one: the lake has been evicted, but someone shows it.
        #expect(cache["lake"]?.portrait === held?.portrait)
        #expect(await cache.contains("lake", at: .memory))
        held = nil
        cache["hill"] = Portrayed("hill")
        cache["moor"] = Portrayed("moor")
        #expect(cache["lake"] == nil)
    }

    @Test func whatIsAliveElsewhereSurvivesClearedMemory() async throws {
        let fixture = try CacheFixture<Portrayed>()
        let cache = fixture.cache
        var own = CacheFormat<Portrayed>("own")
        own.memoryCapacity = 1000
        cache.register(own)
        let held = Portrayed("lake")
        for format in [FormatName.original, "own"] {
            for drop in [{ cache.clearMemory() }, { fixture.pressure.send(.critical) }] {
                try await cache.set(held, forKey: "lake", format: format)
                try await cache.set(Portrayed("hill"), forKey: "hill", format: format)
                // Values that wait to be written are alive.
                try await cache.flush()
                drop()
                #expect(cache.memorySize == 0)
                #expect(cache["lake", format]?.portrait === held.portrait)
                #expect(cache["hill", format] == nil)
            }
            // What is removed does not come back, from one level or from both.
            try await cache.removeAll(levels: .memory)
            #expect(cache["lake", format] == nil)
            try await cache.set(held, forKey: "lake", format: format)
            try await cache.removeAll()
            #expect(cache["lake", format] == nil)
        }
    }

    @Test func expiredValuesAreMisses() async throws {
        let fixture = try CacheFixture<String> { $0.timeToLive = .seconds(60) }
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        try await cache.set("rock", forKey: "hill", timeToLive: .seconds(600))
        try await cache.flush()
        fixture.clock.advance(by: .seconds(61))
        #expect(cache["lake"] == nil)
        #expect(try await cache.value(forKey: "lake") == nil)
        #expect(cache["hill"] == "rock")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "hill") == "rock")
        await cache.expire("hill")
        #expect(cache["hill"] == nil)
        #expect(try await cache.value(forKey: "hill") == nil)
    }

    @Test func diskHitsKeepTheirExpiryInMemory() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake", timeToLive: .seconds(60))
        cache.clearMemory()
        fixture.clock.advance(by: .seconds(50))
        #expect(try await cache.value(forKey: "lake") == "water")
        fixture.clock.advance(by: .seconds(11))
        #expect(cache["lake"] == nil)
    }

    @Test func unreadableEntriesAreMissesAndRemoved() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.disk()?.set([0xFF, 0xFE], forKey: "lake")
        try await cache.disk()?.set(Array("fine".utf8), forKey: "river")
        #expect(try await cache.value(forKey: "lake") == nil)
        try await cache.flush()
        #expect(try await cache.info(forKey: "lake") == nil)
        #expect(try await cache.value(forKey: "river") == "fine")

        try await cache.disk()?.set([0xFF, 0xFE], forKey: "lake")
        #expect(try await cache.value(forKey: "lake") { "again" } == "again")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") == "again")
    }

    @Test func threadsThatMayBlockUseTheDisk() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await offPool { try cache.setBlocking("water", forKey: "lake", timeToLive: .seconds(60)) }
        #expect(cache["lake"] == "water")
        cache.clearMemory()
        #expect(try await offPool { cache.isOnDiskBlocking("lake") && !cache.isOnDiskBlocking("hill") })
        #expect(try await offPool { cache.valueOnDiskBlocking(forKey: "hill") } == nil)
        #expect(try await offPool { cache.valueOnDiskBlocking(forKey: "lake", levels: .readDisk) } == "water")
        #expect(cache["lake"] == nil)
        #expect(try await offPool { cache.valueOnDiskBlocking(forKey: "lake") } == "water")
        #expect(cache["lake"] == "water")
        fixture.clock.advance(by: .seconds(61))
        #expect(try await offPool { cache.valueOnDiskBlocking(forKey: "lake") } == nil)
        #expect(try await offPool { !cache.isOnDiskBlocking("lake") })
    }

    @Test func namesKeepCachesApart() async throws {
        let fixture = try CacheFixture<String>(name: "a/b")
        let other = fixture.another(name: "a")
        let same = fixture.another(name: "a/b")
        try await fixture.cache.set("water", forKey: "lake")
        try await fixture.cache.flush()
        #expect(try await other.value(forKey: "lake") == nil)
        #expect(try await same.value(forKey: "lake") == "water")
        #expect(fixture.directory.names.contains("a%2Fb"))
    }
}
