import Dispatch
import TestSupport
import Testing
import VitrineCache
import VitrineCore

struct CacheChangingTests {
    @Test func setGivesTheValueAsStored() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        #expect(try await cache.set("water", forKey: "lake") == "water")
        #expect(try await cache.set("water", forKey: "lake", format: "loud") == "WATER")
        #expect(cache["lake"] == "water")
        #expect(cache["lake", "loud"] == "WATER")

        let told = Recorder<String>()
        await withCheckedContinuation { continuation in
            cache.set("rock", forKey: "hill", format: "loud") { result in
                told.add((try? result.get()) ?? "failed")
                continuation.resume()
            }
        }
        #expect(told.all == ["ROCK"])
    }

    @Test func storingAsItIsCompletesWithinTheCall() throws {
        let fixture = try CacheFixture<String>()
        let told = Recorder<String>()
        fixture.cache.set("water", forKey: "lake", on: .immediate) { told.add((try? $0.get()) ?? "failed") }
        #expect(told.all == ["water"])
        #expect(fixture.cache["lake"] == "water")
        fixture.cache.remove("lake", on: .immediate) { told.add("removed") }
        #expect(told.all == ["water", "removed"])
        #expect(fixture.cache["lake"] == nil)
    }

    @Test func valuesMayChangeTheCacheTheyLeave() async throws {
        let fixture = try CacheFixture<Clearing>()
        let cache = fixture.cache
        let ended = Counter()
        @Sendable func value() -> Clearing {
            Clearing { [weak cache] in
                cache?.clearMemory()
                cache?[Self.other] = nil
                ended.add(1)
            }
        }
        // Replaced, removed and cleared in memory, and replaced while they wait to be written.
        try await offPool {
            for _ in 0..<50 { cache.set(value(), forKey: "lake", on: .immediate) { _ in } }
            cache["lake"] = value()
            cache["lake"] = nil
            cache["lake"] = value()
            cache.clearMemory()
        }
        for _ in 0..<50 { try await cache.set(value(), forKey: "lake") }
        await cache.remove("lake")
        try await cache.set(value(), forKey: "lake")
        try await cache.removeAll()
        try await cache.flush()
        while ended.value < 103 { await Task.yield() }
    }

    private static let other: CacheKey = "other"

    @Test func changesWithoutWaitingKeepTheirOrder() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        // Far more than the disk's queue takes at once.
        for round in 0..<3000 {
            cache.set("\(round)", forKey: CacheKey("k\(round % 7)"), on: .immediate) { _ in }
            if round % 11 == 10 { cache.remove(CacheKey("k\(round % 7)"), on: .immediate) {} }
        }
        for key in 0..<7 { cache.set("last \(key)", forKey: CacheKey("k\(key)"), on: .immediate) { _ in } }
        try await cache.set("after", forKey: "k0")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "k0") == "after")
        for key in 1..<7 { #expect(try await cache.value(forKey: CacheKey("k\(key)")) == "last \(key)") }
        try await cache.flush()
        for key in 1..<7 {
            cache.clearMemory()
            #expect(try await cache.value(forKey: CacheKey("k\(key)")) == "last \(key)")
        }
    }

    @Test func removingTouchesOneKeyOfOneFormat() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        try await cache.set("water", forKey: "lake")
        try await cache.set("water", forKey: "lake", format: "loud")
        try await cache.set("rock", forKey: "hill", format: "loud")
        await cache.remove("lake", format: "loud")
        for clears in [false, true] {
            if clears { cache.clearMemory() }
            #expect(try await cache.value(forKey: "lake") == "water")
            #expect(try await cache.value(forKey: "lake", format: "loud") == nil)
            #expect(try await cache.value(forKey: "hill", format: "loud") == "ROCK")
        }
        // Harmless.
        await cache.remove("nothing")
        await cache.remove("lake", format: "unknown")
        cache.remove("lake", format: "unknown") {}
        #expect(try await cache.value(forKey: "lake") == "water")

        try await cache.set("water", forKey: "lake", format: "loud")
        await cache.removeAll(forKey: "lake")
        #expect(try await cache.value(forKey: "lake") == nil)
        #expect(try await cache.value(forKey: "lake", format: "loud") == nil)
    }

    @Test func removingEverythingReachesFormatsThatAreNotRegistered() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let other = fixture.another()
        other.register(CacheFormat("left over"))
        try await other.set("old", forKey: "lake", format: "left over")
        try await other.flush()
        try await cache.set("water", forKey: "lake")
        #expect(await cache.storedFormats == [.original, "left over"])
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // It runs here until it waits for the disk. Memory is empty by then.
            let removal = Task.immediate { try await cache.removeAll() }
            #expect(cache["lake"] == nil)
            try await removal.value
        } else {
            try await cache.removeAll()
            #expect(cache["lake"] == nil)
        }
        #expect(try await cache.value(forKey: "lake") == nil)
        other.clearMemory()
        #expect(try await other.value(forKey: "lake", format: "left over") == nil)
        #expect(try await cache.size == 0)
        // Usable afterwards.
        try await cache.set("again", forKey: "lake")
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") == "again")
    }

    @MainActor private final class Cell {
        private(set) var shown: [String] = []
        func show(_ text: String) { shown.append(text) }
    }

    @Test func completionsRunOnTheMainActorAndMayUseItsObjects() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache, cell = Cell()
        await withCheckedContinuation { done in
            cache.set("rock", forKey: "hill") { outcome in
                cell.show((try? outcome.get()) ?? "failed")
                done.resume()
            }
        }
        await withCheckedContinuation { done in
            cache.remove("hill") {
                cell.show("removed")
                done.resume()
            }
        }
        #expect(await cell.shown == ["rock", "removed"])
    }

    @Test @MainActor func completionsOnTheMainActorRunWithinTheCall() throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache, cell = Cell()
        cache.set("rock", forKey: "hill") { outcome in cell.show((try? outcome.get()) ?? "failed") }
        cache.remove("hill") { cell.show("removed") }
        #expect(cell.shown == ["rock", "removed"])
    }

    @Test @MainActor func removingEverythingKeepsItsOrder() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        try await cache.set("old", forKey: "lake")
        try await cache.set("old", forKey: "river")
        try await cache.flush()
        // Nothing is written while the writing thread makes bytes: all that follows waits in the queue or before it.
        let started = Gate(), held = DispatchSemaphore(value: 0)
        try await cache.disk(for: .original)?.set(forKey: "held") {
            started.open()
            held.wait()
            return [1]
        }
        await started.wait()
        // In a function that cannot wait, a call without a closure is this form.
        func setNow(_ value: String, _ key: String) { cache.set(value, forKey: CacheKey(key), completion: nil) }
        func removeNow(_ key: CacheKey) { cache.remove(key, completion: nil) }
        func removeAllNow() { cache.removeAll(completion: nil) }
        for number in 0..<3000 { setNow("before", "k\(number)") }
        let told = Recorder<String>(), done = Gate()
        cache.removeAll { outcome in
            if case .success = outcome { told.add("removed") }
            done.open()
        }
        // The disk still has the old ones, and nobody sees them.
        #expect(try await cache.value(forKey: "river") == nil)
        #expect(told.all.isEmpty)
        for number in 0..<3000 where number % 3 == 0 { setNow("after", "k\(number)") }
        setNow("new", "lake")
        setNow("soon gone", "hill")
        removeNow("hill")
        #expect(cache["lake"] == "new" && cache["river"] == nil && cache["k1"] == nil && cache["k0"] == "after")
        held.signal()
        await done.wait()
        #expect(told.all == ["removed"])
        try await cache.flush()
        for clears in [false, true] {
            if clears { cache.clearMemory() }
            #expect(try await cache.value(forKey: "lake") == "new")
            #expect(try await cache.value(forKey: "river") == nil)
            #expect(try await cache.value(forKey: "hill") == nil)
            for number in 0..<3000 {
                let value = try await cache.value(forKey: CacheKey("k\(number)"))
                #expect(value == (number % 3 == 0 ? "after" : nil))
            }
        }
        await withCheckedContinuation { done in cache.removeAll(levels: .memory) { _ in done.resume() } }
        #expect(cache["lake"] == nil)
        #expect(try await cache.value(forKey: "lake") == "new")
        // Without a completion.
        removeAllNow()
        setNow("last", "sea")
        try await cache.flush()
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake") == nil)
        #expect(try await cache.value(forKey: "sea") == "last")
    }

    @Test func oneLevelOrOneFormatIsCleared() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        var own = CacheFormat<String>("own")
        own.memoryCapacity = 1000
        cache.register(own)
        for format in cache.formatNames { try await cache.set("water", forKey: "lake", format: format) }

        try await cache.removeAll(format: "loud")
        #expect(cache["lake", "loud"] == nil && cache["lake"] == "water" && cache["lake", "own"] == "water")
        #expect(try await cache.value(forKey: "lake", format: "loud") == nil)

        try await cache.removeAll(levels: .disk)
        #expect(await cache.depth(of: "lake") == .memory)
        #expect(try await cache.info(forKey: "lake") == nil)

        for format in cache.formatNames { try await cache.set("water", forKey: "lake", format: format) }
        try await cache.removeAll(levels: .memory)
        #expect(cache["lake"] == nil && cache["lake", "own"] == nil)
        #expect(try await cache.value(forKey: "lake", format: "own") == "water")

        try await cache.removeAll(format: "own", levels: .memory)
        #expect(cache["lake", "own"] == nil)
        #expect(await cache.depth(of: "lake", format: "own") == .disk)
        try await cache.removeAll(format: "unknown")
    }

    @Test func memoryPressureEmptiesMemoryAndLeavesTheDisk() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        var own = CacheFormat<String>("own")
        own.memoryCapacity = 1000
        cache.register(own)
        try await cache.set("water", forKey: "lake")
        try await cache.set("water", forKey: "lake", format: "own")
        // What a program sends when it goes to the background.
        fixture.pressure.send(.critical)
        #expect(cache["lake"] == nil && cache["lake", "own"] == nil)
        #expect(cache.memorySize == 0)
        #expect(try await cache.value(forKey: "lake") == "water")
    }

    @Test func memoryHoldsItsCapacityByCost() async throws {
        #expect(CacheConfiguration.thumbnails.memoryCapacity == .mebibytes(3))
        let fixture = try CacheFixture<String> { $0.memoryCapacity = 100 }
        for number in 0..<50 {
            fixture.cache[CacheKey("k\(number)")] = String(repeating: "x", count: 30)
            #expect(fixture.cache.memorySize <= 100)
        }
        #expect(fixture.cache.memorySize > 0)
        let none = fixture.another { $0.memoryCapacity = 0 }
        none["k"] = "x"
        #expect(none["k"] == nil)
    }

    @Test func originalBytesAreStoredAsTheyCame() async throws {
        let fixture = try CacheFixture<JSONLike>()
        let cache = fixture.cache
        let bytes = Array("  {\"spaces\": 1}  ".utf8)
        try await cache.set(bytes: bytes, forKey: "json")
        #expect(try await cache.bytes(forKey: "json") == bytes)
        #expect(cache["json"]?.text == "{\"spaces\": 1}")
        #expect(await code { try await cache.set(bytes: [0xFF], forKey: "json") } == -500)
        #expect(try await cache.bytes(forKey: "json") == bytes)
    }

    @Test func failedEncodingLeavesTheValueInMemory() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        var format = CacheFormat<String>("broken")
        format.encode = { _ in throw SourceFailure() }
        cache.register(format)
        try await cache.set("water", forKey: "lake", format: "broken")
        #expect(cache["lake", "broken"] == "water")
        #expect(await code { try await cache.flush() } == -510)
        cache.clearMemory()
        #expect(try await cache.value(forKey: "lake", format: "broken") == nil)
    }

    @Test func sizesAreExactAfterPendingWrites() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        #expect(try await cache.size == 0)
        try await cache.set(String(repeating: "x", count: 1000), forKey: "lake")
        let one = try await cache.size
        #expect(one.bytes >= 1000 && one.bytes < 1000 + 2 * DiskCache.entryOverhead)
        try await cache.set(String(repeating: "x", count: 2000), forKey: "lake", format: "loud")
        #expect(try await cache.size(of: .original) == one)
        #expect(try await cache.size(of: "loud") == one + 1000)
        #expect(try await cache.size == one + one + 1000)
        #expect(await code { _ = try await cache.size(of: "unknown") } == -101)
        await cache.remove("lake")
        #expect(try await cache.size == one + 1000)
        // What another process left in a format that is not known here counts as well.
        let stranger = fixture.another()
        #expect(try await stranger.size == one + 1000)
    }

    @Test func eachChangeOfTheSizeIsFollowed() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        var updates = cache.sizeUpdates.makeAsyncIterator()
        let text = String(repeating: "x", count: 1000)
        let changes: [@Sendable () async throws -> Void] = [
            { try await cache.set(text, forKey: "lake") }, { try await cache.set(text + text, forKey: "lake") },
            { try await cache.set("", forKey: "hill") }, { await cache.remove("lake") }, { try await cache.removeAll() },
        ]
        var last: ByteCount?
        for change in changes {
            try await change()
            try await cache.flush()
            // Read once, and followed: both are the same.
            let size = try await cache.size
            #expect(size != last)
            while let update = await updates.next(), update != .some(size) { #expect(update == nil || update == last) }
            last = size
        }
        #expect(last == .zero)
    }

    @Test func sizeIsFollowedOnceKnown() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        // Nothing is opened while the thread that would do it makes bytes.
        let started = Gate(), held = DispatchSemaphore(value: 0)
        try await cache.disk(for: "loud")?.set(forKey: "held") {
            started.open()
            held.wait()
            throw SourceFailure()
        }
        await started.wait()
        var updates = cache.sizeUpdates.makeAsyncIterator()
        // Unknown until both formats have been opened.
        #expect(await updates.next() == .some(nil))
        held.signal()
        #expect(try await cache.size == 0)
        while let size = await updates.next(), size != .some(.zero) {}
        try await cache.set(String(repeating: "x", count: 1000), forKey: "lake")
        let size = try await cache.size
        while let update = await updates.next(), update != .some(size) {}
        try await cache.set("x", forKey: "lake", format: "loud")
        let both = try await cache.size
        #expect(both > size)
        while let update = await updates.next(), update != .some(both) {}
        try await cache.removeAll()
        while let update = await updates.next(), update != .some(.zero) {}
    }
}

/// Text whose spaces at both ends are no part of the value.
struct JSONLike: CacheableValue {
    let text: String
    init(cacheBytes: [UInt8]) throws {
        let text = try String(cacheBytes: cacheBytes)
        self.text = String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
    func cacheBytes() -> [UInt8] { Array(text.utf8) }
    var cacheCost: Int { text.utf8.count }
}

/// A value that runs a closure when it ends.
private final class Clearing: CacheableValue {
    private let onEnd: @Sendable () -> Void

    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    init(cacheBytes: [UInt8]) throws { onEnd = {} }
    deinit { onEnd() }

    func cacheBytes() -> [UInt8] { [1] }
    var cacheCost: Int { 1 }
}
